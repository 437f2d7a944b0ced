import type { ErasedExternalHandler } from '../../kernel/handler.ts'
import type { Context, ExternalHandler } from '../../handler.ts'
import { findOperation, type Operation } from '../../../catalog/index.ts'
import { readRecipientState } from '../../../storage/broadcasts/doubles.ts'
import {
  failRecipient,
  failRecipientOfMessage,
  holdJob,
  holdJobState,
  releaseRecipient,
  takeRecipient,
} from '../../../storage/broadcasts/sends.ts'
import { businessTime } from '../../clock.ts'
import type { App } from '../../app.ts'
import { doNotDisturbProblem } from '../consent/require.ts'
import type { Actor, CallTrace } from '../../kernel/context.ts'
import { executeExternal } from '../../kernel/external.ts'
import { Problem } from '../../kernel/problem.ts'
import { notifyEvents } from '../events/signal.ts'
import { createUlid } from '../../ids.ts'
import type { SendIntent } from '../messaging/send.ts'
import type { TemplateValues } from '../messaging/template-values.ts'
import { type Outcome, toOutcome } from './outcome.ts'

/*
 * One message of a broadcast: a call of messaging_send_template with all its checks and its machinery. The transaction
 * that commits its intent writes the message beside its recipient, so that nobody ever takes that recipient again; a
 * refusal that is certain takes it back in the transaction that undoes the message.
 */

/** A broadcast as its job sends it. */
export type Sending = {
  workspaceId: string
  broadcastId: string
  jobId: string
  channelId: string
  actor: Actor
  trace: CallTrace
}

export type DueRecipient = { contactId: string; values: TemplateValues; attempts: number }

type SendHandler = ExternalHandler<unknown, unknown, SendIntent>

/** Contacts that were two when the broadcast began, such as before a merge. */
const doubleProblem = (): Problem =>
  new Problem('conflict', 'The same person got the message as another contact.', { reason: 'double' })

/** What one send does beside sending: it takes the recipient, and gives it back or fails it. */
const createHandler = (
  app: App,
  { workspaceId, broadcastId, jobId }: Sending,
  { contactId, attempts }: DueRecipient,
  onSkip: () => void,
): SendHandler => {
  const whole = app.handlers.messaging_send_template as unknown as SendHandler
  const skip = (): Problem => {
    onSkip()
    return new Problem('conflict', 'The recipient is not sent to now.', { reason: 'job_state' })
  }
  return {
    ...whole,
    prepare: async (ctx, input) => {
      if (!(await holdJob(ctx.tx, workspaceId, jobId))) throw skip()
      const intent = await whole.prepare(ctx, input)
      const { messageId } = intent
      if (!(await takeRecipient(ctx.tx, workspaceId, { broadcastId, contactId, messageId }))) throw skip()
      const { dnd, isDouble } = await readRecipientState(ctx.tx, workspaceId, { broadcastId, contactId })
      if (dnd) throw doNotDisturbProblem('broadcasts')
      if (isDouble) throw doubleProblem()
      return intent
    },
    compensate: async (ctx: Context, intent, problem) => {
      await whole.compensate!(ctx as never, intent, problem)
      const outcome = toOutcome(problem, attempts)
      const { now } = ctx
      // Another server may have ended the job meanwhile: nobody would send to a recipient that waits again.
      const isOver = (await holdJobState(ctx.tx, workspaceId, jobId)) === 'done'
      const { code, message: error } = problem
      if (outcome.kind === 'refused')
        await failRecipientOfMessage(ctx.tx, workspaceId, intent.messageId, { ...outcome, now })
      else if (isOver)
        await failRecipientOfMessage(ctx.tx, workspaceId, intent.messageId, { code, error, now })
      else
        await releaseRecipient(ctx.tx, workspaceId, intent.messageId, {
          now,
          seconds: outcome.kind === 'later' ? outcome.seconds : 0,
        })
    },
  }
}

const sendOperation = findOperation('messaging_send_template') as Operation

/** Sends a recipient the message, unless somebody else did; undefined when it was not to be sent. */
export const sendToRecipient = async (
  app: App,
  sending: Sending,
  recipient: DueRecipient,
): Promise<Outcome | undefined> => {
  const { workspaceId, broadcastId, actor, trace, channelId } = sending
  const { contactId, values, attempts } = recipient
  let isSkipped = false
  const handler = createHandler(app, sending, recipient, () => {
    isSkipped = true
  })
  const input = { contact_id: contactId, channel_id: channelId, template: values }
  const key = `bulk_${createUlid()}`
  const call = { actor, op: sendOperation, input, key, trace, fresh: true, consent: { by: 'job' } } as const
  try {
    const { needsDelivery = true } = await executeExternal(
      app,
      call,
      handler as unknown as ErasedExternalHandler,
    )
    notifyEvents(app, { workspaceId, needsDelivery })
    return { kind: 'sent' }
  } catch (error) {
    if (isSkipped) return undefined
    if (!(error instanceof Problem)) throw error
    const outcome = toOutcome(error, attempts)
    // What was refused before anything was written, such as for a consent that was withdrawn meanwhile.
    if (outcome.kind === 'refused')
      await failRecipient(
        app.db,
        workspaceId,
        { broadcastId, contactId },
        {
          ...outcome,
          now: businessTime(app, workspaceId),
        },
      )
    return outcome
  }
}

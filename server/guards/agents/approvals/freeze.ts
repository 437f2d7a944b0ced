import { hash } from 'node:crypto'
import type { Operation } from '../../../../catalog/index.ts'
import { findBoundFacts } from '../../../../storage/agents/policy.ts'
import type { App } from '../../../app.ts'
import type { Call } from '../../../kernel/call.ts'
import type { Actor } from '../../../kernel/context.ts'
import { rehearse } from '../../../kernel/dry-run.ts'
import { Problem } from '../../../kernel/problem.ts'
import { findSendingChannel } from '../../../domains/messaging/channels.ts'
import { getPlanned, keepFound, SHOW_PLAN } from '../../snapshot/plan.ts'

type Input = Record<string, unknown>

type Asked = Pick<Call, 'actor' | 'op' | 'input' | 'trace' | 'plan'>

/** A call as it runs, the token of its plan, and what its dry run answered, which is what a person is shown. */
export type Frozen = { input: Input; output: Input; plan: string | undefined }

/**
 * Returns a call with what it only refers to written out as its dry run resolved it, so that what a person saw is
 * what is sent, whatever becomes of the saved reply, of the values of the contact or of its latest conversation
 * meanwhile; and with a plan of what a filter matched, or who gets the message, which is kept for as long as usual or
 * until `planUntil`. Throws 409 where nobody would get it.
 */
export const freezeCall = async (app: App, call: Asked, planUntil?: string): Promise<Frozen> => {
  const { output, pending } = await rehearse(app, call)
  const input = await writeOut(app, call, output)
  const kept = await keepFound(app, { ...call, input }, pending, planUntil)
  return { input, output, plan: kept ?? (await planFrozen(app, call, input)) }
}

const writeOut = async (app: App, { actor, op, input: given }: Asked, output: Input): Promise<Input> => {
  const input = fixStart(given, output)
  if (op.name === 'messaging_send_template') return await freezeChannel(app, actor, input, output)
  if (op.name === 'messaging_send_bulk') return await limitRecipients(app, actor, input, output)
  const { quick_message_id: quick, ...rest } = input
  if (op.name !== 'messaging_send_reply' || quick === undefined) return input
  const { type, text, content, media } = output['message'] as {
    type: string
    text: string | null
    content: unknown
    media: { url: string | null; file_name: string | null } | null
  }
  if (!media) return { ...rest, text, ...(content === null ? {} : { interactive: content }) }
  return {
    ...rest,
    media_url: media.url,
    type,
    ...(text === null ? {} : { caption: text }),
    ...(media.file_name === null ? {} : { file_name: media.file_name }),
  }
}

/** Fixes when a broadcast starts: a time of the workspace is another one in another zone. */
const fixStart = (input: Input, { starts_at: start }: Input): Input =>
  typeof start === 'string' ? { ...input, scheduled_at: Temporal.Instant.from(start).toString() } : input

/** Fixes the channel, and how many may get the message at most: as many as a person is shown. */
const limitRecipients = async (app: App, actor: Actor, input: Input, output: Input): Promise<Input> => {
  const channelId = input['channel_id'] ?? (await findSendingChannel(app.db, actor, undefined))?.id
  const most = Number(output['recipients'])
  if (most === 0)
    throw new Problem('conflict', 'Nobody would get the message; a dry run says why.', {
      reason: 'no_recipients',
    })
  return {
    ...input,
    ...(channelId === undefined ? {} : { channel_id: channelId }),
    max_recipients: Math.min(most, Number(input['max_recipients'] ?? most)),
  }
}

/**
 * Fixes the channel that the dry run has shown. For a phone it may not have told whose it is, nor on which channel that
 * contact wrote: it is the default channel then, whatever conversation there is elsewhere.
 */
const freezeChannel = async (app: App, actor: Actor, input: Input, output: Input): Promise<Input> => {
  const { contact_id: contactId, channel_id: named } = input
  if (named !== undefined) return input
  const { conversation_id: conversationId } = output
  const facts =
    typeof conversationId === 'string'
      ? await findBoundFacts(app.db, actor.workspace.id, { conversationId })
      : undefined
  // A conversation that the send begins has no id yet.
  const knownId = typeof contactId === 'string' ? contactId : undefined
  const channelId = facts?.channel_id ?? (await findSendingChannel(app.db, actor, knownId))?.id
  return channelId === undefined ? input : { ...input, channel_id: channelId }
}

/**
 * Returns the plan of a call as it is frozen. One with what it refers to written out is not the call that was planned,
 * so it gets a plan of its own; `call` was rehearsed with the given one before.
 */
const planFrozen = async (app: App, call: Asked, input: Input): Promise<string | undefined> => {
  if (call.plan === undefined || input === call.input) return call.plan
  const planned: Call = { ...call, input, plan: SHOW_PLAN }
  await rehearse(app, planned)
  return getPlanned(planned)?.plan.token
}

/** Returns the digest of a template as a dry run filled it in; undefined for calls that send none. */
export const digestTemplate = (op: Operation, output: Input | null): string | undefined => {
  const isBulk = op.name === 'messaging_send_bulk'
  const { preview, parts } =
    (isBulk && output && { ...output, preview: output['text'] }) ||
    (op.name === 'messaging_send_template' && output) ||
    {}
  return preview === undefined ? undefined : hash('sha256', JSON.stringify([preview, parts]), 'base64url')
}

/**
 * Throws 409 `template_changed` when a template, of which only the provider holds what is sent, reads otherwise than
 * what the person was shown. `shown`, `output`: what the dry runs then and now answered.
 */
export const requireSameTemplate = (op: Operation, shown: Input | null, output: Input): void => {
  const [before, now] = [digestTemplate(op, shown), digestTemplate(op, output)]
  if (before === undefined || before === now) return
  throw new Problem(
    'conflict',
    'The template changed after the call was asked for. Decline it, and ask anew.',
    {
      reason: 'template_changed',
    },
  )
}

import { deleteContactRow, lockContact } from '../../storage/contacts.ts'
import { type ConversationState, lockConversation } from '../../storage/conversations.ts'
import type { Db } from '../../storage/database.ts'
import { readMessage } from '../../storage/message-lists.ts'
import { insertMessages, type NewMessage } from '../../storage/messages.ts'
import {
  type ProviderCall,
  deleteEmptyConversation,
  deletePendingMessage,
  findOutboundMessage,
  isContactUntouched,
  recordProviderCall,
  type Recipient,
  readWindowFacts,
  type SendingChannel,
} from '../../storage/sends.ts'
import type { Context } from '../core/context.ts'
import { createUlid } from '../ids.ts'
import { toConversationContext } from '../inbox/conversation-context.ts'
import { toWindow } from '../inbox/window.ts'
import type { CallOptions } from '../core/handler.ts'
import { Problem } from '../core/problem.ts'
import { isOutcomeUnknown, type OutgoingMessage, providerCodeOf, type SentMessage } from '../provider/port.ts'
import {
  applyFailureSideEffects,
  type EmitCreated,
  markSent,
  RE_ENGAGEMENT_CODE,
  MARKETING_STOPPED_CODE,
} from './message-status.ts'
import { showMessage } from './view.ts'

/**
 * The intent of a send. `prepare` commits the message as pending, in its conversation and under a reference
 * of its own, so that a status that arrives before the response finds it. `call` sends it, once. `complete`
 * marks it as sent and emits the events of what was created with it. A refusal undoes everything: the
 * message, and a conversation or contact that only this send created.
 *
 * The intent is persisted between these steps, so its properties keep their names. `opens`, `makesContact`:
 * this send created the conversation, the contact.
 */
export type SendIntent = {
  workspaceId: string
  messageId: string
  conversationId: string
  contactId: string
  opens: boolean
  makesContact: boolean
  phoneNumberId: string
  outgoing: OutgoingMessage
  writtenAt: string
}

/**
 * How long to wait for the status of a send without a response where the provider cannot be queried (the
 * real one cannot), in milliseconds of real time since its last call: by then the status of an accepted
 * message has arrived, and carries our reference.
 */
const STATUS_WAIT_MS = 60_000
/**
 * How long a call may still be in flight, in milliseconds of real time: the provider or our own process may
 * be slow. Until then a message that the provider does not have may still arrive there.
 */
export const CALL_IN_FLIGHT_MS = 30_000

type SendTarget = {
  conversation: Pick<ConversationState, 'id' | 'episode'>
  channel: SendingChannel
  recipient: Recipient
  opens: boolean
  makesContact: boolean
}
type MessageContent = Pick<
  NewMessage,
  'type' | 'text' | 'template_name' | 'template_language' | 'reply_to_id' | 'media'
>

/**
 * Inserts the message as pending. `body`: the provider's form of it. `replyTo`: the provider's id of the
 * message that it replies to.
 */
export const insertPendingMessage = async (
  ctx: Context,
  target: SendTarget,
  content: MessageContent,
  body: OutgoingMessage['body'],
  replyTo?: string,
): Promise<SendIntent> => {
  const { conversation, channel, recipient, opens, makesContact } = target
  const workspaceId = ctx.actor.workspace.id
  const reference = `msg_${createUlid()}`
  // Real time: the provider's silence is not measured by business time, which can be advanced.
  const call: ProviderCall = { called_at: new Date().toISOString(), opens, makes_contact: makesContact }
  const [messageId] = await insertMessages(ctx.tx, workspaceId, [
    {
      ...content,
      conversation_id: conversation.id,
      channel_id: channel.id,
      episode: conversation.episode,
      direction: 'outbound',
      status: 'pending',
      created_at: ctx.now,
      staff_id: ctx.actor.staff.id,
      reference,
      content: { call },
    },
  ])
  const address =
    recipient.phone === null ? { recipient: recipient.chatapp_user_id! } : { to: recipient.phone }
  return {
    workspaceId,
    messageId: messageId!,
    conversationId: conversation.id,
    contactId: recipient.id,
    opens,
    makesContact,
    phoneNumberId: channel.provider_phone_number_id!,
    writtenAt: ctx.now,
    outgoing: { ...address, reference, ...(replyTo === undefined ? {} : { replyTo }), body },
  }
}

/** Sends the message, unless an earlier call did. */
const callProvider = async (intent: SendIntent, options: CallOptions): Promise<SentMessage> => {
  if (options.again) {
    const earlier = await findEarlierSend(intent, options)
    if (earlier) return earlier
  }
  try {
    const sender = { phoneNumberId: intent.phoneNumberId }
    return await options.provider.send(sender, intent.outgoing, options.signal)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    if (error.code === 'upstream_unavailable' && !isOutcomeUnknown(error))
      await clearCallTime(options.db, intent)
    throw await translateRefusal(intent, options, error)
  }
}

/**
 * Returns the message that an earlier call sent; undefined when it may be sent now. Throws 504 while the
 * outcome of the earlier call is open.
 */
const findEarlierSend = async (
  { workspaceId, messageId, phoneNumberId, outgoing: { reference } }: SendIntent,
  { provider, signal, db }: CallOptions,
): Promise<SentMessage | undefined> => {
  const row = await findOutboundMessage(db, workspaceId, { id: messageId })
  if (!row)
    throw new Problem(
      'upstream_error',
      'The message was withdrawn in the meantime. Send it again with a new Idempotency-Key.',
    )
  if (row.provider_id !== null) return { id: row.provider_id }
  const calledAt = row.call?.called_at ?? null
  if (calledAt !== null) {
    const found = await provider.findSent({ phoneNumberId }, reference, signal)
    if (typeof found === 'object') return found
    const timeoutMs = found === 'unknown' ? STATUS_WAIT_MS : CALL_IN_FLIGHT_MS
    const waitMs = Date.parse(calledAt) + timeoutMs - Date.now()
    if (waitMs > 0) throw outcomePendingProblem(waitMs)
  }
  if (!(await recordProviderCall(db, workspaceId, messageId, calledAt, new Date().toISOString())))
    throw outcomePendingProblem(CALL_IN_FLIGHT_MS)
  return undefined
}

const outcomePendingProblem = (waitMs: number): Problem =>
  new Problem(
    'timeout',
    'The messaging provider has not yet confirmed the message. ' +
      'Retry with the same Idempotency-Key; the message is never sent twice.',
    {},
    { 'Retry-After': String(Math.ceil(waitMs / 1000)) },
  )

/**
 * Forgets the call: the provider throttled it or could not be reached, so nothing was done. The next call
 * need not look for the message, nor wait.
 */
const clearCallTime = async (db: Db, { workspaceId, messageId }: SendIntent): Promise<void> => {
  const row = await findOutboundMessage(db, workspaceId, { id: messageId })
  if (row?.call) await recordProviderCall(db, workspaceId, messageId, row.call.called_at, null)
}

/** Translates the provider's refusal into the problem that the caller gets. */
const translateRefusal = async (
  { workspaceId, conversationId, outgoing }: SendIntent,
  { db, now }: CallOptions,
  problem: Problem,
): Promise<Problem> => {
  const code = providerCodeOf(problem)
  // Templates need no window: reported for one, it is an error of the provider.
  if (problem.code === 'window_closed' && outgoing.body.type === 'template')
    return new Problem('upstream_error', problem.message, problem.extras)
  if (
    problem.code === 'window_closed' ||
    (code === RE_ENGAGEMENT_CODE && outgoing.body.type !== 'template')
  ) {
    const facts = await readWindowFacts(db, workspaceId, conversationId)
    return windowClosedProblem(facts && toWindow({ ...facts, window_corrected_at: now }, now), {
      provider_code: RE_ENGAGEMENT_CODE,
    })
  }
  if (code === MARKETING_STOPPED_CODE) return doNotDisturbProblem({ provider_code: code })
  return problem
}

export const windowClosedProblem = (
  window: ReturnType<typeof toWindow> | undefined,
  extras: Record<string, unknown> = {},
): Problem =>
  new Problem(
    'window_closed',
    'The reply window is closed: the provider accepts no free-form messages now. ' +
      'Send an approved template instead.',
    { window, ...extras },
  )

export const doNotDisturbProblem = (extras: Record<string, unknown> = {}): Problem =>
  new Problem('conflict', 'The contact is set to do not disturb, so marketing templates are not sent.', {
    reason: 'do_not_disturb',
    ...extras,
  })

/**
 * Undoes what `prepare` wrote after the provider refused, and records what the refusal means. A contact or
 * conversation that others have used in the meantime stays, and its events are emitted.
 */
export const undoSend = async (
  ctx: Context<'contact.updated/1'>,
  intent: SendIntent,
  problem: Problem,
  emitCreated?: EmitCreated,
): Promise<void> => {
  const flow = toConversationContext(ctx)
  const { tx, workspaceId } = flow
  const contact = await lockContact(tx, workspaceId, intent.contactId)
  const conversation = await lockConversation(tx, workspaceId, intent.conversationId)
  if (!(await deletePendingMessage(tx, workspaceId, intent.messageId)) || !conversation) return
  const code = providerCodeOf(problem)
  const opens = intent.opens && !(await deleteEmptyConversation(tx, workspaceId, conversation.id))
  // A contact who declined marketing is kept, so that the choice is not lost.
  const makesContact =
    intent.makesContact &&
    contact &&
    (code === MARKETING_STOPPED_CODE || !(await isContactUntouched(tx, workspaceId, intent.contactId)))
  if (intent.makesContact && contact && !makesContact)
    await deleteContactRow(tx, workspaceId, intent.contactId)
  await emitCreated?.({ opens, makes_contact: makesContact }, conversation)
  await applyFailureSideEffects(flow, conversation, code, intent.writtenAt)
}

/**
 * Marks the message as sent, unless a status did, and returns it. In a dry run, what would be created has no
 * id.
 */
export const completeSend = async (
  ctx: Context<'message.sent/1'>,
  intent: SendIntent,
  { id }: SentMessage,
  emitCreated?: EmitCreated,
) => {
  await markSent(toConversationContext(ctx), { id: intent.messageId }, id, ctx.now, emitCreated)
  const message = showMessage(ctx, (await readMessage(ctx.tx, intent.workspaceId, intent.messageId))!)
  const conversationId = ctx.dryRun && intent.opens ? null : intent.conversationId
  return {
    message: ctx.dryRun ? { ...message, id: null, conversation_id: conversationId } : message,
    conversation_id: conversationId,
  }
}

/**
 * The parts of a send that are the same for every kind of message, unless it can create a contact or a
 * conversation. Each dry run has a provider id of its own, so that two dry runs do not wait for each other.
 */
export const sharedSendParts = {
  call: callProvider,
  compensate: undoSend,
  dryRunResult: (intent: SendIntent): SentMessage => ({ id: `dry-run ${intent.outgoing.reference}` }),
}

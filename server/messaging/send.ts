import { deleteContactRow, lockContact } from '../../storage/contacts.ts'
import { type ConversationState, lockConversation } from '../../storage/conversations.ts'
import type { Db } from '../../storage/database.ts'
import { readMessage } from '../../storage/message-lists.ts'
import { insertMessages, type NewMessage } from '../../storage/messages.ts'
import {
  type CallNote,
  deleteIfEmpty,
  deletePending,
  findOutbound,
  isUntouched,
  noteCall,
  type Recipient,
  readWindowFacts,
  type SendingChannel,
} from '../../storage/sends.ts'
import type { Context } from '../core/context.ts'
import { ulid } from '../ids.ts'
import { flowOf } from '../inbox/lifecycle.ts'
import { windowOf } from '../inbox/window.ts'
import type { How, ProviderHandler } from '../core/handler.ts'
import { Problem } from '../core/problem.ts'
import { outcomeUnknown, type Outgoing, providerCode, type Sent } from '../provider/port.ts'
import { announce, learn, markSent, RE_ENGAGEMENT, STOPPED_MARKETING } from './delivery.ts'
import { showMessage } from './view.ts'

/**
 * How every message is sent. `prepare` commits the message as pending under a reference of its own, in its
 * conversation, so that a status that is quicker than the answer finds it; `call` sends it, once; `settle`
 * makes it sent, and announces what was made on the way. A refusal takes all of it back: the message, and a
 * conversation or contact that only this send made.
 */
export type SendIntent = {
  workspaceId: string
  messageId: string
  conversationId: string
  contactId: string
  opens: boolean
  makesContact: boolean
  phoneNumberId: string
  outgoing: Outgoing
  writtenAt: string
}

/**
 * How long a send without an answer is waited for where the provider cannot be asked (the true one cannot),
 * in milliseconds of real time since its last call: by then the status of a message that it did take has
 * come, and carries our reference.
 */
const SETTLE_MS = 60_000
/**
 * How long a call may still be at work, in milliseconds of real time: a provider that is slow, or our own
 * process that is. Until then a message that is not there may yet come.
 */
export const AT_WORK_MS = 30_000

type Place = {
  conversation: Pick<ConversationState, 'id' | 'episode'>
  channel: SendingChannel
  recipient: Recipient
  opens: boolean
  makesContact: boolean
}
type Content = Pick<
  NewMessage,
  'type' | 'text' | 'template_name' | 'template_language' | 'reply_to_id' | 'media'
>

/**
 * Writes the message as pending. `sends`: what the provider is given, `answers`: the provider's id of the
 * message it replies to.
 */
export const writePending = async (
  ctx: Context,
  place: Place,
  content: Content,
  sends: Outgoing['body'],
  answers?: string,
): Promise<SendIntent> => {
  const { conversation, channel, recipient, opens, makesContact } = place
  const workspaceId = ctx.actor.workspace.id
  const reference = `msg_${ulid()}`
  // Real time: how long the provider is silent is no matter of the business's clock, which can be advanced.
  const call: CallNote = { called_at: new Date().toISOString(), opens, makes_contact: makesContact }
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
    outgoing: { ...address, reference, ...(answers === undefined ? {} : { replyTo: answers }), body: sends },
  }
}

/** Sends the message, unless an earlier call did. */
const call = async (intent: SendIntent, how: How): Promise<Sent> => {
  if (how.again) {
    const earlier = await sentEarlier(intent, how)
    if (earlier) return earlier
  }
  try {
    return await how.provider.send({ phoneNumberId: intent.phoneNumberId }, intent.outgoing, how.signal)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    if (error.code === 'upstream_unavailable' && !outcomeUnknown(error)) await noteRefusal(how.tx, intent)
    throw await explain(intent, how, error)
  }
}

/** The message that an earlier call sent; undefined when it may be sent now. */
const sentEarlier = async (
  { workspaceId, messageId, phoneNumberId, outgoing: { reference } }: SendIntent,
  { provider, signal, tx }: How,
): Promise<Sent | undefined> => {
  const row = await findOutbound(tx, workspaceId, { id: messageId })
  if (!row)
    throw new Problem(
      'upstream_error',
      'The message was taken back meanwhile. Send it anew, with a fresh Idempotency-Key.',
    )
  if (row.provider_id !== null) return { id: row.provider_id }
  const calledAt = row.call?.called_at ?? null
  if (calledAt !== null) {
    const found = await provider.findSent({ phoneNumberId }, reference, signal)
    if (typeof found === 'object') return found
    const wait = Date.parse(calledAt) + (found === 'unknown' ? SETTLE_MS : AT_WORK_MS) - Date.now()
    if (wait > 0) throw unanswered(wait)
  }
  if (!(await noteCall(tx, workspaceId, messageId, calledAt, new Date().toISOString())))
    throw unanswered(AT_WORK_MS)
  return undefined
}

const unanswered = (waitMs: number): Problem =>
  new Problem(
    'timeout',
    'The messaging provider has not said yet whether it took the message. Retry with the same Idempotency-Key; it never runs twice.',
    {},
    { 'Retry-After': String(Math.ceil(waitMs / 1000)) },
  )

/**
 * Nothing was done, as too much is asked of the provider or it cannot be reached: the next call need not
 * find out, nor wait.
 */
const noteRefusal = async (tx: Db, { workspaceId, messageId }: SendIntent): Promise<void> => {
  const row = await findOutbound(tx, workspaceId, { id: messageId })
  if (row?.call) await noteCall(tx, workspaceId, messageId, row.call.called_at, null)
}

/** What the provider's refusal means to who sends. */
const explain = async (
  { workspaceId, conversationId, outgoing }: SendIntent,
  { tx, now }: How,
  problem: Problem,
): Promise<Problem> => {
  const code = providerCode(problem)
  // Templates need no window: said of one, it is the provider's fault.
  if (problem.code === 'window_closed' && outgoing.body.type === 'template')
    return new Problem('upstream_error', problem.message, problem.extras)
  if (problem.code === 'window_closed' || (code === RE_ENGAGEMENT && outgoing.body.type !== 'template')) {
    const facts = await readWindowFacts(tx, workspaceId, conversationId)
    return windowClosed(facts && windowOf({ ...facts, window_corrected_at: now }, now), {
      provider_code: RE_ENGAGEMENT,
    })
  }
  if (code === STOPPED_MARKETING) return doNotDisturb({ provider_code: code })
  return problem
}

export const windowClosed = (
  window: ReturnType<typeof windowOf> | undefined,
  more: Record<string, unknown> = {},
): Problem =>
  new Problem(
    'window_closed',
    'The reply window is closed: the provider takes no free-form message now. Send an approved template instead.',
    { window, ...more },
  )

export const doNotDisturb = (more: Record<string, unknown> = {}): Problem =>
  new Problem('conflict', 'The contact does not want to be disturbed, so marketing templates are not sent.', {
    reason: 'do_not_disturb',
    ...more,
  })

/**
 * The provider refused: what was prepared is taken back, and what the refusal tells is noted. What others
 * used meanwhile stays, and is announced.
 */
const refused = async (ctx: Context, intent: SendIntent, problem: Problem): Promise<void> => {
  const flow = flowOf(ctx)
  const { tx, workspaceId } = flow
  const contact = await lockContact(tx, workspaceId, intent.contactId)
  const conversation = await lockConversation(tx, workspaceId, intent.conversationId)
  if (!(await deletePending(tx, workspaceId, intent.messageId)) || !conversation) return
  const code = providerCode(problem)
  const opens = intent.opens && !(await deleteIfEmpty(tx, workspaceId, conversation.id))
  // That somebody wants no marketing is worth keeping.
  const makesContact =
    intent.makesContact &&
    contact &&
    (code === STOPPED_MARKETING || !(await isUntouched(tx, workspaceId, intent.contactId)))
  if (intent.makesContact && contact && !makesContact)
    await deleteContactRow(tx, workspaceId, intent.contactId)
  await announce(flow, { opens, makes_contact: makesContact }, conversation)
  await learn(flow, conversation, code, intent.writtenAt)
}

/**
 * Makes the message sent, unless a status did, and answers it as it is now. What a rehearsal would make has
 * no id.
 */
export const settleSend = async (ctx: Context, intent: SendIntent, { id }: Sent) => {
  await markSent(flowOf(ctx), { id: intent.messageId }, id, ctx.now)
  const message = showMessage(ctx, (await readMessage(ctx.tx, intent.workspaceId, intent.messageId))!)
  const conversationId = ctx.dryRun && intent.opens ? null : intent.conversationId
  return {
    message: ctx.dryRun ? { ...message, id: null, conversation_id: conversationId } : message,
    conversation_id: conversationId,
  }
}

/**
 * The parts of a send that are the same for every kind. The provider's id of a rehearsal is its own: two
 * rehearsals must not wait for each other.
 */
export const sending = {
  call,
  refused,
  rehearse: (intent: SendIntent): Sent => ({ id: `rehearsed ${intent.outgoing.reference}` }),
}

/** An operation in three parts as the list of handlers holds it, whatever its intent is. */
export const inThreeParts = <I, O, N, R>(handler: ProviderHandler<I, O, N, R>): ProviderHandler<I, O> =>
  handler as unknown as ProviderHandler<I, O>

import type { Context, CallOptions } from '../../handler.ts'
import type { StoredContent } from '../../../catalog/message-content.ts'
import { deleteContactRows, lockContact } from '../../../storage/contacts/contacts.ts'
import { type ConversationState, lockConversation } from '../../../storage/conversations/conversations.ts'
import { readMessage } from '../../../storage/messages/lists.ts'
import { insertMessages, type NewMessage } from '../../../storage/messages/messages.ts'
import {
  type ProviderCall,
  deleteEmptyConversation,
  deletePendingMessage,
  findOutboundMessage,
  isContactUntouched,
  markHeld,
  type Recipient,
  readWindowFacts,
  type SendingChannel,
} from '../../../storage/messages/sends.ts'
import { createUlid } from '../../ids.ts'
import { applyCustomerReport, type JoinEvent, parseCustomer } from '../inbound/customers.ts'
import type { CorrectionEvent } from '../inbox/corrections.ts'
import { toChangeContext } from '../../change-context.ts'
import { toWindow } from '../inbox/window.ts'
import { Problem } from '../../kernel/problem.ts'
import { type OutgoingMessage, providerCodeOf, type SentMessage } from '../../provider/port.ts'
import {
  applyFailureSideEffects,
  type EmitCreated,
  failUnconfirmed,
  markSent,
  RE_ENGAGEMENT_CODE,
  MARKETING_STOPPED_CODE,
} from './message-status.ts'
import { doNotDisturbProblem } from '../consent/require.ts'
import { requireInserted } from './external-id.ts'
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
  /** A job delivers it to the channel's own URL: the provider has no part in it. */
  queued?: true
}

type SendTarget = {
  conversation: Pick<ConversationState, 'id' | 'episode'>
  channel: SendingChannel
  recipient: Recipient
  opens: boolean
  makesContact: boolean
}
type MessageContent = Pick<
  NewMessage,
  'type' | 'text' | 'template_name' | 'template_language' | 'reply_to_id' | 'media' | 'external_id'
> & { content?: StoredContent | undefined }

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
  const call: ProviderCall = { opens, makes_contact: makesContact, contact_id: recipient.id }
  const [inserted] = await insertMessages(ctx.tx, workspaceId, [
    {
      ...content,
      conversation_id: conversation.id,
      channel_id: channel.id,
      episode: conversation.episode,
      direction: 'outbound',
      status: 'pending',
      created_at: ctx.now,
      staff_id: ctx.actor.staff.id,
      key_id: ctx.actor.key.id,
      approved_by: ctx.actor.approvedBy?.staffId ?? null,
      reference,
      content: { ...content.content, call },
    },
  ])
  const messageId = await requireInserted(ctx, inserted, content.external_id ?? undefined)
  const address =
    recipient.phone === null
      ? { recipient: recipient.chatapp_user_id! }
      : { to: recipient.provider_phone ?? recipient.phone }
  return {
    workspaceId,
    messageId,
    conversationId: conversation.id,
    contactId: recipient.id,
    opens,
    makesContact,
    phoneNumberId: channel.provider_phone_number_id!,
    writtenAt: ctx.now,
    outgoing: { ...address, reference, ...(replyTo === undefined ? {} : { replyTo }), body },
  }
}

/** Sends the message, once: a message whose outcome is unknown is never sent again. */
const callProvider = async (intent: SendIntent, options: CallOptions): Promise<SentMessage> => {
  try {
    const sender = { phoneNumberId: intent.phoneNumberId }
    return await options.services.provider.send(sender, intent.outgoing, options.signal)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw await translateRefusal(intent, options, error)
  }
}

/**
 * Returns what the provider has reported of the message, or the message itself where it can be asked for it.
 * When it cannot be asked, or has no such message, nothing is known: the call may be in flight.
 */
const findSentMessage = async (
  { workspaceId, messageId, phoneNumberId, outgoing: { reference } }: SendIntent,
  { services: { provider }, signal, db, storedOnly }: CallOptions,
): Promise<SentMessage | undefined> => {
  const row = await findOutboundMessage(db, workspaceId, { id: messageId })
  if (!row) return undefined
  if (row.provider_id !== null) return { id: row.provider_id }
  if (storedOnly) return undefined
  const found = await provider.findSent({ phoneNumberId }, reference, signal).catch((error: unknown) => {
    if (error instanceof Problem) return 'unknown' as const
    throw error
  })
  return typeof found === 'object' ? found : undefined
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
  if (code === MARKETING_STOPPED_CODE)
    return doNotDisturbProblem('marketing templates', { provider_code: code })
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

/**
 * Undoes what `prepare` wrote after the provider refused, and records what the refusal means. A contact or
 * conversation that others have used in the meantime stays, and its events are emitted unless others have.
 */
export const undoSend = async (
  ctx: Context<'contact.updated/1' | 'consent.changed/1'>,
  intent: SendIntent,
  problem: Problem,
  emitCreated?: EmitCreated,
): Promise<void> => {
  const flow = toChangeContext(ctx)
  const { tx, workspaceId } = flow
  const contact = await lockContact(tx, workspaceId, intent.contactId)
  const conversation = await lockConversation(tx, workspaceId, intent.conversationId)
  const unannounced = await deletePendingMessage(tx, workspaceId, intent.messageId)
  if (!unannounced || !conversation) return
  const code = providerCodeOf(problem)
  const opens = unannounced.opens && !(await deleteEmptyConversation(tx, workspaceId, conversation.id))
  // A contact who declined marketing is kept, so that the choice is not lost.
  const makesContact =
    unannounced.makes_contact &&
    contact &&
    (code === MARKETING_STOPPED_CODE || !(await isContactUntouched(tx, workspaceId, intent.contactId)))
  if (unannounced.makes_contact && contact && !makesContact)
    await deleteContactRows(tx, workspaceId, [intent.contactId])
  await emitCreated?.({ opens, makes_contact: makesContact }, conversation)
  await applyFailureSideEffects(flow, conversation, code, intent.writtenAt)
}

/**
 * Fails a message that was never confirmed, in place of undoing the send: the customer may have it. Returns
 * undefined when it has been confirmed in the meantime.
 */
export const giveUpSend = async (
  ctx: Context<'message.failed/1' | CorrectionEvent>,
  { messageId, conversationId }: SendIntent,
  { extras }: Problem,
  emitCreated?: EmitCreated,
): Promise<Problem | undefined> => {
  const flow = toChangeContext(ctx)
  const reason = 'The provider did not confirm the message within 24 hours.'
  const isFailed = await failUnconfirmed(flow, messageId, reason, emitCreated)
  if (!isFailed && (await findOutboundMessage(flow.tx, flow.workspaceId, { id: messageId }))) return undefined
  return new Problem(
    'conflict',
    'The messaging provider has not confirmed the message within 24 hours, so it counts as failed. ' +
      'Send it again with a new Idempotency-Key if the customer should get it nevertheless.',
    { ...extras, message_id: messageId, conversation_id: conversationId },
  )
}

/**
 * Marks the message as sent, unless a status did or a job delivers it, and returns it. In a dry run, what
 * would be created has no id.
 */
export const completeSend = async (
  ctx: Context<'message.sent/1' | JoinEvent>,
  intent: SendIntent,
  { id, customer, held }: SentMessage,
  emitCreated?: EmitCreated,
) => {
  const flow = toChangeContext(ctx)
  const deferred: Parameters<typeof flow.emit>[] = []
  const emitLater: typeof flow.emit = (...event) => void deferred.push(event)
  // Before the message: contacts are locked first. Its events come after that of a contact which the send made.
  const report = customer && parseCustomer(customer, {}, null)
  if (report)
    await applyCustomerReport({ ...flow, emit: intent.makesContact ? emitLater : flow.emit }, report)
  if (!intent.queued) await markSent(flow, { id: intent.messageId }, id, ctx.now, emitCreated)
  if (held) await markHeld(ctx.tx, intent.workspaceId, intent.messageId, held)
  for (const event of deferred) flow.emit(...event)
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
  findOutcome: findSentMessage,
  mayRepeat: false,
  openDetail:
    'The messaging provider has not confirmed the message, so it is not known whether the customer gets it. ' +
    'It stays pending and is never sent again by itself. Repeat the call with the same Idempotency-Key to ' +
    'learn what became of it; a new key sends it again.',
  compensate: undoSend,
  giveUp: giveUpSend,
  dryRunResult: (intent: SendIntent): SentMessage => ({ id: `dry-run ${intent.outgoing.reference}` }),
}

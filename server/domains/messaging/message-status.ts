import { findConsent } from '../../../storage/contacts/consents.ts'
import { lockContact, readContact, updateContactRow } from '../../../storage/contacts/contacts.ts'
import { lockConversation, type ConversationState } from '../../../storage/conversations/conversations.ts'
import { readMessage } from '../../../storage/messages/lists.ts'
import {
  type ProviderCall,
  type DeliveryState,
  findOutboundMessage,
  isUnconfirmed,
  lockOutboundMessage,
  type OutboundMessageRow,
  updateDeliveryState,
  markMessageSent,
} from '../../../storage/messages/sends.ts'
import { markAnnounced, type Unannounced } from '../../../storage/events/unannounced.ts'
import { eventContact } from '../contacts/view.ts'
import type { ChangeContext } from '../../change-context.ts'
import { invalidateReports } from '../reports/invalidate.ts'
import { type CorrectionEvent, correctReplies, recountReplies } from '../inbox/corrections.ts'
import {
  applyWindowCorrection,
  toEventConversation,
  applyOutboundMessage,
  isOvertaken,
} from '../inbox/lifecycle.ts'
import { addMarketingConsent, ALL_CHANNELS, MARKETING } from '../consent/record.ts'
import { showSentMessage } from './view.ts'

/** Error codes of the provider that carry information about the customer. */
export const RE_ENGAGEMENT_CODE = 131047
export const MARKETING_STOPPED_CODE = 131050

/**
 * A status that the provider reports of a message it accepted. `at`: ISO 8601 UTC. `reference`: the
 * reference that we sent along, where the provider returned it.
 */
export type MessageStatusUpdate = {
  providerId: string
  reference?: string | undefined
  status: 'sent' | 'delivered' | 'read' | 'failed'
  at: string
  error?: { code: number; title: string; details: string | null } | undefined
}

/**
 * Locks what a change of a message may touch, in the order that every writer uses: contact, conversation,
 * message.
 */
const lockMessageAndConversation = async (
  flow: ChangeContext,
  row: OutboundMessageRow,
  providerId?: string,
): Promise<{ message: OutboundMessageRow; conversation: ConversationState } | undefined> => {
  if (row.contact_id !== null) await lockContact(flow.tx, flow.workspaceId, row.contact_id)
  const conversation = await lockConversation(flow.tx, flow.workspaceId, row.conversation_id)
  const message = await lockOutboundMessage(flow.tx, flow.workspaceId, row.id, providerId)
  return conversation && message && { conversation, message }
}

/**
 * Moves an unconfirmed message to sent, exactly once: on the response to the call or on a status that arrives
 * earlier, whichever is first. Emits the events of the contact or conversation that the send created too.
 * Returns false when the message was confirmed before.
 */
export const markSent = async (
  flow: ChangeContext<'message.sent/1'>,
  key: { reference: string } | { id: string },
  providerId: string,
  at: string,
  emitCreated?: EmitCreated,
): Promise<boolean> => {
  const row = await findOutboundMessage(flow.tx, flow.workspaceId, key)
  return row !== undefined && (await markAccepted(flow, row, providerId, at, emitCreated))
}

const markAccepted = async (
  flow: ChangeContext<'message.sent/1'>,
  row: OutboundMessageRow,
  providerId: string,
  at: string,
  emitCreated?: EmitCreated,
): Promise<boolean> => {
  const locked = isUnconfirmed(row) ? await lockMessageAndConversation(flow, row) : undefined
  if (!locked || !isUnconfirmed(locked.message)) return false
  const { message, conversation } = locked
  await markMessageSent(
    flow.tx,
    flow.workspaceId,
    message.id,
    providerId,
    clampToCreation(at, message.created_at),
  )
  if (message.call) await emitCreated?.(message.call, conversation)
  const wasOvertaken = isOvertaken(conversation, message.id)
  await applyOutboundMessage(flow, conversation, {
    id: message.id,
    createdAt: message.created_at,
    staffId: message.staff_id,
    keyId: message.key_id,
  })
  if (wasOvertaken || conversation.last_message_id !== message.id || message.status === 'failed')
    await recountReplies(flow, conversation, { ...message, episode: conversation.episode })
  else await invalidateReports(flow.tx, flow.workspaceId, message.created_at, flow.now)
  const sent = await loadEventMessage(flow, message.id)
  if (sent) flow.emit('message.sent/1', sent)
  return true
}

/** Emits the events of the contact or conversation that a send created. A reply creates neither. */
export type EmitCreated = (created: ProviderCall, conversation: Unannounced['conversation']) => Promise<void>

/** `messageId`: of the message that was sent, whose author the events name where no caller is at hand. */
export const createEmitCreated =
  (flow: ChangeContext<'contact.created/1' | 'conversation.created/1'>, messageId?: string): EmitCreated =>
  async ({ opens, makes_contact: makesContact, contact_id: madeId }, conversation) => {
    // The contact that was made may have been merged into one that was there before.
    const isSame = madeId === undefined || madeId === conversation.contact_id
    const contact =
      makesContact && isSame && conversation.contact_id !== null
        ? await readContact(flow.tx, flow.workspaceId, conversation.contact_id)
        : undefined
    const sent =
      messageId !== undefined && (contact || opens) ? await loadEventMessage(flow, messageId) : undefined
    const author = sent?.actor ? { actor: sent.actor } : {}
    if (contact) flow.emit('contact.created/1', { contact: eventContact(contact.contact), ...author })
    if (opens)
      flow.emit('conversation.created/1', { conversation: toEventConversation(conversation), ...author })
  }

/**
 * Tells of the contact or conversation that a send created while its outcome is unknown. They stay, whatever it was,
 * and others change them meanwhile: whoever reads the events has to know them by then.
 */
export const announceCreated = async (
  flow: ChangeContext,
  id: string,
  emitCreated: EmitCreated,
): Promise<void> => {
  const row = await findOutboundMessage(flow.tx, flow.workspaceId, { id })
  const locked = row && (await lockMessageAndConversation(flow, row))
  const created = locked?.message.call
  if (!created?.opens && !created?.makes_contact) return
  await emitCreated(created, locked!.conversation)
  await markAnnounced(flow.tx, flow.workspaceId, id)
}

const loadEventMessage = async ({ tx, workspaceId }: ChangeContext, id: string) => {
  const row = await readMessage(tx, workspaceId, id)
  return row && showSentMessage(row)
}

/** The provider's times are whole seconds; a message is never delivered before it was created. */
const clampToCreation = (at: string, createdAt: string): string =>
  Date.parse(at) < Date.parse(createdAt) ? createdAt : new Date(at).toISOString()

const earlier = (a: string | null, b: string): string =>
  a !== null && Date.parse(a) <= Date.parse(b) ? a : b

const STATUS_RANKS: Readonly<Record<string, number>> = {
  pending: 0,
  sent: 1,
  delivered: 2,
  failed: 3,
  read: 4,
}

/**
 * Returns a message's delivery after a status. The result does not depend on the order in which several
 * statuses arrive. A failure overrules `delivered`, which may refer to another device of the customer, and
 * `read` overrules a failure. `read` implies delivery at that time at the latest.
 */
const mergeStatus = (
  before: DeliveryState,
  { status, error }: Pick<MessageStatusUpdate, 'status' | 'error'>,
  at: string,
): DeliveryState => {
  const advances = STATUS_RANKS[status]! > STATUS_RANKS[before.status]!
  const next: DeliveryState = { ...before, status: advances ? status : before.status }
  switch (status) {
    case 'sent':
      return { ...next, sent_at: earlier(before.sent_at, at) }
    case 'delivered':
      return { ...next, delivered_at: earlier(before.delivered_at, at) }
    case 'read':
      return {
        ...next,
        delivered_at: earlier(before.delivered_at, at),
        read_at: earlier(before.read_at, at),
        failed_at: null,
        error: null,
        error_code: null,
      }
    case 'failed':
      return advances
        ? { ...next, failed_at: at, error: formatFailure(error), error_code: error?.code ?? null }
        : before
  }
}

const formatFailure = (error: MessageStatusUpdate['error']): string =>
  error === undefined
    ? 'The provider could not deliver the message and gave no reason.'
    : error.details === null || error.details === '' || error.details === error.title
      ? error.title
      : `${error.title}: ${error.details}`

/** The events that a status can cause: of its message, and of what the send or its failure changed. */
export type StatusEvent =
  | 'message.sent/1'
  | 'message.delivered/1'
  | 'message.read/1'
  | 'message.failed/1'
  | 'contact.created/1'
  | 'contact.updated/1'
  | 'consent.changed/1'
  | 'conversation.created/1'
  | CorrectionEvent

/**
 * Applies a status of the provider; statuses may arrive in any order and repeatedly. Returns `stale` when
 * the status was known or another state has overtaken it (times may have become more exact, but no event is
 * emitted), and `unknown` when no message of this workspace matches yet.
 */
export const applyStatus = async (
  flow: ChangeContext<StatusEvent>,
  status: MessageStatusUpdate,
): Promise<'applied' | 'stale' | 'unknown'> => {
  const row = await findOutboundMessage(flow.tx, flow.workspaceId, {
    providerId: status.providerId,
    ...(status.reference === undefined ? {} : { reference: status.reference }),
  })
  if (!row) return 'unknown'
  const accepted = await markAccepted(
    flow,
    row,
    status.providerId,
    status.at,
    createEmitCreated(flow, row.id),
  )
  if (accepted && status.status === 'sent') return 'applied'
  const mayChangeReplies = status.status === 'failed' || row.status === 'failed'
  const locked = mayChangeReplies ? await lockMessageAndConversation(flow, row, status.providerId) : undefined
  const message =
    locked?.message ?? (await lockOutboundMessage(flow.tx, flow.workspaceId, row.id, status.providerId))
  // The status may be of another message at the provider that carries our reference.
  if (!message) return 'stale'
  // It failed in the meantime, and the conversation is not locked: to be tried again.
  if (!locked && message.status === 'failed') return 'unknown'
  const next = mergeStatus(message, status, clampToCreation(status.at, message.created_at))
  if (isSameDelivery(message, next)) return 'stale'
  const changed = await writeDelivery(flow, message, next)
  if (!changed) return accepted ? 'applied' : 'stale'
  const code = next.status === 'failed' ? status.error?.code : undefined
  if (locked) await applyFailureSideEffects(flow, locked.conversation, code, message.created_at)
  if (next.status !== 'sent')
    flow.emit(`message.${next.status as 'delivered' | 'read' | 'failed'}/1`, changed)
  if (locked && isStanding(next) !== isStanding(message))
    await correctReplies(flow, locked.conversation, message, { isNew: accepted })
  return 'applied'
}

/** Whether a message reached the provider and did not fail, so that it counts as a reply. */
const isStanding = ({ status }: Pick<DeliveryState, 'status'>): boolean =>
  status !== 'pending' && status !== 'failed'

/**
 * Writes the delivery state of a locked message. Returns what the event of a new status tells; undefined when
 * the status stays the same.
 */
const writeDelivery = async (
  flow: ChangeContext,
  before: OutboundMessageRow,
  next: DeliveryState,
): Promise<Awaited<ReturnType<typeof loadEventMessage>>> => {
  await updateDeliveryState(flow.tx, flow.workspaceId, before.id, next)
  return next.status === before.status ? undefined : await loadEventMessage(flow, before.id)
}

/**
 * Fails a pending message that the provider has not confirmed in time, as a status would. It never counted as
 * a reply, but a conversation that was closed after it is reopened. Returns false when it is not pending any
 * more; a confirmation that comes later overrules the failure.
 */
export const failUnconfirmed = async (
  flow: ChangeContext<'message.failed/1' | CorrectionEvent>,
  id: string,
  title: string,
  emitCreated?: EmitCreated,
): Promise<boolean> => {
  const row = await findOutboundMessage(flow.tx, flow.workspaceId, { id })
  const locked = row && (await lockMessageAndConversation(flow, row))
  if (locked?.message.status !== 'pending') return false
  const { message, conversation } = locked
  if (message.call) await emitCreated?.(message.call, conversation)
  const next = mergeStatus(message, { status: 'failed' }, flow.now)
  const changed = await writeDelivery(flow, message, { ...next, error: title })
  if (changed) flow.emit('message.failed/1', changed)
  await correctReplies(flow, conversation, message, { isNew: true })
  return true
}

const isSameDelivery = (a: DeliveryState, b: DeliveryState): boolean =>
  a.status === b.status &&
  a.sent_at === b.sent_at &&
  a.delivered_at === b.delivered_at &&
  a.read_at === b.read_at &&
  a.failed_at === b.failed_at

/**
 * Records what a failure means beyond the message: that the reply window is closed, unless the customer has
 * written since the message was created, or that the customer declines marketing. The caller has locked
 * contact and conversation. `createdAt`: of the message, ISO 8601 UTC.
 */
export const applyFailureSideEffects = async (
  flow: ChangeContext<'contact.updated/1' | 'consent.changed/1'>,
  conversation: ConversationState,
  code: number | undefined,
  createdAt: string,
): Promise<void> => {
  const { last_inbound_at: lastInboundAt, contact_id: contactId } = conversation
  if (
    code === RE_ENGAGEMENT_CODE &&
    (lastInboundAt === null || Date.parse(lastInboundAt) <= Date.parse(createdAt))
  )
    await applyWindowCorrection(flow, conversation, createdAt)
  if (code === MARKETING_STOPPED_CODE && contactId !== null) await setDoNotDisturb(flow, contactId)
}

const setDoNotDisturb = async (
  flow: ChangeContext<'contact.updated/1' | 'consent.changed/1'>,
  contactId: string,
): Promise<void> => {
  const read = await readContact(flow.tx, flow.workspaceId, contactId)
  if (!read) return
  // Also where staff turned do-not-disturb on already: that is theirs to turn off, the opt-out is not.
  const consent = await findConsent(flow.tx, flow.workspaceId, contactId, MARKETING, ALL_CHANNELS)
  if (consent?.state !== 'withdrawn')
    await addMarketingConsent(flow, contactId, {
      state: 'withdrawn',
      source: 'provider',
      proof: `The provider refused a message with the code ${MARKETING_STOPPED_CODE}.`,
      at: flow.now,
    })
  if (read.contact.dnd) return
  await updateContactRow(flow.tx, flow.workspaceId, read.contact, { dnd: true }, flow.now)
  flow.emit('contact.updated/1', {
    contact: eventContact({ ...read.contact, dnd: true, updated_at: flow.now }),
    changes: ['dnd'],
  })
}

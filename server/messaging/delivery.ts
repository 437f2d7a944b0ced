import { lockContact, readContact, updateContactRow } from '../../storage/contacts.ts'
import { lockConversation } from '../../storage/conversations.ts'
import { readMessage } from '../../storage/message-lists.ts'
import {
  type CallNote,
  type Delivery,
  findOutbound,
  lockOutbound,
  type OutboundRow,
  writeDelivery,
  writeTaken,
} from '../../storage/sends.ts'
import { eventContact } from '../contacts/view.ts'
import {
  type ConversationState,
  correctWindow,
  eventConversation,
  type Flow,
  sent,
} from '../inbox/lifecycle.ts'
import { eventMessage } from './view.ts'

/** The provider's codes for what a failure says about the customer (reference 2.8). */
export const RE_ENGAGEMENT = 131047
export const STOPPED_MARKETING = 131050

/**
 * What the provider tells of a message it took. `at`: ISO 8601 UTC. `reference`: our own mark, where the
 * provider sent it back.
 */
export type ProviderStatus = {
  providerId: string
  reference?: string | undefined
  status: 'sent' | 'delivered' | 'read' | 'failed'
  at: string
  error?: { code: number; title: string; details: string | null } | undefined
}

/**
 * Locks what a change of a message may touch, in the order in which everybody does: contact, conversation,
 * message.
 */
const lockAll = async (
  flow: Flow,
  found: OutboundRow,
): Promise<{ message: OutboundRow; conversation: ConversationState } | undefined> => {
  if (found.contact_id !== null) await lockContact(flow.tx, flow.workspaceId, found.contact_id)
  const conversation = await lockConversation(flow.tx, flow.workspaceId, found.conversation_id)
  const message = await lockOutbound(flow.tx, flow.workspaceId, found.id)
  return conversation && message && { conversation, message }
}

/**
 * Moves a pending message to sent, exactly once, whoever comes first: the answer of the call, or a status
 * of it that arrives earlier. What the send made on its way, a contact or a conversation, is announced with
 * it. False when it was not pending.
 */
export const markSent = async (
  flow: Flow,
  where: { reference: string } | { id: string },
  providerId: string,
  at: string,
): Promise<boolean> => {
  const found = await findOutbound(flow.tx, flow.workspaceId, where)
  return found?.status === 'pending' && (await take(flow, found, providerId, at))
}

const take = async (flow: Flow, found: OutboundRow, providerId: string, at: string): Promise<boolean> => {
  const held = await lockAll(flow, found)
  if (held?.message.status !== 'pending') return false
  const { message, conversation } = held
  await writeTaken(flow.tx, flow.workspaceId, message.id, providerId, notBefore(at, message.created_at))
  if (message.call) await announce(flow, message.call, conversation)
  await sent(flow, conversation, { id: message.id, createdAt: message.created_at, staffId: message.staff_id })
  await tell(flow, 'message.sent/1', message.id)
  return true
}

/** The events of what a send made, a contact or a conversation. */
export const announce = async (
  flow: Flow,
  { opens, makes_contact: makesContact }: Pick<CallNote, 'opens' | 'makes_contact'>,
  conversation: ConversationState,
): Promise<void> => {
  const contact =
    makesContact && conversation.contact_id !== null
      ? await readContact(flow.tx, flow.workspaceId, conversation.contact_id)
      : undefined
  if (contact) flow.emit('contact.created/1', { contact: eventContact(contact.contact) })
  if (opens) flow.emit('conversation.created/1', { conversation: eventConversation(conversation) })
}

const tell = async (
  flow: Flow,
  type: 'message.sent/1' | 'message.delivered/1' | 'message.read/1' | 'message.failed/1',
  id: string,
): Promise<void> => {
  const row = await readMessage(flow.tx, flow.workspaceId, id)
  if (row) flow.emit(type, { message: eventMessage(row) })
}

/** The provider's times are whole seconds: a message is not delivered before it was written. */
const notBefore = (at: string, createdAt: string): string =>
  Date.parse(at) < Date.parse(createdAt) ? createdAt : new Date(at).toISOString()

const earlier = (a: string | null, b: string): string =>
  a !== null && Date.parse(a) <= Date.parse(b) ? a : b

const ranks: Readonly<Record<string, number>> = { pending: 0, sent: 1, delivered: 2, failed: 3, read: 4 }

/**
 * A message after a status; the same whatever the order of several. A failure overrules `delivered`, which
 * can be said of another device of the customer, and `read` overrules a failure. `read` says that it was
 * delivered too, by then at the latest.
 */
const afterStatus = (
  was: Delivery,
  { status, error }: Pick<ProviderStatus, 'status' | 'error'>,
  at: string,
): Delivery => {
  const news = ranks[status]! > ranks[was.status]!
  const next: Delivery = { ...was, status: news ? status : was.status }
  switch (status) {
    case 'sent':
      return { ...next, sent_at: earlier(was.sent_at, at) }
    case 'delivered':
      return { ...next, delivered_at: earlier(was.delivered_at, at) }
    case 'read':
      return {
        ...next,
        delivered_at: earlier(was.delivered_at, at),
        read_at: earlier(was.read_at, at),
        failed_at: null,
        error: null,
        error_code: null,
      }
    case 'failed':
      return news ? { ...next, failed_at: at, error: textOf(error), error_code: error?.code ?? null } : was
  }
}

const textOf = (error: ProviderStatus['error']): string =>
  error === undefined
    ? 'The provider could not deliver it, and does not say why.'
    : error.details === null || error.details === '' || error.details === error.title
      ? error.title
      : `${error.title}: ${error.details}`

/**
 * Writes what the provider tells of a message, in any order and as often as it likes. `stale`: it was
 * known, or another state has overtaken it; times may have become more exact, but nothing is announced.
 * `unknown`: no message of this workspace is meant.
 */
export const applyStatus = async (
  flow: Flow,
  status: ProviderStatus,
): Promise<'applied' | 'stale' | 'unknown'> => {
  const found = await findOutbound(flow.tx, flow.workspaceId, {
    providerId: status.providerId,
    ...(status.reference === undefined ? {} : { reference: status.reference }),
  })
  if (!found) return 'unknown'
  const taken = found.status === 'pending' && (await take(flow, found, status.providerId, status.at))
  if (taken && status.status === 'sent') return 'applied'
  const learns =
    status.status === 'failed' &&
    (status.error?.code === RE_ENGAGEMENT || status.error?.code === STOPPED_MARKETING)
  const held = learns ? await lockAll(flow, found) : undefined
  const message = held?.message ?? (await lockOutbound(flow.tx, flow.workspaceId, found.id))
  // Another message of the provider's with our mark: not this one.
  if (!message || message.provider_id !== status.providerId) return 'stale'
  const next = afterStatus(message, status, notBefore(status.at, message.created_at))
  if (isSame(message, next)) return 'stale'
  await writeDelivery(flow.tx, flow.workspaceId, message.id, next)
  if (next.status === message.status) return taken ? 'applied' : 'stale'
  if (held) await learn(flow, held.conversation, status.error!.code, message.created_at)
  if (next.status !== 'sent')
    await tell(flow, `message.${next.status as 'delivered' | 'read' | 'failed'}/1`, message.id)
  return 'applied'
}

const isSame = (a: Delivery, b: Delivery): boolean =>
  a.status === b.status &&
  a.sent_at === b.sent_at &&
  a.delivered_at === b.delivered_at &&
  a.read_at === b.read_at &&
  a.failed_at === b.failed_at

/**
 * What a failure tells beyond the message: that the window is closed, unless the customer has written since
 * the message was, or that the customer wants no marketing. Contact and conversation are locked.
 */
export const learn = async (
  flow: Flow,
  conversation: ConversationState,
  code: number | undefined,
  writtenAt: string,
): Promise<void> => {
  const { last_inbound_at: heard, contact_id: contactId } = conversation
  if (code === RE_ENGAGEMENT && (heard === null || Date.parse(heard) <= Date.parse(writtenAt)))
    await correctWindow(flow, conversation)
  if (code === STOPPED_MARKETING && contactId !== null) await stopMarketing(flow, contactId)
}

const stopMarketing = async (flow: Flow, contactId: string): Promise<void> => {
  const read = await readContact(flow.tx, flow.workspaceId, contactId)
  if (!read || read.contact.dnd) return
  await updateContactRow(flow.tx, flow.workspaceId, read.contact, { dnd: true }, flow.now)
  flow.emit('contact.updated/1', {
    contact: eventContact({ ...read.contact, dnd: true, updated_at: flow.now }),
    changes: ['dnd'],
  })
}

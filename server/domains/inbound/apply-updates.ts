import type { EventTypeId } from '../../../catalog/events.ts'
import type { ChannelsOf } from '../../../storage/channels/health.ts'
import type { Db } from '../../../storage/database.ts'
import type { EventRow } from '../../../storage/events/events.ts'
import {
  type CustomerRow,
  findChannelsByNumber,
  type InboundChannel,
} from '../../../storage/messages/inbound.ts'
import {
  type ClaimedUpdate,
  completeProviderUpdates,
  hasLaterUpdate,
  lockUpdatesAbout,
  postponeProviderUpdates,
  setAsideProviderUpdates,
} from '../../../storage/channels/provider-updates.ts'
import { businessTime, type Clocks, toBusinessTime } from '../../clock.ts'
import { addMarketingConsent } from '../consent/record.ts'
import { createEmit } from '../../kernel/emit.ts'
import { type EventNews, insertAllEvents } from '../events/signal.ts'
import type { ChangeContext } from '../../change-context.ts'
import { applyStatus, type MessageStatusUpdate } from '../messaging/message-status.ts'
import { applyHealthFacts } from '../health/record.ts'
import { type ChannelProblem, readErrorCode } from '../health/rules.ts'
import { applyChannelChange, applyTemplateChange, type GetChangeContext } from './changes.ts'
import { findOwnNumber, parseContent } from './content.ts'
import {
  findOrCreateContacts,
  type InboundCustomer,
  parseCustomer,
  parseIdentityChange,
  updateContactFields,
} from './customers.ts'
import { asNumber, asObject, asObjects, asText } from './json.ts'
import { applyMessageChanges, isMessageChange, parseMessageChange } from './message-changes.ts'
import { receiveMessages } from './messages.ts'
import {
  changePrefix,
  type ChangePayload,
  type MessagePayload,
  preferencePrefix,
  type PreferencePayload,
  type StatusPayload,
} from './parse-updates.ts'
import { toEventTime } from './event-time.ts'

/** A message that nobody sees yet: of a number without a channel, or from a sender that this version cannot read. */
export type UnreadMessage = { number: string; why: 'no_channel' | 'no_sender' }

/**
 * The updates of a batch that are not done. `unmatched`: they concern nothing of any workspace. `deferred`:
 * what they are about may still arrive.
 */
type UnfinishedUpdates = { unmatched: string[]; deferred: ClaimedUpdate[]; unread: UnreadMessage[] }

/**
 * Seconds to wait for what an update is about, such as a message whose send is in progress; after the last
 * retry it is unmatched.
 */
const RETRY_DELAYS_SECONDS = [1, 2, 5, 15, 60, 300, 900]

/**
 * Applies claimed updates: writes their effects, their events and their state in this transaction. Returns what to
 * announce, and messages that nobody sees yet.
 */
export const applyUpdates = async (
  tx: Db,
  updates: readonly ClaimedUpdate[],
  clocks: Clocks,
): Promise<{ news: EventNews[]; unread: readonly UnreadMessage[] }> => {
  const contexts = new Map<string, { context: ChangeContext<EventTypeId>; events: EventRow[] }>()
  const contextOf = (workspaceId: string): ChangeContext<EventTypeId> => {
    const known = contexts.get(workspaceId)
    if (known) return known.context
    const events: EventRow[] = []
    const now = businessTime(clocks, workspaceId)
    const context = { tx, workspaceId, now, emit: createEmit(events, now) }
    contexts.set(workspaceId, { context, events })
    return context
  }
  const changes = updates.filter(({ kind }) => kind === 'template' || kind === 'number').toSorted(byTime)
  await lockUpdatesAbout(
    tx,
    changes.map(({ payload }) => changePrefix(payload as ChangePayload)),
  )
  const unfinished: UnfinishedUpdates = { unmatched: [], deferred: [], unread: [] }
  const routed = (await routeUpdates(tx, updates, unfinished)).map(({ update, channel }) => ({
    channel,
    update: { ...update, received_at: toBusinessTime(clocks, channel.workspace_id, update.received_at) },
  }))
  const byWorkspace = Map.groupBy(routed, ({ channel }) => channel.workspace_id)
  // The same order on every server, so that two never deadlock.
  for (const [workspaceId, group] of [...byWorkspace].toSorted(([a], [b]) => Number(BigInt(a) - BigInt(b)))) {
    const context = contextOf(workspaceId)
    const { past = [], present = [] } = Object.groupBy(group, isPast)
    // Nobody is told now of what happened before.
    await applyWorkspaceUpdates({ ...context, emit: () => {} }, past, unfinished)
    await applyWorkspaceUpdates(context, present, unfinished)
  }
  await applyFailureCodes(tx, contextOf, routed, clocks.now())
  for (const update of changes) {
    const payload = update.payload as ChangePayload
    if (payload.time !== null && (await hasLaterUpdate(tx, changePrefix(payload), update.dedupe))) continue
    const apply = update.kind === 'template' ? applyTemplateChange : applyChannelChange
    if (!(await apply(tx, contextOf, payload, clocks.now()))) unfinished.deferred.push(update)
  }
  const news = await insertAllEvents(
    tx,
    [...contexts].map(([workspaceId, { events }]) => [workspaceId, events]),
  )
  await finishBatch(tx, updates, unfinished)
  return { news, unread: unfinished.unread }
}

const isPast = ({ update: { kind, payload } }: RoutedUpdate): 'past' | 'present' =>
  kind === 'message' && (payload as MessagePayload).past ? 'past' : 'present'

/** What messages failed with, as far as it concerns their whole number or account. */
const applyFailureCodes = async (
  tx: Db,
  contextOf: GetChangeContext,
  routed: readonly RoutedUpdate[],
  realNow: string,
): Promise<void> => {
  const learnt = new Map<string, { of: ChannelsOf; problem: ChannelProblem }>()
  for (const { update, channel } of routed) {
    if (update.kind !== 'status') continue
    const { status } = update.payload as StatusPayload
    const code = toErrorCode(asObjects(status['errors'])[0]?.['code'])
    const told = asText(status['status']) === 'failed' ? readErrorCode(code, { isSend: true }) : undefined
    // Without a code, 0 says nothing here: in a response it is a refused token.
    if (!told || code === 0) continue
    const { account_id: accountId, phone_number_id: phoneNumberId } = channel
    const of = told.of === 'account' && accountId !== null ? { accountId } : { phoneNumberId: phoneNumberId! }
    learnt.set(JSON.stringify([of, code]), { of, problem: told.problem })
  }
  for (const [, { of, problem }] of [...learnt].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    await applyHealthFacts(tx, contextOf, of, () => [{ kind: 'problem', problem }], realNow)
}

/** An update that is addressed to a phone number, with the channel of the number. */
type RoutedUpdate = { update: ClaimedUpdate; channel: InboundChannel }
type RoutedMessage = RoutedUpdate & { payload: MessagePayload }

const isAddressedToNumber = ({ kind }: ClaimedUpdate): boolean =>
  kind === 'message' || kind === 'status' || kind === 'preference'

const routeUpdates = async (
  tx: Db,
  updates: readonly ClaimedUpdate[],
  unfinished: UnfinishedUpdates,
): Promise<RoutedUpdate[]> => {
  const addressed = updates
    .filter(isAddressedToNumber)
    .map((update) => ({ update, number: (update.payload as { number: string }).number }))
  const channels = await findChannelsByNumber(tx, [...new Set(addressed.map(({ number }) => number))])
  return addressed.flatMap(({ update, number }) => {
    const channel = channels.get(number)
    if (!channel) {
      unfinished.unmatched.push(update.id)
      if (update.kind === 'message') unfinished.unread.push({ number, why: 'no_channel' })
    }
    return channel ? [{ update, channel }] : []
  })
}

const finishBatch = async (
  tx: Db,
  updates: readonly ClaimedUpdate[],
  { unmatched, deferred }: UnfinishedUpdates,
): Promise<void> => {
  const retries = deferred.flatMap(({ id, attempts }) => {
    const seconds = RETRY_DELAYS_SECONDS[attempts]
    return seconds === undefined ? [] : [{ id, seconds }]
  })
  const retriedIds = new Set(retries.map(({ id }) => id))
  const unmatchedIds = [...unmatched, ...deferred.map(({ id }) => id).filter((id) => !retriedIds.has(id))]
  const unfinishedIds = new Set([...unmatchedIds, ...retriedIds])
  await completeProviderUpdates(
    tx,
    updates.map(({ id }) => id).filter((id) => !unfinishedIds.has(id)),
  )
  await setAsideProviderUpdates(tx, unmatchedIds, 'unmatched')
  await postponeProviderUpdates(tx, retries)
}

const applyWorkspaceUpdates = async (
  context: ChangeContext<EventTypeId>,
  routed: readonly RoutedUpdate[],
  unfinished: UnfinishedUpdates,
): Promise<void> => {
  if (routed.length === 0) return
  const ofKind = <P>(kind: ClaimedUpdate['kind']) =>
    routed
      .filter(({ update }) => update.kind === kind)
      .map(({ update, channel }) => ({ update, channel, payload: update.payload as P }))
  const messages = ofKind<MessagePayload>('message')
  const preferences = ofKind<PreferencePayload>('preference')
    .toSorted((a, b) => byTime(a.update, b.update))
    .map(({ update, payload }) => ({
      update,
      payload,
      customer: parsePreferenceCustomer(payload, update.received_at),
    }))
  const received = messages.flatMap(({ update, channel, payload }) => {
    const { message, echo, past } = payload
    if (isMessageChange(message)) return []
    const createdAt = toEventTime(message['timestamp'], update.received_at)
    const change = parseIdentityChange(message, createdAt)
    const customer = change?.before ?? parseMessageCustomer(payload, createdAt)
    if (!customer) {
      // A message without a sender has no conversation to be shown in.
      unfinished.unmatched.push(update.id)
      unfinished.unread.push({ number: channel.phone_number_id!, why: 'no_sender' })
      return []
    }
    const parsed = parseContent(message)
    const content = echo ? { ...parsed, stored: { ...parsed.stored, phone_app: echo } } : parsed
    const providerId = asText(message['id'])!
    const groupId = asText(message['group_id'])
    const place = { channelId: channel.id, providerId, groupId, past: past === true }
    return [{ update, customer, change, ...place, content, createdAt }]
  })
  const statuses = ofKind<StatusPayload>('status').toSorted((a, b) => byKey(a.update, b.update))
  const findContact = await findOrCreateContacts(
    context,
    [...received.filter(({ change }) => !change), ...preferences].flatMap(({ customer }) => customer ?? []),
    {
      reports: statuses.flatMap(({ payload }) => parseStatusCustomer(payload) ?? []),
      changes: received.flatMap(({ change }) => change ?? []),
    },
  )
  await receiveMessages(
    context,
    received.flatMap(({ update, customer, change, ...message }) => {
      const contact = findContact(customer)
      // A notice that overtook the customer's messages waits for them.
      if (!contact) unfinished.deferred.push(update)
      return contact ? [{ ...message, contact }] : []
    }),
  )
  for (const { update, payload, customer } of preferences)
    if (customer) await applyOptOut(context, update, payload, findContact(customer))
  for (const { update, payload } of statuses) {
    const status = toProviderStatus(payload.status, update.received_at)
    if (status && (await applyStatus(context, status)) === 'unknown') unfinished.deferred.push(update)
  }
  await applyReceivedChanges(
    context,
    messages.filter(({ payload }) => isMessageChange(payload.message)),
    unfinished,
  )
}

/**
 * Applies reactions, edits and deletions, after everything else: they lock messages alone. One whose message
 * is not stored yet waits for it. One that names no message of its sender's conversation is unmatched.
 */
const applyReceivedChanges = async (
  context: ChangeContext<EventTypeId>,
  routed: readonly RoutedMessage[],
  unfinished: UnfinishedUpdates,
): Promise<void> => {
  const changes = routed.flatMap(({ update, channel, payload }) => {
    const { message } = payload
    const customer = parseMessageCustomer(payload, null)
    const change = parseMessageChange(message)
    if (!customer || !change) {
      unfinished.unmatched.push(update.id)
      return []
    }
    const at = toEventTime(message['timestamp'], update.received_at)
    const by = payload.echo ? ('staff' as const) : ('customer' as const)
    return [{ updateId: update.id, channelId: channel.id, customer, by, change, at }]
  })
  const { unknown, foreign } = await applyMessageChanges(context, changes)
  unfinished.unmatched.push(...foreign)
  unfinished.deferred.push(...routed.flatMap(({ update }) => (unknown.includes(update.id) ? update : [])))
}

/** The customer of a message: who wrote it, or to whom a colleague wrote it. `at`: when. */
const parseMessageCustomer = (
  { contact, message, echo }: MessagePayload,
  at: string | null,
): InboundCustomer | undefined =>
  echo
    ? parseCustomer({ phone: message['to'], userId: message['to_user_id'] }, contact, at)
    : parseCustomer(
        { phone: message['from'] ?? findOwnNumber(message), userId: message['from_user_id'] },
        contact,
        at,
      )

/**
 * The provider names the customer of a message with both its phone and its user id. It may arrive late, so
 * that its spelling of the phone is not the last one.
 */
const parseStatusCustomer = ({ status, contact = {} }: StatusPayload): InboundCustomer | undefined => {
  const customer = parseCustomer(
    { phone: status['recipient_id'], userId: status['recipient_user_id'] },
    contact,
    null,
  )
  return customer && { ...customer, phone: customer.phone && { ...customer.phone, spelling: null } }
}

const parsePreferenceCustomer = (
  { preference, contact }: PreferencePayload,
  receivedAt: string,
): InboundCustomer | undefined =>
  parseCustomer(
    { phone: preference['wa_id'], userId: preference['user_id'] },
    contact,
    toEventTime(preference['timestamp'], receivedAt),
  )

/** The same order on every server, so that two never deadlock over messages. */
const byKey = (a: ClaimedUpdate, b: ClaimedUpdate): number => (a.dedupe < b.dedupe ? -1 : 1)

/** By the second in the key, then by arrival: the provider reports no finer time. */
const byTime = (a: ClaimedUpdate, b: ClaimedUpdate): number => {
  const [left, right] = [a, b].map(({ dedupe }) => dedupe.slice(0, dedupe.lastIndexOf(':')))
  return left === right ? Number(BigInt(a.id) - BigInt(b.id)) : left! < right! ? -1 : 1
}

/** The customer stopped marketing messages, or resumed them. */
const applyOptOut = async (
  context: ChangeContext<'contact.updated/1' | 'consent.changed/1'>,
  update: ClaimedUpdate,
  payload: PreferencePayload,
  contact: CustomerRow | undefined,
): Promise<void> => {
  const { value } = payload.preference
  if (value !== 'stop' && value !== 'resume') return
  if (await hasLaterUpdate(context.tx, preferencePrefix(payload), update.dedupe)) return
  if (!contact) return
  await updateContactFields(context, contact, { dnd: value === 'stop' })
  await addMarketingConsent(context, contact.id, {
    state: value === 'stop' ? 'withdrawn' : 'granted',
    source: 'provider',
    proof: null,
    at: toEventTime(payload.preference['timestamp'], update.received_at),
  })
}

const toErrorCode = (code: unknown): number => {
  const number = asNumber(code) ?? 0
  return Number.isInteger(number) && Math.abs(number) < 2 ** 31 ? number : 0
}

/** `played` is to a voice message what `read` is to others. */
const states: Readonly<Record<string, MessageStatusUpdate['status']>> = {
  sent: 'sent',
  delivered: 'delivered',
  read: 'read',
  played: 'read',
  failed: 'failed',
}

const toProviderStatus = (
  status: StatusPayload['status'],
  receivedAt: string,
): MessageStatusUpdate | undefined => {
  const name = asText(status['status'])!
  if (!Object.hasOwn(states, name)) return undefined
  const reference = asText(status['biz_opaque_callback_data'])
  const error = asObjects(status['errors'])[0]
  return {
    providerId: asText(status['id'])!,
    status: states[name]!,
    at: toEventTime(status['timestamp'], receivedAt),
    ...(reference === null ? {} : { reference }),
    ...(error
      ? {
          error: {
            code: toErrorCode(error['code']),
            title: asText(error['title']) ?? asText(error['message']) ?? 'The provider could not deliver it',
            details: asText(asObject(error['error_data'])['details']),
          },
        }
      : {}),
  }
}

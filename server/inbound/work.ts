import type { Db } from '../../storage/database.ts'
import { type EventRow, writeEvents } from '../../storage/events.ts'
import { channelsByNumber, type InboundChannel } from '../../storage/inbound.ts'
import {
  type ClaimedUpdate,
  finishUpdates,
  hasLaterUpdate,
  postponeUpdates,
  setAsideUpdates,
} from '../../storage/provider-updates.ts'
import { emitter } from '../core/emit.ts'
import type { Flow } from '../inbox/lifecycle.ts'
import { applyStatus, type ProviderStatus } from '../messaging/delivery.ts'
import { changeNumbers, changeTemplate } from './changes.ts'
import { contentOf } from './content.ts'
import { changeCustomer, type Customer, customerOf, findCustomers } from './customers.ts'
import { numberOf, objectOf, objectsOf, textOf } from './json.ts'
import { changeNumber, type Inbound, isNumberChange, receiveMessages } from './messages.ts'
import {
  changePrefix,
  type ChangePayload,
  type MessagePayload,
  preferencePrefix,
  type PreferencePayload,
  type StatusPayload,
} from './split.ts'
import { momentOf } from './time.ts'

/**
 * What became of updates: those not named are done. `unmatched`: they concern nothing of ours. `later`:
 * what they are about may still come.
 */
export type Outcome = { unmatched: string[]; later: ClaimedUpdate[] }

/**
 * Seconds to wait for what an update is about, such as a message whose send is still under way; after the
 * last one it is nobody's.
 */
const PATIENCE = [1, 2, 5, 15, 60, 300, 900]

/** Works off claimed updates: their effects, their events and their state are written in this transaction. */
export const workOff = async (tx: Db, updates: readonly ClaimedUpdate[], now: string): Promise<Outcome> => {
  const flows = new Map<string, { flow: Flow; events: EventRow[] }>()
  const flowOf = (workspaceId: string): Flow => {
    let found = flows.get(workspaceId)
    if (!found) {
      const events: EventRow[] = []
      flows.set(workspaceId, (found = { events, flow: { tx, workspaceId, now, emit: emitter(events, now) } }))
    }
    return found.flow
  }
  const outcome: Outcome = { unmatched: [], later: [] }
  const numbers = new Set(
    updates.flatMap((update) => (isOfNumber(update) ? (update.payload as { number: string }).number : [])),
  )
  const channels = await channelsByNumber(tx, [...numbers])
  const owned = updates.flatMap((update) => {
    if (!isOfNumber(update)) return []
    const channel = channels.get((update.payload as { number: string }).number)
    if (!channel) outcome.unmatched.push(update.id)
    return channel ? [{ update, channel }] : []
  })
  for (const [workspaceId, part] of [...Map.groupBy(owned, ({ channel }) => channel.workspace_id)].toSorted(
    ([a], [b]) => Number(BigInt(a) - BigInt(b)),
  )) {
    await workspaceUpdates(flowOf(workspaceId), part, outcome)
  }
  // The keys of changes to the same thing sort by time.
  for (const update of updates
    .filter(({ kind }) => kind === 'template' || kind === 'number')
    .toSorted(byTime)) {
    const payload = update.payload as ChangePayload
    if (payload.time !== null && (await hasLaterUpdate(tx, changePrefix(payload), update.dedupe))) continue
    if (!(await (update.kind === 'template' ? changeTemplate : changeNumbers)(tx, flowOf, payload)))
      outcome.later.push(update)
  }
  for (const [workspaceId, { events }] of flows) await writeEvents(tx, workspaceId, events)
  await settle(tx, updates, outcome)
  return outcome
}

const isOfNumber = ({ kind }: ClaimedUpdate): boolean =>
  kind === 'message' || kind === 'status' || kind === 'preference'

const settle = async (tx: Db, updates: readonly ClaimedUpdate[], outcome: Outcome): Promise<void> => {
  const waiting = outcome.later.filter(({ attempts }) => attempts < PATIENCE.length)
  outcome.unmatched.push(...outcome.later.flatMap((update) => (waiting.includes(update) ? [] : update.id)))
  const open = new Set([...outcome.unmatched, ...waiting.map(({ id }) => id)])
  await finishUpdates(
    tx,
    updates.flatMap(({ id }) => (open.has(id) ? [] : id)),
  )
  await setAsideUpdates(tx, outcome.unmatched, 'unmatched')
  await postponeUpdates(
    tx,
    waiting.map(({ id, attempts }) => ({ id, seconds: PATIENCE[attempts]! })),
  )
  outcome.later = waiting
}

type Owned = { update: ClaimedUpdate; channel: InboundChannel }

const workspaceUpdates = async (flow: Flow, owned: readonly Owned[], outcome: Outcome): Promise<void> => {
  const ofKind = <P>(kind: ClaimedUpdate['kind']) =>
    owned
      .filter(({ update }) => update.kind === kind)
      .map(({ update, channel }) => ({ update, channel, payload: update.payload as P }))
  const messages = ofKind<MessagePayload>('message')
  // Before the messages: one from the new number would make a contact of its own.
  for (const {
    channel,
    payload: { message },
    update,
  } of messages) {
    if (isNumberChange(message))
      await changeNumber(
        flow,
        channel.id,
        textOf(message['id'])!,
        message,
        momentOf(message['timestamp'], update.received_at),
      )
  }
  const preferences = ofKind<PreferencePayload>('preference').toSorted((a, b) => byTime(a.update, b.update))
  const wishes = preferences.map(({ update, payload }) => ({
    update,
    payload,
    customer: customerOf(payload.preference['wa_id'], payload.preference['user_id'], payload.contact),
  }))
  const written = messages.flatMap(({ update, channel, payload: { contact, message } }) => {
    const customer = customerOf(message['from'], message['from_user_id'], contact)
    const content = isNumberChange(message) ? null : contentOf(message)
    // Without a sender there is nobody to show it under.
    if (!customer && content) outcome.unmatched.push(update.id)
    return customer && content
      ? [
          {
            customer,
            channelId: channel.id,
            providerId: textOf(message['id'])!,
            content,
            createdAt: momentOf(message['timestamp'], update.received_at),
          },
        ]
      : []
  })
  const find = await findCustomers(
    flow,
    [...written, ...wishes].flatMap(({ customer }) => customer ?? []),
  )
  await receiveMessages(
    flow,
    written.map(({ customer, ...message }): Inbound => ({ ...message, contact: find(customer)! })),
  )
  for (const { update, payload, customer } of wishes)
    if (customer) await heed(flow, update, payload, find, customer)
  for (const {
    update,
    payload: { status },
  } of ofKind<StatusPayload>('status').toSorted((a, b) => byKey(a.update, b.update))) {
    const read = statusOf(status, update.received_at)
    if (read && (await applyStatus(flow, read)) === 'unknown') outcome.later.push(update)
  }
}

/** One order for every server, so that none waits for the other's messages in a circle. */
const byKey = (a: ClaimedUpdate, b: ClaimedUpdate): number => (a.dedupe < b.dedupe ? -1 : 1)

/** By the second that keys hold, then as they arrived: the provider tells no finer time. */
const byTime = (a: ClaimedUpdate, b: ClaimedUpdate): number => {
  const [left, right] = [a, b].map(({ dedupe }) => dedupe.slice(0, dedupe.lastIndexOf(':')))
  return left === right ? Number(BigInt(a.id) - BigInt(b.id)) : left! < right! ? -1 : 1
}

/** A customer stops marketing, or asks for it again. */
const heed = async (
  flow: Flow,
  update: ClaimedUpdate,
  payload: PreferencePayload,
  find: Awaited<ReturnType<typeof findCustomers>>,
  customer: Customer,
): Promise<void> => {
  const { value } = payload.preference
  if (value !== 'stop' && value !== 'resume') return
  if (await hasLaterUpdate(flow.tx, preferencePrefix(payload), update.dedupe)) return
  const contact = find(customer)
  if (contact) await changeCustomer(flow, contact, { dnd: value === 'stop' })
}

const codeOf = (code: unknown): number => {
  const number = numberOf(code) ?? 0
  return Number.isInteger(number) && Math.abs(number) < 2 ** 31 ? number : 0
}

/** `played` says of a voice message what `read` says of others. */
const states: Readonly<Record<string, ProviderStatus['status']>> = {
  sent: 'sent',
  delivered: 'delivered',
  read: 'read',
  played: 'read',
  failed: 'failed',
}

const statusOf = (status: StatusPayload['status'], receivedAt: string): ProviderStatus | undefined => {
  const name = textOf(status['status'])!
  if (!Object.hasOwn(states, name)) return undefined
  const reference = textOf(status['biz_opaque_callback_data'])
  const error = objectsOf(status['errors'])[0]
  return {
    providerId: textOf(status['id'])!,
    status: states[name]!,
    at: momentOf(status['timestamp'], receivedAt),
    ...(reference === null ? {} : { reference }),
    ...(error
      ? {
          error: {
            code: codeOf(error['code']),
            title: textOf(error['title']) ?? textOf(error['message']) ?? 'The provider could not deliver it',
            details: textOf(objectOf(error['error_data'])['details']),
          },
        }
      : {}),
  }
}

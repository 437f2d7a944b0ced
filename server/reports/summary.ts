import { readCounter } from '../../storage/counters.ts'
import type { Db } from '../../storage/database.ts'
import {
  type Between,
  countBreaches,
  countCloses,
  countNewContacts,
  countOutbound,
  countReopened,
  countUnassigned,
  countWaiting,
  hasAgentKey,
  sumBroadcasts,
} from '../../storage/reports.ts'
import { listPolicies, type PolicyRow } from '../../storage/sla.ts'
import { readChannels } from '../../storage/workspace.ts'
import type { Context } from '../core/context.ts'
import { Hours } from '../inbox/hours.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { hoursOf, type Range, rangeOf } from './range.ts'

type Summary = OutputOf<'reports_workspace_summary'>

/** New contacts are counted no further than this. */
const MOST_NEW = 100_000

/** How long customers wait, with the hours at which each bucket but the first begins. */
const BUCKETS = ['under_1h', '1h_to_4h', '4h_to_24h', 'over_24h'] as const
const BOUNDS = [1, 4, 24]

/**
 * The summary of some days. Each part is one or two statements of its own, so that several run at once; a
 * change that is made meanwhile may be in one part and not yet in another. Throws 400 for a range that
 * cannot be.
 */
export const summarizeWorkspace: Handler<InputOf<'reports_workspace_summary'>, Summary> = async (
  ctx,
  input,
) => {
  const range = rangeOf(ctx, input)
  const {
    tx,
    now,
    actor: {
      workspace: { id, name, timezone },
    },
  } = ctx
  const between = { start: range.started_at, end: range.ended_at }
  const [messages, conversations, contacts, broadcasts, sla, total, agentKey] = await Promise.all([
    sumMessages(tx, id, between),
    sumConversations(tx, id, between, now),
    sumContacts(tx, id, between),
    sumUpBroadcasts(tx, id, between),
    sumSla(tx, id, between, now),
    readCounter(tx, id, 'contacts'),
    hasAgentKey(tx, id, now),
  ])
  const summary = {
    range,
    workspace: { company_id: id, name, timezone, contacts_total: total },
    messages,
    conversations,
    contacts,
    broadcasts,
    sla,
    agents: { sessions: null, handoffs: null, resolution_rate: null },
    chatbots: { sessions: null },
  }
  return { ...summary, notes: notesOn(ctx, summary), unavailable: unavailableIn(summary, agentKey) }
}

const sumMessages = async (tx: Db, workspaceId: string, between: Between): Promise<Summary['messages']> => {
  const counts = await countOutbound(tx, workspaceId, between)
  const of = (...statuses: Parameters<typeof counts.get>[0][]): number =>
    statuses.reduce((sum, status) => sum + (counts.get(status) ?? 0), 0)
  const [sent, delivered] = [of('sent', 'delivered', 'read'), of('delivered', 'read')]
  return {
    sent,
    delivered,
    read: of('read'),
    failed: of('failed'),
    delivery_rate: sent === 0 ? null : delivered / sent,
  }
}

const sumConversations = async (
  tx: Db,
  workspaceId: string,
  between: Between,
  now: string,
): Promise<Summary['conversations']> => {
  const [{ closes, conversations, median }, reopened, waiting, unassigned] = await Promise.all([
    countCloses(tx, workspaceId, between),
    countReopened(tx, workspaceId, between),
    countWaiting(tx, workspaceId, now, BOUNDS),
    countUnassigned(tx, workspaceId),
  ])
  return {
    closes,
    distinct_conversations: conversations,
    reopened,
    median_close_seconds: median,
    waiting_now: waiting.reduce((sum, n) => sum + n, 0),
    unassigned_now: unassigned,
    oldest_wait_buckets_now: Object.fromEntries(BUCKETS.map((bucket, i) => [bucket, waiting[i]!])),
  }
}

const sumContacts = async (tx: Db, workspaceId: string, between: Between): Promise<Summary['contacts']> => {
  const counted = await countNewContacts(tx, workspaceId, between, MOST_NEW + 1)
  return { new: Math.min(counted, MOST_NEW), new_is_lower_bound: counted > MOST_NEW }
}

const sumUpBroadcasts = async (
  tx: Db,
  workspaceId: string,
  between: Between,
): Promise<Summary['broadcasts']> => {
  const { started, sent, delivered, read, failed, opted_out } = await sumBroadcasts(tx, workspaceId, between)
  return { started, sent: sent + delivered + read, delivered: delivered + read, read, failed, opted_out }
}

const sumSla = async (
  tx: Db,
  workspaceId: string,
  between: Between,
  now: string,
): Promise<Summary['sla']> => {
  const [breaches, policies, channels] = await Promise.all([
    countBreaches(tx, workspaceId, between, now),
    listPolicies(tx, workspaceId),
    readChannels(tx, workspaceId),
  ])
  const enabled = policies.filter((policy) => policy.enabled)
  const ids = new Set(channels.map((channel) => channel.id))
  return {
    running: enabled.length > 0,
    breaches,
    config_problems: enabled.filter((policy) => !canWork(policy, ids)).length,
  }
}

/** It has a target, a channel that is there, and hours. */
const canWork = (policy: PolicyRow, channels: ReadonlySet<string>): boolean =>
  [policy.first_response_seconds, policy.next_response_seconds, policy.resolution_seconds].some(
    (seconds) => seconds !== null,
  ) &&
  (policy.channel_ids === null || policy.channel_ids.some((id) => channels.has(id))) &&
  (policy.hours === null || Hours.safeParse(policy.hours).success)

type Figures = Omit<Summary, 'notes' | 'unavailable'>

const unavailableIn = (
  { messages, conversations, agents, chatbots }: Figures,
  agentKey: boolean,
): Summary['unavailable'] => {
  const reasons = {
    ...namesOf('messages', messages, () => 'No message was sent in these days.'),
    ...namesOf('conversations', conversations, () => 'No conversation was closed in these days.'),
    ...namesOf('agents', agents, () =>
      agentKey
        ? 'Keys of AI agents are in use, but messages do not keep the key that sent them, so that sessions of agents cannot be told from those of their owners.'
        : "No API key of this workspace is marked as an AI agent's.",
    ),
    ...namesOf('chatbots', chatbots, () => 'No chatbot analytics are kept.'),
  }
  return Object.entries(reasons).map(([metric, reason]) => ({ metric, reason }))
}

/** The null members of a part by their path. */
const namesOf = (part: string, figures: object, reason: () => string): Record<string, string> =>
  Object.fromEntries(
    Object.entries(figures)
      .filter(([, figure]) => figure === null)
      .map(([name]) => [`${part}.${name}`, reason()]),
  )

const notesOn = ({ now }: Pick<Context, 'now'>, { range, contacts, sla }: Figures): string[] => [
  ...rangeNotes(range, now),
  'messages counts those to customers that were written in these days, by how far they have come now. Each is counted as sent, delivered and read as far as it came; failed ones are none of these. delivery_rate is delivered divided by sent.',
  'conversations.closes counts each close, also of a conversation that was closed before. waiting_now, unassigned_now and oldest_wait_buckets_now are of this moment, whatever the days.',
  contacts.new_is_lower_bound
    ? `contacts.new was counted up to ${MOST_NEW}; there are more.`
    : 'contacts.new and workspace.contacts_total leave out contacts that were deleted.',
  'broadcasts counts those that were started in these days with all their recipients, as they stand now.',
  sla.running === true
    ? 'sla.breaches counts clocks that ran out in these days and were not met by then.'
    : 'No service level is in force; sla.breaches are of earlier ones.',
]

const rangeNotes = (range: Range, now: string): string[] => {
  const hours = hoursOf(range)
  return [
    ...(range.ended_at > now ? [`${range.to} is not over.`] : []),
    ...(hours === range.days * 24
      ? []
      : [`Clocks change in these days, which have ${hours} hours in ${range.timezone}.`]),
  ]
}

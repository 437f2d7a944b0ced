import type { Context, Handler, OutputOf } from '../../handler.ts'
import { findFirstAgentKeyTime, loadAgentFigures } from '../../../storage/agents/sessions.ts'
import { loadCounter } from '../../../storage/workspace/counters.ts'
import type { Db } from '../../../storage/database.ts'
import {
  type TimeRange,
  type VisibleChannels,
  countSlaBreaches,
  loadCloseFigures,
  countNewContacts,
  countOutbound,
  countReopenings,
  countUnassigned,
  countWaitsByDuration,
  loadBroadcastTotals,
} from '../../../storage/reports/reports.ts'
import { loadMedians } from '../../../storage/reports/medians.ts'
import { listSlaPolicies, type SlaPolicyRow } from '../../../storage/conversations/sla.ts'
import { readChannels } from '../../../storage/workspace/workspace.ts'
import { BusinessHours } from '../inbox/hours.ts'
import { listVisibleChannels } from '../../visibility/policy.ts'
import { formatChannelNotes } from './channel-notes.ts'
import { countHours, precedingRange, type ReportRange, resolveRange } from './range.ts'

type Summary = OutputOf<'reports_workspace_summary'>

/** New contacts are counted up to this number. */
const MAX_NEW_CONTACTS = 100_000

/** How long customers wait; each bucket but the first begins at one of the bounds. */
const WAIT_BUCKETS = ['under_1h', '1h_to_4h', '4h_to_24h', 'over_24h'] as const
const WAIT_BOUNDS_HOURS = [1, 4, 24]

/**
 * Summarizes some days. Each part is one or two statements of its own, so that they run in parallel; a change
 * made in the meantime may be in one part and not in another. Throws 400 for an invalid range.
 */
export const summarizeWorkspace: Handler<'reports_workspace_summary'> = async (ctx, input) => {
  const range = resolveRange(ctx, input)
  const {
    tx,
    now,
    actor: {
      workspace: { id, name, timezone },
    },
  } = ctx
  const visible = listVisibleChannels(ctx.actor)
  const between = { start: range.started_at, end: range.ended_at }
  const before = input.compare ? precedingRange(ctx, range) : undefined
  const [messages, conversations, contacts, broadcasts, sla, total, agents, median, previous] =
    await Promise.all([
      summarizeMessages(tx, id, between, visible),
      summarizeConversations(tx, id, between, now, visible),
      summarizeContacts(tx, id, between),
      summarizeBroadcasts(tx, id, between, visible),
      summarizeSla(tx, id, between, now, visible),
      loadCounter(tx, id, 'contacts'),
      summarizeAgents(tx, id, between, visible),
      input.medians ? loadFirstResponseMedian(ctx, range) : undefined,
      before && summarizePrevious(ctx, before, input.medians === true),
    ])
  const summary = {
    range,
    workspace: { company_id: id, name, timezone, contacts_total: total },
    messages,
    conversations: { ...conversations, ...median },
    contacts,
    broadcasts,
    sla,
    agents: agents.figures,
    chatbots: { sessions: null },
  }
  return {
    ...summary,
    ...(previous ? { previous } : {}),
    notes: [...formatSummaryNotes(ctx, summary), ...formatChannelNotes(ctx.actor)],
    unavailable: listUnavailableMetrics(summary, agents.reason),
  }
}

const loadFirstResponseMedian = async ({ tx, actor }: Context, range: ReportRange) => {
  const between = { start: range.started_at, end: range.ended_at }
  const medians = await loadMedians(tx, actor.workspace.id, between, listVisibleChannels(actor))
  return { median_first_response_seconds: medians.get(null)?.firstResponse ?? null }
}

/** Summarizes earlier days, without the figures of now. */
const summarizePrevious = async (
  ctx: Context,
  range: ReportRange,
  withMedians: boolean,
): Promise<Summary['previous']> => {
  const { tx, now, actor } = ctx
  const id = actor.workspace.id
  const visible = listVisibleChannels(actor)
  const between = { start: range.started_at, end: range.ended_at }
  const [messages, closed, reopened, contacts, broadcasts, breaches, median] = await Promise.all([
    summarizeMessages(tx, id, between, visible),
    loadCloseFigures(tx, id, between, visible),
    countReopenings(tx, id, between, visible),
    summarizeContacts(tx, id, between),
    summarizeBroadcasts(tx, id, between, visible),
    countSlaBreaches(tx, id, between, now, visible),
    withMedians ? loadFirstResponseMedian(ctx, range) : undefined,
  ])
  return {
    range,
    messages,
    conversations: {
      closes: closed.closes,
      distinct_conversations: closed.conversations,
      reopened,
      median_close_seconds: closed.median,
      ...median,
    },
    contacts,
    broadcasts,
    sla: { breaches },
  }
}

const summarizeMessages = async (
  tx: Db,
  workspaceId: string,
  between: TimeRange,
  visible: VisibleChannels,
): Promise<Summary['messages']> => {
  const counts = await countOutbound(tx, workspaceId, between, visible)
  const count = (...statuses: Parameters<typeof counts.get>[0][]): number =>
    statuses.reduce((sum, status) => sum + (counts.get(status) ?? 0), 0)
  const [sent, delivered] = [count('sent', 'delivered', 'read'), count('delivered', 'read')]
  return {
    sent,
    delivered,
    read: count('read'),
    failed: count('failed'),
    delivery_rate: sent === 0 ? null : delivered / sent,
  }
}

const summarizeConversations = async (
  tx: Db,
  workspaceId: string,
  between: TimeRange,
  now: string,
  visible: VisibleChannels,
): Promise<Summary['conversations']> => {
  const [{ closes, conversations, median }, reopened, waiting, unassigned] = await Promise.all([
    loadCloseFigures(tx, workspaceId, between, visible),
    countReopenings(tx, workspaceId, between, visible),
    countWaitsByDuration(tx, workspaceId, now, WAIT_BOUNDS_HOURS, visible),
    countUnassigned(tx, workspaceId, visible),
  ])
  return {
    closes,
    distinct_conversations: conversations,
    reopened,
    median_close_seconds: median,
    waiting_now: waiting.reduce((sum, n) => sum + n, 0),
    unassigned_now: unassigned,
    oldest_wait_buckets_now: Object.fromEntries(WAIT_BUCKETS.map((bucket, i) => [bucket, waiting[i]!])),
  }
}

const summarizeContacts = async (
  tx: Db,
  workspaceId: string,
  between: TimeRange,
): Promise<Summary['contacts']> => {
  const counted = await countNewContacts(tx, workspaceId, between, MAX_NEW_CONTACTS + 1)
  return { new: Math.min(counted, MAX_NEW_CONTACTS), new_is_lower_bound: counted > MAX_NEW_CONTACTS }
}

const summarizeBroadcasts = async (
  tx: Db,
  workspaceId: string,
  between: TimeRange,
  visible: VisibleChannels,
): Promise<Summary['broadcasts']> => {
  const { started, sent, delivered, read, failed, opted_out } = await loadBroadcastTotals(
    tx,
    workspaceId,
    between,
    visible,
  )
  return { started, sent: sent + delivered + read, delivered: delivered + read, read, failed, opted_out }
}

const summarizeSla = async (
  tx: Db,
  workspaceId: string,
  between: TimeRange,
  now: string,
  visible: VisibleChannels,
): Promise<Summary['sla']> => {
  const [breaches, policies, channels] = await Promise.all([
    countSlaBreaches(tx, workspaceId, between, now, visible),
    listSlaPolicies(tx, workspaceId),
    readChannels(tx, workspaceId),
  ])
  const enabled = policies.filter((policy) => policy.enabled && concernsVisible(policy, visible))
  const ids = new Set(channels.map((channel) => channel.id))
  return {
    running: enabled.length > 0,
    breaches,
    config_problems: enabled.filter((policy) => !isEffective(policy, ids)).length,
  }
}

/** The figures of AI agents; `reason`: why figures are null. */
type AgentSummary = { figures: Summary['agents']; reason: string }

const summarizeAgents = async (
  tx: Db,
  workspaceId: string,
  between: TimeRange,
  visible: VisibleChannels,
): Promise<AgentSummary> => {
  const none = { sessions: null, handoffs: null, resolution_rate: null }
  if ((await findFirstAgentKeyTime(tx, workspaceId)) === null)
    return { figures: none, reason: "No API key of this workspace is marked as an AI agent's." }
  const { sessions, handoffs, resolved } = await loadAgentFigures(tx, workspaceId, between, visible)
  return {
    figures: { sessions, handoffs, resolution_rate: sessions === 0 ? null : resolved / sessions },
    reason: 'No AI agent began a session in these days.',
  }
}

/** Whether a policy is for a channel that the reader may see. */
const concernsVisible = ({ channel_ids: ids }: SlaPolicyRow, visible: VisibleChannels): boolean =>
  visible === null || ids === null || ids.some((id) => visible.includes(id))

/** Whether a policy has a target, an existing channel and valid hours, without which it has no effect. */
const isEffective = (policy: SlaPolicyRow, channels: ReadonlySet<string>): boolean =>
  [policy.first_response_seconds, policy.next_response_seconds, policy.resolution_seconds].some(
    (seconds) => seconds !== null,
  ) &&
  (policy.channel_ids === null || policy.channel_ids.some((id) => channels.has(id))) &&
  (policy.hours === null || BusinessHours.safeParse(policy.hours).success)

type SummaryFigures = Omit<Summary, 'notes' | 'unavailable'>

const listUnavailableMetrics = (
  { messages, conversations, agents, chatbots }: SummaryFigures,
  agentReason: string,
): Summary['unavailable'] => {
  const reasons = {
    ...nullMetrics('messages', messages, () => 'No message was sent in these days.'),
    ...nullMetrics('conversations', conversations, () => 'No conversation was closed in these days.'),
    ...nullMetrics('agents', agents, () => agentReason),
    ...nullMetrics('chatbots', chatbots, () => 'No chatbot analytics are kept.'),
  }
  return Object.entries(reasons).map(([metric, reason]) => ({ metric, reason }))
}

/** Returns the reason for each null figure of a part, by the path of the figure. */
const nullMetrics = (part: string, figures: object, reason: () => string): Record<string, string> =>
  Object.fromEntries(
    Object.entries(figures)
      .filter(([, figure]) => figure === null)
      .map(([name]) => [`${part}.${name}`, reason()]),
  )

const formatSummaryNotes = (
  { now }: Pick<Context, 'now'>,
  { range, contacts, sla }: SummaryFigures,
): string[] => [
  ...rangeNotes(range, now),
  'messages counts those to customers that were written in these days, by their present status. ' +
    'A read message also counts as delivered and sent, a delivered one as sent, ' +
    'and a failed one as failed only. delivery_rate is delivered divided by sent.',
  'conversations.closes counts each close, also of a conversation that was closed before. ' +
    'waiting_now, unassigned_now and oldest_wait_buckets_now are of this moment, whatever the days.',
  contacts.new_is_lower_bound
    ? `contacts.new was counted up to ${MAX_NEW_CONTACTS}; there are more.`
    : 'contacts.new and workspace.contacts_total do not include deleted contacts.',
  'broadcasts counts those started in these days with all their recipients, by their present status.',
  'agents counts a session for each episode of a conversation in which the key of an AI agent replied, ' +
    'closed or assigned, in the days in which it began. It is handed over when a person does one of these, ' +
    'or when it is assigned to a team or to somebody else; resolution_rate is the share closed without that.',
  sla.running === true
    ? 'sla.breaches counts clocks that ran out in these days and were not met by then.'
    : 'No service level policy is enabled; sla.breaches are of earlier ones.',
]

const rangeNotes = (range: ReportRange, now: string): string[] => {
  const hours = countHours(range)
  return [
    ...(range.ended_at > now ? [`${range.to} is not over.`] : []),
    ...(hours === range.days * 24
      ? []
      : [`Clocks change in these days, which have ${hours} hours in ${range.timezone}.`]),
  ]
}

import type { z } from 'zod'
import type { Sla } from '../../catalog/conversations/read.ts'
import type { ConversationState } from '../../storage/conversations.ts'
import { type ActiveSlaPolicy, listActiveSlaPolicies } from '../../storage/sla.ts'
import { addBusinessTime, type BusinessHours } from './hours.ts'
import type { ConversationContext } from './conversation-context.ts'

const loadPolicies = (context: ConversationContext): Promise<ActiveSlaPolicy[]> =>
  (context.slaPolicies ??= listActiveSlaPolicies(context.tx, context.workspaceId))

const ALL = Number.MAX_SAFE_INTEGER

/**
 * Of the policies for a channel the one for the fewest channels, and of those the oldest; those for all
 * channels come last.
 */
const selectPolicy = (
  policies: readonly ActiveSlaPolicy[],
  channelId: string | null,
): ActiveSlaPolicy | undefined =>
  policies
    .filter(({ channel_ids: ids }) => ids === null || (channelId !== null && ids.includes(channelId)))
    .toSorted((a, b) => (a.channel_ids?.length ?? ALL) - (b.channel_ids?.length ?? ALL))[0]

const computeDue = (policy: ActiveSlaPolicy, seconds: number | null, from: string): string | null => {
  if (seconds === null) return null
  const hours = policy.hours as BusinessHours | null
  if (hours === null) return new Date(Date.parse(from) + seconds * 1000).toISOString()
  return addBusinessTime(from, seconds, { ...hours, timezone: hours.timezone ?? policy.timezone })
}

export type SlaClocks = Pick<
  ConversationState,
  'sla_policy_id' | 'first_response_due_at' | 'next_response_due_at' | 'resolution_due_at' | 'sla_breached'
>

/** The clocks of an episode that opens now. The first response is owed where the customer opened it. */
export const computeEpisodeClocks = async (
  flow: ConversationContext,
  channelId: string | null,
  byCustomer: boolean,
): Promise<SlaClocks> => {
  const policy = selectPolicy(await loadPolicies(flow), channelId)
  return {
    sla_policy_id: policy?.id ?? null,
    sla_breached: false,
    next_response_due_at: null,
    first_response_due_at: policy && byCustomer ? computeDue(policy, policy.first_response_seconds, flow.now) : null,
    resolution_due_at: policy ? computeDue(policy, policy.resolution_seconds, flow.now) : null,
  }
}

/**
 * When a later message must be answered that came now; null where no policy applies, or it was taken out of
 * use.
 */
export const computeNextResponseDue = async (
  flow: ConversationContext,
  { sla_policy_id: id }: ConversationState,
): Promise<string | null> => {
  if (id === null) return null
  const policy = (await loadPolicies(flow)).find((p) => p.id === id)
  return policy ? computeDue(policy, policy.next_response_seconds, flow.now) : null
}

/** Whether one of these clocks had run out when it was stopped. */
export const isAnyOverdue = (dues: readonly (string | null)[], at: string): boolean =>
  dues.some((time) => time !== null && time < at)

/** What an `sla` is shown from. `sla_policy_name` is null where no policy applies, or it is gone. */
export type SlaFacts = Omit<SlaClocks, 'sla_policy_id'> & { sla_policy_name: string | null }

/**
 * The service level of a conversation at this time; null where no policy applies. `next_due_at` is the
 * earliest clock that runs, late or not.
 */
export const toSla = (row: SlaFacts, now: string): z.input<typeof Sla> | null => {
  if (row.sla_policy_name === null) return null
  const clocks = (['first_response', 'next_response', 'resolution'] as const)
    .flatMap((metric) => {
      const at = row[`${metric}_due_at`]
      return at === null ? [] : [{ metric, at }]
    })
    .toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
  const next = clocks[0]
  return {
    status: row.sla_breached || (next !== undefined && next.at < now) ? 'breached' : next ? 'running' : 'met',
    next_due_at: next?.at ?? null,
    next_due_metric: next?.metric ?? null,
    policy: row.sla_policy_name,
  }
}

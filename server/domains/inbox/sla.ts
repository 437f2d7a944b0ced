import type { z } from 'zod'
import type { Sla } from '../../../catalog/conversations/read.ts'
import type { SlaClocks } from '../../../storage/conversations/changes.ts'
import type { ConversationState } from '../../../storage/conversations/conversations.ts'
import { type ActiveSlaPolicy, listActiveSlaPolicies } from '../../../storage/conversations/sla.ts'
import { addBusinessTime, type BusinessHours } from './hours.ts'
import type { ChangeContext } from '../../change-context.ts'

const loadPolicies = (context: ChangeContext): Promise<ActiveSlaPolicy[]> =>
  (context.slaPolicies ??= listActiveSlaPolicies(context.tx, context.workspaceId))

const ALL = Number.MAX_SAFE_INTEGER

/**
 * Selects the policy for the fewest channels, and of those the oldest; policies for all channels come last.
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

/** The clocks of a conversation that nobody has opened. */
export const NO_CLOCKS: SlaClocks = {
  sla_policy_id: null,
  sla_breached: false,
  next_response_due_at: null,
  first_response_due_at: null,
  resolution_due_at: null,
}

/** Computes the clocks of an episode that opens now. A first response is due where the customer opened it. */
export const computeEpisodeClocks = async (
  context: ChangeContext,
  channelId: string | null,
  byCustomer: boolean,
): Promise<SlaClocks> => {
  const policy = selectPolicy(await loadPolicies(context), channelId)
  return {
    sla_policy_id: policy?.id ?? null,
    sla_breached: false,
    next_response_due_at: null,
    first_response_due_at:
      policy && byCustomer ? computeDue(policy, policy.first_response_seconds, context.now) : null,
    resolution_due_at: policy ? computeDue(policy, policy.resolution_seconds, context.now) : null,
  }
}

/** Computes when a later message that came now is due; null where no policy applies, or it was disabled. */
export const computeNextResponseDue = async (
  context: ChangeContext,
  { sla_policy_id: id }: ConversationState,
): Promise<string | null> => {
  if (id === null) return null
  const policy = (await loadPolicies(context)).find((p) => p.id === id)
  return policy ? computeDue(policy, policy.next_response_seconds, context.now) : null
}

/** Whether one of these clocks had expired at this time. */
export const isAnyOverdue = (dues: readonly (string | null)[], at: string): boolean =>
  dues.some((time) => time !== null && time < at)

/** What an `sla` is computed from. `sla_policy_name`: null where no policy applies, or it was deleted. */
export type SlaFacts = Omit<SlaClocks, 'sla_policy_id'> & { sla_policy_name: string | null }

/**
 * Returns the service level of a conversation at this time; null where no policy applies. `next_due_at`: the
 * earliest running clock, overdue or not.
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

import type { z } from 'zod'
import type { Sla } from '../../catalog/conversations.ts'
import type { ConversationState } from '../../storage/conversations.ts'
import { type ActivePolicy, readPolicies } from '../../storage/sla.ts'
import { addBusinessTime, type Hours } from './hours.ts'
import type { Flow } from './lifecycle.ts'

/** Read once for a flow: one batch from the provider opens many conversations. */
const read = new WeakMap<Flow, Promise<ActivePolicy[]>>()

const policiesOf = (flow: Flow): Promise<ActivePolicy[]> => {
  const known = read.get(flow) ?? readPolicies(flow.tx, flow.workspaceId)
  read.set(flow, known)
  return known
}

const ALL = Number.MAX_SAFE_INTEGER

/**
 * Of the policies for a channel the one for the fewest channels, and of those the oldest; those for all
 * channels come last.
 */
const mostSpecific = (
  policies: readonly ActivePolicy[],
  channelId: string | null,
): ActivePolicy | undefined =>
  policies
    .filter(({ channel_ids: ids }) => ids === null || (channelId !== null && ids.includes(channelId)))
    .toSorted((a, b) => (a.channel_ids?.length ?? ALL) - (b.channel_ids?.length ?? ALL))[0]

const due = (policy: ActivePolicy, seconds: number | null, from: string): string | null => {
  if (seconds === null) return null
  const hours = policy.hours as Hours | null
  if (hours === null) return new Date(Date.parse(from) + seconds * 1000).toISOString()
  return addBusinessTime(from, seconds, { ...hours, timezone: hours.timezone ?? policy.timezone })
}

export type Clocks = Pick<
  ConversationState,
  'sla_policy_id' | 'first_response_due_at' | 'next_response_due_at' | 'resolution_due_at' | 'sla_breached'
>

/** The clocks of an episode that opens now. The first response is owed where the customer opened it. */
export const openingClocks = async (
  flow: Flow,
  channelId: string | null,
  byCustomer: boolean,
): Promise<Clocks> => {
  const policy = mostSpecific(await policiesOf(flow), channelId)
  return {
    sla_policy_id: policy?.id ?? null,
    sla_breached: false,
    next_response_due_at: null,
    first_response_due_at: policy && byCustomer ? due(policy, policy.first_response_seconds, flow.now) : null,
    resolution_due_at: policy ? due(policy, policy.resolution_seconds, flow.now) : null,
  }
}

/**
 * When a later message must be answered that came now; null where no policy applies, or it was taken out of
 * use.
 */
export const nextResponseDue = async (
  flow: Flow,
  { sla_policy_id: id }: ConversationState,
): Promise<string | null> => {
  if (id === null) return null
  const policy = (await policiesOf(flow)).find((p) => p.id === id)
  return policy ? due(policy, policy.next_response_seconds, flow.now) : null
}

/** Whether one of these clocks had run out when it was stopped. */
export const isLate = (dues: readonly (string | null)[], at: string): boolean =>
  dues.some((time) => time !== null && time < at)

/** What an `sla` is shown from. `sla_policy_name` is null where no policy applies, or it is gone. */
export type SlaFacts = Omit<Clocks, 'sla_policy_id'> & { sla_policy_name: string | null }

/**
 * The service level of a conversation at this time; null where no policy applies. `next_due_at` is the
 * earliest clock that runs, late or not.
 */
export const slaOf = (row: SlaFacts, now: string): z.input<typeof Sla> | null => {
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

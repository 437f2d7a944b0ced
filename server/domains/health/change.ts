import type { ChannelHealth } from '../../../storage/channels/health.ts'
import { type ChannelProblem, numberStateReasons, reasonsEndedByCall } from './rules.ts'

/**
 * What was learnt about a channel.
 * - `problem`: from a refused call or an account's update.
 * - `ended`: these reasons hold no more.
 * - `connected`: the provider reports the number or its account as working; `told` when it does so by itself.
 * - `stopped`: it reports that it does not; the channel gets this status.
 * - `figures`: the rating and the limit of a number; null is not told. `told`: as news, not when asked.
 */
export type HealthFact =
  | { kind: 'problem'; problem: ChannelProblem }
  | { kind: 'ended'; reasons: readonly string[] }
  | { kind: 'connected'; told: boolean }
  | { kind: 'stopped'; status: 'disconnected' | 'inactive'; reason: string }
  | { kind: 'figures'; quality: string | null; limit: string | null; told: boolean }

const severity = { ok: 0, limited: 1, restricted: 2, disconnected: 3 } as const

/** `now`: business time, which is shown. `realNow`: of what passes by itself. Both in ISO 8601 UTC. */
type Clock = { now: string; realNow: string }

/** What changed, as far as events tell it. */
export type HealthChange = { row: ChannelHealth; tells: boolean }

const addSeconds = (iso: string, seconds: number): string =>
  new Date(Date.parse(iso) + seconds * 1000).toISOString()

const withoutProblem = (row: ChannelHealth, { now }: Clock): ChannelHealth => ({
  ...row,
  // What an administrator has set in the meantime stays.
  status:
    row.previous_status !== null && (row.status === 'disconnected' || row.status === 'inactive')
      ? row.previous_status
      : row.status,
  health: 'ok',
  reason: null,
  provider_code: null,
  since: now,
  until: null,
  previous_status: null,
})

/** A problem that has passed by itself counts as none. */
const hasPassed = ({ until }: ChannelHealth, { realNow }: Clock): boolean =>
  until !== null && Date.parse(until) <= Date.parse(realNow)

const withProblem = (
  row: ChannelHealth,
  { status, reason, code, seconds }: ChannelProblem,
  channelStatus: 'disconnected' | 'inactive',
  clock: Clock,
): ChannelHealth => {
  const until = seconds === null ? null : addSeconds(clock.realNow, seconds)
  if (row.health === status && row.reason === reason) {
    const stays = until === null || row.until === null || Date.parse(until) <= Date.parse(row.until)
    const next = stays ? row : { ...row, until }
    return status === 'disconnected' && next.status !== channelStatus
      ? { ...next, status: channelStatus, previous_status: next.previous_status ?? 'connected' }
      : next
  }
  const stops = status === 'disconnected'
  return {
    ...row,
    status: stops ? channelStatus : row.status,
    // Of one that was off already: it is off again when the problem is over.
    previous_status: stops ? (row.previous_status ?? row.status) : null,
    health: status,
    reason,
    provider_code: code,
    since: clock.now,
    until,
    strikes: stops ? Math.min(row.strikes + 1, 20) : row.strikes,
  }
}

const applyProblem = (row: ChannelHealth, problem: ChannelProblem, clock: Clock): ChannelHealth => {
  // The worse problem is shown; of two that are as bad, the first.
  const isCovered =
    severity[row.health] > severity[problem.status] ||
    (row.health === problem.status && row.reason !== problem.reason)
  return isCovered ? row : withProblem(row, problem, 'disconnected', clock)
}

const applyConnected = (row: ChannelHealth, told: boolean, clock: Clock): ChannelHealth => {
  // Whether the token is good is not what the provider reports here.
  const endsProblem =
    row.health !== 'ok' &&
    row.reason !== null &&
    (told
      ? !reasonsEndedByCall.includes(row.reason) && row.reason !== 'permission_missing'
      : numberStateReasons.includes(row.reason))
  const next = endsProblem ? withoutProblem(row, clock) : row
  return told && next.health === 'ok' && next.status !== 'connected' ? { ...next, status: 'connected' } : next
}

const applyFact = (row: ChannelHealth, fact: HealthFact, clock: Clock): ChannelHealth => {
  switch (fact.kind) {
    case 'problem':
      return applyProblem(row, fact.problem, clock)
    case 'ended':
      return row.reason !== null && fact.reasons.includes(row.reason) ? withoutProblem(row, clock) : row
    case 'connected':
      return applyConnected(row, fact.told, clock)
    case 'stopped': {
      const { status, reason } = fact
      // A problem of the token stays the one that is shown: it must be solved first.
      if (row.health === 'disconnected' && reasonsEndedByCall.includes(row.reason ?? '')) return row
      return withProblem(row, { status: 'disconnected', reason, code: null, seconds: null }, status, clock)
    }
    case 'figures':
      return {
        ...row,
        quality_rating: fact.quality ?? row.quality_rating,
        messaging_limit: fact.limit ?? row.messaging_limit,
      }
  }
}

/** What is learnt for the first time because we asked is no news. */
const isNews = (before: string | null, after: string | null, told: boolean): boolean =>
  before !== after && (told || before !== null)

const FORGET_AFTER_MS = 15 * 60_000

/** A channel that has been well for a while starts anew: its next failure is not one of a series. */
const forgetStrikes = (row: ChannelHealth, { now }: Clock): ChannelHealth =>
  row.health === 'ok' && row.strikes > 0 && Date.parse(now) - Date.parse(row.since ?? now) > FORGET_AFTER_MS
    ? { ...row, strikes: 0 }
    : row

/** Returns the channel as it is now; undefined when nothing changed. */
export const changeHealth = (
  before: ChannelHealth,
  facts: readonly HealthFact[],
  clock: Clock,
): HealthChange | undefined => {
  let row = forgetStrikes(hasPassed(before, clock) ? withoutProblem(before, clock) : before, clock)
  for (const fact of facts) row = applyFact(row, fact, clock)
  if (JSON.stringify(row) === JSON.stringify(before)) return undefined
  const told = facts.some((fact) => fact.kind === 'figures' && fact.told)
  const tells =
    row.status !== before.status ||
    row.health !== before.health ||
    row.reason !== before.reason ||
    isNews(before.quality_rating, row.quality_rating, told) ||
    isNews(before.messaging_limit, row.messaging_limit, told)
  return { row, tells }
}

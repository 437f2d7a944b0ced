import {
  countTemplateCustomers,
  findNextRetry,
  listWaitingCountries,
  readMessagingLimit,
  type SendRow,
} from '../../../storage/broadcasts/sends.ts'
import type { Db } from '../../../storage/database.ts'
import { findOpening, type Hours, listZones } from './hours.ts'

/*
 * What a broadcast waits for: the hours of its recipients, the number's customers per day, the provider.
 */

type Waiting = NonNullable<SendRow['waiting']>
const DAY_MS = 24 * 60 * 60_000

const toIso = (ms: number): string => new Date(ms).toISOString()

/** Returns how many customers a number with this limit may write to in a day. */
const parseMessagingLimit = (limit: string | null): number => {
  const [, count, thousands] = /^TIER_(\d+)(K?)$/.exec(limit ?? '') ?? []
  return count === undefined ? Infinity : Number(count) * (thousands === 'K' ? 1000 : 1)
}

/**
 * Returns how many more customers a number may write to now, and when that changes. Each customer that got a template
 * within a day counts, also where a reply window was open.
 */
export const findRoom = async (
  db: Db,
  workspaceId: string,
  channelId: string,
  now: string,
): Promise<{ room: number; until: string }> => {
  const limit = parseMessagingLimit(await readMessagingLimit(db, workspaceId, channelId))
  if (limit === Infinity) return { room: Infinity, until: now }
  const since = toIso(Date.parse(now) - DAY_MS)
  const { customers, first } = await countTemplateCustomers(db, workspaceId, channelId, since)
  return { room: limit - customers, until: toIso(Date.parse(first ?? now) + DAY_MS) }
}

/** Whose recipients may be sent to now, by country; or what they wait for. */
export const findOpenCountries = async (
  db: Db,
  { workspaceId, broadcastId }: { workspaceId: string; broadcastId: string },
  { hours, workspaceZone, now }: { hours: Hours | undefined; workspaceZone: string; now: string },
): Promise<{ countries: (string | null)[] } | { waiting: Waiting } | 'none'> => {
  const all = await listWaitingCountries(db, workspaceId, broadcastId)
  if (all.length === 0) return 'none'
  if (!hours) return { countries: all }
  const openings = all.map((country) => ({
    country,
    at: findOpening(hours, now, listZones(country, workspaceZone)),
  }))
  const countries = openings.flatMap(({ country, at }) => (at === now ? [country] : []))
  if (countries.length > 0) return { countries }
  // Where the clocks changed since it began, hours may not meet for a while.
  const times = openings.map(({ at }) => at ?? toIso(Date.parse(now) + DAY_MS))
  return { waiting: { reason: 'hours', until: times.toSorted()[0]! } }
}

/** When recipients whom the provider put off may be tried again. */
export const findRetry = async (
  db: Db,
  { workspaceId, broadcastId }: { workspaceId: string; broadcastId: string },
  now: string,
): Promise<Waiting> => ({
  reason: 'provider',
  until: (await findNextRetry(db, workspaceId, broadcastId)) ?? toIso(Date.parse(now) + 1000),
})

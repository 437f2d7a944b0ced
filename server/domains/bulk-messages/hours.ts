import type { InputOf } from '../../handler.ts'
import { weekdays } from '../../../catalog/policy.ts'
import { toMinuteOfDay } from '../../clock.ts'

/*
 * The hours in which messages are sent, by the time zones of the recipient's country. A phone does not tell where in
 * its country somebody is, so where a country has several zones it must be within the hours in all of them.
 */

export type Hours = NonNullable<InputOf<'messaging_send_bulk'>['hours']>

/** Returns the time zones of a country; that of the workspace where the country, or its zones, are unknown. */
export const listZones = (country: string | null, workspaceZone: string): readonly string[] => {
  if (country === null) return [workspaceZone]
  const locale = new Intl.Locale(`und-${country}`) as Intl.Locale & {
    getTimeZones?: () => string[] | undefined
  }
  const zones = locale.getTimeZones?.() ?? []
  return zones.length === 0 ? [workspaceZone] : zones
}

const isWithin = ({ from, to, days }: Hours, at: Temporal.Instant, zone: string): boolean => {
  const time = at.toZonedDateTimeISO(zone)
  if (days && !days.includes(weekdays[time.dayOfWeek - 1]!)) return false
  const minute = time.hour * 60 + time.minute
  return minute >= toMinuteOfDay(from) && minute < toMinuteOfDay(to)
}

/** Two weeks, so that a day of the week comes again on which a change of the clocks skipped the hours. */
const DAYS_AHEAD = 15

/**
 * The times, from now on, at which the hours of a zone may begin: on each day, twice where clocks are set back over it;
 * and where clocks change, which may skip their beginning.
 */
const listBeginnings = ({ from }: Hours, now: Temporal.Instant, zone: string): Temporal.Instant[] => {
  const start = now.toZonedDateTimeISO(zone)
  const change = start.getTimeZoneTransition('next')
  const days = Array.from({ length: DAYS_AHEAD }, (_, n) =>
    start.toPlainDate().add({ days: n }).toPlainDateTime(Temporal.PlainTime.from(from)),
  )
  return [
    ...days.flatMap((begin) =>
      (['earlier', 'later'] as const).map((disambiguation) =>
        begin.toZonedDateTime(zone, { disambiguation }),
      ),
    ),
    ...(change ? [change] : []),
  ].map((time) => time.toInstant())
}

/** Names what two zones share whose clocks show the same for the days ahead. */
const describeClock = (now: Temporal.Instant, zone: string): string => {
  const start = now.toZonedDateTimeISO(zone)
  const change = start.getTimeZoneTransition('next')
  const isNear = change && change.epochMilliseconds < start.add({ days: DAYS_AHEAD }).epochMilliseconds
  return isNear ? `${start.offset} ${change.epochMilliseconds} ${change.offset}` : start.offset
}

/**
 * Returns when messages may be sent in these zones: `now` where they may be, else the next time; null when there is
 * none within two weeks, because the hours of the zones never meet.
 */
export const findOpening = (hours: Hours, now: string, zones: readonly string[]): string | null => {
  const at = Temporal.Instant.from(now)
  if (zones.every((zone) => isWithin(hours, at, zone))) return now
  // Most zones of a country have one time.
  const distinct = [...new Map(zones.map((zone) => [describeClock(at, zone), zone])).values()]
  const next = distinct
    .flatMap((zone) => listBeginnings(hours, at, zone))
    .filter((time) => Temporal.Instant.compare(time, at) > 0)
    .toSorted((a, b) => Temporal.Instant.compare(a, b))
    .find((time) => distinct.every((zone) => isWithin(hours, time, zone)))
  return next ? new Date(next.epochMilliseconds).toISOString() : null
}

import { weekdays } from '../../catalog/policy.ts'
import { toMinuteOfDay } from '../clock.ts'
import type { InputOf } from '../core/handler.ts'

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

const DAYS_AHEAD = 8

/** The times at which a day's hours begin in any of the zones, from now on. */
const listBeginnings = (
  { from }: Hours,
  now: Temporal.Instant,
  zones: readonly string[],
): Temporal.Instant[] => {
  const times = zones.flatMap((zone) => {
    const today = now.toZonedDateTimeISO(zone).toPlainDate()
    return Array.from({ length: DAYS_AHEAD }, (_, n) =>
      today.add({ days: n }).toZonedDateTime({ timeZone: zone, plainTime: from }).toInstant(),
    )
  })
  return times
    .filter((time) => Temporal.Instant.compare(time, now) > 0)
    .toSorted((a, b) => Temporal.Instant.compare(a, b))
}

/**
 * Returns when messages may be sent in these zones: `now` where they may be, else the next time; null when there is
 * none within a week, because the hours of the zones never meet.
 */
export const findOpening = (hours: Hours, now: string, zones: readonly string[]): string | null => {
  const at = Temporal.Instant.from(now)
  // Most zones of a country have one time.
  const distinct = [
    ...new Map(
      zones.map((zone) => [at.toZonedDateTimeISO(zone).toPlainDateTime().toString(), zone]),
    ).values(),
  ]
  const isOpen = (time: Temporal.Instant) => distinct.every((zone) => isWithin(hours, time, zone))
  if (isOpen(at)) return now
  const next = listBeginnings(hours, at, distinct).find(isOpen)
  return next ? new Date(next.epochMilliseconds).toISOString() : null
}

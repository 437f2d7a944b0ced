import { z } from 'zod'

/** Business hours, in which the clocks of service levels run. */
export const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const

const Time = z.string().regex(/^(?:[01]\d|2[0-3]):[0-5]\d$|^24:00$/, 'must be a time from "00:00" to "24:00"')
const Span = z
  .tuple([Time, Time], 'must be a begin and an end, such as ["09:00","18:00"]')
  .refine(
    ([from, to]) => from < to,
    'must end after it begins; hours over midnight are two spans, one of each day',
  )
const Day = z
  .array(Span)
  .max(24)
  .refine(
    (spans) => spans.toSorted().every((span, i, all) => i === 0 || all[i - 1]![1] <= span[0]),
    'must be spans that do not overlap',
  )

const isZone = (zone: string): boolean => {
  try {
    return (
      /^[A-Za-z]/.test(zone) &&
      Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(zone).timeZoneId !== ''
    )
  } catch {
    return false
  }
}

/** `timezone`: the workspace's when absent. `holidays`: dates there on which no clock runs. */
export const BusinessHours = z.strictObject({
  timezone: z.string().refine(isZone, 'must be an IANA time zone, such as Europe/Berlin').optional(),
  days: z
    .strictObject({ mon: Day, tue: Day, wed: Day, thu: Day, fri: Day, sat: Day, sun: Day })
    .partial()
    .refine((days) => Object.values(days).some((spans) => spans.length > 0), 'must have at least one span'),
  holidays: z.array(z.iso.date('must be a date such as 2026-12-25')).max(1000).optional(),
})
export type BusinessHours = z.output<typeof BusinessHours>

const DAY_MS = 86_400_000
/** The longest that a clock runs, whatever the hours: some open for a minute a week. */
const MAX_DAYS = 3660

const toMsOfDay = (time: string): number =>
  Number(time.slice(0, 2)) * 3_600_000 + Number(time.slice(3)) * 60_000

/**
 * Returns the spans of a local date, as milliseconds since its midnight; `day` counts from 1970-01-01, a
 * Thursday.
 */
const listSpans = (hours: BusinessHours, day: number): (readonly [number, number])[] => {
  if (hours.holidays?.includes(new Date(day * DAY_MS).toISOString().slice(0, 10))) return []
  return (hours.days[weekdays[(((day + 3) % 7) + 7) % 7]!] ?? [])
    .toSorted()
    .map(([from, to]) => [toMsOfDay(from), toMsOfDay(to)])
}

/**
 * Returns the time when so many seconds of business time have passed since `start`; ISO 8601 UTC in and out.
 * An instant is business time when its local time is within a span: an hour that is skipped in spring does
 * not count, one that is repeated in autumn counts twice. Iterates from one change of the UTC offset to
 * the next, between which local time advances evenly.
 */
export const addBusinessTime = (
  start: string,
  seconds: number,
  hours: BusinessHours & { timezone: string },
): string => {
  const begin = Date.parse(start)
  let at = begin
  let remaining = seconds * 1000
  while (at < begin + MAX_DAYS * DAY_MS) {
    const zoned = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(hours.timezone)
    const offset = zoned.offsetNanoseconds / 1e6
    const change = zoned.getTimeZoneTransition('next')?.epochMilliseconds ?? Infinity
    const evenUntil = Math.min(change, begin + MAX_DAYS * DAY_MS)
    for (let day = Math.floor((at + offset) / DAY_MS); day * DAY_MS - offset < evenUntil; day++) {
      for (const [from, to] of listSpans(hours, day)) {
        const opens = Math.max(day * DAY_MS + from - offset, at)
        const closes = Math.min(day * DAY_MS + to - offset, evenUntil)
        if (closes <= opens) continue
        if (remaining <= closes - opens) return new Date(opens + remaining).toISOString()
        remaining -= closes - opens
      }
    }
    at = evenUntil
  }
  return new Date(at).toISOString()
}

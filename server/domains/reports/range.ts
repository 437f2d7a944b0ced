import type { InputOf, OutputOf } from '../../handler.ts'
import { pluralize } from '../../../catalog/values.ts'
import { invalidField, type Problem } from '../../kernel/problem.ts'

export type RangeInput = Omit<InputOf<'reports_workspace_summary'>, 'compare' | 'medians'>
export type ReportRange = OutputOf<'reports_workspace_summary'>['range']

const MAX_DAYS = 186

type DayRange = { from: Temporal.PlainDate; to: Temporal.PlainDate }

/**
 * Returns the requested days, in the requested time zone or else the workspace's. No day is in the future:
 * weeks and months that are not over end today. A day begins with its first instant, so that it has 23 or 25
 * hours where clocks change, and none where it is skipped. Throws 400 with a pointer to the wrong field.
 */
export const resolveRange = (
  { now, actor }: { now: string; actor: { workspace: { timezone: string } } },
  { preset, from, to, timezone: requestedTimezone }: RangeInput,
): ReportRange => {
  const timezone = parseTimezone(requestedTimezone ?? actor.workspace.timezone)
  const today = Temporal.Instant.from(now).toZonedDateTimeISO(timezone).toPlainDate()
  const isExplicit = from !== undefined || to !== undefined
  const days = isExplicit
    ? parseDayRange(from, to, today, timezone)
    : presetDays(preset ?? 'last_7_days', today)
  return {
    from: days.from.toString(),
    to: days.to.toString(),
    days: countDays(days),
    timezone,
    started_at: startOfDay(days.from, timezone),
    ended_at: startOfDay(days.to.add({ days: 1 }), timezone),
    preset: isExplicit ? null : (preset ?? 'last_7_days'),
  }
}

/** The calendar of reports begins here: PostgreSQL has no year 0. */
const FIRST_DAY = Temporal.PlainDate.from('0001-01-01')

/**
 * Returns as many days just before the range, in its time zone. Throws 400 with a pointer to `from` when the calendar
 * of reports has fewer.
 */
export const precedingRange = (
  ctx: Parameters<typeof resolveRange>[0],
  { from, days, timezone }: ReportRange,
): ReportRange => {
  const first = Temporal.PlainDate.from(from)
  const earliest = FIRST_DAY.add({ days })
  if (Temporal.PlainDate.compare(first, earliest) < 0)
    throw invalidField(
      'from',
      'no_days_before',
      `leaves fewer than ${pluralize(days, 'day')} before it to compare with`,
      {
        fix: `Send from ${earliest.toString()} or later, or leave out compare.`,
      },
    )
  return resolveRange(ctx, {
    from: first.subtract({ days }).toString(),
    to: first.subtract({ days: 1 }).toString(),
    timezone,
  })
}

/** Returns the hours of the range; days on which clocks change do not have 24. */
export const countHours = ({ started_at: start, ended_at: end }: ReportRange): number =>
  (Date.parse(end) - Date.parse(start)) / 3_600_000

const countDays = ({ from, to }: DayRange): number => from.until(to).days + 1

const startOfDay = (day: Temporal.PlainDate, timezone: string): string =>
  new Date(day.toZonedDateTime(timezone).epochMilliseconds).toISOString()

/** Returns the instant at which the day of `now` began in a time zone. */
export const startOfToday = (now: string, timezone: string): string =>
  startOfDay(Temporal.Instant.from(now).toZonedDateTimeISO(timezone).toPlainDate(), timezone)

/**
 * Returns the name as the time zone database spells it. Throws 400 for what Temporal accepts besides names:
 * offsets, and times that contain a zone.
 */
const parseTimezone = (name: string): string => {
  try {
    const { timeZoneId } = Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name)
    if (/^[A-Za-z]/.test(name) && timeZoneId.toLowerCase() === name.toLowerCase()) return timeZoneId
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  throw invalidField('timezone', 'unknown_timezone', 'is not an IANA time zone', {
    fix: 'Send a name such as Europe/Berlin, Asia/Kolkata or UTC.',
  })
}

const presetDays = (preset: NonNullable<RangeInput['preset']>, today: Temporal.PlainDate): DayRange => {
  const monday = today.subtract({ days: today.dayOfWeek - 1 })
  const firstOfMonth = today.with({ day: 1 })
  const yesterday = today.subtract({ days: 1 })
  switch (preset) {
    case 'today':
      return { from: today, to: today }
    case 'yesterday':
      return { from: yesterday, to: yesterday }
    case 'last_7_days':
      return { from: today.subtract({ days: 6 }), to: today }
    case 'last_14_days':
      return { from: today.subtract({ days: 13 }), to: today }
    case 'last_30_days':
      return { from: today.subtract({ days: 29 }), to: today }
    case 'this_month':
      return { from: firstOfMonth, to: today }
    case 'last_month':
      return { from: firstOfMonth.subtract({ months: 1 }), to: firstOfMonth.subtract({ days: 1 }) }
    case 'this_week':
      return { from: monday, to: today }
    case 'last_week':
      return { from: monday.subtract({ days: 7 }), to: monday.subtract({ days: 1 }) }
  }
}

const parseDayRange = (
  from: string | undefined,
  to: string | undefined,
  today: Temporal.PlainDate,
  timezone: string,
): DayRange => {
  if (from === undefined || to === undefined) {
    const [missing, present] = from === undefined ? (['from', 'to'] as const) : (['to', 'from'] as const)
    throw invalidField(missing, 'required', `is required with ${present}`, {
      fix: 'Send both from and to, or preset.',
    })
  }
  const days = { from: parseDay('from', from), to: parseDay('to', to) }
  if (Temporal.PlainDate.compare(days.from, days.to) > 0)
    throw invalidField('from', 'reversed', 'must not be after to', { fix: `Send from ${to} and to ${from}.` })
  for (const field of ['from', 'to'] as const)
    if (Temporal.PlainDate.compare(days[field], today) > 0) throw futureDayProblem(field, today, timezone)
  if (countDays(days) > MAX_DAYS) {
    throw invalidField(
      'from',
      'too_long',
      `and to span ${countDays(days)} days; a report has at most ${MAX_DAYS}`,
      {
        fix:
          `Send from ${days.to.subtract({ days: MAX_DAYS - 1 }).toString()} or later, ` +
          'or several shorter ranges.',
      },
    )
  }
  return days
}

const futureDayProblem = (field: 'from' | 'to', today: Temporal.PlainDate, timezone: string): Problem =>
  invalidField(field, 'future', `must not be after today, which is ${today.toString()} in ${timezone}`, {
    fix: `Send ${today.toString()} or earlier.`,
  })

const parseDay = (field: 'from' | 'to', text: string): Temporal.PlainDate => {
  try {
    const day = Temporal.PlainDate.from(text, { overflow: 'reject' })
    if (Temporal.PlainDate.compare(day, FIRST_DAY) >= 0) return day
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  throw invalidField(field, 'invalid_day', 'is not a day of the calendar', {
    fix: 'Send a day such as 2026-10-01.',
  })
}

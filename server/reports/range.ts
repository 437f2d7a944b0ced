import type { InputOf, OutputOf } from '../core/handler.ts'
import { invalidField, type Problem } from '../core/problem.ts'

export type Span = Omit<InputOf<'reports_workspace_summary'>, 'limit' | 'cursor'>
export type Range = OutputOf<'reports_workspace_summary'>['range']

/** Most days of a report. */
const MOST_DAYS = 186

type Days = { from: Temporal.PlainDate; to: Temporal.PlainDate }

/**
 * The days that a report is asked for, in the time zone asked for or else the workspace's. Nothing is of
 * the future: weeks and months that are not over end today. A day begins with its first instant, so that it
 * has 23 or 25 hours where clocks change, and none where it is skipped. Throws 400 on the field at fault.
 */
export const rangeOf = (
  { now, actor }: { now: string; actor: { workspace: { timezone: string } } },
  { preset, from, to, timezone: asked }: Span,
): Range => {
  const timezone = zoneOf(asked ?? actor.workspace.timezone)
  const today = Temporal.Instant.from(now).toZonedDateTimeISO(timezone).toPlainDate()
  const given = from !== undefined || to !== undefined
  const days = given ? asGiven(from, to, today, timezone) : presetDays(preset ?? 'last_7_days', today)
  return {
    from: days.from.toString(),
    to: days.to.toString(),
    days: lengthOf(days),
    timezone,
    started_at: startOf(days.from, timezone),
    ended_at: startOf(days.to.add({ days: 1 }), timezone),
    preset: given ? null : (preset ?? 'last_7_days'),
  }
}

/** Hours of the range, which are not 24 a day where clocks change in it. */
export const hoursOf = ({ started_at: start, ended_at: end }: Range): number =>
  (Date.parse(end) - Date.parse(start)) / 3_600_000

const lengthOf = ({ from, to }: Days): number => from.until(to).days + 1

const startOf = (day: Temporal.PlainDate, timezone: string): string =>
  new Date(day.toZonedDateTime(timezone).epochMilliseconds).toISOString()

/**
 * The name as the time zone database writes it. Temporal would take offsets, and times with a zone in them,
 * too.
 */
const zoneOf = (name: string): string => {
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

const presetDays = (preset: NonNullable<Span['preset']>, today: Temporal.PlainDate): Days => {
  const monday = today.subtract({ days: today.dayOfWeek - 1 })
  const first = today.with({ day: 1 })
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
      return { from: first, to: today }
    case 'last_month':
      return { from: first.subtract({ months: 1 }), to: first.subtract({ days: 1 }) }
    case 'this_week':
      return { from: monday, to: today }
    case 'last_week':
      return { from: monday.subtract({ days: 7 }), to: monday.subtract({ days: 1 }) }
  }
}

const asGiven = (
  from: string | undefined,
  to: string | undefined,
  today: Temporal.PlainDate,
  timezone: string,
): Days => {
  if (from === undefined || to === undefined) {
    const [missing, there] = from === undefined ? (['from', 'to'] as const) : (['to', 'from'] as const)
    throw invalidField(missing, 'required', `is required with ${there}`, {
      fix: 'Send both from and to, or preset.',
    })
  }
  const days = { from: dayOf('from', from), to: dayOf('to', to) }
  if (Temporal.PlainDate.compare(days.from, days.to) > 0)
    throw invalidField('from', 'reversed', 'must not be after to', { fix: `Send from ${to} and to ${from}.` })
  for (const field of ['from', 'to'] as const)
    if (Temporal.PlainDate.compare(days[field], today) > 0) throw future(field, today, timezone)
  if (lengthOf(days) > MOST_DAYS) {
    throw invalidField(
      'from',
      'too_long',
      `and to are ${lengthOf(days)} days; a report has at most ${MOST_DAYS}`,
      {
        fix: `Send from ${days.to.subtract({ days: MOST_DAYS - 1 }).toString()} or later, or several shorter ranges.`,
      },
    )
  }
  return days
}

const future = (field: 'from' | 'to', today: Temporal.PlainDate, timezone: string): Problem =>
  invalidField(field, 'future', `must not be after today, which is ${today.toString()} in ${timezone}`, {
    fix: `Send ${today.toString()} or earlier.`,
  })

const dayOf = (field: 'from' | 'to', text: string): Temporal.PlainDate => {
  try {
    // The year 0 is none of the database's.
    if (!text.startsWith('0000-')) return Temporal.PlainDate.from(text, { overflow: 'reject' })
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  throw invalidField(field, 'invalid_day', 'is not a day of the calendar', {
    fix: 'Send a day such as 2026-10-01.',
  })
}

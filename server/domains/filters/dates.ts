import { findNearestName } from '../../nearest-name.ts'

/**
 * A parsed date of a filter. `starts`: it is the first instant of a day or of a longer span, which surprises
 * where it is an upper bound.
 */
export type FilterDate = { instant: string; form: 'instant' | 'local' | 'day' | 'relative'; starts: boolean }
type FilterDateError = { detail: string; fix: string }

/**
 * Units of relative dates. Hours and minutes are exact; the others go by the local calendar, so that a day
 * later is the same time of day.
 */
const units = { m: 'minutes', h: 'hours', d: 'days', w: 'weeks', mo: 'months', y: 'years' } as const
const spans = ['day', 'week', 'month', 'quarter', 'year'] as const
type Span = (typeof spans)[number]

const words: readonly string[] = [
  'now',
  'today',
  'yesterday',
  ...['start_of', 'end_of'].flatMap((edge) => spans.map((span) => `${edge}_${span}`)),
]

const ISO = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(Z|z|[+-]\d{2}(?::?\d{2})?)?$/
const DAY = /^\d{4}-\d{2}-\d{2}$/
const RELATIVE = /^([+-])(\d{1,6})(mo|[mhdwy])$/
const EDGE = /^(start|end)_of_(day|week|month|quarter|year)$/

const HINT =
  'Send an instant such as 2026-10-01T09:30:00Z, a day such as 2026-10-01, or a relative date: ' +
  'now, today, yesterday, -7d, +3d (m, h, d, w, mo, y), start_of_month, end_of_week.'

const createNotADateError = (text: string): FilterDateError => {
  const near = /^\d{1,6}(?:mo|[mhdwy])$/.test(text) ? `-${text}` : findNearestName(text, words)
  return { detail: 'must be a date', fix: near ? `Did you mean ${near}?` : HINT }
}
const OUT_OF_RANGE: FilterDateError = {
  detail: 'must lie in the years 0001 to 9999',
  fix: 'Send an earlier or later date.',
}

/**
 * Parses a date of a filter (docs/filters.md); `now`: an ISO instant, `zone`: the IANA name of the workspace's
 * zone, which applies to dates without one. A local time that daylight saving skips is read with the offset
 * before the change; one that occurs twice is the first. Returns an ISO instant in UTC with milliseconds.
 */
export const parseFilterDate = (text: string, now: string, zone: string): FilterDate | FilterDateError => {
  try {
    const parsed = parse(text, now, zone)
    if (!parsed) return createNotADateError(text)
    const instant = new Date(parsed.at.epochMilliseconds).toISOString()
    return /^(?!0000)\d{4}-/.test(instant)
      ? { instant, form: parsed.form, starts: parsed.starts ?? false }
      : OUT_OF_RANGE
  } catch (error) {
    if (error instanceof RangeError) return RELATIVE.test(text) ? OUT_OF_RANGE : createNotADateError(text)
    throw error
  }
}

const parse = (
  text: string,
  now: string,
  zone: string,
):
  | { at: Temporal.ZonedDateTime | Temporal.Instant; form: FilterDate['form']; starts?: boolean }
  | undefined => {
  const iso = ISO.exec(text)
  if (iso?.[1]) return { at: Temporal.Instant.from(text.toUpperCase()), form: 'instant' }
  if (iso)
    return {
      at: Temporal.PlainDateTime.from(text.toUpperCase(), { overflow: 'reject' }).toZonedDateTime(zone, {
        disambiguation: 'compatible',
      }),
      form: 'local',
    }
  if (DAY.test(text))
    return {
      at: Temporal.PlainDate.from(text, { overflow: 'reject' }).toZonedDateTime(zone),
      form: 'day',
      starts: true,
    }
  const localNow = Temporal.Instant.from(now).toZonedDateTimeISO(zone)
  const today = localNow.toPlainDate()
  if (text === 'now') return { at: localNow, form: 'relative' }
  if (text === 'today') return { at: today.toZonedDateTime(zone), form: 'relative', starts: true }
  if (text === 'yesterday')
    return { at: today.subtract({ days: 1 }).toZonedDateTime(zone), form: 'relative', starts: true }
  const [, sign, count, unit] = RELATIVE.exec(text) ?? []
  if (unit)
    return {
      at: localNow.add({ [units[unit as keyof typeof units]]: Number(`${sign}${count}`) }),
      form: 'relative',
    }
  const [, edge, span] = EDGE.exec(text) ?? []
  if (!span) return undefined
  const first = firstDay(today, span as Span)
  if (edge === 'start') return { at: first.toZonedDateTime(zone), form: 'relative', starts: true }
  return {
    at: first
      .add(lengths[span as Span])
      .toZonedDateTime(zone)
      .subtract({ milliseconds: 1 }),
    form: 'relative',
  }
}

const lengths = {
  day: { days: 1 },
  week: { weeks: 1 },
  month: { months: 1 },
  quarter: { months: 3 },
  year: { years: 1 },
} satisfies Record<Span, Temporal.DurationLike>

const firstDay = (day: Temporal.PlainDate, span: Span): Temporal.PlainDate => {
  switch (span) {
    case 'day':
      return day
    case 'week':
      return day.subtract({ days: day.dayOfWeek - 1 })
    case 'month':
      return day.with({ day: 1 })
    case 'quarter':
      return day.with({ month: day.month - ((day.month - 1) % 3), day: 1 })
    case 'year':
      return day.with({ month: 1, day: 1 })
  }
}

/** Returns the day of an instant in a zone, as YYYY-MM-DD. */
export const toLocalDay = (instant: string, zone: string): string =>
  Temporal.Instant.from(instant).toZonedDateTimeISO(zone).toPlainDate().toString()

/** Business time, and the workspace's time zone. */
type DateContext = { now: string; timeZone: string }

const units: Record<string, string> = {
  m: 'minutes',
  h: 'hours',
  d: 'days',
  w: 'weeks',
  mo: 'months',
  y: 'years',
}

/** Resolves a date of a filter to an instant. */
export const resolveDate = ({ now, timeZone }: DateContext, date: string): Temporal.Instant => {
  const localNow = Temporal.Instant.from(now).toZonedDateTimeISO(timeZone)
  const shifted = /^([+-])(\d+)(m|h|d|w|mo|y)$/.exec(date)
  if (shifted)
    return localNow.add({ [units[shifted[3]!]!]: Number(`${shifted[1]}${shifted[2]}`) }).toInstant()
  const boundary = /^(start|end)_of_(day|week|month|quarter|year)$/.exec(date)
  if (boundary) {
    const first = firstDay(localNow.toPlainDate(), boundary[2]!)
    const start = (from: Temporal.PlainDate): Temporal.Instant => from.toZonedDateTime(timeZone).toInstant()
    return boundary[1] === 'start'
      ? start(first)
      : start(first.add(periodLengths[boundary[2]!]!)).subtract({ milliseconds: 1 })
  }
  if (date === 'now') return localNow.toInstant()
  if (date === 'today') return localNow.startOfDay().toInstant()
  if (date === 'yesterday')
    return localNow.toPlainDate().subtract({ days: 1 }).toZonedDateTime(timeZone).toInstant()
  if (/^\d{4}-\d{2}-\d{2}$/.test(date))
    return Temporal.PlainDate.from(date).toZonedDateTime(timeZone).toInstant()
  return /(Z|[+-]\d{2}:?\d{2})$/i.test(date)
    ? Temporal.Instant.from(date)
    : Temporal.PlainDateTime.from(date).toZonedDateTime(timeZone).toInstant()
}

const periodLengths: Record<string, Temporal.DurationLike> = {
  day: { days: 1 },
  week: { days: 7 },
  month: { months: 1 },
  quarter: { months: 3 },
  year: { years: 1 },
}

const firstDay = (today: Temporal.PlainDate, unit: string): Temporal.PlainDate => {
  switch (unit) {
    case 'week':
      return today.subtract({ days: today.dayOfWeek - 1 })
    case 'month':
      return today.with({ day: 1 })
    case 'quarter':
      return today.with({ month: 3 * Math.floor((today.month - 1) / 3) + 1, day: 1 })
    case 'year':
      return today.with({ month: 1, day: 1 })
    default:
      return today
  }
}

/** A time of the clock on the wall: milliseconds since 1970 as if the zone were UTC. */
type WallTime = number

const MINUTE = 60_000
const DAY = 86_400_000

/** What a phrase is relative to: the workspace's time, in milliseconds, and its IANA zone. */
export type PhraseClock = { readonly now: number; readonly zone: string }

/** Creates a function that returns what clocks in a zone show at an instant. */
const createWallClock = (zone: string): ((instant: number) => WallTime) => {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    calendar: 'gregory',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  return (instant) => {
    const parts = new Map(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]))
    const [year, month, day, hour, minute, second] = ['year', 'month', 'day', 'hour', 'minute', 'second'].map(
      (type) => parts.get(type as Intl.DateTimeFormatPartTypes)!,
    )
    return Date.UTC(year!, month! - 1, day!, hour!, minute!, second!)
  }
}

/**
 * Returns the instant at which clocks in the zone show this time. Of the two when clocks were set back, the first;
 * when they were set forward over it, as long after the change as it is after the hour that was left out began.
 */
const toInstant = (wallAt: (instant: number) => WallTime, wall: WallTime): number => {
  const offsets = [wall - DAY, wall + DAY].map((near) => wallAt(near) - near)
  const instants = offsets.map((offset) => wall - offset).filter((instant) => wallAt(instant) === wall)
  return instants.length > 0 ? Math.min(...instants) : wall - offsets[0]!
}

const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']

/** Returns the milliseconds since midnight of `9:00`, `14:30:15` or `9am`; undefined for other text. */
const parseClockTime = (text: string): number | undefined => {
  const [, hours, minutes = '0', seconds = '0', half] =
    /^(\d{1,2})(?::(\d{2})(?::(\d{2}))?)?\s*([ap]m)?$/.exec(text) ?? []
  if (hours === undefined || (half === undefined && !text.includes(':'))) return undefined
  const hour = half === undefined ? Number(hours) : (Number(hours) % 12) + (half === 'pm' ? 12 : 0)
  const isValid =
    hour < 24 &&
    Number(minutes) < 60 &&
    Number(seconds) < 60 &&
    (half === undefined || /^([1-9]|1[0-2])$/.test(String(Number(hours))))
  return isValid ? ((hour * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 : undefined
}

/** Returns midnight of `2026-11-30`; undefined for other text and for days that do not exist. */
const parseDay = (text: string): WallTime | undefined => {
  const midnight = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  return Number.isFinite(midnight) && new Date(midnight).toISOString().startsWith(text) ? midnight : undefined
}

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: MINUTE, h: 60 * MINUTE }

/** Days and weeks are those of the calendar, so that the time of day stays; hours, minutes and seconds elapse. */
const addDuration = (
  text: string,
  { now }: PhraseClock,
  wallAt: (i: number) => WallTime,
): number | undefined => {
  if (!/^[+-](?:\d{1,6}[smhdw])+$/.test(text)) return undefined
  const sign = text.startsWith('-') ? -1 : 1
  let [days, elapsed] = [0, 0]
  for (const [, count, unit] of text.matchAll(/(\d+)([smhdw])/g))
    if (unit === 'd' || unit === 'w') days += Number(count) * (unit === 'w' ? 7 : 1)
    else elapsed += Number(count) * UNITS[unit!]!
  const wholeSeconds = Math.floor(now / 1000) * 1000
  const start = days === 0 ? wholeSeconds : toInstant(wallAt, wallAt(wholeSeconds) + sign * days * DAY)
  return start + sign * elapsed
}

/** Returns the midnights that a word for a day may mean, the likeliest first; undefined for other text. */
const findDays = (text: string, today: WallTime): WallTime[] | undefined => {
  const relative = { yesterday: -1, today: 0, tomorrow: 1 }[text]
  if (relative !== undefined) return [today + relative * DAY]
  const [, last, name = ''] = /^(last )?([a-z]{3,9})$/.exec(text) ?? []
  const weekday = WEEKDAYS.findIndex((full) => full === name || full.slice(0, 3) === name)
  if (weekday === -1) {
    const day = parseDay(text)
    return day === undefined ? undefined : [day]
  }
  const ahead = (weekday - new Date(today).getUTCDay() + 7) % 7
  if (last) return [today + (ahead - 7) * DAY]
  return [today + ahead * DAY, today + (ahead + 7) * DAY]
}

/**
 * Returns the instant, in milliseconds, that a phrase means in a zone; undefined when it is not one. `now`; `+1d`,
 * `-90m`, `+1d12h`; a day (`today`, `tomorrow`, `yesterday`, `monday`, `last monday`, `2026-11-30`), a time of the day
 * (`9:00`, `14:30`, `9am`), or both. A day without a time begins at midnight, a time without a day is today's, and a
 * weekday is the next one that is not over.
 */
export const parseTimePhrase = (phrase: string, clock: PhraseClock): number | undefined => {
  const text = phrase.trim().toLowerCase().replaceAll(/\s+/g, ' ')
  const wallAt = createWallClock(clock.zone)
  if (text === 'now') return clock.now
  const moved = addDuration(text, clock, wallAt)
  if (moved !== undefined) return moved
  const today = Math.floor(wallAt(clock.now) / DAY) * DAY
  const whole = parseClockTime(text)
  if (whole !== undefined) return toInstant(wallAt, today + whole)
  const [, word = text, time] = /^(.+?)(?:[ t](?:at )?(\d[\d:]*(?: ?[ap]m)?))?$/.exec(text) ?? []
  const days = findDays(word, today)
  const clockTime = time === undefined ? 0 : parseClockTime(time)
  if (!days || clockTime === undefined) return undefined
  const instants = days.map((day) => toInstant(wallAt, day + clockTime))
  return instants.find((instant) => instant >= clock.now) ?? instants.at(-1)
}

/** Returns what clocks in the zone show at an instant, such as `2026-11-30 09:00`. */
export const formatWallTime = (instant: number, zone: string): string =>
  new Date(createWallClock(zone)(instant)).toISOString().slice(0, 16).replace('T', ' ')

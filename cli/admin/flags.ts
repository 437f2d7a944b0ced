import { storable } from '../../storage/ids.ts'
import { type Fault, fault, usage } from '../fault.ts'
import type { Flags } from './verb.ts'

/** Reads flags as values, and refuses what cannot be, naming the flag. */

export const text = (flags: Flags, name: string): string | undefined => {
  const value = flags[name]
  return typeof value === 'string' ? value : undefined
}

const flagOf = (name: string): string => `--${name.replaceAll(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`

/** A name of 1 to 255 characters. */
export const nameOf = (flags: Flags, name = 'name'): string | undefined => {
  const value = text(flags, name)?.trim()
  if (value === undefined) return undefined
  if (value.length < 1 || value.length > 255)
    throw usage(`${flagOf(name)} must have 1 to 255 characters.`, flagOf(name))
  return value
}

export const oneOf = <T extends string>(flags: Flags, name: string, allowed: readonly T[]): T | undefined => {
  const value = text(flags, name)
  if (value === undefined) return undefined
  if (!allowed.includes(value as T))
    throw usage(`${flagOf(name)} has no "${value}".`, flagOf(name), `One of: ${allowed.join(', ')}.`)
  return value as T
}

/** Words parted by commas; undefined when the flag was not given, empty when it was given empty. */
export const listOf = (flags: Flags, name: string): string[] | undefined =>
  text(flags, name)
    ?.split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')

export const idOf = (value: string, flag: string): string => {
  if (!/^[1-9]\d{0,18}$/.test(value) || storable(value) === '0')
    throw usage(
      `${flag} takes an id, not "${value}".`,
      flag,
      'Ids are whole numbers, as the list commands show them.',
    )
  return value
}

export const idsOf = (flags: Flags, name: string): string[] | undefined =>
  listOf(flags, name) && [...new Set(listOf(flags, name)!.map((id) => idOf(id, flagOf(name))))]

/** A whole number from 0; null for `none`. */
export const limitOf = (flags: Flags, name: string): number | null | undefined => {
  const value = text(flags, name)
  if (value === undefined) return undefined
  if (value === 'none') return null
  if (!/^\d{1,15}$/.test(value))
    throw usage(`${flagOf(name)} takes a whole number or "none", not "${value}".`, flagOf(name))
  return Number(value)
}

/** An IANA time zone, spelled as its database spells it. */
export const timezoneOf = (flags: Flags): string | undefined => {
  const value = text(flags, 'timezone')
  if (value === undefined) return undefined
  try {
    if (/^[A-Za-z]/.test(value))
      return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(value).timeZoneId
  } catch {
    /* said below */
  }
  throw usage(
    `--timezone has no "${value}".`,
    '--timezone',
    'Give an IANA time zone, such as Europe/Berlin or UTC.',
  )
}

/** A date lasts to its end in the workspace's time zone; a time without a zone is there too. ISO 8601 UTC. */
export const momentOf = (flags: Flags, name: string, timezone: string): string | undefined => {
  const value = text(flags, name)?.trim()
  if (value === undefined) return undefined
  try {
    if (/^\d{4}-\d{2}-\d{2}$/.test(value))
      return iso(Temporal.PlainDate.from(value).add({ days: 1 }).toZonedDateTime(timezone).epochMilliseconds)
    if (/(Z|[+-]\d{2}:?\d{2})$/i.test(value)) return iso(Temporal.Instant.from(value).epochMilliseconds)
    return iso(Temporal.PlainDateTime.from(value).toZonedDateTime(timezone).epochMilliseconds)
  } catch {
    throw usage(
      `${flagOf(name)} takes a date or a time, not "${value}".`,
      flagOf(name),
      'For example 2027-01-31 or 2027-01-31T12:00:00Z.',
    )
  }
}

const iso = (ms: number): string => new Date(ms).toISOString()

/** Leaves out what was not said, so that an update leaves it be. */
export const said = <T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>
  }

export const nothingSaid = (): Fault => usage('Nothing to change was given.', undefined, undefined)

/** An id that names nothing here: exit code 3. */
export const missing = (detail: string, parameter?: string, fix?: string): Fault =>
  fault(3, {
    type: 'about:blank',
    title: 'Not found',
    status: 404,
    detail,
    code: 'not_found',
    ...(parameter ? { errors: [{ parameter, code: 'not_found', detail, ...(fix ? { fix } : {}) }] } : {}),
  })

/** Refuses ids of a flag that the workspace does not have. */
export const requireKnown = (
  wanted: readonly string[],
  known: readonly string[],
  what: string,
  flag: string,
  list: string,
): void => {
  const unknown = wanted.filter((id) => !known.includes(id))
  if (unknown.length > 0)
    throw missing(
      `${flag}: the workspace has no ${what} ${unknown.join(', ')}.`,
      flag,
      `wcrm admin ${list} list shows those it has.`,
    )
}

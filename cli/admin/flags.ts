import { hasVisibleText } from '../../catalog/text.ts'
import { toStorableId } from '../../storage/values/ids.ts'
import { type CliError, cliError, usageError } from '../error.ts'
import type { AdminFlags } from './verb.ts'

// Parsers of flag values. All return undefined for an absent flag and throw a usage error that names the
// flag.

export const stringFlag = (flags: AdminFlags, name: string): string | undefined => {
  const value = flags[name]
  return typeof value === 'string' ? value : undefined
}

const flagName = (name: string): string => `--${name.replaceAll(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`

/** Parses a name of 1 to 255 characters. */
export const nameFlag = (flags: AdminFlags, name = 'name'): string | undefined => {
  const value = stringFlag(flags, name)?.trim()
  if (value === undefined) return undefined
  if (value !== '' && !hasVisibleText(value))
    throw usageError(
      `${flagName(name)} must have a visible character, not only invisible ones.`,
      flagName(name),
    )
  if (value.length < 1 || value.length > 255)
    throw usageError(`${flagName(name)} must have 1 to 255 characters.`, flagName(name))
  return value
}

export const choiceFlag = <T extends string>(
  flags: AdminFlags,
  name: string,
  allowed: readonly T[],
): T | undefined => {
  const value = stringFlag(flags, name)
  if (value === undefined) return undefined
  if (!allowed.includes(value as T))
    throw usageError(
      `${flagName(name)} does not accept "${value}".`,
      flagName(name),
      `One of: ${allowed.join(', ')}.`,
    )
  return value as T
}

/** Parses words separated by commas; empty for an empty value. */
export const listFlag = (flags: AdminFlags, name: string): string[] | undefined =>
  stringFlag(flags, name)
    ?.split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')

export const parseId = (value: string, flag: string): string => {
  if (!/^[1-9]\d{0,18}$/.test(value) || toStorableId(value) === '0')
    throw usageError(
      `${flag} must be an id, not "${value}".`,
      flag,
      'Ids are integers, as the list commands show them.',
    )
  return value
}

export const idsFlag = (flags: AdminFlags, name: string): string[] | undefined =>
  listFlag(flags, name) && [...new Set(listFlag(flags, name)!.map((id) => parseId(id, flagName(name))))]

/** Parses an integer from 0; null for `none`. */
export const limitFlag = (flags: AdminFlags, name: string): number | null | undefined => {
  const value = stringFlag(flags, name)
  if (value === undefined) return undefined
  if (value === 'none') return null
  if (!/^\d{1,15}$/.test(value))
    throw usageError(`${flagName(name)} must be an integer or "none", not "${value}".`, flagName(name))
  return Number(value)
}

/** Parses an IANA time zone; returns its canonical spelling. */
export const timezoneFlag = (flags: AdminFlags): string | undefined => {
  const value = stringFlag(flags, 'timezone')
  if (value === undefined) return undefined
  try {
    if (/^[A-Za-z]/.test(value))
      return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(value).timeZoneId
  } catch {
    /* Reported below. */
  }
  throw usageError(
    `--timezone does not accept "${value}".`,
    '--timezone',
    'Use an IANA time zone, such as Europe/Berlin or UTC.',
  )
}

/**
 * Parses a date, which stands for its end, or a time. Both are in the workspace's time zone unless an offset
 * is given. Returns ISO 8601 UTC.
 */
export const timestampFlag = (flags: AdminFlags, name: string, timezone: string): string | undefined => {
  const value = stringFlag(flags, name)?.trim()
  if (value === undefined) return undefined
  try {
    if (/^\d{4}-\d{2}-\d{2}$/.test(value))
      return toIsoTimestamp(
        Temporal.PlainDate.from(value).add({ days: 1 }).toZonedDateTime(timezone).epochMilliseconds,
      )
    if (/(Z|[+-]\d{2}:?\d{2})$/i.test(value))
      return toIsoTimestamp(Temporal.Instant.from(value).epochMilliseconds)
    return toIsoTimestamp(Temporal.PlainDateTime.from(value).toZonedDateTime(timezone).epochMilliseconds)
  } catch {
    throw usageError(
      `${flagName(name)} must be a date or a time, not "${value}".`,
      flagName(name),
      'For example 2027-01-31 or 2027-01-31T12:00:00Z.',
    )
  }
}

const toIsoTimestamp = (ms: number): string => new Date(ms).toISOString()

/** Removes undefined fields, so that an update does not change them. */
export const omitUndefined = <T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>
  }

export const nothingToChangeError = (): CliError => usageError('Nothing to change: give at least one flag.')

/** Returns the error for an id that does not exist: exit code 3. */
export const notFoundError = (detail: string, parameter?: string, fix?: string): CliError =>
  cliError(3, {
    type: 'about:blank',
    title: 'Not found',
    status: 404,
    detail,
    code: 'not_found',
    ...(parameter ? { errors: [{ parameter, code: 'not_found', detail, ...(fix ? { fix } : {}) }] } : {}),
  })

/** Returns the error for what the present state of the installation does not allow: exit code 5. */
export const conflictError = (title: string, detail: string): CliError =>
  cliError(5, { type: 'about:blank', title, status: 409, detail, code: 'conflict' })

/** Throws when the workspace lacks one of the ids of a flag, which has the name of the group that lists them. */
export const requireExistingIds = (
  ids: readonly string[],
  existing: readonly { id: string }[],
  { noun, group }: { noun: string; group: 'channels' | 'teams' | 'staff' },
): void => {
  const missing = ids.filter((id) => !existing.some((row) => row.id === id))
  if (missing.length > 0)
    throw notFoundError(
      `--${group}: the workspace has no ${noun} ${missing.join(', ')}.`,
      `--${group}`,
      `List them with: wcrm admin ${group} list`,
    )
}

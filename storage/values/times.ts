/**
 * Formats a timestamp of the database, from a column or within JSON, as ISO 8601. Sessions are in UTC, so a
 * timestamp with milliseconds differs only in punctuation; `Date` takes six times as long.
 */
export const toIsoTime = (text: string): string => {
  const match = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.(\d{1,3}))?\+00(?::00)?$/.exec(text)
  return match
    ? `${text.slice(0, 10)}T${text.slice(11, 19)}.${(match[1] ?? '').padEnd(3, '0')}Z`
    : new Date(text).toISOString()
}

/** Converts an ISO 8601 date or time to the database's form: year 0 of ISO is 1 BC there. */
export const toStorableTime = (iso: string): string =>
  iso.startsWith('0000-') ? `0001${iso.slice(4)} BC` : iso

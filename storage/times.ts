/**
 * A timestamp of the database, as a column or within JSON, as ISO 8601. Sessions are in UTC, so one of
 * milliseconds is that already but for its punctuation; `Date` takes six times as long to say the same.
 */
export const isoOf = (text: string): string => {
  const short = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.(\d{1,3}))?\+00(?::00)?$/.exec(text)
  return short
    ? `${text.slice(0, 10)}T${text.slice(11, 19)}.${(short[1] ?? '').padEnd(3, '0')}Z`
    : new Date(text).toISOString()
}

/** An ISO 8601 date or time as the database takes it. The year 0 of ISO is its 1 BC. */
export const storableTime = (iso: string): string =>
  iso.startsWith('0000-') ? `0001${iso.slice(4)} BC` : iso

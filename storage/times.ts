/**
 * A timestamp of the database, as a column or within JSON, as ISO 8601. Sessions are in UTC, so one of milliseconds is that already but for its
 * punctuation; `Date` takes six times as long to say the same.
 */
export const isoOf = (text: string): string => {
  const short = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.(\d{1,3}))?\+00(?::00)?$/.exec(text)
  return short ? `${text.slice(0, 10)}T${text.slice(11, 19)}.${(short[1] ?? '').padEnd(3, '0')}Z` : new Date(text).toISOString()
}

import { invalidParameter, unknownField } from './errors.ts'

/** The requested part of a list; `after` and `before` are sequence numbers, opaque to clients. */
export type PageQuery = { limit: number; after?: string | undefined; before?: string | undefined }

const parseCursor = (cursor: string | null, name: string): string | undefined => {
  if (cursor === null || cursor === '') return undefined
  const text = Buffer.from(cursor, 'base64url').toString('latin1')
  if (!/^\d{1,18}$/.test(text)) throw invalidParameter(`Param ${name} is not a cursor of this list.`)
  return text
}

export const parsePageQuery = (query: URLSearchParams, defaultLimit: number, maxLimit: number): PageQuery => {
  const limit = query.get('limit')
  if (limit !== null && !/^\d{1,9}$/.test(limit))
    throw invalidParameter('Param limit must be a positive integer.')
  return {
    limit: Math.min(Math.max(limit === null ? defaultLimit : Number(limit), 1), maxLimit),
    after: parseCursor(query.get('after'), 'after'),
    before: parseCursor(query.get('before'), 'before'),
  }
}

const formatCursor = (seq: string): string => Buffer.from(seq).toString('base64url')

/** Formats one page. `rows` has one more than the limit when there is another page. */
export const formatPage = <T extends { seq: string }>(
  rows: readonly T[],
  { limit, before }: PageQuery,
  url: string,
  show: (row: T) => unknown,
): Record<string, unknown> => {
  const hasMore = rows.length > limit
  const shown = before === undefined ? rows.slice(0, limit) : rows.slice(-limit)
  // An empty list has no paging.
  if (shown.length === 0) return { data: [] }
  const cursors = { before: formatCursor(shown[0]!.seq), after: formatCursor(shown.at(-1)!.seq) }
  const next = () => {
    const nextUrl = new URL(url)
    nextUrl.searchParams.delete('before')
    nextUrl.searchParams.set('after', cursors.after)
    return nextUrl.href
  }
  return {
    data: shown.map(show),
    paging: { cursors, ...(hasMore || before !== undefined ? { next: next() } : {}) },
  }
}

/**
 * Parses `fields=a,b.format(SVG)` to names and their arguments in brackets; the defaults without it. Throws
 * for a name that is not among `known`.
 */
export const parseFieldList = (
  query: URLSearchParams,
  node: string,
  known: readonly string[],
  defaults: readonly string[],
): Map<string, string | undefined> => {
  const text = query.get('fields')
  const fields = new Map<string, string | undefined>()
  for (const part of text === null || text === '' ? defaults : text.split(',')) {
    const match = /^\s*(\w+)(?:\.\w+\(([^()]*)\)|\{[^{}]*\})?\s*$/.exec(part)
    if (!match || !known.includes(match[1]!)) throw unknownField((match?.[1] ?? part).slice(0, 100), node)
    fields.set(match[1]!, match[2])
  }
  return fields
}

/** Picks the requested fields of an object; its id is always among them. */
export const pickNodeFields = (
  node: Record<string, unknown>,
  fields: ReadonlyMap<string, unknown>,
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(node).filter(
      ([name, value]) => value !== undefined && (fields.has(name) || name === 'id'),
    ),
  )

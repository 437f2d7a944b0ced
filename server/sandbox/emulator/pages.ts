import { invalid, noField } from './errors.ts'

/** Which part of a list is asked for; positions are opaque to callers. */
export type PageQuery = { limit: number; after?: string | undefined; before?: string | undefined }

const positionOf = (cursor: string | null, name: string): string | undefined => {
  if (cursor === null || cursor === '') return undefined
  const text = Buffer.from(cursor, 'base64url').toString('latin1')
  if (!/^\d{1,18}$/.test(text)) throw invalid(`Param ${name} is not a cursor of this list.`)
  return text
}

export const pageQuery = (query: URLSearchParams, usual: number, most: number): PageQuery => {
  const given = query.get('limit')
  if (given !== null && !/^\d{1,9}$/.test(given)) throw invalid('Param limit must be a positive integer.')
  return {
    limit: Math.min(Math.max(given === null ? usual : Number(given), 1), most),
    after: positionOf(query.get('after'), 'after'),
    before: positionOf(query.get('before'), 'before'),
  }
}

const cursor = (seq: string): string => Buffer.from(seq).toString('base64url')

/** `rows` are one more than the limit where there are more. An empty list has no paging. */
export const page = <T extends { seq: string }>(
  rows: readonly T[],
  { limit, before }: PageQuery,
  url: string,
  show: (row: T) => unknown,
): Record<string, unknown> => {
  const more = rows.length > limit
  const kept = before === undefined ? rows.slice(0, limit) : rows.slice(-limit)
  if (kept.length === 0) return { data: [] }
  const cursors = { before: cursor(kept[0]!.seq), after: cursor(kept.at(-1)!.seq) }
  const next = () => {
    const to = new URL(url)
    to.searchParams.delete('before')
    to.searchParams.set('after', cursors.after)
    return to.href
  }
  return {
    data: kept.map(show),
    paging: { cursors, ...(more || before !== undefined ? { next: next() } : {}) },
  }
}

/**
 * `fields=a,b.format(SVG)`: names with the argument in their brackets, those of `usual` when none are
 * given; a name that is not among `known` is an error.
 */
export const fieldsOf = (
  query: URLSearchParams,
  node: string,
  known: readonly string[],
  usual: readonly string[],
): Map<string, string | undefined> => {
  const given = query.get('fields')
  const fields = new Map<string, string | undefined>()
  for (const part of given === null || given === '' ? usual : given.split(',')) {
    const match = /^\s*(\w+)(?:\.\w+\(([^()]*)\)|\{[^{}]*\})?\s*$/.exec(part)
    if (!match || !known.includes(match[1]!)) throw noField((match?.[1] ?? part).slice(0, 100), node)
    fields.set(match[1]!, match[2])
  }
  return fields
}

/** The asked fields of an object, with its id always. */
export const pick = (
  node: Record<string, unknown>,
  fields: ReadonlyMap<string, unknown>,
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(node).filter(
      ([name, value]) => value !== undefined && (fields.has(name) || name === 'id'),
    ),
  )

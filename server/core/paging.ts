import type { Cursors } from './context.ts'

/**
 * The envelope of a list whose total is cheap: asks for one row more than fits, to know whether there is a
 * next page, and counts with the first.
 * `position` says where a row stands in the order.
 */
export const createPage = async <Row, Out>(
  cursors: Cursors,
  input: { cursor?: string | undefined; limit: number },
  read: (after: readonly string[] | null, limit: number) => Promise<Row[]>,
  count: () => Promise<number>,
  position: (row: Row) => string[],
  show: (row: Row) => Out,
): Promise<{ data: Out[]; total: number | null; next_cursor: string | null }> => {
  const opened = cursors.open(input.cursor)
  const rows = await read(opened && opened.map(String), input.limit + 1)
  const shown = rows.slice(0, input.limit)
  const more = rows.length > input.limit
  return {
    data: shown.map(show),
    total: opened !== null ? null : more ? await count() : shown.length,
    next_cursor: more ? cursors.seal(position(shown.at(-1)!)) : null,
  }
}

/**
 * The same for lists so short that they are read whole and filtered by the handler; `rows` are in the order
 * of their ids.
 */
export const createPageOfRows = <Row extends { id: string }, Out>(
  cursors: Cursors,
  input: { cursor?: string | undefined; limit: number },
  rows: readonly Row[],
  show: (row: Row) => Out,
): Promise<{ data: Out[]; total: number | null; next_cursor: string | null }> =>
  createPage(
    cursors,
    input,
    async (after, limit) =>
      rows.filter((row) => after === null || BigInt(row.id) > BigInt(after[0]!)).slice(0, limit),
    async () => rows.length,
    (row) => [row.id],
    show,
  )

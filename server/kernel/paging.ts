import type { Cursors } from './context.ts'

type PageInput = { cursor?: string | undefined; limit: number }
type Page<Item> = { data: Item[]; total: number | null; next_cursor: string | null }

type PageOptions<Row, Item> = {
  cursors: Cursors
  input: PageInput
  /** Returns at most `limit` rows after a position, in the order of the list. */
  load: (after: readonly string[] | null, limit: number) => Promise<Row[]>
  /** Counts all rows; called for the first page only. */
  count: () => Promise<number>
  /** Returns the position of a row in the order of the list, for the cursor. */
  toPosition: (row: Row) => string[]
  toItem: (row: Row) => Item
}

/**
 * Returns a page of a list whose total is cheap to count. It loads one row more than fits, to know whether
 * there is a next page.
 */
export const createPage = async <Row, Item>({
  cursors,
  input,
  load,
  count,
  toPosition,
  toItem,
}: PageOptions<Row, Item>): Promise<Page<Item>> => {
  const after = cursors.open(input.cursor)
  const rows = await load(after && after.map(String), input.limit + 1)
  const pageRows = rows.slice(0, input.limit)
  const hasMore = rows.length > input.limit
  return {
    data: pageRows.map(toItem),
    total: after !== null ? null : hasMore ? await count() : pageRows.length,
    next_cursor: hasMore ? cursors.seal(toPosition(pageRows.at(-1)!)) : null,
  }
}

/** The same for a list that is loaded whole and filtered by the handler; `rows` are sorted by id. */
export const createPageOfRows = <Row extends { id: string }, Item>(
  cursors: Cursors,
  input: PageInput,
  rows: readonly Row[],
  toItem: (row: Row) => Item,
): Promise<Page<Item>> =>
  createPage({
    cursors,
    input,
    load: async (after, limit) =>
      rows.filter((row) => after === null || BigInt(row.id) > BigInt(after[0]!)).slice(0, limit),
    count: async () => rows.length,
    toPosition: (row) => [row.id],
    toItem,
  })

import type { Db } from './database.ts'

/**
 * Reads of single rows outside of a transaction. While as many statements of a kind are under way as there are
 * connections for them, reads that come wait, and the next statement reads the rows of all of them: under load each
 * row costs a part of a statement, and alone it waits for nothing.
 */
const MAX_UNDER_WAY = 2
const MAX_ROWS = 100

/** `many` returns rows by their ids; ids that do not exist are left out. */
type Read<Row> = {
  one: (id: string) => Promise<Row | undefined>
  many: (ids: readonly string[]) => Promise<ReadonlyMap<string, Row>>
}

type Waiting<Row> = {
  id: string
  resolve: (row: Row | undefined) => void
  reject: (error: unknown) => void
}

type Kind = { underWay: number; waiting: Waiting<any>[] }

const kindsByDb = new WeakMap<Db, Map<string, Kind>>()

const getKinds = (db: Db): Map<string, Kind> => {
  const kinds = kindsByDb.get(db) ?? new Map<string, Kind>()
  kindsByDb.set(db, kinds)
  return kinds
}

/**
 * Reads a row by its id, perhaps together with others of its kind: reads that differ in nothing but the id. The
 * statement begins after the call. Two calls may get the same object, which they must not change.
 */
export const readInBatch = <Row>(
  db: Db,
  kindName: string,
  id: string,
  read: Read<Row>,
): Promise<Row | undefined> => {
  const kinds = getKinds(db)
  const kind = kinds.get(kindName) ?? { underWay: 0, waiting: [] }
  kinds.set(kindName, kind)
  const end = (): void => {
    kind.underWay--
    if (kind.waiting.length > 0) void readWaiting(kind, read, end)
    else if (kind.underWay === 0) kinds.delete(kindName)
  }
  if (kind.underWay < MAX_UNDER_WAY) {
    kind.underWay++
    return read.one(id).finally(end)
  }
  return new Promise((resolve, reject) => kind.waiting.push({ id, resolve, reject }))
}

const readWaiting = async <Row>(kind: Kind, read: Read<Row>, end: () => void): Promise<void> => {
  const batch: Waiting<Row>[] = kind.waiting.splice(0, MAX_ROWS)
  kind.underWay++
  try {
    const rows = await read.many([...new Set(batch.map(({ id }) => id))])
    for (const { id, resolve } of batch) resolve(rows.get(id))
  } catch (error) {
    for (const { reject } of batch) reject(error)
  } finally {
    end()
  }
}

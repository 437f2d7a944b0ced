import { sql } from 'kysely'
import type { Db } from '../database.ts'

/** Writes the index of the search in messages, a moment after the messages (docs/decisions/0055). */

/** The id up to which messages exist, and whoever is writing some. */
export type NewestMessages = { to: string; writers: readonly string[] }

/** Transactions of this database that write messages, or wrote some and have not ended. */
export const listMessageWriters = async (db: Db): Promise<string[]> =>
  (
    await sql<{ writer: string }>`
    select distinct virtualtransaction as writer from pg_locks
    where locktype = 'relation' and database = (select oid from pg_database where datname = current_database())
      and relation = 'messages'::regclass and mode = 'RowExclusiveLock' and granted`.execute(db)
  ).rows.map(({ writer }) => writer)

/**
 * Returns the last id that was given to a message, and who may not have committed the one or the other below it;
 * undefined when it is indexed. A statement locks the table before it asks for an id, so the locks are read after the
 * id; and a transaction's end is visible before its locks are released.
 */
export const findNewestMessages = async (db: Db): Promise<NewestMessages | undefined> => {
  const { rows } = await sql<{ last: string }>`
    select s.last_value as last from message_search_progress p cross join messages_id_seq s
    where s.is_called and s.last_value > p.indexed_to`.execute(db)
  return rows[0] && { to: rows[0].last, writers: await listMessageWriters(db) }
}

const indexRange = (tx: Db, above: string, to: string) =>
  sql`
  insert into message_search select r.* from workspaces w
      cross join lateral (select m from messages m
        where m.workspace_id = w.id and m.id > ${above}::bigint and m.id <= ${to}::bigint offset 0) as given
      cross join lateral message_search_row(given.m) as r
    on conflict do nothing`.execute(tx)

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b)

/**
 * Indexes the next messages, up to an id below which all transactions have ended. Returns the count of ids, 0 when
 * there are no more.
 */
export const indexNewMessages = async (db: Db, settledTo: string, batch: number): Promise<number> =>
  await db.transaction().execute(async (tx) => {
    const { rows } = await sql<{ indexed_to: string }>`
      select indexed_to from message_search_progress for update`.execute(tx)
    const from = BigInt(rows[0]!.indexed_to)
    const to = least(from + BigInt(batch), BigInt(settledTo))
    if (to <= from) return 0
    await indexRange(tx, String(from), String(to))
    await sql`update message_search_progress set indexed_to = ${String(to)}::bigint`.execute(tx)
    return Number(to - from)
  })

import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { QUICK } from '../client/driver.ts'

/** How many rows hold one count, so that concurrent writers seldom wait for each other. */
const SHARDS = 32

export const randomShard = (): number => Math.floor(Math.random() * SHARDS)

/** Adds to counters, in the order of their subjects so that two writers never deadlock. */
export const addToCounters = async (
  tx: Db,
  workspaceId: string,
  changes: ReadonlyMap<string, number>,
): Promise<void> => {
  const changed = [...changes].filter(([, n]) => n !== 0)
  if (changed.length > 0) await counterUpsert(workspaceId, changed).execute(tx)
}

/** The statement of `addToCounters`, to be part of a larger one. */
export const counterUpsert = (
  workspaceId: string,
  changes: Iterable<readonly [subject: string, n: number]>,
) => {
  const sorted = [...changes].sort(([a], [b]) => (a < b ? -1 : 1))
  const subjects = sorted.map(([subject]) => subject)
  const amounts = sorted.map(([, n]) => n)
  return sql`
    insert into counters (workspace_id, subject, shard, n)
    select ${workspaceId}::bigint, subject, ${randomShard()}::smallint, n
    from unnest(${subjects}::text[], ${amounts}::bigint[]) as u (subject, n)
    order by subject
    on conflict (workspace_id, subject, shard) do update set n = counters.n + excluded.n`
}

export const loadCounter = async (tx: Db, workspaceId: string, subject: string): Promise<number> => {
  const { rows } = await sql<{ n: string }>`${sql.raw(QUICK)}
    select coalesce(sum(n), 0)::bigint as n from counters
    where workspace_id = ${workspaceId} and subject = ${subject}`.execute(tx)
  return Number(rows[0]!.n)
}

/** Deletes the counter of a deleted tag or group; otherwise the table would grow for ever. */
export const deleteCounter = async (tx: Db, workspaceId: string, subject: string): Promise<void> => {
  await tx
    .deleteFrom('counters')
    .where('workspace_id', '=', workspaceId)
    .where('subject', '=', subject)
    .execute()
}

/** Where the plan limits contacts, one writer at a time may add some, so that the count is exact. */
export const lockContactLimit = async (tx: Db, workspaceId: string): Promise<void> => {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`contact_limit ${workspaceId}`}, 0))`.execute(tx)
}

import { sql } from 'kysely'
import type { Db } from './database.ts'
import { QUICK } from './driver.ts'

/** Rows that one count is spread over, so that concurrent writers seldom wait for each other. */
const SHARDS = 32

export const anyShard = (): number => Math.floor(Math.random() * SHARDS)

/**
 * Adds to counts, in the order of their subjects so that two writers never wait for each other in a circle.
 */
export const addToCounters = async (
  tx: Db,
  workspaceId: string,
  changes: ReadonlyMap<string, number>,
): Promise<void> => {
  const changed = [...changes].filter(([, n]) => n !== 0)
  if (changed.length > 0) await countInsert(workspaceId, changed).execute(tx)
}

/** The same as SQL, for a larger statement. */
export const countInsert = (
  workspaceId: string,
  changes: Iterable<readonly [subject: string, n: number]>,
) => {
  const subjects = [...changes].sort(([a], [b]) => (a < b ? -1 : 1))
  return sql`
    insert into counters (workspace_id, subject, shard, n)
    select ${workspaceId}::bigint, subject, ${anyShard()}::smallint, n from unnest(${subjects.map(([s]) => s)}::text[], ${subjects.map(([, n]) => n)}::bigint[]) as u (subject, n)
    order by subject
    on conflict (workspace_id, subject, shard) do update set n = counters.n + excluded.n`
}

export const readCounter = async (tx: Db, workspaceId: string, subject: string): Promise<number> => {
  const { rows } = await sql<{ n: string }>`${sql.raw(QUICK)}
    select coalesce(sum(n), 0)::bigint as n from counters where workspace_id = ${workspaceId} and subject = ${subject}`.execute(
    tx,
  )
  return Number(rows[0]!.n)
}

/** Counts that keep their subject's row after it is gone would grow for ever. */
export const dropCounter = async (tx: Db, workspaceId: string, subject: string): Promise<void> => {
  await tx
    .deleteFrom('counters')
    .where('workspace_id', '=', workspaceId)
    .where('subject', '=', subject)
    .execute()
}

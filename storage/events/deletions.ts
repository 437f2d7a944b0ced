import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { toStorableTime } from '../values/times.ts'

/**
 * Deletes events from before a time that no unfinished delivery needs, up to `limit` of each workspace.
 * Returns the count. The first `limit` events are looked at; those that are old and needed do not count, so that
 * they are not in the way of what follows them, and those that are new do, so that the rest of the log is not read.
 */
export const deleteEventsBefore = async (db: Db, time: string, limit: number): Promise<number> => {
  const before = sql`${toStorableTime(time)}::timestamptz`
  const { rows } = await sql<{ count: string }>`
    with deleted as (
      delete from events where (workspace_id, id) in (
        select e.workspace_id, e.id from workspaces w
        cross join lateral (
          select v.workspace_id, v.id, v.occurred_at from events v
          where v.workspace_id = w.id and not (v.occurred_at < ${before} and exists (
            select from webhook_deliveries d
            where d.workspace_id = v.workspace_id and d.event_id = v.id
              and d.status in ('pending', 'failed')))
          order by v.xid, v.id limit ${limit}
        ) as e
        where e.occurred_at < ${before})
      returning 1
    )
    select count(*) as count from deleted`.execute(db)
  return Number(rows[0]!.count)
}

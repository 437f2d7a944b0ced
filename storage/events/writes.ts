import { sql } from 'kysely'
import type { Db } from '../database.ts'
import type { DeferredWrite } from '../client/deferred-write.ts'
import { eventInserts, type EventRow, needsDelivery } from './events.ts'
import { areAnnounced, putCreationsFirst } from './unannounced.ts'

/**
 * `eventInserts` of a statement that commits: where the events name what is to be announced before them, it fails by a
 * division by zero, as `rowGuard` does. The call then runs again, and announces it.
 */
export const announcedEventInserts = (
  workspaceId: string,
  events: readonly EventRow[],
  write?: Pick<DeferredWrite, 'eventsOf'>,
) => {
  const isAnnounced = areAnnounced(workspaceId, events)
  const guard = isAnnounced && sql`1 / (case when ${isAnnounced} then 1 else 0 end) = 1`
  return eventInserts(workspaceId, putCreationsFirst(events), write, guard)
}

/**
 * Inserts events in their transaction, unless they name what is to be announced before them. Returns whether
 * any of them needs a webhook delivery; undefined when none is written.
 */
export const insertAnnouncedEvents = async (
  tx: Db,
  workspaceId: string,
  events: readonly EventRow[],
): Promise<boolean | undefined> => {
  const inserts = eventInserts(
    workspaceId,
    putCreationsFirst(events),
    undefined,
    areAnnounced(workspaceId, events),
  )
  const { rows } = await sql<{ needs_delivery: boolean; is_written: boolean }>`
    with ${inserts} select ${needsDelivery}, exists (select from written) as is_written`.execute(tx)
  return rows[0]!.is_written ? rows[0]!.needs_delivery : undefined
}

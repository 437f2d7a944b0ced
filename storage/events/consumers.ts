import { sql } from 'kysely'
import type { Db, TableRow } from '../database.ts'
import type { EventPosition } from './events.ts'
import { encodeUlidTime } from './ulid-time.ts'

/**
 * Consumers of the event log: names under which a position is kept. `agent_staff_id`: the staff member whose agent made
 * it; null where a key of a person did.
 */
export type EventConsumerRow = Omit<TableRow<'event_consumers'>, 'workspace_id'>

const columns = [
  'name',
  'event_id',
  'acknowledged_at',
  'created_at',
  'is_incomplete',
  'agent_staff_id',
] as const

const selectEventConsumer = (db: Db, workspaceId: string, name: string) =>
  db
    .selectFrom('event_consumers')
    .select(columns)
    .where('workspace_id', '=', workspaceId)
    .where('name', '=', name)

export const findEventConsumer = (
  db: Db,
  workspaceId: string,
  name: string,
): Promise<EventConsumerRow | undefined> => selectEventConsumer(db, workspaceId, name).executeTakeFirst()

/** Returns a consumer, and locks it until the transaction ends. */
export const lockEventConsumer = (
  tx: Db,
  workspaceId: string,
  name: string,
): Promise<EventConsumerRow | undefined> =>
  selectEventConsumer(tx, workspaceId, name).forUpdate().executeTakeFirst()

/** Lists consumers after a name, in the order of their names. */
export const listEventConsumers = (
  db: Db,
  workspaceId: string,
  after: string | undefined,
  limit: number,
): Promise<EventConsumerRow[]> =>
  db
    .selectFrom('event_consumers')
    .select(columns)
    .where('workspace_id', '=', workspaceId)
    .$if(after !== undefined, (query) => query.where(sql`name collate "C"`, '>', after!))
    .orderBy(sql`name collate "C"`)
    .limit(limit)
    .execute()

/** Keeps others from adding a consumer to the workspace until the transaction ends. */
export const lockEventConsumers = async (tx: Db, workspaceId: string): Promise<void> => {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`event_consumers ${workspaceId}`}, 0))`.execute(
    tx,
  )
}

export const countEventConsumers = async (db: Db, workspaceId: string): Promise<number> => {
  const { rows } = await sql<{ count: string }>`
    select count(*) as count from event_consumers where workspace_id = ${workspaceId}`.execute(db)
  return Number(rows[0]!.count)
}

/**
 * Moves a consumer to an event, and makes it if there is none, for an agent of `agentStaffId` where that is given; back
 * only with `rewind`. Returns the consumer; undefined when it stands at this event or after it already. The caller has
 * locked it, or all: a statement that waits for the lock does not see the event to which it was moved meanwhile.
 */
export const moveEventConsumer = async (
  tx: Db,
  workspaceId: string,
  name: string,
  { xid, id }: EventPosition,
  { rewind, now, agentStaffId }: { rewind: boolean; now: string; agentStaffId: string | null },
): Promise<EventConsumerRow | undefined> => {
  const { rows } = await sql<EventConsumerRow>`
    insert into event_consumers as c (workspace_id, name, event_id, acknowledged_at, created_at, agent_staff_id)
    values (${workspaceId}, ${name}, ${id}, ${now}, ${now}, ${agentStaffId}::bigint)
    on conflict (workspace_id, name) do update set
      event_id = excluded.event_id, acknowledged_at = excluded.acknowledged_at, is_incomplete = false
    where (c.event_id <> excluded.event_id or c.is_incomplete) and (${rewind} or not exists (
      select from events e where e.workspace_id = c.workspace_id and e.id = c.event_id
        and (e.xid, e.id) > (${xid}::text::xid8, ${id})))
    returning ${sql.raw(columns.join(', '))}`.execute(tx)
  return rows[0]
}

/** Deletes a consumer; false when there is none. */
export const deleteEventConsumer = async (tx: Db, workspaceId: string, name: string): Promise<boolean> => {
  const { numDeletedRows } = await tx
    .deleteFrom('event_consumers')
    .where('workspace_id', '=', workspaceId)
    .where('name', '=', name)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/**
 * Marks the consumers that have not acknowledged events from before a time, ISO 8601, which will be deleted soon: those
 * whose next event is that old. One whose event is deleted begins with the first event that is kept.
 */
export const markIncompleteConsumers = async (db: Db, time: string): Promise<void> => {
  await sql`
    update event_consumers c set is_incomplete = true
    where not is_incomplete and (
      select e.id < ${`evt_${encodeUlidTime(Date.parse(time))}`} or e.occurred_at < ${time}::timestamptz
      from events e
      where e.workspace_id = c.workspace_id and (e.xid, e.id) > (
        coalesce((select a.xid from events a where a.workspace_id = c.workspace_id and a.id = c.event_id), '0'),
        c.event_id)
      order by e.xid, e.id limit 1)`.execute(db)
}

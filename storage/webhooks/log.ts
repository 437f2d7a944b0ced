import { sql } from 'kysely'
import type { Db, DeliveryStatus, DeliveryTrigger, TableRow } from '../database.ts'
import { deliveryIdSql, type EventPosition } from '../events/events.ts'
import { toStorableTime } from '../values/times.ts'

const columns = [
  'id',
  'endpoint_id',
  'event_id',
  'event_type',
  'status',
  'attempts',
  'next_attempt_at',
  'last_response_status',
  'created_at',
  'delivered_at',
] as const
export type DeliveryRow = Pick<TableRow<'webhook_deliveries'>, (typeof columns)[number]>

const selectDeliveries = (db: Db, workspaceId: string) =>
  db.selectFrom('webhook_deliveries').select(columns).where('workspace_id', '=', workspaceId)

export type EndpointStatus = { status: 'active' | 'disabled' | 'paused'; deleted: boolean }

/**
 * The status of an endpoint, also of a deleted one; undefined when it never existed. `lock`: it cannot be
 * deleted before this transaction ends.
 */
export const findEndpointStatus = async (
  tx: Db,
  workspaceId: string,
  id: string,
  lock = false,
): Promise<EndpointStatus | undefined> => {
  const query = tx
    .selectFrom('webhook_endpoints')
    .select(['status', sql<boolean>`deleted_at is not null`.as('deleted')])
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
  return await (lock ? query.forKeyShare() : query).executeTakeFirst()
}

export type DeliveryFilter = {
  status?: DeliveryStatus | undefined
  types?: readonly string[] | undefined
  from?: string | undefined
  to?: string | undefined
}

/** Deliveries of an endpoint after a position, newest first. */
export const listDeliveryPage = async (
  tx: Db,
  workspaceId: string,
  endpointId: string,
  { status, types, from, to }: DeliveryFilter,
  after: { createdAt: string; id: string } | null,
  limit: number,
): Promise<DeliveryRow[]> => {
  let query = selectDeliveries(tx, workspaceId).where('endpoint_id', '=', endpointId)
  // A literal, so that the planner knows of the index over those that failed.
  if (status !== undefined) query = query.where('status', '=', sql.lit(status))
  if (types !== undefined) query = query.where('event_type', 'in', types)
  if (from !== undefined) query = query.where('created_at', '>=', toStorableTime(from))
  if (to !== undefined) query = query.where('created_at', '<', toStorableTime(to))
  if (after !== null)
    query = query.where(sql<boolean>`(created_at, id) < (${after.createdAt}::timestamptz, ${after.id})`)
  return await query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit).execute()
}

/** Undefined when the delivery does not exist. `lock`: locks it for the rest of the transaction. */
export const findDelivery = async (
  tx: Db,
  workspaceId: string,
  id: string,
  lock = false,
): Promise<DeliveryRow | undefined> => {
  const query = selectDeliveries(tx, workspaceId).where('id', '=', id)
  return await (lock ? query.forUpdate() : query).executeTakeFirst()
}

export type AttemptRow = {
  number: number
  started_at: string
  duration_ms: number
  response_status: number | null
  response_excerpt: string | null
  error: string | null
  trigger: DeliveryTrigger
}

/** All attempts of a delivery, oldest first. */
export const listAttempts = (tx: Db, workspaceId: string, deliveryId: string): Promise<AttemptRow[]> =>
  tx
    .selectFrom('webhook_attempts')
    .select([
      'number',
      'started_at',
      'duration_ms',
      'response_status',
      'response_excerpt',
      'error',
      'trigger',
    ])
    .where('workspace_id', '=', workspaceId)
    .where('delivery_id', '=', deliveryId)
    .orderBy('number')
    .execute()

/** Inserts a delivery of an event that is not in the log: the delivery itself has its payload. */
export const insertTestDelivery = async (
  tx: Db,
  workspaceId: string,
  test: { endpointId: string; eventId: string; type: string; payload: unknown },
  now: string,
): Promise<string> => {
  const { rows } = await sql<{ id: string }>`
    insert into webhook_deliveries (workspace_id, id, endpoint_id, event_id, event_type, trigger,
      next_attempt_at, payload, created_at)
    select ${workspaceId}::bigint, ${deliveryIdSql('e.id')}, ${test.endpointId}, e.id, ${test.type}, 'test',
      clock_timestamp(), ${JSON.stringify(test.payload)}::jsonb, ${now}::timestamptz
    from (select ${test.eventId}::text as id) as e returning id`.execute(tx)
  return rows[0]!.id
}

/** Whether the payload of a delivery still exists: events are deleted after their retention period. */
export const hasPayload = async (tx: Db, workspaceId: string, id: string): Promise<boolean> => {
  const row = await tx
    .selectFrom('webhook_deliveries as d')
    .select('d.id')
    .where('d.workspace_id', '=', workspaceId)
    .where('d.id', '=', id)
    .where((eb) =>
      eb.or([
        eb('d.payload', 'is not', null),
        eb.exists(
          eb
            .selectFrom('events as e')
            .select('e.id')
            .whereRef('e.workspace_id', '=', 'd.workspace_id')
            .whereRef('e.id', '=', 'd.event_id'),
        ),
      ]),
    )
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Makes a delivery due at once, with all its attempts before it again. One that is in flight at this moment
 * keeps its lease; when it fails, that changes nothing of this (`recordDeliveryResults`).
 */
export const rescheduleDelivery = (tx: Db, workspaceId: string, id: string): Promise<DeliveryRow> =>
  tx
    .updateTable('webhook_deliveries')
    .set({
      status: 'pending',
      trigger: 'replay',
      failures: 0,
      next_attempt_at: sql<string>`clock_timestamp()`,
      delivered_at: null,
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirstOrThrow()

/** A span of the event log: its first and last transaction. */
export type EventLogSpan = { first: string; last: string }

/** The span of the log that holds the events of [from, to); undefined when there are none. */
export const findEventLogSpan = async (
  tx: Db,
  workspaceId: string,
  from: string,
  to: string,
): Promise<EventLogSpan | undefined> => {
  const row = await tx
    .selectFrom('events')
    .select([
      sql<string | null>`min(xid::text::bigint)::text`.as('first'),
      sql<string | null>`max(xid::text::bigint)::text`.as('last'),
    ])
    .where('workspace_id', '=', workspaceId)
    .where('occurred_at', '>=', toStorableTime(from))
    .where('occurred_at', '<', toStorableTime(to))
    .executeTakeFirst()
  return row?.first && row.last ? { first: row.first, last: row.last } : undefined
}

/** A span of events, of which an endpoint missed some: those that happened in [from, to). */
export type RecoverSpan = EventLogSpan & { endpointId: string; from: string; to: string }

/** `recovered`: deliveries that are made due, or would be; `reached`: the last position, undefined at the end. */
export type RecoverStep = { recovered: number; reached: EventPosition | undefined }

/**
 * Expressions of what an endpoint missed of its subscriptions: `missed` has the events of the next `limit` in a span
 * without a delivery that was made or still will be. Deliveries that need nothing are left out before any is locked.
 */
const missedEvents = (
  workspaceId: string,
  { endpointId, from, to, first, last }: RecoverSpan,
  after: EventPosition | undefined,
  limit: number,
) => sql`
    scanned as materialized (
      select xid, id, type, occurred_at, row_number() over (order by xid, id) as n from events
      where workspace_id = ${workspaceId} and xid >= ${first}::text::xid8 and xid <= ${last}::text::xid8
        ${after ? sql`and (xid, id) > (${after.xid}::text::xid8, ${after.id})` : sql``}
      order by xid, id limit ${limit}
    ), kept as materialized (
      select event_id from webhook_deliveries
      where workspace_id = ${workspaceId} and endpoint_id = ${endpointId}
        and status not in ('dead', 'skipped')
        and event_id >= (select min(id) from scanned) and event_id <= (select max(id) from scanned)
    ), missed as materialized (
      select e.* from scanned e
      where e.occurred_at >= ${toStorableTime(from)}::timestamptz
        and e.occurred_at < ${toStorableTime(to)}::timestamptz
        and exists (
          select from webhook_subscriptions s
          where s.workspace_id = ${workspaceId} and s.endpoint_id = ${endpointId}
            and s.event_type in (e.type, '*') and s.active)
        and e.id not in (select event_id from kept)
    )`

const toRecoverStep = (row: { recovered: string; xid: string | null; id: string | null }): RecoverStep => ({
  recovered: Number(row.recovered),
  reached: row.xid === null || row.id === null ? undefined : { xid: row.xid, id: row.id },
})

/** Counts what `recoverDeliveries` would make due, of up to `limit` events of the span after a position. */
export const countMissed = async (
  tx: Db,
  workspaceId: string,
  span: RecoverSpan,
  after: EventPosition | undefined,
  limit: number,
): Promise<RecoverStep> => {
  const { rows } = await sql<{ recovered: string; xid: string | null; id: string | null }>`
    with ${missedEvents(workspaceId, span, after, limit)}
    select (select count(*) from missed) as recovered, l.xid::text as xid, l.id
    from (values (1)) as one left join (select xid, id from scanned where n = ${limit}) as l on true`.execute(
    tx,
  )
  return toRecoverStep(rows[0]!)
}

/** Whether a span of the log has more than so many events. */
export const hasMoreEvents = async (
  tx: Db,
  workspaceId: string,
  { first, last }: EventLogSpan,
  than: number,
): Promise<boolean> => {
  const { rows } = await sql<{ n: string }>`
    select count(*) as n from (
      select from events where workspace_id = ${workspaceId} and xid >= ${first}::text::xid8
        and xid <= ${last}::text::xid8 limit ${sql.lit(than + 1)}) as e`.execute(tx)
  return Number(rows[0]!.n) > than
}

/**
 * Makes due at once, oldest first, what an endpoint missed among up to `limit` events of a span after a position: dead
 * and skipped deliveries, and those that were never created. Returns the count, and the last position scanned. An
 * upsert, since its unique key leaves the planner no choice: before tables were analyzed, a join compared all with all.
 */
export const recoverDeliveries = async (
  tx: Db,
  workspaceId: string,
  span: RecoverSpan,
  after: EventPosition | undefined,
  { now, limit }: { now: string; limit: number },
): Promise<RecoverStep> => {
  const { rows } = await sql<{ recovered: string; xid: string | null; id: string | null }>`
    with ${missedEvents(workspaceId, span, after, limit)}, start as materialized (
      select clock_timestamp() as at
    ), due as (
      insert into webhook_deliveries as d (workspace_id, id, endpoint_id, event_id, event_type, trigger,
        next_attempt_at, created_at)
      select ${workspaceId}::bigint, ${deliveryIdSql('e.id')}, ${span.endpointId}, e.id, e.type, 'recover',
        start.at + e.n * interval '1 microsecond', ${now}::timestamptz
      from missed e, start
      on conflict (workspace_id, endpoint_id, event_id) do update set status = 'pending',
        trigger = 'recover', failures = 0, next_attempt_at = excluded.next_attempt_at
        where d.status in ('dead', 'skipped')
      returning 1
    )
    select (select count(*) from due) as recovered, l.xid::text as xid, l.id
    from (values (1)) as one left join (select xid, id from scanned where n = ${limit}) as l on true`.execute(
    tx,
  )
  return toRecoverStep(rows[0]!)
}

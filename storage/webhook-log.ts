import { sql } from 'kysely'
import type { Db, DeliveryStatus, DeliveryTrigger } from './database.ts'
import { deliveryId, type Position } from './events.ts'
import { storableTime } from './times.ts'

export type DeliveryRow = {
  id: string
  endpoint_id: string
  event_id: string
  event_type: string
  status: DeliveryStatus
  attempts: number
  next_attempt_at: string | null
  last_response_status: number | null
  created_at: string
  delivered_at: string | null
}
const columns = sql.raw(
  'd.id, d.endpoint_id, d.event_id, d.event_type, d.status, d.attempts, d.next_attempt_at, d.last_response_status, d.created_at, d.delivered_at',
)

export type EndpointState = { status: 'active' | 'disabled' | 'paused'; deleted: boolean }

/**
 * How an endpoint stands, also one that was deleted; undefined when there never was one. With `lock` it is
 * not deleted before the transaction ends.
 */
export const readEndpointState = async (
  tx: Db,
  workspaceId: string,
  id: string,
  lock = false,
): Promise<EndpointState | undefined> =>
  (
    await sql<EndpointState>`
    select status, deleted_at is not null as deleted from webhook_endpoints where workspace_id = ${workspaceId} and id = ${id} ${lock ? sql`for key share` : sql``}`.execute(
      tx,
    )
  ).rows[0]

export type DeliveryFilter = {
  status?: DeliveryStatus | undefined
  type?: string | undefined
  from?: string | undefined
  to?: string | undefined
}

/** Deliveries of an endpoint after a position, newest first. */
export const pageOfDeliveries = async (
  tx: Db,
  workspaceId: string,
  endpointId: string,
  { status, type, from, to }: DeliveryFilter,
  after: { createdAt: string; id: string } | null,
  limit: number,
): Promise<DeliveryRow[]> =>
  (
    await sql<DeliveryRow>`
    select ${columns} from webhook_deliveries d where d.workspace_id = ${workspaceId} and d.endpoint_id = ${endpointId}
      ${status === undefined ? sql`` : sql`and d.status = ${status}`} ${type === undefined ? sql`` : sql`and d.event_type = ${type}`}
      ${from === undefined ? sql`` : sql`and d.created_at >= ${storableTime(from)}::timestamptz`} ${to === undefined ? sql`` : sql`and d.created_at < ${storableTime(to)}::timestamptz`}
      ${after === null ? sql`` : sql`and (d.created_at, d.id) < (${after.createdAt}::timestamptz, ${after.id})`}
    order by d.created_at desc, d.id desc limit ${limit}`.execute(tx)
  ).rows

/** One delivery; undefined when there is none. Locked for the rest of the transaction when asked. */
export const readDelivery = async (
  tx: Db,
  workspaceId: string,
  id: string,
  lock = false,
): Promise<DeliveryRow | undefined> =>
  (
    await sql<DeliveryRow>`
    select ${columns} from webhook_deliveries d where d.workspace_id = ${workspaceId} and d.id = ${id} ${lock ? sql`for update` : sql``}`.execute(
      tx,
    )
  ).rows[0]

export type AttemptRow = {
  number: number
  started_at: string
  duration_ms: number
  response_status: number | null
  response_excerpt: string | null
  error: string | null
  trigger: DeliveryTrigger
}

/** Every attempt of a delivery, oldest first. */
export const attemptsOf = async (tx: Db, workspaceId: string, deliveryId: string): Promise<AttemptRow[]> =>
  (
    await sql<AttemptRow>`
    select number, started_at, duration_ms, response_status, response_excerpt, error, trigger from webhook_attempts
    where workspace_id = ${workspaceId} and delivery_id = ${deliveryId} order by number`.execute(tx)
  ).rows

/** A delivery of an event that is not in the log: what it says stands in its own row. */
export const insertTestDelivery = async (
  tx: Db,
  workspaceId: string,
  test: { endpointId: string; eventId: string; type: string; payload: unknown },
  now: string,
): Promise<void> => {
  await sql`
    insert into webhook_deliveries (workspace_id, id, endpoint_id, event_id, event_type, trigger, next_attempt_at, payload, created_at)
    select ${workspaceId}::bigint, ${deliveryId('e.id')}, ${test.endpointId}, e.id, ${test.type}, 'test', clock_timestamp(), ${JSON.stringify(test.payload)}::jsonb, ${now}::timestamptz
    from (select ${test.eventId}::text as id) as e`.execute(tx)
}

/** Whether what a delivery says is still known: events are forgotten after their time. */
export const isPayloadKept = async (tx: Db, workspaceId: string, id: string): Promise<boolean> =>
  (
    await sql`
    select from webhook_deliveries d where d.workspace_id = ${workspaceId} and d.id = ${id}
      and (d.payload is not null or exists (select from events e where e.workspace_id = d.workspace_id and e.id = d.event_id))`.execute(
      tx,
    )
  ).rows.length > 0

/**
 * Makes a delivery due at once, with all its attempts before it again. One that is on its way at this
 * moment keeps its lease.
 */
export const repeatDelivery = async (tx: Db, workspaceId: string, id: string): Promise<DeliveryRow> =>
  (
    await sql<DeliveryRow>`
    update webhook_deliveries d set status = 'pending', trigger = 'replay', failures = 0, next_attempt_at = clock_timestamp(), delivered_at = null
    where d.workspace_id = ${workspaceId} and d.id = ${id} returning ${columns}`.execute(tx)
  ).rows[0]!

/** A span of the event log: its first and last transaction. */
export type LogSpan = { first: string; last: string }

/** Where in the log the events of [from, to) are; undefined when there are none. */
export const spanOf = async (
  tx: Db,
  workspaceId: string,
  from: string,
  to: string,
): Promise<LogSpan | undefined> => {
  const {
    rows: [row],
  } = await sql<{ first: string | null; last: string | null }>`
    select min(xid::text::bigint)::text as first, max(xid::text::bigint)::text as last from events
    where workspace_id = ${workspaceId} and occurred_at >= ${storableTime(from)}::timestamptz and occurred_at < ${storableTime(to)}::timestamptz`.execute(
    tx,
  )
  return row && row.first !== null ? { first: row.first, last: row.last! } : undefined
}

export type RecoverStep = { recovered: number; reached: Position | undefined }

/**
 * Looks through up to `most` events of a span after a position, and makes due at once, oldest first, what
 * an endpoint missed of its subscriptions and of [from, to): deliveries that were given up, and those that
 * were never made. Answers how many, and how far it came. An upsert, since its unique key leaves the
 * planner no choice: a join was seen to compare all with all, before tables were analyzed.
 */
export const recoverDeliveries = async (
  tx: Db,
  workspaceId: string,
  endpointId: string,
  { from, to, first, last }: LogSpan & { from: string; to: string },
  after: Position | undefined,
  now: string,
  most: number,
): Promise<RecoverStep> => {
  const {
    rows: [row],
  } = await sql<{ n: string; xid: string | null; id: string | null }>`
    with looked as materialized (
      select xid, id, type, occurred_at, row_number() over (order by xid, id) as n from events
      where workspace_id = ${workspaceId} and xid >= ${first}::text::xid8 and xid <= ${last}::text::xid8 ${after ? sql`and (xid, id) > (${after.xid}::text::xid8, ${after.id})` : sql``}
      order by xid, id limit ${most}
    ), start as materialized (select clock_timestamp() as at),
    due as (
      insert into webhook_deliveries as d (workspace_id, id, endpoint_id, event_id, event_type, trigger, next_attempt_at, created_at)
      select ${workspaceId}::bigint, ${deliveryId('e.id')}, ${endpointId}, e.id, e.type, 'recover', start.at + e.n * interval '1 microsecond', ${now}::timestamptz
      from looked e, start
      where e.occurred_at >= ${storableTime(from)}::timestamptz and e.occurred_at < ${storableTime(to)}::timestamptz
        and exists (select from webhook_subscriptions s where s.workspace_id = ${workspaceId} and s.endpoint_id = ${endpointId} and s.event_type in (e.type, '*') and s.active)
      on conflict (workspace_id, endpoint_id, event_id) do update set status = 'pending', trigger = 'recover', failures = 0, next_attempt_at = excluded.next_attempt_at
        where d.status = 'dead'
      returning 1
    )
    select (select count(*) from due) as n, l.xid::text as xid, l.id
    from (values (1)) as one left join (select xid, id from looked where n = ${most}) as l on true`.execute(
    tx,
  )
  return {
    recovered: Number(row!.n),
    reached: row!.id === null ? undefined : { xid: row!.xid!, id: row!.id },
  }
}

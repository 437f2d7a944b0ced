import { type RawBuilder, sql } from 'kysely'
import { isReadBy, type JobReader } from '../work/bulk-jobs.ts'
import type { Db } from '../database.ts'
import type { DeferredWrite } from '../client/deferred-write.ts'
import { QUICK } from '../client/driver.ts'
import { keysOfFamily } from '../access/key-families.ts'
import { toStorableTime } from '../values/times.ts'

export type EventRow = { id: string; type: string; occurred_at: string; data: unknown }

/**
 * SQL expression of a new delivery id: the time of the event's ULID, and 64 random bits. Base 16 digits are
 * base 32 digits too, and a uuid is the cheapest source of them; its version and variant are left out.
 * `eventId`: an SQL expression.
 */
export const deliveryIdSql = (eventId: string) =>
  sql.raw(
    `'dlv_' || substr(${eventId}, 5, 10) || ` +
      `upper(left(gen_random_uuid()::text, 8) || right(gen_random_uuid()::text, 8))`,
  )

const writesEvents = (write: Pick<DeferredWrite, 'eventsOf'> | undefined) =>
  write?.eventsOf === undefined ? [] : [sql`exists (select from ${sql.raw(write.eventsOf)})`]

/**
 * Common table expressions that insert events, and the deliveries of each, so that both commit together.
 * Where a workspace has no endpoint the deliveries cost one index lookup. `write`: the change they tell of.
 * `condition`: else none is written.
 */
export const eventInserts = (
  workspaceId: string,
  events: readonly EventRow[],
  write?: Pick<DeferredWrite, 'eventsOf'>,
  condition?: RawBuilder<unknown>,
) =>
  events.length === 0
    ? sql`to_deliver as (select 1 where false)`
    : sql`
  written as (
    insert into events (workspace_id, id, type, occurred_at, data)
    select ${workspaceId}::bigint, e->>'id', e->>'type', (e->>'occurred_at')::timestamptz, e->'data'
    from jsonb_array_elements(${JSON.stringify(events)}::jsonb) as e
    where ${sql.join([...writesEvents(write), condition ?? sql`true`], sql` and `)}
    returning id, type, occurred_at
  ), to_deliver as (
    insert into webhook_deliveries
      (workspace_id, id, endpoint_id, event_id, event_type, next_attempt_at, created_at)
    select ${workspaceId}::bigint, ${deliveryIdSql('w.id')}, p.id, w.id, w.type, clock_timestamp(),
      w.occurred_at
    from webhook_endpoints p, written w
    where p.workspace_id = ${workspaceId}::bigint and p.status <> 'disabled' and p.deleted_at is null
      and exists (
        select from webhook_subscriptions s
        where s.workspace_id = p.workspace_id and s.endpoint_id = p.id and s.event_type in (w.type, '*')
          and s.active)
    returning 1
  )`

/** Column of a statement with `eventInserts`: whether it added deliveries to webhook endpoints. */
export const needsDelivery = sql<boolean>`exists (select from to_deliver) as needs_delivery`

/**
 * Inserts events that name nothing which is still to be announced (`event-writes.ts`), in their transaction. Returns
 * whether any of them needs a webhook delivery.
 */
export const insertEvents = async (
  tx: Db,
  workspaceId: string,
  events: readonly EventRow[],
): Promise<boolean> => {
  if (events.length === 0) return false
  const { rows } = await sql<{ needs_delivery: boolean }>`
    with ${eventInserts(workspaceId, events)} select ${needsDelivery}`.execute(tx)
  return rows[0]!.needs_delivery
}

/**
 * A position in the log: first the order of the statements that wrote events, as a number that begins with a
 * transaction id, then that of their ids (docs/decisions/0012-the-event-log.md).
 */
export type EventPosition = { xid: string; id: string }

/** Bits of a position below its transaction id; `event_position()` has them too. */
const POSITION_BITS = 14

/** The first position that a transaction of this id, or of a later one, can give an event. */
const toFirstPosition = (xid: RawBuilder<unknown>) =>
  sql`((${xid})::text::bigint << ${sql.lit(POSITION_BITS)})::text::xid8`

const allEnded = toFirstPosition(sql`pg_snapshot_xmin(pg_current_snapshot())`)

/** The position of an event in the log; undefined when it does not exist. */
export const findEventPosition = async (
  db: Db,
  workspaceId: string,
  id: string,
): Promise<EventPosition | undefined> =>
  (
    await sql<EventPosition>`
    select xid::text as xid, id from events where workspace_id = ${workspaceId} and id = ${id}`.execute(db)
  ).rows[0]

/**
 * `types`: only events of these types. `channels`: of what belongs to a channel (conversations, messages, short
 * links, the channel itself) only events of these channels, of approvals those that `approvals_list` shows to a staff
 * member who sees these channels, and all other events. `asker`: of approvals only those that a key of this family,
 * or of this staff member, asked for. `jobs`: of jobs only those that are read by somebody. Undefined: all.
 */
export type EventFilter = {
  types?: readonly string[] | undefined
  channels?: { ids: readonly string[]; staffId: string } | undefined
  asker?: { familyId: string } | { staffId: string } | undefined
  jobs?: JobReader | undefined
}
export type LoggedEvent = EventRow & EventPosition
export type EventScan = { events: LoggedEvent[]; last: EventPosition | undefined; more: boolean }

const isFiltered = (filter: EventFilter): boolean => Object.values(filter).some((part) => part !== undefined)

const isAskedBy = (workspaceId: string, asker: NonNullable<EventFilter['asker']>) =>
  'familyId' in asker
    ? sql`(data->'approval'->>'key_id')::bigint in ${keysOfFamily(workspaceId, asker.familyId)}`
    : sql`data->'approval'->>'staff_id' = ${asker.staffId}`

const isOnChannels = ({ ids, staffId }: NonNullable<EventFilter['channels']>) => sql`
  (type !~ '^(conversation|message|short_link|channel|approval)[.]' or
    coalesce(data->'conversation'->>'channel_id', data->'message'->>'channel_id',
      data->'short_link'->>'channel_id', data->'channel'->>'id') = any(${ids}::text[]) or
    (data->'approval'->'channel_ids' <@ to_jsonb(${ids}::text[]) and
      (data->'approval'->'channel_ids' <> '[]' or data->'approval'->>'operation' like 'crm\\_%'
        or data->'approval'->>'staff_id' = ${staffId})))`

const isOfJobs = (workspaceId: string, reader: JobReader) => sql`
  (type !~ '^job[.]' or exists (
    select from bulk_jobs j
    where j.workspace_id = ${workspaceId} and j.id = (data->'job'->>'id')::bigint and ${isReadBy(reader)}))`

const matchesFilter = (workspaceId: string, { types, channels, asker, jobs }: EventFilter) =>
  sql.join(
    [
      types ? sql`type = any(${types}::text[])` : sql`true`,
      ...(asker ? [sql`(type !~ '^approval[.]' or ${isAskedBy(workspaceId, asker)})`] : []),
      ...(channels ? [isOnChannels(channels)] : []),
      ...(jobs ? [isOfJobs(workspaceId, jobs)] : []),
    ],
    sql` and `,
  )

/**
 * The transaction id below which every transaction of this database has ended, where `pg_snapshot_xmin`
 * would hide events: it counts the transactions of all databases of a cluster. Undefined where it hides
 * none. A transaction that writes holds a lock on a table before it has an id, and its end is visible before
 * its locks are released. So one that was running at the snapshot need not be waited for if its id is locked and
 * no table of this database is (it belongs to another database), or if it has ended since, which is asked after
 * the locks (`offset 0`). Events below this id must be read with a later snapshot.
 */
const findEndedXid = async (db: Db, workspaceId: string): Promise<string | undefined> =>
  (
    await sql<{ xid: string }>`
    with locks as materialized (
      select locktype, database, transactionid, virtualtransaction, mode from pg_locks
      where locktype in ('relation', 'transactionid') and granted
    )
    select coalesce((
      select u.xid from (
        select r.xid from (select pg_snapshot_xip(s.taken) as xid) as r
        where not exists (
          select from locks l
          where l.locktype = 'transactionid' and l.mode = 'ExclusiveLock' and l.transactionid = r.xid::xid
            and not exists (
              select from locks t
              where t.virtualtransaction = l.virtualtransaction
                and t.database = (select oid from pg_database where datname = current_database())))
        offset 0
      ) as u
      where pg_xact_status(u.xid) = 'in progress'
      order by u.xid limit 1), pg_snapshot_xmax(s.taken))::text as xid
    from (select pg_current_snapshot() as taken) as s
    where exists (
      select from events
      where workspace_id = ${workspaceId} and xid >= ${allEnded})`.execute(db)
  ).rows[0]?.xid

const toScanEnd = (endedXid: string | undefined): RawBuilder<unknown> =>
  endedXid === undefined ? allEnded : toFirstPosition(sql`${endedXid}`)

const findLatestBefore = async (
  db: Db,
  workspaceId: string,
  end: RawBuilder<unknown>,
): Promise<EventPosition | undefined> =>
  (
    await sql<EventPosition>`
    select xid::text as xid, id from events
    where workspace_id = ${workspaceId} and xid < ${end} order by events.xid desc, id desc limit 1`.execute(
      db,
    )
  ).rows[0]

/** Newest events among which the newest that matches a filter is looked for: at a time, and how often. */
const LATEST_STEP = 1000
const MAX_LATEST_STEPS = 50

/**
 * The position of the newest event that a scan by this filter would return, so that what it hides does not move it;
 * undefined while there is none. Where none is among many, that of the oldest of these.
 */
export const findLatestPosition = async (
  db: Db,
  workspaceId: string,
  filter: EventFilter,
): Promise<EventPosition | undefined> => {
  const end = toScanEnd(await findEndedXid(db, workspaceId))
  if (!isFiltered(filter)) return await findLatestBefore(db, workspaceId, end)
  let before: EventPosition | undefined
  for (let step = 0; step < MAX_LATEST_STEPS; step++) {
    const { rows } = await sql<EventPosition & { show: boolean; scanned: string }>`
      select xid::text as xid, id, show, scanned
      from (
        select e.xid, e.id, ${matchesFilter(workspaceId, filter)} as show,
          row_number() over (order by xid desc, id desc) as n, count(*) over () as scanned
        from (
          select xid, id, type, data from events
          where workspace_id = ${workspaceId} and xid < ${end}
            ${before ? sql`and (xid, id) < (${before.xid}::text::xid8, ${before.id})` : sql``}
          order by events.xid desc, id desc limit ${sql.lit(LATEST_STEP)}) as e
      ) as s where show or n = scanned order by n limit 1`.execute(db)
    const [row] = rows
    if (!row) return undefined
    before = { xid: row.xid, id: row.id }
    if (row.show) return before
    if (Number(row.scanned) < LATEST_STEP) return undefined
  }
  return before
}

/** Of events that happened so long after a time the first is looked for, then of all; seconds. */
const SPANS = [3600, 86_400, 30 * 86_400] as const

/**
 * The first event that happened in a span of time. Its position is compared as a number, for which no index has an
 * order: walking the log in its order would read all that is older. The index by time finds the span.
 */
const findFirstWithin = async (
  db: Db,
  workspaceId: string,
  end: RawBuilder<unknown>,
  since: string,
  seconds: number | undefined,
): Promise<EventPosition | undefined> => {
  const until =
    seconds === undefined
      ? sql``
      : sql`and occurred_at < ${since}::timestamptz + ${seconds}::int * interval '1 second'`
  const { rows } = await sql<{ xid: string | null }>`
    select min(xid::text::bigint)::text as xid from events
    where workspace_id = ${workspaceId} and xid < ${end} and occurred_at >= ${since}::timestamptz
      ${until}`.execute(db)
  const xid = rows[0]?.xid ?? null
  // Before all events at this position.
  return xid === null ? undefined : { xid, id: '' }
}

/** The first event of the log, and whether it happened at a time or later: all that is kept is then listed. */
const findFirst = async (
  db: Db,
  workspaceId: string,
  end: RawBuilder<unknown>,
  since: string,
): Promise<{ xid: string; since: boolean } | undefined> =>
  (
    await sql<{ xid: string; since: boolean }>`
    select xid::text as xid, occurred_at >= ${since}::timestamptz as since from events
    where workspace_id = ${workspaceId} and xid < ${end} order by events.xid, id limit 1`.execute(db)
  ).rows[0]

/**
 * The position before the first event, in the order of the log, that happened at a time or later: before all events
 * of its position. While there is none, that of the newest event. Events that a scan would not return yet do not
 * count: one of a transaction that still runs may come before them. Clocks of servers may differ by an hour.
 */
export const findPositionSince = async (
  db: Db,
  workspaceId: string,
  since: string,
): Promise<EventPosition | undefined> => {
  const end = toScanEnd(await findEndedXid(db, workspaceId))
  const time = toStorableTime(since)
  const first = await findFirst(db, workspaceId, end, time)
  if (first?.since) return { xid: first.xid, id: '' }
  for (const seconds of [...SPANS, undefined]) {
    const found = await findFirstWithin(db, workspaceId, end, time, seconds)
    if (found) return found
  }
  return await findLatestBefore(db, workspaceId, end)
}

/** Whether a scan would return the event at a position: every transaction that comes before it has ended. */
export const isListed = async (db: Db, workspaceId: string, { xid }: EventPosition): Promise<boolean> => {
  const end = toScanEnd(await findEndedXid(db, workspaceId))
  const { rows } = await sql<{ listed: boolean }>`select ${xid}::text::xid8 < ${end} as listed`.execute(db)
  return rows[0]!.listed
}

/** `end`: the position before which events are scanned. */
type ScanRequest = {
  after: EventPosition | undefined
  filter: EventFilter
  limit: number
  end: RawBuilder<unknown>
}

/**
 * Events of all types up to this number are read in a fraction of a millisecond. The limit is then a literal: for a
 * parameter the statement would be planned anew each time, which takes longer.
 */
const MAX_QUICK_EVENTS = 101

const selectEvents = (workspaceId: string, { after, limit, end }: ScanRequest) => sql`
  select xid, id, type, occurred_at, data from events
  where workspace_id = ${workspaceId} and xid < ${end}
    ${after ? sql`and (xid, id) > (${after.xid}::text::xid8, ${after.id})` : sql``}
  order by xid, id limit ${limit <= MAX_QUICK_EVENTS ? sql.lit(limit) : limit}`

const scanAllTypes = async (db: Db, workspaceId: string, request: ScanRequest): Promise<EventScan> => {
  const hint = request.limit <= MAX_QUICK_EVENTS ? QUICK : ''
  const { rows: events } = await sql<LoggedEvent>`${sql.raw(hint)}
    select xid::text as xid, id, type, occurred_at, data
    from (${selectEvents(workspaceId, request)}) as e`.execute(db)
  const last = events.at(-1)
  return { events, last: last && { xid: last.xid, id: last.id }, more: events.length === request.limit }
}

const scanFiltered = async (db: Db, workspaceId: string, request: ScanRequest): Promise<EventScan> => {
  const { rows } = await sql<LoggedEvent & { show: boolean; scanned: string }>`
    select xid::text as xid, id, type, occurred_at, case when show then data end as data, show, scanned
    from (
      select e.*, ${matchesFilter(workspaceId, request.filter)} as show, row_number() over (order by xid, id) as n,
        count(*) over () as scanned
      from (${selectEvents(workspaceId, request)}) as e
    ) as s where show or n = scanned order by n`.execute(db)
  const last = rows.at(-1)
  return {
    events: rows.filter(({ show }) => show).map(({ show: _show, scanned: _scanned, ...event }) => event),
    last: last && { xid: last.xid, id: last.id },
    more: last !== undefined && Number(last.scanned) === request.limit,
  }
}

/**
 * Scans up to `limit` events after a position, oldest first. Returns those that match the filter, the last
 * position scanned, and whether there may be more. An event is not scanned while an earlier one may still
 * appear: while a transaction with a lower id is running.
 */
export const scanEvents = async (
  db: Db,
  workspaceId: string,
  after: EventPosition | undefined,
  filter: EventFilter,
  limit: number,
): Promise<EventScan> => {
  const isSelective = isFiltered(filter)
  const scan = (request: ScanRequest) => (isSelective ? scanFiltered : scanAllTypes)(db, workspaceId, request)
  // A page that is full by what has surely ended needs no look at the locks.
  const isQuick = !isSelective && limit <= MAX_QUICK_EVENTS
  const first = isQuick ? await scan({ after, filter, limit, end: allEnded }) : undefined
  if (first?.more) return first
  const { events = [], last } = first ?? {}
  const endedXid = await findEndedXid(db, workspaceId)
  const rest = await scan({
    after: last ?? after,
    filter,
    limit: limit - events.length,
    end: toScanEnd(endedXid),
  })
  return { events: [...events, ...rest.events], last: rest.last ?? last, more: rest.more }
}

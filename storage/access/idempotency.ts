import { sql } from 'kysely'
import { type AuditEntry, auditInsertPart } from './audit.ts'
import type { Db } from '../database.ts'
import { type DeferredWrite, deferredParts, expectingRow, rowGuard } from '../client/deferred-write.ts'
import { executeAndCommit } from '../client/driver.ts'
import { announcedEventInserts } from '../events/writes.ts'
import { type EventRow, needsDelivery } from '../events/events.ts'

// Every write of the service sends these statements, so they are raw SQL that does as much as it can in one
// round trip.

/** What the reader of an answer could see: manager-only fields, and which channels (null: all). */
export type StoredView = {
  fields: boolean
  channels: readonly string[] | null
  /** Whole phones; absent where an earlier version stored it. */
  phones?: boolean
  /** The id of the key, where it is an AI agent's. */
  agent?: string
}

export type IdempotencyRecord = {
  operation: string
  fingerprint: Uint8Array
  state: 'running' | 'done'
  status: number | null
  body: string | null
  view: StoredView | null
  intent: unknown
  /** Business time after which a call without an outcome is given up; null unless it is running. */
  give_up_at: string | null
  lease_over: boolean
  expired: boolean
}
export type RecordKey = { workspaceId: string; staffId: string; key: string }

const isRecord = ({ workspaceId, staffId, key }: RecordKey) =>
  sql`workspace_id = ${workspaceId} and staff_id = ${staffId} and key = ${key}`

/**
 * Locks a key for the rest of the transaction and reads its record, in one statement. `locked` is false
 * while another transaction has the key. The snapshot is older than the lock, so a record that was
 * committed in between is not seen; inserting ours then violates the primary key, and the caller retries.
 * Nothing expires by a clock that is ahead of the database's: the change would be made twice. The advisory
 * lock lives in the transaction, so it also works through PgBouncer.
 */
export const reserveKey = async (
  tx: Db,
  { workspaceId, staffId, key }: RecordKey,
  now: string,
): Promise<{ locked: boolean; record?: IdempotencyRecord }> => {
  const lockName = `${workspaceId} ${staffId} ${key}`
  const { rows } = await sql<{ locked: boolean; state: string | null } & IdempotencyRecord>`
    select l.locked, i.operation, i.fingerprint, i.state, i.status, i.body, i.view,
      i.intent, i.give_up_at,
      coalesce(i.lease_until <= clock_timestamp(), true) as lease_over,
      i.expires_at <= least(${now}::timestamptz, clock_timestamp()) as expired
    from (select pg_try_advisory_xact_lock(hashtextextended(${lockName}, 0)) as locked) as l
    left join idempotency i
      on i.workspace_id = ${workspaceId} and i.staff_id = ${staffId} and i.key = ${key}`.execute(tx)
  const { locked, ...record } = rows[0]!
  return record.state === null ? { locked } : { locked, record }
}

export const deleteRecord = async (tx: Db, { workspaceId, staffId, key }: RecordKey): Promise<void> => {
  await tx
    .deleteFrom('idempotency')
    .where('workspace_id', '=', workspaceId)
    .where('staff_id', '=', staffId)
    .where('key', '=', key)
    .execute()
}

/** The record of a finished call; `audit`: the audit row to write with it. */
export type CompletedRecord = RecordKey & {
  operation: string
  fingerprint: Uint8Array
  status: number
  body: string
  view: StoredView
  now: string
  expiresAt: string
  audit?: AuditEntry | undefined
}

/**
 * Writes the deferred write of a change, its events, its audit row and the record of its response in one
 * statement, and commits. Violates the primary key when the record already exists, and throws
 * `ExpectationFailed` when the deferred write lacks its row, or the events name what is to be announced before. Returns
 * whether events need webhook deliveries.
 */
export const insertResult = async (
  tx: Db,
  record: CompletedRecord,
  events: readonly EventRow[],
  write?: DeferredWrite,
): Promise<boolean> => {
  const { workspaceId, staffId, key, operation, fingerprint, status, body, view, now, expiresAt } = record
  const statement = sql<{ needs_delivery: boolean }>`
    with ${deferredParts(write)} ${announcedEventInserts(workspaceId, events, write)}
      ${auditInsertPart(workspaceId, record.audit)}
    insert into idempotency (workspace_id, staff_id, key, operation, fingerprint, state, status, body, view,
      created_at, expires_at)
    select ${workspaceId}, ${staffId}, ${key}, ${operation}, ${fingerprint}::bytea, 'done',
      ${status}::smallint, ${body}, ${JSON.stringify(view)}::jsonb, ${now}::timestamptz,
      ${expiresAt}::timestamptz ${rowGuard(write)}
    returning ${needsDelivery}`
  const { rows } = await expectingRow(write, executeAndCommit(tx, statement))
  return rows[0]!.needs_delivery
}

/**
 * The same for a record that has been running since the first part of the operation; commits too. It is kept
 * from now on: what became of a call may be known only after a day. Its view stays that of the staff member
 * who made the call, who may see less by now.
 */
export const completeRecord = async (
  tx: Db,
  record: CompletedRecord,
  events: readonly EventRow[],
): Promise<boolean> => {
  const statement = sql<{ needs_delivery: boolean }>`
    with ${announcedEventInserts(record.workspaceId, events)} ${auditInsertPart(record.workspaceId, record.audit)}
    update idempotency
    set state = 'done', status = ${record.status}, body = ${record.body},
      view = coalesce(view, ${JSON.stringify(record.view)}::jsonb),
      intent = null, lease_until = null, give_up_at = null, expires_at = ${record.expiresAt}::timestamptz
    where ${isRecord(record)} and state = 'running'
    returning ${needsDelivery}`
  const { rows } = await expectingRow(undefined, executeAndCommit(tx, statement))
  return rows[0]?.needs_delivery ?? false
}

/**
 * The end of a running record's lease, as the database formats it. It also identifies the holder: only the
 * current holder's token matches the record.
 */
export type LeaseToken = string

/**
 * Records that an operation is about to call the provider: its intent, a lease in seconds of real time, and
 * the business time after which its outcome is given up. Commits.
 */
export const insertIntent = async (
  tx: Db,
  record: Omit<CompletedRecord, 'status' | 'body'>,
  intent: unknown,
  leaseSeconds: number,
  giveUpAt: string,
): Promise<LeaseToken> => {
  const { workspaceId, staffId, key, operation, fingerprint, view, now, expiresAt } = record
  const statement = sql<{ lease: LeaseToken }>`
    insert into idempotency (workspace_id, staff_id, key, operation, fingerprint, state, intent,
      view, lease_until, give_up_at, created_at, expires_at)
    values (${workspaceId}, ${staffId}, ${key}, ${operation}, ${fingerprint}, 'running',
      ${JSON.stringify(intent)}::jsonb, ${JSON.stringify(view)}::jsonb,
      clock_timestamp() + ${leaseSeconds}::float8 * interval '1 second',
      ${giveUpAt}, ${now}, ${expiresAt})
    returning lease_until::text as lease`
  const { rows } = await executeAndCommit(tx, statement)
  return rows[0]!.lease
}

/** Takes over a running record whose lease expired. */
export const takeOverLease = async (tx: Db, record: RecordKey, leaseSeconds: number): Promise<LeaseToken> => {
  const { rows } = await sql<{ lease: LeaseToken }>`
    update idempotency
    set lease_until = clock_timestamp() + ${leaseSeconds}::float8 * interval '1 second'
    where ${isRecord(record)} and state = 'running'
    returning lease_until::text as lease`.execute(tx)
  return rows[0]!.lease
}

/** Locks the record and returns its current state; undefined when it was deleted. */
export const lockRecord = async (
  tx: Db,
  { workspaceId, staffId, key }: RecordKey,
): Promise<Pick<IdempotencyRecord, 'state' | 'status' | 'body' | 'view'> | undefined> =>
  tx
    .selectFrom('idempotency')
    .select(['state', 'status', 'body', 'view'])
    .where('workspace_id', '=', workspaceId)
    .where('staff_id', '=', staffId)
    .where('key', '=', key)
    .forUpdate()
    .$castTo<Pick<IdempotencyRecord, 'state' | 'status' | 'body' | 'view'>>()
    .executeTakeFirst()

/** Lets another caller take over at once; a lease that another holds by now is left alone. */
export const releaseLease = async (db: Db, record: RecordKey, lease: LeaseToken): Promise<void> => {
  await sql`
    update idempotency set lease_until = clock_timestamp()
    where ${isRecord(record)} and state = 'running' and lease_until = ${lease}::timestamptz`.execute(db)
}

/** Frees the key of a call that the provider refused; false when another caller holds it by now. */
export const deleteRunningRecord = async (tx: Db, record: RecordKey, lease: LeaseToken): Promise<boolean> => {
  const { rows } = await sql`
    delete from idempotency
    where ${isRecord(record)} and state = 'running' and lease_until = ${lease}::timestamptz
    returning 1`.execute(tx)
  return rows.length > 0
}

/** A running record whose call has no outcome yet. `over`: it is given up unless it is found now. */
type OpenCall = {
  lease: LeaseToken
  workspace_id: string
  staff_id: string
  key: string
  operation: string
  intent: unknown
  over: boolean
}

/**
 * Claims running records that nobody works on, each with a new lease so that one worker has it. The longer a
 * call has been open, the longer is the wait until it is claimed again: a quarter of its age, at most an
 * hour, and none in the first twenty seconds. `now`: real time; `clockOffsets`: milliseconds by which the
 * business time of a workspace is ahead of it.
 */
export const claimOpenCalls = async (
  db: Db,
  now: string,
  clockOffsets: ReadonlyMap<string, number>,
  leaseSeconds: number,
  limit: number,
): Promise<OpenCall[]> => {
  const { rows } = await sql<OpenCall>`
    update idempotency i
    set lease_until = clock_timestamp() + ${leaseSeconds}::float8 * interval '1 second'
    from (
      select r.workspace_id, r.staff_id, r.key, o.over from idempotency r
      left join unnest(${[...clockOffsets.keys()]}::bigint[], ${[...clockOffsets.values()]}::bigint[])
        as c (workspace_id, ms) on c.workspace_id = r.workspace_id
      cross join lateral (select coalesce(r.give_up_at
        <= ${now}::timestamptz + coalesce(c.ms, 0) * interval '1 millisecond', false) as over) o
      where r.state = 'running' and r.lease_until <= clock_timestamp() and (o.over
        or r.lease_until + least(interval '1 hour', greatest(interval '0 seconds',
          r.lease_until - r.created_at - interval '20 seconds') / 4) <= clock_timestamp())
      order by r.lease_until limit ${limit} for update of r skip locked
    ) as d
    where i.workspace_id = d.workspace_id and i.staff_id = d.staff_id and i.key = d.key
    returning i.workspace_id, i.staff_id, i.key, i.operation, i.intent, i.lease_until::text as lease,
      d.over`.execute(db)
  return rows
}

/**
 * Deletes up to `limit` responses whose retention is over, the oldest first; returns the count. Running records are
 * kept, since their result is still to be stored.
 */
export const deleteExpiredRecords = async (db: Db, now: string, limit: number): Promise<number> => {
  const { rows } = await sql<{ n: string }>`
    with deleted as (
      delete from idempotency where (workspace_id, staff_id, key) in (
        select workspace_id, staff_id, key from idempotency
        where expires_at <= ${now} and state = 'done' order by expires_at limit ${limit}
        for update skip locked)
      returning 1)
    select count(*) as n from deleted`.execute(db)
  return Number(rows[0]!.n)
}

import { sql } from 'kysely'
import { type AuditEntry, auditPart } from './audit.ts'
import type { Db } from './database.ts'
import { AND_COMMIT } from './driver.ts'
import { type EventRow, eventParts } from './events.ts'
import { type Finale, partsOf, proofOf } from './deferred-write.ts'

export type IdempotencyRecord = {
  operation: string
  fingerprint: Uint8Array
  state: 'running' | 'done'
  status: number | null
  body: string | null
  intent: unknown
  lease_over: boolean
  expired: boolean
}
export type RecordKey = { workspaceId: string; staffId: string; key: string }

/**
 * Locks a key for the rest of the transaction and reads its record, in one statement. `locked` is false
 * while another transaction has the key. The snapshot is older than the lock, so a record that was
 * committed in between is not seen; writing ours then breaks the primary key, and the caller tries again.
 * The advisory lock lives in the transaction, so it also works through PgBouncer.
 */
export const reserveKey = async (
  tx: Db,
  { workspaceId, staffId, key }: RecordKey,
  now: string,
): Promise<{ locked: boolean; record?: IdempotencyRecord }> => {
  const { rows } = await sql<{ locked: boolean; state: string | null } & IdempotencyRecord>`
    select l.locked, i.operation, i.fingerprint, i.state, i.status, i.body, i.intent,
      coalesce(i.lease_until <= clock_timestamp(), true) as lease_over, i.expires_at <= ${now}::timestamptz as expired
    from (select pg_try_advisory_xact_lock(hashtextextended(${`${workspaceId} ${staffId} ${key}`}, 0)) as locked) as l
    left join idempotency i on i.workspace_id = ${workspaceId} and i.staff_id = ${staffId} and i.key = ${key}`.execute(
    tx,
  )
  const { locked, ...record } = rows[0]!
  return record.state === null ? { locked } : { locked, record }
}

export const dropRecord = async (tx: Db, { workspaceId, staffId, key }: RecordKey): Promise<void> => {
  await tx
    .deleteFrom('idempotency')
    .where('workspace_id', '=', workspaceId)
    .where('staff_id', '=', staffId)
    .where('key', '=', key)
    .execute()
}

/** `audit`: the row that tells of it. */
export type FinalRecord = RecordKey & {
  operation: string
  fingerprint: Uint8Array
  status: number
  body: string
  now: string
  expiresAt: string
  audit?: AuditEntry | undefined
}

/**
 * Writes what is left of a change, its events, its audit row and the record of its answer in one statement,
 * and ends the transaction. Breaks the primary key when the record is there already.
 */
export const writeOutcome = async (
  tx: Db,
  record: FinalRecord,
  events: readonly EventRow[],
  finale?: Finale,
): Promise<void> => {
  await sql`${sql.raw(AND_COMMIT)}
    with ${partsOf(finale)} ${eventParts(record.workspaceId, events)} ${auditPart(record.workspaceId, record.audit)}
    insert into idempotency (workspace_id, staff_id, key, operation, fingerprint, state, status, body, created_at, expires_at)
    select ${record.workspaceId}, ${record.staffId}, ${record.key}, ${record.operation}, ${record.fingerprint}::bytea, 'done', ${record.status}::smallint, ${record.body},
      ${record.now}::timestamptz, ${record.expiresAt}::timestamptz ${proofOf(finale)}`.execute(tx)
}

/**
 * The same for a record that has been running since the first part of the operation; ends the transaction
 * too.
 */
export const settleOutcome = async (
  tx: Db,
  record: FinalRecord,
  events: readonly EventRow[],
): Promise<void> => {
  await sql`${sql.raw(AND_COMMIT)}
    with ${eventParts(record.workspaceId, events)} ${auditPart(record.workspaceId, record.audit)}
    update idempotency set state = 'done', status = ${record.status}, body = ${record.body}, intent = null, lease_until = null
    where workspace_id = ${record.workspaceId} and staff_id = ${record.staffId} and key = ${record.key} and state = 'running'`.execute(
    tx,
  )
}

/**
 * Until when a caller holds a running record, as the database writes it. Whoever still holds its own lease
 * may give the record up.
 */
export type Lease = string

/**
 * Records that an operation is about to call the provider: its intent, and a lease in seconds of real time.
 * Ends the transaction.
 */
export const writeIntent = async (
  tx: Db,
  record: Omit<FinalRecord, 'status' | 'body'>,
  intent: unknown,
  leaseSeconds: number,
): Promise<Lease> => {
  const { rows } = await sql<{ lease: Lease }>`${sql.raw(AND_COMMIT)}
    insert into idempotency (workspace_id, staff_id, key, operation, fingerprint, state, intent, lease_until, created_at, expires_at)
    values (${record.workspaceId}, ${record.staffId}, ${record.key}, ${record.operation}, ${record.fingerprint}, 'running', ${JSON.stringify(intent)}::jsonb,
      clock_timestamp() + ${leaseSeconds}::float8 * interval '1 second', ${record.now}, ${record.expiresAt})
    returning lease_until::text as lease`.execute(tx)
  return rows[0]!.lease
}

/** Takes over a running record whose lease ran out. */
export const renewLease = async (
  tx: Db,
  { workspaceId, staffId, key }: RecordKey,
  leaseSeconds: number,
): Promise<Lease> => {
  const { rows } = await sql<{ lease: Lease }>`
    update idempotency set lease_until = clock_timestamp() + ${leaseSeconds}::float8 * interval '1 second'
    where workspace_id = ${workspaceId} and staff_id = ${staffId} and key = ${key} and state = 'running' returning lease_until::text as lease`.execute(
    tx,
  )
  return rows[0]!.lease
}

/** The record as it is now, locked; undefined when it was dropped. */
export const lockRecord = async (
  tx: Db,
  { workspaceId, staffId, key }: RecordKey,
): Promise<Pick<IdempotencyRecord, 'state' | 'status' | 'body'> | undefined> =>
  (
    await sql<Pick<IdempotencyRecord, 'state' | 'status' | 'body'>>`
    select state, status, body from idempotency where workspace_id = ${workspaceId} and staff_id = ${staffId} and key = ${key} for update`.execute(
      tx,
    )
  ).rows[0]

/** Lets another caller take over at once; a lease that another holds by now is left alone. */
export const giveUpLease = async (
  db: Db,
  { workspaceId, staffId, key }: RecordKey,
  lease: Lease,
): Promise<void> => {
  await sql`
    update idempotency set lease_until = clock_timestamp()
    where workspace_id = ${workspaceId} and staff_id = ${staffId} and key = ${key} and state = 'running' and lease_until = ${lease}::timestamptz`.execute(
    db,
  )
}

/** Frees the key of a call that the provider refused; false when another has it by now. */
export const dropRunning = async (
  tx: Db,
  { workspaceId, staffId, key }: RecordKey,
  lease: Lease,
): Promise<boolean> =>
  (
    await sql`
    delete from idempotency
    where workspace_id = ${workspaceId} and staff_id = ${staffId} and key = ${key} and state = 'running' and lease_until = ${lease}::timestamptz returning 1`.execute(
      tx,
    )
  ).rows.length > 0

export type LeftOver = {
  lease: Lease
  workspace_id: string
  staff_id: string
  key: string
  operation: string
  intent: unknown
  fingerprint: Uint8Array
  expires_at: string
}

/** Running records whose lease ran out, taken with a new lease so that one worker has each. */
export const takeLeftOvers = async (db: Db, leaseSeconds: number, most: number): Promise<LeftOver[]> => {
  const { rows } = await sql<LeftOver>`
    update idempotency i set lease_until = clock_timestamp() + ${leaseSeconds}::float8 * interval '1 second'
    from (select workspace_id, staff_id, key from idempotency where state = 'running' and lease_until <= clock_timestamp()
      order by lease_until limit ${most} for update skip locked) as d
    where i.workspace_id = d.workspace_id and i.staff_id = d.staff_id and i.key = d.key
    returning i.workspace_id, i.staff_id, i.key, i.operation, i.intent, i.fingerprint, i.expires_at, i.lease_until::text as lease`.execute(
    db,
  )
  return rows
}

/**
 * Removes answers older than their day, some at a time. Running records stay: their outcome is still owed.
 */
export const dropExpiredRecords = async (db: Db, now: string, most = 5000): Promise<number> => {
  const { rows } = await sql<{ n: string }>`
    with gone as (delete from idempotency where (workspace_id, staff_id, key) in (
      select workspace_id, staff_id, key from idempotency where expires_at <= ${now} and state = 'done' limit ${most}) returning 1)
    select count(*) as n from gone`.execute(db)
  return Number(rows[0]!.n)
}

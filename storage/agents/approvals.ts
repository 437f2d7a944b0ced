import { sql } from 'kysely'
import type { ApprovalStatus, AskReason } from '../../catalog/approvals.ts'
import type { Db, TableRow } from '../database.ts'
import type { StoredView } from '../access/idempotency.ts'
import { toStorableId } from '../values/ids.ts'
import { familyOf, keysOfFamily } from '../access/key-families.ts'
import { toRefusalKey } from './refusals.ts'
import { insertRun } from '../work/runs.ts'

/** Calls of AI agents that a person decides. */

type Stored = TableRow<'approvals'>

export type ApprovalRow = Omit<
  Stored,
  'run_until' | 'view' | 'asked_for' | 'outcome' | 'edited' | 'preview'
> & {
  view: StoredView
  asked_for: AskReason[]
  /** Why it failed; or the broadcast that a run has begun. */
  outcome: { code: string; reason: string | null; detail: string } | { broadcast_id: string } | null
  /** Fields that replace those of the input. */
  edited: Record<string, unknown> | null
  preview: Record<string, unknown> | null
  staff_name: string | null
  key_name: string | null
  family_id: string | null
  decided_by_name: string | null
  /** It may not begin any more, only end. */
  is_late: boolean
  contact_name: string | null
}

export type NewApproval = Pick<
  ApprovalRow,
  | 'workspace_id'
  | 'key_id'
  | 'staff_id'
  | 'operation'
  | 'input'
  | 'secrets'
  | 'digest'
  | 'idempotency_key'
  | 'door'
  | 'client'
  | 'request_id'
  | 'reason'
  | 'asked_for'
  | 'preview'
  | 'plan'
  | 'summary_version'
  | 'summary_salt'
  | 'view'
  | 'contact_id'
  | 'channel_ids'
  | 'requested_at'
  | 'expires_at'
>

const columns = sql`
  a.workspace_id, a.id, a.key_id, a.staff_id, a.operation, a.input, a.secrets, a.digest, a.idempotency_key, a.door,
  a.client, a.request_id, a.reason, a.asked_for, a.preview, a.plan, a.view, a.contact_id, a.channel_ids, a.status,
  a.summary_version, a.summary_salt,
  a.requested_at, a.expires_at, a.decided_at, a.decided_by, a.decided_key_id, a.note, a.edited,
  a.ended_at, a.outcome_status, a.outcome, coalesce(a.run_until <= clock_timestamp(), false) as is_late,
  s.name as staff_name, k.name as key_name, ${familyOf('k')} as family_id,
  d.name as decided_by_name, c.name as contact_name`

const joins = sql`
  left join staff s on s.workspace_id = a.workspace_id and s.id = a.staff_id
  left join api_keys k on k.workspace_id = a.workspace_id and k.id = a.key_id
  left join staff d on d.workspace_id = a.workspace_id and d.id = a.decided_by
  left join contacts c on c.workspace_id = a.workspace_id and c.id = a.contact_id`

/** Inserts a request; undefined when the key has an open one for the same call. */
export const insertApproval = async (tx: Db, row: NewApproval): Promise<string | undefined> =>
  (
    await sql<{ id: string }>`
      insert into approvals (workspace_id, key_id, staff_id, operation, input, secrets, digest, idempotency_key,
        door, client, request_id, reason, asked_for, preview, plan, summary_version, summary_salt, view,
        contact_id, channel_ids, requested_at, expires_at)
      values (${row.workspace_id}, ${row.key_id}, ${row.staff_id}, ${row.operation},
        ${JSON.stringify(row.input)}::text::jsonb, ${row.secrets}, ${row.digest}, ${row.idempotency_key}, ${row.door},
        ${row.client}, ${row.request_id}, ${row.reason}, ${row.asked_for}::text[],
        ${row.preview === null ? null : JSON.stringify(row.preview)}::text::jsonb, ${row.plan},
        ${row.summary_version}, ${row.summary_salt},
        ${JSON.stringify(row.view)}::text::jsonb, ${row.contact_id}::bigint, ${row.channel_ids}::bigint[],
        ${row.requested_at}, ${row.expires_at})
      on conflict do nothing
      returning id`.execute(tx)
  ).rows[0]?.id

/**
 * Makes the transactions that insert requests of a family of keys wait for each other: a count in them is exact. A
 * statement of its own: one that waited would count what was there before it began.
 */
export const lockAsking = async (tx: Db, workspaceId: string, familyId: string): Promise<void> => {
  await sql`
    select pg_advisory_xact_lock(hashtextextended(${`approvals ${workspaceId} ${familyId}`}, 0))`.execute(tx)
}

/** Whether a call under an idempotency key with this fingerprint runs, or ran while its record is kept. */
export const hasRecord = async (
  db: Db,
  {
    workspaceId,
    staffId,
    key,
    fingerprint,
  }: { workspaceId: string; staffId: string; key: string; fingerprint: Uint8Array },
): Promise<boolean> =>
  (
    await sql`
      select from idempotency where workspace_id = ${workspaceId} and staff_id = ${staffId} and key = ${key}
        and fingerprint = ${fingerprint}::bytea`.execute(db)
  ).rows.length > 0

/** Counts the requests of a family of keys that nobody has decided. */
export const countPending = async (db: Db, workspaceId: string, familyId: string): Promise<number> =>
  Number(
    (
      await sql<{ n: string }>`
        select count(*) as n from approvals
        where workspace_id = ${workspaceId} and key_id in ${keysOfFamily(workspaceId, familyId)}
          and status = 'pending'`.execute(db)
    ).rows[0]!.n,
  )

/** Returns a request with the names in it. */
export const findApproval = async (
  db: Db,
  workspaceId: string,
  id: string,
): Promise<ApprovalRow | undefined> =>
  (
    await sql<ApprovalRow>`
      select ${columns} from approvals a ${joins}
      where a.workspace_id = ${workspaceId} and a.id = ${toStorableId(id)}`.execute(db)
  ).rows[0]

/** The same, locked. */
export const lockApproval = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<ApprovalRow | undefined> =>
  (
    await sql<ApprovalRow>`
      select ${columns} from approvals a ${joins}
      where a.workspace_id = ${workspaceId} and a.id = ${toStorableId(id)} for update of a`.execute(tx)
  ).rows[0]

/**
 * Returns the latest request of a family for a call: with this idempotency key, or else one with this digest that is
 * open, or was declined since `since`. `isRefused`: the person behind the client said no to it. `isRecorded`: the
 * same call ran, or runs, under the idempotency key, and its record is kept until `recordedUntil` at least. One that
 * ends sooner may be gone when the call begins, which would then be a new call.
 */
export const findEarlier = async (
  db: Db,
  {
    workspaceId,
    familyId,
    staffId,
  }: {
    workspaceId: string
    familyId: string
    staffId: string
  },
  {
    key,
    digest,
    fingerprint,
    since,
    recordedUntil,
  }: { key: string; digest: Uint8Array; fingerprint: Uint8Array; since: string; recordedUntil: string },
): Promise<{
  byKey: ApprovalRow | undefined
  byDigest: ApprovalRow | undefined
  isRecorded: boolean
  isRefused: boolean
}> => {
  const isOfFamily = sql`a.key_id in ${keysOfFamily(workspaceId, familyId)}`
  const { rows } = await sql<ApprovalRow & { found: 'key' | 'digest' | 'record' }>`
    (select 'key' as found, ${columns} from approvals a ${joins}
      where a.workspace_id = ${workspaceId} and ${isOfFamily} and a.idempotency_key = ${key}
      order by a.id desc limit 1)
    union all
    (select 'digest', ${columns} from approvals a ${joins}
      where a.workspace_id = ${workspaceId} and ${isOfFamily} and a.digest = ${digest}
        and (a.status in ('pending', 'approved') or (a.status = 'declined' and a.decided_at > ${since}))
      order by a.id desc limit 1)`.execute(db)
  const refusal = toRefusalKey(familyId, digest)
  const { rows: records } = await sql<{ key: string }>`
    select key from idempotency
    where workspace_id = ${workspaceId} and staff_id = ${staffId} and key in (${key}, ${refusal})
      and fingerprint = (case when key = ${refusal} then ${digest} else ${fingerprint} end)::bytea
      and (state = 'running' or expires_at > ${recordedUntil}::timestamptz)`.execute(db)
  return {
    byKey: rows.find(({ found }) => found === 'key'),
    byDigest: rows.find(({ found }) => found === 'digest'),
    isRecorded: records.some((record) => record.key === key),
    isRefused: records.some((record) => record.key === refusal),
  }
}

/** Whose requests a reader may see: `familyId` and `staffId` limit them, `channels` too (null: all). */
export type ApprovalReader = {
  familyId: string | null
  staffId: string | null
  channels: readonly string[] | null
  /** The staff member who reads: what their own keys asked for without a channel is shown to them. */
  ownStaffId: string
}

/** Lists requests, newest first. `now`: those that expired by then have the status `expired`. */
export const listApprovalRows = async (
  db: Db,
  workspaceId: string,
  { familyId, staffId, channels, ownStaffId }: ApprovalReader,
  {
    status,
    now,
    before,
    limit,
  }: { status: ApprovalStatus | null; now: string; before: string | null; limit: number },
): Promise<ApprovalRow[]> => {
  const shown = sql`(case when a.status = 'pending' and a.expires_at <= ${now}::timestamptz then 'expired'
    else a.status end)`
  const { rows } = await sql<ApprovalRow>`
    select ${columns} from approvals a ${joins}
    where a.workspace_id = ${workspaceId}
      ${familyId === null ? sql`` : sql`and a.key_id in ${keysOfFamily(workspaceId, familyId)}`}
      and (${staffId}::bigint is null or a.staff_id = ${staffId}::bigint)
      and (${channels === null} or (a.channel_ids <@ ${channels ?? []}::bigint[]
        and (a.channel_ids <> '{}' or a.operation like 'crm\\_%' or a.staff_id = ${ownStaffId}::bigint)))
      and (${status}::text is null or ${shown} = ${status}::text)
      and (${before}::bigint is null or a.id < ${before}::bigint)
    order by a.id desc limit ${limit}`.execute(db)
  return rows
}

type Decision = {
  status: 'approved' | 'declined' | 'cancelled' | 'expired'
  now: string
  staffId: string | null
  keyId: string | null
  note: string | null
  edited: object | null
  /** What the call acts on, as the person was shown; undefined: as it was asked for. */
  summaryVersion?: string | undefined
  /** Of an approved one: how long it may begin, in seconds of real time. */
  runSeconds: number
}

/** Writes a decision on a request that is pending and locked. */
export const decideApproval = async (
  tx: Db,
  workspaceId: string,
  id: string,
  { status, now, staffId, keyId, note, edited, summaryVersion, runSeconds }: Decision,
): Promise<void> => {
  const isOver = status !== 'approved'
  const { rows } = await sql<{ operation: string }>`
    update approvals set status = ${status}, decided_at = ${now}, decided_by = ${staffId}::bigint,
      decided_key_id = ${keyId}::bigint, note = ${note},
      edited = ${edited === null ? null : JSON.stringify(edited)}::text::jsonb,
      summary_version = coalesce(${summaryVersion ?? null}::text, summary_version),
      ended_at = ${isOver ? now : null}::timestamptz, secrets = case when ${isOver} then null else secrets end,
      run_until = clock_timestamp() + ${runSeconds}::float8 * interval '1 second'
    where workspace_id = ${workspaceId} and id = ${id} and status = 'pending' returning operation`.execute(tx)
  if (isOver || !rows[0]) return
  const run = { workspace_id: workspaceId, kind: 'approved_calls', subject: id }
  await insertRun(tx, { ...run, needs_version: rows[0].operation })
}

/** Whether a request is approved still, and will be until the transaction ends. */
export const holdApproved = async (tx: Db, workspaceId: string, id: string): Promise<boolean> =>
  (await tx
    .selectFrom('approvals')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('status', '=', 'approved')
    .forShare()
    .executeTakeFirst()) !== undefined

/** Writes how an approved call ended. */
export const endApproval = async (
  db: Db,
  workspaceId: string,
  id: string,
  {
    status,
    now,
    answer,
    outcome,
  }: { status: 'done' | 'failed'; now: string; answer: number; outcome: object | null },
): Promise<void> => {
  await sql`
    update approvals set status = ${status}, ended_at = ${now}, outcome_status = ${answer}::smallint,
      outcome = ${outcome === null ? null : JSON.stringify(outcome)}::text::jsonb, secrets = null
    where workspace_id = ${workspaceId} and id = ${id} and status = 'approved'`.execute(db)
}

/** Locks requests that expired, in business time. */
export const lockExpired = async (
  tx: Db,
  now: string,
  clockOffsets: ReadonlyMap<string, number>,
  limit: number,
): Promise<{ workspace_id: string; id: string }[]> =>
  (
    await sql<{ workspace_id: string; id: string }>`
      select a.workspace_id, a.id from approvals a
      left join unnest(${[...clockOffsets.keys()]}::bigint[], ${[...clockOffsets.values()]}::bigint[])
        as c (workspace_id, ms) on c.workspace_id = a.workspace_id
      where a.status = 'pending'
        and a.expires_at <= ${now}::timestamptz + coalesce(c.ms, 0) * interval '1 millisecond'
      order by a.workspace_id, a.id limit ${limit} for update of a skip locked`.execute(tx)
  ).rows

/** Whether a call ran, or runs, under this idempotency key. */
export const hasLiveRecord = async (
  db: Db,
  { workspaceId, staffId, key, now }: { workspaceId: string; staffId: string; key: string; now: string },
): Promise<boolean> =>
  (
    await sql`
      select from idempotency where workspace_id = ${workspaceId} and staff_id = ${staffId} and key = ${key}
        and (state = 'running' or expires_at > ${now})`.execute(db)
  ).rows.length > 0

/** Deletes up to `limit` requests that ended before a time; returns the count. */
export const deleteApprovalsBefore = async (db: Db, before: string, limit: number): Promise<number> => {
  const { rows } = await sql<{ n: string }>`
    with deleted as (
      delete from approvals where (workspace_id, id) in (
        select workspace_id, id from approvals where ended_at < ${before} order by ended_at limit ${limit}
        for update skip locked)
      returning 1)
    select count(*) as n from deleted`.execute(db)
  return Number(rows[0]!.n)
}

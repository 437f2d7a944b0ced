import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../database.ts'
import { CUSTOM_PLAN } from '../client/driver.ts'
import { MAX_BIGINT, toStorableId } from '../values/ids.ts'
import { AUDIT_SEQUENCE_BITS } from '../migrations/partitions.ts'

type AuditTransport = 'rest' | 'ops' | 'mcp' | 'cli'
export type AuditOutcome = 'done' | 'refused' | 'failed'

/** An audit row to write. `at`: real time, ISO 8601. */
export type AuditEntry = {
  at: string
  staff_id: string
  key_id: string
  door: AuditTransport
  client: string | null
  operation: string
  target: { type: string; id: string } | null
  outcome: AuditOutcome
  code: string | null
  dry_run: boolean
  confirmed: boolean
  changes: object | null
  request_id: string
  /** The staff member who approved the call of an AI agent. */
  approved_by?: string | null
}

const MAX_ID = BigInt(MAX_BIGINT)

/** Returns the smallest id of a time (ISO 8601), which may be any that ISO 8601 can express. */
export const firstIdAt = (time: string): string => {
  const id = BigInt(Date.parse(time)) << AUDIT_SEQUENCE_BITS
  return String(id < 0n ? 0n : id > MAX_ID ? MAX_ID : id)
}

const toTime = (id: string): string => new Date(Number(BigInt(id) >> AUDIT_SEQUENCE_BITS)).toISOString()

const insertStatement = (workspaceId: string, e: AuditEntry): RawBuilder<unknown> => sql`
  insert into audit_log (workspace_id, id, staff_id, key_id, door, client, operation, target_type,
    target_id, outcome, code, dry_run, confirmed, changes, request_id, approved_by)
  values (${workspaceId}::bigint, ${firstIdAt(e.at)}::bigint + nextval('audit_ids'),
    ${e.staff_id}::bigint, ${e.key_id}::bigint, ${e.door}, ${e.client}, ${e.operation},
    ${e.target?.type ?? null}, ${e.target?.id ?? null}, ${e.outcome}, ${e.code}, ${e.dry_run}::boolean,
    ${e.confirmed}::boolean, ${e.changes === null ? null : JSON.stringify(e.changes)}::text::json,
    ${e.request_id}, ${e.approved_by ?? null}::bigint)`

/** A common table expression, following others, that writes the row with the change it describes. */
export const auditInsertPart = (workspaceId: string, entry: AuditEntry | undefined): RawBuilder<unknown> =>
  entry ? sql`, audited as (${insertStatement(workspaceId, entry)})` : sql``

/** Writes the row of a call that changed nothing, or of a change that runs several statements. */
export const insertAuditRow = async (db: Db, workspaceId: string, entry: AuditEntry): Promise<void> => {
  await insertStatement(workspaceId, entry).execute(db)
}

export type AuditRow = Omit<AuditEntry, 'target' | 'changes'> & {
  id: string
  staff_name: string | null
  key_name: string | null
  agent: boolean | null
  approver_name: string | null
  target_type: string | null
  target_id: string | null
  changes: Record<string, unknown> | null
}

/** `from` (inclusive) and `to` (exclusive): times, ISO 8601. */
export type AuditFilter = {
  staff_id?: string | undefined
  key_id?: string | undefined
  /** Whether an AI agent's key. */
  agent?: boolean | undefined
  operation?: string | undefined
  door?: AuditTransport | undefined
  outcome?: AuditOutcome | undefined
  target_id?: string | undefined
  from?: string | undefined
  to?: string | undefined
}

const conditions = (
  { key_id, operation, door, outcome, target_id, from, to }: AuditFilter,
  before: string | undefined,
): RawBuilder<unknown> =>
  sql.join(
    [
      ...(key_id === undefined ? [] : [sql`key_id = ${toStorableId(key_id)}`]),
      ...(operation === undefined ? [] : [sql`operation = ${operation}`]),
      ...(door === undefined ? [] : [sql`door = ${door}`]),
      // A literal, so that the planner can use the partial index on other outcomes than `done`.
      ...(outcome === undefined ? [] : [sql`outcome = ${sql.lit(outcome)}`]),
      ...(target_id === undefined ? [] : [sql`target_id = ${target_id}`]),
      ...(from === undefined ? [] : [sql`id >= ${firstIdAt(from)}`]),
      ...(to === undefined ? [] : [sql`id < ${firstIdAt(to)}`]),
      ...(before === undefined ? [] : [sql`id < ${before}`]),
    ].map((condition) => sql`and ${condition}`),
    sql` `,
  )

/** Newest rows among which those of AI agents, or of people, are looked for before each of their keys is asked. */
const RECENT_ROWS = 5000

/** Finds rows of some keys `k`. Theirs are among those of the `limit` keys whose latest rows are the newest. */
const ofKeys = (
  workspaceId: string,
  filter: AuditFilter,
  before: string | undefined,
  limit: number,
): RawBuilder<unknown> => {
  const newest = (columns: RawBuilder<unknown>, max: number) => sql`
    select ${columns} from audit_log where workspace_id = ${workspaceId} and key_id = k.id
      ${conditions(filter, before)} order by id desc limit ${max}`
  return sql`
    select f.* from (
      select k.id from api_keys k cross join lateral (${newest(sql`id`, 1)}) as latest
      where k.workspace_id = ${workspaceId}
        ${filter.staff_id === undefined ? sql`` : sql`and k.staff_id = ${toStorableId(filter.staff_id)}`}
        ${filter.agent === undefined ? sql`` : sql`and k.agent = ${filter.agent}`}
      order by latest.id desc limit ${limit}) as k
    cross join lateral (${newest(sql`*`, limit)}) as f
    order by f.id desc limit ${limit}`
}

/**
 * Returns rows of a workspace before an id, newest first. Rows of a staff member, or of AI agents,
 * are found key by key; keys are never deleted, so that all agents may have had very many.
 */
export const listAuditRows = async (
  db: Db,
  workspaceId: string,
  filter: AuditFilter,
  before: string | undefined,
  limit: number,
): Promise<AuditRow[]> => {
  const newest = (max: number) => sql`
    select * from audit_log where workspace_id = ${workspaceId} ${conditions(filter, before)}
    order by id desc limit ${max}`
  const { staff_id: staffId, agent } = filter
  if (staffId === undefined && agent === undefined) return await readRows(db, newest(limit))
  if (staffId === undefined) {
    const recent = await readRows(
      db,
      sql`
      select f.* from (${newest(RECENT_ROWS)}) as f
      join api_keys k on k.workspace_id = f.workspace_id and k.id = f.key_id and k.agent = ${agent}
      order by f.id desc limit ${limit}`,
    )
    if (recent.length === limit) return recent
  }
  return await readRows(db, ofKeys(workspaceId, filter, before, limit))
}

const readRows = async (db: Db, found: RawBuilder<unknown>): Promise<AuditRow[]> => {
  const { rows } = await sql<Omit<AuditRow, 'at'>>`${sql.raw(CUSTOM_PLAN)}
    select a.*, s.name as staff_name, k.name as key_name, k.agent, p.name as approver_name
    from (${found}) as a
    left join staff s on s.workspace_id = a.workspace_id and s.id = a.staff_id
    left join api_keys k on k.workspace_id = a.workspace_id and k.id = a.key_id
    left join staff p on p.workspace_id = a.workspace_id and p.id = a.approved_by
    order by a.id desc`.execute(db)
  return rows.map((row) => ({ ...row, at: toTime(row.id) }))
}

/** Deletes up to `limit` rows of each workspace from before this time. Returns the count. */
export const deleteAuditBefore = async (db: Db, time: string, limit: number): Promise<number> => {
  const { rows } = await sql<{ n: string }>`
    with deleted as (
      delete from audit_log where (workspace_id, id) in (
        select a.workspace_id, a.id from workspaces w
        cross join lateral (
          select workspace_id, id from audit_log
          where workspace_id = w.id and id < ${firstIdAt(time)}::bigint order by id limit ${limit}
        ) as a)
      returning 1)
    select count(*) as n from deleted`.execute(db)
  return Number(rows[0]!.n)
}

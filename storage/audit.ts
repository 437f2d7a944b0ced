import { type RawBuilder, sql } from 'kysely'
import type { Db } from './database.ts'
import { CUSTOM_PLAN } from './driver.ts'
import { storable } from './ids.ts'

type AuditDoor = 'rest' | 'ops' | 'mcp' | 'cli'
export type AuditOutcome = 'done' | 'refused' | 'failed'

/** One row to be written. `at`: business time, ISO 8601. `changes`: an object, or null. */
export type AuditEntry = {
  at: string
  staff_id: string
  key_id: string
  door: AuditDoor
  client: string | null
  operation: string
  target: { type: string; id: string } | null
  outcome: AuditOutcome
  code: string | null
  dry_run: boolean
  confirmed: boolean
  changes: object | null
  request_id: string
}

/** The bits of an id below its time (storage/migrations/0007-audit.ts). */
const BELOW_TIME = 18n
const LAST = (1n << 63n) - 1n

/** The first id of a time, which may be any that ISO 8601 writes. */
const firstIdOf = (time: string): string => {
  const id = BigInt(Date.parse(time)) << BELOW_TIME
  return String(id < 0n ? 0n : id > LAST ? LAST : id)
}

const timeOf = (id: string): string => new Date(Number(BigInt(id) >> BELOW_TIME)).toISOString()

const insertion = (workspaceId: string, e: AuditEntry): RawBuilder<unknown> => sql`
  insert into audit_log (workspace_id, id, staff_id, key_id, door, client, operation, target_type, target_id, outcome, code, dry_run, confirmed, changes, request_id)
  values (${workspaceId}::bigint, ${firstIdOf(e.at)}::bigint + nextval('audit_ids'), ${e.staff_id}::bigint, ${e.key_id}::bigint, ${e.door}, ${e.client}, ${e.operation},
    ${e.target?.type ?? null}, ${e.target?.id ?? null}, ${e.outcome}, ${e.code}, ${e.dry_run}::boolean, ${e.confirmed}::boolean,
    ${e.changes === null ? null : JSON.stringify(e.changes)}::text::json, ${e.request_id})`

/** A common table expression that writes a row with the change that it is about; it follows others. */
export const auditPart = (workspaceId: string, entry: AuditEntry | undefined): RawBuilder<unknown> =>
  entry ? sql`, audited as (${insertion(workspaceId, entry)})` : sql``

/** Writes the row of what changed nothing, or of a change whose transaction writes more. */
export const writeAudit = async (db: Db, workspaceId: string, entry: AuditEntry): Promise<void> => {
  await insertion(workspaceId, entry).execute(db)
}

export type AuditRow = Omit<AuditEntry, 'target' | 'changes'> & {
  id: string
  staff_name: string | null
  target_type: string | null
  target_id: string | null
  changes: Record<string, unknown> | null
}

/** `from` and `to`: times, the second one exclusive. */
export type AuditFilter = {
  staff_id?: string | undefined
  key_id?: string | undefined
  operation?: string | undefined
  door?: AuditDoor | undefined
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
      ...(key_id === undefined ? [] : [sql`key_id = ${storable(key_id)}`]),
      ...(operation === undefined ? [] : [sql`operation = ${operation}`]),
      ...(door === undefined ? [] : [sql`door = ${door}`]),
      // A literal, so that the planner sees that the index of the others holds it.
      ...(outcome === undefined ? [] : [sql`outcome = ${sql.lit(outcome)}`]),
      ...(target_id === undefined ? [] : [sql`target_id = ${target_id}`]),
      ...(from === undefined ? [] : [sql`id >= ${firstIdOf(from)}`]),
      ...(to === undefined ? [] : [sql`id < ${firstIdOf(to)}`]),
      ...(before === undefined ? [] : [sql`id < ${before}`]),
    ].map((condition) => sql`and ${condition}`),
    sql` `,
  )

/**
 * Rows of a workspace before an id, newest first. Those of a staff member are the newest of each of their
 * keys, of which none is ever deleted.
 */
export const pageOfAudit = async (
  db: Db,
  workspaceId: string,
  filter: AuditFilter,
  before: string | undefined,
  limit: number,
): Promise<AuditRow[]> => {
  const wanted = sql`${conditions(filter, before)} order by id desc limit ${limit}`
  const found =
    filter.staff_id === undefined
      ? sql`select * from audit_log where workspace_id = ${workspaceId} ${wanted}`
      : sql`
    select f.* from api_keys k cross join lateral (select * from audit_log where workspace_id = ${workspaceId} and key_id = k.id ${wanted}) as f
    where k.workspace_id = ${workspaceId} and k.staff_id = ${storable(filter.staff_id)} order by f.id desc limit ${limit}`
  const { rows } = await sql<Omit<AuditRow, 'at'>>`${sql.raw(CUSTOM_PLAN)}
    select a.*, s.name as staff_name
    from (${found}) as a left join staff s on s.workspace_id = a.workspace_id and s.id = a.staff_id order by a.id desc`.execute(
    db,
  )
  return rows.map((row) => ({ ...row, at: timeOf(row.id) }))
}

/** Forgets what happened before this time, some of each workspace at a time. Answers how many rows. */
export const deleteAuditBefore = async (db: Db, time: string, most = 5000): Promise<number> => {
  const { rows } = await sql<{ n: string }>`
    with gone as (
      delete from audit_log where (workspace_id, id) in (
        select a.workspace_id, a.id from workspaces w
        cross join lateral (select workspace_id, id from audit_log where workspace_id = w.id and id < ${firstIdOf(time)}::bigint order by id limit ${most}) as a)
      returning 1)
    select count(*) as n from gone`.execute(db)
  return Number(rows[0]!.n)
}

import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { toStorableId } from '../values/ids.ts'

/** A range of local days, `YYYY-MM-DD`, both inclusive. */
export type StaffReportDays = { from: string; to: string; timezone: string }
/** A stored report. `rows`: as `server/domains/reports/staff-rows.ts` computed them. */
export type StaffReport = StaffReportDays & {
  id: string
  name: string | null
  generated_at: string
  rows: unknown
}

/** The key of the advisory lock of a workspace's reports. */
const reportsLock = (workspaceId: string) => sql`hashtextextended(${`staff_reports ${workspaceId}`}, 0)`

const columns = sql.raw('id, name, from_day as "from", to_day as "to", timezone, generated_at')

/** Returns the newest valid report of exactly these days; undefined when there is none. */
export const findStoredReport = async (
  tx: Db,
  workspaceId: string,
  { from, to, timezone }: StaffReportDays,
): Promise<StaffReport | undefined> =>
  (
    await sql<StaffReport>`
    select ${columns}, rows from staff_reports
    where workspace_id = ${workspaceId} and timezone = ${timezone} and from_day = ${from}
      and to_day = ${to} and valid
    order by generated_at desc, id desc limit 1`.execute(tx)
  ).rows[0]

export const loadReport = (tx: Db, workspaceId: string, id: string): Promise<StaffReport | undefined> =>
  tx
    .selectFrom('staff_reports')
    .select(['id', 'name', 'from_day as from', 'to_day as to', 'timezone', 'generated_at', 'rows'])
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', toStorableId(id))
    .executeTakeFirst()

export type StaffReportSummary = Omit<StaffReport, 'rows'> & { rows: number }

/** Lists the reports of a workspace, newest first, with the count of their rows. */
export const listReports = async (db: Db, workspaceId: string): Promise<StaffReportSummary[]> =>
  (
    await sql<StaffReportSummary>`
    select ${columns}, jsonb_array_length(rows) as rows from staff_reports
    where workspace_id = ${workspaceId} order by generated_at desc, id desc`.execute(db)
  ).rows

export const insertReport = async (
  tx: Db,
  workspaceId: string,
  report: Omit<StaffReport, 'id' | 'rows'> & { rows: readonly unknown[] },
): Promise<StaffReportSummary> => {
  const { name, from, to, timezone, generated_at, rows } = report
  return (
    await sql<StaffReportSummary>`
    insert into staff_reports (workspace_id, name, from_day, to_day, timezone, generated_at, rows)
    values (${workspaceId}::bigint, ${name}, ${from}, ${to}, ${timezone}, ${generated_at}::timestamptz,
      ${JSON.stringify(rows)}::text::jsonb)
    returning ${columns}, jsonb_array_length(rows) as rows`.execute(tx)
  ).rows[0]!
}

/** Returns those of the wanted ranges for which no valid report is stored. */
export const filterMissingReports = async <T extends StaffReportDays>(
  db: Db,
  workspaceId: string,
  wanted: readonly T[],
): Promise<T[]> => {
  const { rows } = await sql<StaffReportDays>`
    select from_day as "from", to_day as "to", timezone from staff_reports
    where workspace_id = ${workspaceId} and valid
      and timezone = any(${wanted.map((w) => w.timezone)}::text[])
      and to_day = any(${wanted.map((w) => w.to)}::text[])`.execute(db)
  return wanted.filter(
    (w) => !rows.some((r) => r.from === w.from && r.to === w.to && r.timezone === w.timezone),
  )
}

/** Locks the reports of a workspace until the transaction ends; waits for others who have them. */
export const lockReports = async (tx: Db, workspaceId: string): Promise<void> => {
  await sql`select pg_advisory_xact_lock(${reportsLock(workspaceId)})`.execute(tx)
}

/**
 * Makes the reports invalid that include the day of this time or a later one. Waits for a report that is being
 * generated, which may not have seen what changed, but not for others who do the same: what they have locked
 * they make invalid.
 */
export const invalidateReportsFrom = async (tx: Db, workspaceId: string, time: string): Promise<void> => {
  await sql`select pg_advisory_xact_lock_shared(${reportsLock(workspaceId)})`.execute(tx)
  await sql`
    update staff_reports set valid = false where workspace_id = ${workspaceId} and id in (
      select id from staff_reports
      where workspace_id = ${workspaceId} and valid
        and to_day >= to_char(${time}::timestamptz at time zone timezone, 'YYYY-MM-DD')
      for update skip locked)`.execute(tx)
}

/** Locks the reports of a workspace until the transaction ends; false when another transaction has them. */
export const tryLockReports = async (tx: Db, workspaceId: string): Promise<boolean> =>
  (
    await sql<{ locked: boolean }>`
    select pg_try_advisory_xact_lock(${reportsLock(workspaceId)}) as locked`.execute(tx)
  ).rows[0]!.locked

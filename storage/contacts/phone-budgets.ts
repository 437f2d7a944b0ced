import { sql } from 'kysely'
import type { Db } from '../database.ts'

/**
 * Adds a phone to those that a staff member named today, unless `limit` others were named already. Naming a
 * phone again is free. One statement on one row, so that it is exact on all servers. Days are of real time in
 * UTC, by the database's clock.
 */
export const takePhone = async (
  db: Db,
  workspaceId: string,
  staffId: string,
  phone: string,
  limit: number,
): Promise<{ granted: boolean; resetsAt: string; resetSeconds: number }> => {
  const { rows } = await sql<{ granted: boolean; resets_at: string; seconds: number }>`
    insert into phone_budgets as b (workspace_id, staff_id, day, phones)
    values (${workspaceId}, ${staffId}, date_trunc('day', clock_timestamp(), 'UTC'), array[${phone}::text])
    on conflict (workspace_id, staff_id, day) do update set phones =
      case when ${phone}::text = any(b.phones) or cardinality(b.phones) >= ${limit}::int then b.phones
        else b.phones || ${phone}::text end
    returning ${phone}::text = any(phones) as granted, day + interval '24 hours' as resets_at,
      ceil(extract(epoch from day + interval '24 hours' - clock_timestamp()))::int as seconds`.execute(db)
  const { granted, resets_at: resetsAt, seconds } = rows[0]!
  return { granted, resetsAt, resetSeconds: Math.max(1, seconds) }
}

/** Deletes the phones of days that began more than `hours` ago. */
export const deletePastPhones = async (db: Db, hours: number): Promise<void> => {
  await sql`delete from phone_budgets where day < clock_timestamp() - ${hours}::int * interval '1 hour'`.execute(
    db,
  )
}

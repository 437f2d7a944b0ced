import { sql } from 'kysely'
import type { Db } from '../database.ts'

/** Lists how far business time is ahead of real time, in milliseconds, in the workspaces where it is. */
export const listClockOffsets = async (db: Db): Promise<Map<string, number>> => {
  const rows = await db
    .selectFrom('workspaces')
    .select(['id', 'clock_offset_ms'])
    .where('clock_offset_ms', '<>', '0')
    .execute()
  return new Map(rows.map((row) => [row.id, Number(row.clock_offset_ms)]))
}

/** Adds to a workspace's offset. Returns the sum; undefined, and unchanged, when it would exceed `max`. */
export const addToClockOffset = async (
  db: Db,
  workspaceId: string,
  ms: number,
  max: number,
): Promise<number | undefined> => {
  const { rows } = await sql<{ clock_offset_ms: string }>`
    update workspaces set clock_offset_ms = clock_offset_ms + ${ms}::bigint
    where id = ${workspaceId} and clock_offset_ms + ${ms}::bigint <= ${max}::bigint
    returning clock_offset_ms`.execute(db)
  return rows[0] && Number(rows[0].clock_offset_ms)
}

export const resetClockOffset = async (db: Db, workspaceId: string): Promise<void> => {
  await db.updateTable('workspaces').set({ clock_offset_ms: 0 }).where('id', '=', workspaceId).execute()
}

import { sql } from 'kysely'
import type { Db } from './database.ts'

/** Facts about the installation itself, such as the fingerprint of its secret. */
export const findSetting = async (db: Db, key: string): Promise<string | undefined> =>
  (await db.selectFrom('settings').select('value').where('key', '=', key).executeTakeFirst())?.value

/** Writes a setting unless it exists; returns the stored value. */
export const ensureSetting = async (db: Db, key: string, value: string): Promise<string> => {
  await db
    .insertInto('settings')
    .values({ key, value })
    .onConflict((c) => c.column('key').doNothing())
    .execute()
  return (await findSetting(db, key))!
}

export const upsertSetting = async (db: Db, key: string, value: string): Promise<void> => {
  await db
    .insertInto('settings')
    .values({ key, value })
    .onConflict((c) => c.column('key').doUpdateSet({ value }))
    .execute()
}

/**
 * Adds to a setting that is a whole number, 0 when absent. Returns the sum; undefined, and unchanged, when it
 * would exceed `max`.
 */
export const addToSetting = async (
  db: Db,
  key: string,
  amount: number,
  max: number,
): Promise<number | undefined> => {
  const { rows } = await sql<{ value: string }>`
    insert into settings (key, value)
    select ${key}, ${String(amount)} where ${amount}::bigint <= ${max}::bigint
    on conflict (key) do update set value = (settings.value::bigint + ${amount}::bigint)::text
    where settings.value::bigint + ${amount}::bigint <= ${max}::bigint
    returning value`.execute(db)
  return rows[0] && Number(rows[0].value)
}

import type { Db } from '../database.ts'

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

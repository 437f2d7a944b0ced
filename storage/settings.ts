import type { Db } from './database.ts'

/** Facts about the installation itself, such as the fingerprint of its secret. */
export const readSetting = async (db: Db, key: string): Promise<string | undefined> =>
  (await db.selectFrom('settings').select('value').where('key', '=', key).executeTakeFirst())?.value

/** Writes a setting unless it is there; answers what is there afterwards. */
export const keepSetting = async (db: Db, key: string, value: string): Promise<string> => {
  await db.insertInto('settings').values({ key, value }).onConflict((c) => c.column('key').doNothing()).execute()
  return (await readSetting(db, key))!
}

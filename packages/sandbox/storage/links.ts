import type { Db, TableRow } from '../../../storage/database.ts'

/** `seq`: a number that grows with each link. */
export type SandboxLink = TableRow<'sandbox_links'>

export const insertSandboxLink = async (db: Db, link: Omit<SandboxLink, 'seq'>): Promise<void> => {
  await db.insertInto('sandbox_links').values(link).execute()
}

/** False when it does not exist. */
export const updateSandboxLink = async (
  db: Db,
  numberId: string,
  code: string,
  message: string,
): Promise<boolean> => {
  const rows = await db
    .updateTable('sandbox_links')
    .set({ message })
    .where('number_id', '=', numberId)
    .where('code', '=', code)
    .returning('code')
    .execute()
  return rows.length > 0
}

/** False when it does not exist. */
export const deleteSandboxLink = async (db: Db, numberId: string, code: string): Promise<boolean> => {
  const rows = await db
    .deleteFrom('sandbox_links')
    .where('number_id', '=', numberId)
    .where('code', '=', code)
    .returning('code')
    .execute()
  return rows.length > 0
}

export const findSandboxLink = (db: Db, code: string): Promise<SandboxLink | undefined> =>
  db.selectFrom('sandbox_links').selectAll().where('code', '=', code).executeTakeFirst()

/** Lists links, newest first; `after` and `before` are sequence numbers. */
export const listSandboxLinks = async (
  db: Db,
  numberId: string | undefined,
  by: { code?: string | undefined; after?: string | undefined; before?: string | undefined },
  limit: number,
): Promise<SandboxLink[]> => {
  let query = db.selectFrom('sandbox_links').selectAll().limit(limit)
  if (numberId !== undefined) query = query.where('number_id', '=', numberId)
  if (by.code !== undefined) query = query.where('code', '=', by.code)
  if (by.after !== undefined) query = query.where('seq', '<', by.after)
  if (by.before === undefined) return query.orderBy('seq', 'desc').execute()
  const rows = await query.where('seq', '>', by.before).orderBy('seq').execute()
  return rows.reverse()
}

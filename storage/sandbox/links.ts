import { sql } from 'kysely'
import type { Db } from '../database.ts'

export type SandboxLink = { code: string; seq: string; number_id: string; message: string }

export const insertSandboxLink = async (db: Db, link: Omit<SandboxLink, 'seq'>): Promise<void> => {
  await sql`insert into sandbox_links (code, number_id, message) values (${link.code}, ${link.number_id}, ${link.message})`.execute(
    db,
  )
}

export const changeSandboxLink = async (
  db: Db,
  numberId: string,
  code: string,
  message: string,
): Promise<boolean> =>
  (
    await sql`update sandbox_links set message = ${message} where number_id = ${numberId} and code = ${code} returning 1`.execute(
      db,
    )
  ).rows.length > 0

export const deleteSandboxLink = async (db: Db, numberId: string, code: string): Promise<boolean> =>
  (
    await sql`delete from sandbox_links where number_id = ${numberId} and code = ${code} returning 1`.execute(
      db,
    )
  ).rows.length > 0

export const findSandboxLink = async (db: Db, code: string): Promise<SandboxLink | undefined> =>
  (await sql<SandboxLink>`select * from sandbox_links where code = ${code}`.execute(db)).rows[0]

/** Newest first; `after` and `before` are sequence numbers. */
export const listSandboxLinks = async (
  db: Db,
  numberId: string | undefined,
  by: { code?: string | undefined; after?: string | undefined; before?: string | undefined },
  limit: number,
): Promise<SandboxLink[]> => {
  const { rows } = await sql<SandboxLink>`
    select * from sandbox_links where true
      ${numberId === undefined ? sql`` : sql`and number_id = ${numberId}`}
      ${by.code === undefined ? sql`` : sql`and code = ${by.code}`}
      ${by.after === undefined ? sql`` : sql`and seq < ${by.after}::bigint`}
      ${by.before === undefined ? sql`` : sql`and seq > ${by.before}::bigint`}
    order by seq ${by.before === undefined ? sql`desc` : sql`asc`} limit ${limit}`.execute(db)
  return by.before === undefined ? rows : [...rows].reverse()
}

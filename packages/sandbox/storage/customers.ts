import { sql } from 'kysely'
import type { Db, TableRow } from '../../../storage/database.ts'

export type SandboxCustomer = TableRow<'sandbox_customers'>

/** Finds a customer of a number by phone digits or user id. */
export const findSandboxCustomer = (
  db: Db,
  numberId: string,
  key: { wa_id?: string | undefined; user_id?: string | undefined },
): Promise<SandboxCustomer | undefined> =>
  db
    .selectFrom('sandbox_customers')
    .selectAll()
    .where('number_id', '=', numberId)
    .where((where) =>
      where.or([where('wa_id', '=', key.wa_id ?? null), where('user_id', '=', key.user_id ?? null)]),
    )
    .limit(1)
    .executeTakeFirst()

/** Writes a customer. Null values keep what is stored, and the times of the reply window only grow. */
export const upsertSandboxCustomer = async (
  db: Db,
  customer: Pick<SandboxCustomer, 'number_id' | 'user_id' | 'wa_id' | 'name'> &
    Partial<Pick<SandboxCustomer, 'last_inbound_at' | 'free_entry_at'>>,
): Promise<SandboxCustomer> => {
  const { number_id, user_id, wa_id, name, last_inbound_at = null, free_entry_at = null } = customer
  const { rows } = await sql<SandboxCustomer>`
    insert into sandbox_customers as c (number_id, user_id, wa_id, name, last_inbound_at, free_entry_at)
    values (${number_id}, ${user_id}, ${wa_id}, ${name}, ${last_inbound_at}::timestamptz,
      ${free_entry_at}::timestamptz)
    on conflict (number_id, user_id) do update set
      wa_id = coalesce(c.wa_id, excluded.wa_id), name = coalesce(excluded.name, c.name),
      last_inbound_at = greatest(c.last_inbound_at, excluded.last_inbound_at),
      free_entry_at = greatest(c.free_entry_at, excluded.free_entry_at)
    returning *`.execute(db)
  return rows[0]!
}

/** Gives a customer another phone or user id, whoever had it. Null keeps what is stored. */
export const changeSandboxCustomer = async (
  tx: Db,
  { number_id, user_id }: Pick<SandboxCustomer, 'number_id' | 'user_id'>,
  to: { wa_id: string | null; user_id: string | null },
): Promise<void> => {
  await sql`delete from sandbox_customers where number_id = ${number_id} and user_id <> ${user_id}
    and (wa_id = ${to.wa_id} or user_id = ${to.user_id})`.execute(tx)
  await sql`update sandbox_customers set wa_id = coalesce(${to.wa_id}, wa_id),
    user_id = coalesce(${to.user_id}, user_id)
    where number_id = ${number_id} and user_id = ${user_id}`.execute(tx)
}

export const setMarketingStopped = async (
  db: Db,
  numberId: string,
  userId: string,
  stopped: boolean,
): Promise<void> => {
  await db
    .updateTable('sandbox_customers')
    .set({ marketing_stopped: stopped })
    .where('number_id', '=', numberId)
    .where('user_id', '=', userId)
    .execute()
}

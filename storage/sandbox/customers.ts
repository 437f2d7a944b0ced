import { sql } from 'kysely'
import type { Db } from '../database.ts'

export type Customer = {
  number_id: string
  user_id: string
  wa_id: string | null
  name: string | null
  last_inbound_at: string | null
  free_entry_at: string | null
  marketing_stopped: boolean
}

/** A customer of a number by phone digits or user id. */
export const findCustomer = async (
  db: Db,
  numberId: string,
  key: { wa_id?: string | undefined; user_id?: string | undefined },
): Promise<Customer | undefined> =>
  (
    await sql<Customer>`
    select * from sandbox_customers where number_id = ${numberId} and (wa_id = ${key.wa_id ?? null}::text or user_id = ${key.user_id ?? null}::text) limit 1`.execute(
      db,
    )
  ).rows[0]

/** Writes a customer; what is null of it stays as it was, and the window's times only grow. */
export const keepCustomer = async (
  db: Db,
  customer: {
    number_id: string
    user_id: string
    wa_id: string | null
    name: string | null
    last_inbound_at?: string | null
    free_entry_at?: string | null
  },
): Promise<Customer> =>
  (
    await sql<Customer>`
    insert into sandbox_customers as c (number_id, user_id, wa_id, name, last_inbound_at, free_entry_at)
    values (${customer.number_id}, ${customer.user_id}, ${customer.wa_id}, ${customer.name}, ${customer.last_inbound_at ?? null}::timestamptz, ${customer.free_entry_at ?? null}::timestamptz)
    on conflict (number_id, user_id) do update set wa_id = coalesce(c.wa_id, excluded.wa_id), name = coalesce(excluded.name, c.name),
      last_inbound_at = greatest(c.last_inbound_at, excluded.last_inbound_at), free_entry_at = greatest(c.free_entry_at, excluded.free_entry_at)
    returning *`.execute(db)
  ).rows[0]!

export const setMarketingStopped = async (
  db: Db,
  numberId: string,
  userId: string,
  stopped: boolean,
): Promise<void> => {
  await sql`update sandbox_customers set marketing_stopped = ${stopped} where number_id = ${numberId} and user_id = ${userId}`.execute(
    db,
  )
}

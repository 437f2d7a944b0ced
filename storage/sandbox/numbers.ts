import { sql } from 'kysely'
import type { Db } from '../database.ts'

export type SandboxNumber = {
  id: string
  account_id: string
  display_phone_number: string
  digits: string
  verified_name: string
  status: string
  quality_rating: string
  seq: string
}
export type NewNumber = Pick<
  SandboxNumber,
  'id' | 'account_id' | 'display_phone_number' | 'verified_name'
> & { status?: string; quality_rating?: string }

/** Writes numbers, those that are there anew; what is not given of those stays as it is. */
export const putNumbers = async (db: Db, numbers: readonly NewNumber[]): Promise<void> => {
  const rows = [
    ...new Map(
      numbers.map((n) => [n.id, { ...n, digits: n.display_phone_number.replace(/\D/g, '') }]),
    ).values(),
  ]
  await sql`
    insert into sandbox_numbers as n (id, account_id, display_phone_number, digits, verified_name, status, quality_rating)
    select id, account_id, display_phone_number, digits, verified_name, coalesce(status, 'CONNECTED'), coalesce(quality_rating, 'GREEN')
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as r (id text, account_id text, display_phone_number text, digits text, verified_name text, status text, quality_rating text)
    on conflict (id) do update set account_id = excluded.account_id, display_phone_number = excluded.display_phone_number, digits = excluded.digits,
      verified_name = excluded.verified_name`.execute(db)
}

/** Undefined when there is no such number. */
export const changeNumber = async (
  db: Db,
  id: string,
  change: {
    status?: string | undefined
    quality_rating?: string | undefined
    verified_name?: string | undefined
  },
): Promise<SandboxNumber | undefined> =>
  (
    await sql<SandboxNumber>`
    update sandbox_numbers set status = coalesce(${change.status ?? null}, status), quality_rating = coalesce(${change.quality_rating ?? null}, quality_rating),
      verified_name = coalesce(${change.verified_name ?? null}, verified_name)
    where id = ${id} returning *`.execute(db)
  ).rows[0]

export const findNumber = async (db: Db, id: string): Promise<SandboxNumber | undefined> =>
  (await sql<SandboxNumber>`select * from sandbox_numbers where id = ${id}`.execute(db)).rows[0]

export const numbersOfAccount = async (db: Db, accountId: string): Promise<SandboxNumber[]> =>
  (
    await sql<SandboxNumber>`select * from sandbox_numbers where account_id = ${accountId} order by seq`.execute(
      db,
    )
  ).rows

/** Business accounts are those that have a number or a template. */
export const hasAccount = async (db: Db, id: string): Promise<boolean> =>
  (
    await sql`select 1 from sandbox_numbers where account_id = ${id} union all select 1 from sandbox_templates where account_id = ${id} limit 1`.execute(
      db,
    )
  ).rows.length > 0

export type Subscription = { subscribed: boolean; callback: string | null }

export const readSubscription = async (db: Db, accountId: string): Promise<Subscription | undefined> =>
  (
    await sql<Subscription>`select subscribed, callback from sandbox_subscriptions where account_id = ${accountId}`.execute(
      db,
    )
  ).rows[0]

export const writeSubscription = async (
  db: Db,
  accountId: string,
  { subscribed, callback }: Subscription,
): Promise<void> => {
  await sql`
    insert into sandbox_subscriptions (account_id, subscribed, callback) values (${accountId}, ${subscribed}, ${callback})
    on conflict (account_id) do update set subscribed = excluded.subscribed, callback = excluded.callback`.execute(
    db,
  )
}

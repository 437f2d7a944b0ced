import { sql } from 'kysely'
import type { Db, TableRow } from '../../../storage/database.ts'

export type SandboxNumber = TableRow<'sandbox_numbers'>
export type NewSandboxNumber = Pick<
  SandboxNumber,
  'id' | 'account_id' | 'display_phone_number' | 'verified_name'
> & { status?: string; quality_rating?: string; clock_offset_ms?: number }

/**
 * Inserts or updates numbers. Existing ones keep their status and quality rating, and their clock where none
 * is given.
 */
export const upsertSandboxNumbers = async (db: Db, numbers: readonly NewSandboxNumber[]): Promise<void> => {
  const rows = [
    ...new Map(
      numbers.map((n) => [n.id, { ...n, digits: n.display_phone_number.replace(/\D/g, '') }]),
    ).values(),
  ]
  await sql`
    insert into sandbox_numbers as n
      (id, account_id, display_phone_number, digits, verified_name, status, quality_rating, clock_offset_ms)
    select id, account_id, display_phone_number, digits, verified_name,
      coalesce(status, 'CONNECTED'), coalesce(quality_rating, 'GREEN'), coalesce(r.clock_offset_ms,
        (select k.clock_offset_ms from sandbox_numbers k where k.id = r.id), 0)
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r (id text, account_id text,
      display_phone_number text, digits text, verified_name text, status text, quality_rating text,
      clock_offset_ms bigint)
    on conflict (id) do update set account_id = excluded.account_id,
      display_phone_number = excluded.display_phone_number, digits = excluded.digits,
      verified_name = excluded.verified_name, clock_offset_ms = excluded.clock_offset_ms`.execute(db)
}

/** Updates the given columns. Undefined when the number does not exist. */
export const updateSandboxNumber = async (
  db: Db,
  id: string,
  change: {
    status?: string | undefined
    quality_rating?: string | undefined
    verified_name?: string | undefined
    messaging_limit?: string | undefined
  },
): Promise<SandboxNumber | undefined> => {
  const { status = null, quality_rating = null, verified_name = null, messaging_limit = null } = change
  const { rows } = await sql<SandboxNumber>`
    update sandbox_numbers set status = coalesce(${status}, status),
      quality_rating = coalesce(${quality_rating}, quality_rating),
      verified_name = coalesce(${verified_name}, verified_name),
      messaging_limit = coalesce(${messaging_limit}, messaging_limit)
    where id = ${id} returning *`.execute(db)
  return rows[0]
}

export const findSandboxNumber = (db: Db, id: string): Promise<SandboxNumber | undefined> =>
  db.selectFrom('sandbox_numbers').selectAll().where('id', '=', id).executeTakeFirst()

export const listSandboxNumbers = (db: Db, accountId: string): Promise<SandboxNumber[]> =>
  db.selectFrom('sandbox_numbers').selectAll().where('account_id', '=', accountId).orderBy('seq').execute()

/** True when a business account has a number or a template, which is what makes it exist. */
export const hasSandboxAccount = async (db: Db, id: string): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from sandbox_numbers where account_id = ${id}
    union all select 1 from sandbox_templates where account_id = ${id} limit 1`.execute(db)
  return rows.length > 0
}

/** Returns how far the time of an account's numbers is ahead of the sandbox's own, in milliseconds. */
export const findAccountClockOffset = async (db: Db, accountId: string): Promise<number> => {
  const { rows } = await sql<{ offset: string | null }>`
    select max(clock_offset_ms) as offset from sandbox_numbers where account_id = ${accountId}`.execute(db)
  return Number(rows[0]?.offset ?? 0)
}

/** `callback`: null for the app's own. */
export type SandboxSubscription = Pick<TableRow<'sandbox_subscriptions'>, 'subscribed' | 'callback'>

export const findSubscription = (db: Db, accountId: string): Promise<SandboxSubscription | undefined> =>
  db
    .selectFrom('sandbox_subscriptions')
    .select(['subscribed', 'callback'])
    .where('account_id', '=', accountId)
    .executeTakeFirst()

export const upsertSubscription = async (
  db: Db,
  accountId: string,
  { subscribed, callback }: SandboxSubscription,
): Promise<void> => {
  await db
    .insertInto('sandbox_subscriptions')
    .values({ account_id: accountId, subscribed, callback })
    .onConflict((conflict) => conflict.column('account_id').doUpdateSet({ subscribed, callback }))
    .execute()
}

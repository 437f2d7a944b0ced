import { sql } from 'kysely'
import type { Db } from '../../../storage/database.ts'

/**
 * An update to deliver to a webhook. `delayMs`: how long after now it is due, in real time. `status`: the
 * status that its message gets.
 */
export type NewSandboxUpdate = {
  account_id: string
  field: string
  value: unknown
  message_id?: string
  status?: string
  delayMs?: number
}
export type DueSandboxUpdate = {
  id: string
  account_id: string
  field: string
  value: unknown
  attempts: number
  callback: string
}

export const insertSandboxUpdates = async (tx: Db, updates: readonly NewSandboxUpdate[]): Promise<void> => {
  if (updates.length === 0) return
  // The value travels as text, so that it is stored exactly as given.
  const rows = updates.map((u) => ({ ...u, value: JSON.stringify(u.value), delay: u.delayMs ?? 0 }))
  await sql`
    insert into sandbox_updates (account_id, field, value, message_id, status, due_at, created_at)
    select account_id, field, value::json, message_id, status,
      clock_timestamp() + delay * interval '1 millisecond', clock_timestamp()
    from json_to_recordset(${JSON.stringify(rows)}::json)
      as r (account_id text, field text, value text, message_id text, status text, delay integer)`.execute(tx)
}

/** The callback URL of an update; null when its account is unsubscribed or has no callback. */
const callbackUrl = (fallback: string | undefined) => sql`
  case when s.account_id is null then ${fallback ?? null}::text
    when s.subscribed then coalesce(s.callback, ${fallback ?? null}::text) end`

/**
 * Claims up to `limit` due updates, with their addresses, under a lease of 30 seconds: other servers skip
 * them, and may claim them when this one dies. Updates without an address wait. `aheadMs`: also claims
 * updates that are due this much later, unless they failed before.
 */
export const claimSandboxUpdates = async (
  db: Db,
  fallback: string | undefined,
  limit: number,
  aheadMs: number,
): Promise<DueSandboxUpdate[]> => {
  const { rows } = await sql<DueSandboxUpdate & { at: string }>`
    with due as (
      select u.id, ${callbackUrl(fallback)} as callback
      from sandbox_updates u left join sandbox_subscriptions s on s.account_id = u.account_id
      where u.due_at <= clock_timestamp() + ${aheadMs} * interval '1 millisecond'
        and (u.attempts = 0 or u.due_at <= clock_timestamp())
        and (u.lease_until is null or u.lease_until < clock_timestamp())
        and ${callbackUrl(fallback)} is not null
      order by u.due_at, u.id limit ${limit} for update of u skip locked
    )
    update sandbox_updates u
    set attempts = u.attempts + 1, lease_until = clock_timestamp() + interval '30 seconds'
    from due where due.id = u.id
    returning u.id, u.account_id, u.field, u.value, u.attempts, due.callback, u.due_at as at`.execute(db)
  return rows.sort((a, b) => (a.at === b.at ? Number(a.id) - Number(b.id) : a.at < b.at ? -1 : 1))
}

/**
 * Seconds until the next update or review of a template is due; undefined when none is. What is due by now waits
 * for an address, or is being delivered by another server. `now`: of the sandbox.
 */
export const findSecondsUntilNextSandboxWork = async (db: Db, now: string): Promise<number | undefined> => {
  const { rows } = await sql<{ seconds: number | null }>`
    select extract(epoch from least(
      (select min(due_at) from sandbox_updates where due_at > clock_timestamp()) - clock_timestamp(),
      (select min(t.review_at - coalesce((select max(n.clock_offset_ms) from sandbox_numbers n
          where n.account_id = t.account_id), 0) * interval '1 millisecond')
        from sandbox_templates t where t.review_at is not null) - ${now}::timestamptz
    ))::float8 as seconds`.execute(db)
  return rows[0]!.seconds ?? undefined
}

/** Deletes delivered updates, and marks their sent messages as delivered where an update says so. */
export const completeSandboxUpdates = async (db: Db, ids: readonly string[]): Promise<void> => {
  await sql`
    with deleted as (
      delete from sandbox_updates where id = any(${ids}::bigint[]) returning message_id, status)
    update sandbox_messages m set status = 'delivered' from deleted
    where deleted.status = 'delivered' and m.id = deleted.message_id and m.status = 'sent'`.execute(db)
}

/** Reschedules failed updates with an exponential backoff: 0.5 s, 1 s, 2 s … 10 s at most. */
export const postponeSandboxUpdates = async (db: Db, ids: readonly string[]): Promise<void> => {
  await sql`
    update sandbox_updates set lease_until = null, due_at = clock_timestamp()
      + least(10, 0.5 * power(2, least(attempts, 10) - 1)) * interval '1 second'
    where id = any(${ids}::bigint[])`.execute(db)
}

/** Deletes updates after seven days, as the provider gives up then. */
export const deleteStaleSandboxUpdates = async (db: Db): Promise<void> => {
  await sql`
    delete from sandbox_updates where created_at < clock_timestamp() - interval '7 days'`.execute(db)
}

/** True while another server delivers an update that is due within `aheadMs`. */
export const hasSandboxUpdatesInFlight = async (db: Db, aheadMs: number): Promise<boolean> =>
  (
    await sql`
    select 1 from sandbox_updates
    where due_at <= clock_timestamp() + ${aheadMs} * interval '1 millisecond'
      and lease_until > clock_timestamp()
    limit 1`.execute(db)
  ).rows.length > 0

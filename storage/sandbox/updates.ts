import { sql } from 'kysely'
import type { Db } from '../database.ts'

/**
 * An update for webhooks. `delayMs`: how long after now it is due, in real time. `status`: what its message
 * is when it is delivered.
 */
export type NewUpdate = {
  account_id: string
  field: string
  value: unknown
  message_id?: string
  status?: string
  delayMs?: number
}
export type DueUpdate = {
  id: string
  account_id: string
  field: string
  value: unknown
  attempts: number
  callback: string
}

export const enqueueUpdates = async (tx: Db, updates: readonly NewUpdate[]): Promise<void> => {
  if (updates.length === 0) return
  // The value travels as text, since it is to come out as it went in.
  const rows = updates.map((u) => ({ ...u, value: JSON.stringify(u.value), delay: u.delayMs ?? 0 }))
  await sql`
    insert into sandbox_updates (account_id, field, value, message_id, status, due_at, created_at)
    select account_id, field, value::json, message_id, status, clock_timestamp() + delay * interval '1 millisecond', clock_timestamp()
    from json_to_recordset(${JSON.stringify(rows)}::json) as r (account_id text, field text, value text, message_id text, status text, delay integer)`.execute(
    tx,
  )
}

const callback = (fallback: string | undefined) =>
  sql`case when s.account_id is null then ${fallback ?? null}::text when s.subscribed then coalesce(s.callback, ${fallback ?? null}::text) end`

/**
 * Takes up to `limit` updates that are due, with where they go; a lease of 30 seconds keeps other servers
 * from them, and gives them back when this one dies. Those without an address wait. `aheadMs`: those that
 * would be due so much later too, unless they have failed before.
 */
export const takeUpdates = async (
  db: Db,
  fallback: string | undefined,
  limit: number,
  aheadMs: number,
): Promise<DueUpdate[]> => {
  const { rows } = await sql<DueUpdate & { at: string }>`
    with due as (
      select u.id, ${callback(fallback)} as callback
      from sandbox_updates u left join sandbox_subscriptions s on s.account_id = u.account_id
      where u.due_at <= clock_timestamp() + ${aheadMs} * interval '1 millisecond' and (u.attempts = 0 or u.due_at <= clock_timestamp())
        and (u.lease_until is null or u.lease_until < clock_timestamp()) and ${callback(fallback)} is not null
      order by u.due_at, u.id limit ${limit} for update of u skip locked
    )
    update sandbox_updates u set attempts = u.attempts + 1, lease_until = clock_timestamp() + interval '30 seconds'
    from due where due.id = u.id returning u.id, u.account_id, u.field, u.value, u.attempts, due.callback, u.due_at as at`.execute(
    db,
  )
  return rows.sort((a, b) => (a.at === b.at ? Number(a.id) - Number(b.id) : a.at < b.at ? -1 : 1))
}

/**
 * Updates that were answered with 200 are done; their messages are what the updates said, unless they went
 * further.
 */
export const finishUpdates = async (db: Db, ids: readonly string[]): Promise<void> => {
  await sql`
    with gone as (delete from sandbox_updates where id = any(${ids}::bigint[]) returning message_id, status)
    update sandbox_messages m set status = 'delivered' from gone where gone.status = 'delivered' and m.id = gone.message_id and m.status = 'sent'`.execute(
    db,
  )
}

/** Updates that were not answered with 200 come again after half a second, a second, two … at most ten. */
export const postponeUpdates = async (db: Db, ids: readonly string[]): Promise<void> => {
  await sql`
    update sandbox_updates set lease_until = null, due_at = clock_timestamp() + least(10, 0.5 * power(2, least(attempts, 10) - 1)) * interval '1 second'
    where id = any(${ids}::bigint[])`.execute(db)
}

/** The provider gives up after seven days. */
export const dropStaleUpdates = async (db: Db): Promise<void> => {
  await sql`delete from sandbox_updates where created_at < clock_timestamp() - interval '7 days'`.execute(db)
}

/** True while another server has an update under way that is due by then. */
export const areUpdatesUnderWay = async (db: Db, aheadMs: number): Promise<boolean> =>
  (
    await sql`
    select 1 from sandbox_updates where due_at <= clock_timestamp() + ${aheadMs} * interval '1 millisecond' and lease_until > clock_timestamp() limit 1`.execute(
      db,
    )
  ).rows.length > 0

import { sql } from 'kysely'
import type { Db, ProviderUpdatesTable } from './database.ts'

/**
 * What the provider told us, before and after it is worked off. These rows are addressed by the provider's
 * own ids: whose they are is found only when they are worked off. Their leases and retries are on the
 * database's clock.
 */
export type UpdateKind = ProviderUpdatesTable['kind']

/**
 * `dedupe`: the same for the same update, however often and in whatever company it comes. `subject`: the
 * number, template or account it is about.
 */
export type NewUpdate = { dedupe: string; kind: UpdateKind; subject: string | null; payload: unknown }

/**
 * Writes updates in one statement, given as a JSON array of `NewUpdate`; those that are there already
 * change nothing. Answers how many were new.
 */
export const storeUpdates = async (db: Db, updates: string, receivedAt: string): Promise<number> => {
  // Found first, though the unique key alone would do: a duplicate then takes neither an id nor a lock.
  const { numAffectedRows } = await sql`
    insert into provider_updates (dedupe, kind, subject, payload, next_attempt_at, received_at)
    select u.dedupe, u.kind, u.subject, u.payload, now(), ${receivedAt}::timestamptz
    from rows from (jsonb_to_recordset(${updates}::jsonb) as (dedupe text, kind text, subject text, payload jsonb)) with ordinality as u (dedupe, kind, subject, payload, n)
    where not exists (select 1 from provider_updates p where p.dedupe = u.dedupe) order by u.n
    on conflict (dedupe) do nothing`.execute(db)
  return Number(numAffectedRows ?? 0)
}

export type ClaimedUpdate = {
  id: string
  dedupe: string
  kind: UpdateKind
  subject: string | null
  payload: unknown
  attempts: number
  received_at: string
}

const columns = sql`id, dedupe, kind, subject, payload, attempts, received_at`

/** Takes updates that are due, for as long as the transaction lasts; other servers pass them over. */
export const claimUpdates = async (tx: Db, most: number): Promise<ClaimedUpdate[]> =>
  (
    await sql<ClaimedUpdate>`
    select ${columns} from provider_updates where state = 'waiting' and next_attempt_at <= now()
    order by next_attempt_at, id limit ${most}::int for update skip locked`.execute(tx)
  ).rows

/** The same for one of them; undefined when another server has it, or had it. */
export const claimUpdate = async (tx: Db, id: string): Promise<ClaimedUpdate | undefined> =>
  (
    await sql<ClaimedUpdate>`select ${columns} from provider_updates where id = ${id}::bigint and state = 'waiting' for update skip locked`.execute(
      tx,
    )
  ).rows[0]

/** What is worked off needs no payload any more: it holds what customers wrote. */
export const finishUpdates = async (tx: Db, ids: readonly string[]): Promise<void> => {
  if (ids.length > 0)
    await sql`update provider_updates set state = 'done', payload = null where id = any(${ids}::bigint[])`.execute(
      tx,
    )
}

/**
 * An update that concerned nothing we have, or that failed too often; it is kept whole for whoever looks
 * into it.
 */
export const setAsideUpdates = async (
  tx: Db,
  ids: readonly string[],
  state: 'unmatched' | 'failed',
): Promise<void> => {
  if (ids.length > 0)
    await sql`update provider_updates set state = ${state}, attempts = attempts + 1 where id = any(${ids}::bigint[]) and state = 'waiting'`.execute(
      tx,
    )
}

/** Puts updates off, each by as many seconds as are given for it. */
export const postponeUpdates = async (
  tx: Db,
  updates: readonly { id: string; seconds: number }[],
): Promise<void> => {
  if (updates.length === 0) return
  await sql`
    update provider_updates p set attempts = attempts + 1, next_attempt_at = now() + u.seconds * interval '1 second'
    from unnest(${updates.map((u) => u.id)}::bigint[], ${updates.map((u) => u.seconds)}::float8[]) as u (id, seconds)
    where p.id = u.id and p.state = 'waiting'`.execute(tx)
}

/** Seconds until the next update is due, 0 when one is; undefined when none waits. */
export const nextUpdateIn = async (db: Db): Promise<number | undefined> => {
  const {
    rows: [row],
  } = await sql<{ seconds: number | null }>`
    select greatest(0, extract(epoch from next_attempt_at - now()))::float8 as seconds from provider_updates where state = 'waiting' order by next_attempt_at, id limit 1`.execute(
    db,
  )
  return row?.seconds ?? undefined
}

/**
 * Whether an update about the same thing of a later second is worked off: keys of such updates are
 * `prefix:time:…`, of even length up to there. Of those of one second the last to arrive counts.
 */
export const hasLaterUpdate = async (tx: Db, prefix: string, dedupe: string): Promise<boolean> =>
  (
    await sql`select 1 from provider_updates where dedupe > ${`${dedupe.slice(0, dedupe.lastIndexOf(':'))};`} and dedupe < ${`${prefix};`} and state = 'done' limit 1`.execute(
      tx,
    )
  ).rows.length > 0

/**
 * Forgets what was received before this time, whatever became of it: the provider repeats nothing for
 * longer. Answers how many rows went.
 */
export const deleteUpdatesBefore = async (db: Db, time: string): Promise<number> =>
  Number(
    (await sql`delete from provider_updates where received_at < ${time}::timestamptz`.execute(db))
      .numAffectedRows ?? 0,
  )

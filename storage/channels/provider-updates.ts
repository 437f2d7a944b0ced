import { sql } from 'kysely'
import type { Db, TableRow } from '../database.ts'

/**
 * What the provider has sent, before and after it is applied. These rows are addressed by the provider's own
 * ids: the workspace is known only when they are applied. Leases and retries are on the database's clock.
 */
export type ProviderUpdateKind = TableRow<'provider_updates'>['kind']

/**
 * `dedupe`: identifies the update, however often it arrives and in whichever batch. `subject`: the number,
 * template or account it is about.
 */
export type NewProviderUpdate = {
  dedupe: string
  kind: ProviderUpdateKind
  subject: string | null
  payload: unknown
}

/**
 * Inserts updates in one statement, given as a JSON array of `NewProviderUpdate`, except those that are
 * stored already. Returns how many were new.
 */
export const insertProviderUpdates = async (db: Db, updates: string, receivedAt: string): Promise<number> => {
  // Looked up first, though the unique key would do: a duplicate then takes neither an id nor a lock.
  const { numAffectedRows } = await sql`
    insert into provider_updates (dedupe, kind, subject, payload, next_attempt_at, received_at)
    select u.dedupe, u.kind, u.subject, u.payload, now(), ${receivedAt}::timestamptz
    from rows from (
      jsonb_to_recordset(${updates}::jsonb) as (dedupe text, kind text, subject text, payload jsonb)
    ) with ordinality as u (dedupe, kind, subject, payload, n)
    where not exists (select 1 from provider_updates p where p.dedupe = u.dedupe) order by u.n
    on conflict (dedupe) do nothing`.execute(db)
  return Number(numAffectedRows ?? 0)
}

export type ClaimedUpdate = {
  id: string
  dedupe: string
  kind: ProviderUpdateKind
  subject: string | null
  payload: unknown
  attempts: number
  received_at: string
}

const columns = ['id', 'dedupe', 'kind', 'subject', 'payload', 'attempts', 'received_at'] as const
/** The condition of the partial index by time: a literal, so that every plan can use the index. */
const isWaiting = sql<boolean>`state = 'waiting'`
const isOneOf = (ids: readonly string[]) => sql<boolean>`id = any(${ids}::bigint[])`

/** Locks updates that are due for the rest of the transaction, oldest first; other servers skip them. */
export const claimUpdates = (tx: Db, limit: number): Promise<ClaimedUpdate[]> =>
  tx
    .selectFrom('provider_updates')
    .select(columns)
    .where(isWaiting)
    .where('next_attempt_at', '<=', sql<string>`now()`)
    .orderBy('next_attempt_at')
    .orderBy('id')
    .limit(limit)
    .forUpdate()
    .skipLocked()
    .execute()

/** Locks one update; undefined when another server has locked it or has finished it. */
export const claimUpdate = (tx: Db, id: string): Promise<ClaimedUpdate | undefined> =>
  tx
    .selectFrom('provider_updates')
    .select(columns)
    .where('id', '=', id)
    .where(isWaiting)
    .forUpdate()
    .skipLocked()
    .executeTakeFirst()

/** Marks updates as done and deletes their payload, which holds what customers wrote. */
export const completeProviderUpdates = async (tx: Db, ids: readonly string[]): Promise<void> => {
  if (ids.length === 0) return
  await tx.updateTable('provider_updates').set({ state: 'done', payload: null }).where(isOneOf(ids)).execute()
}

/**
 * Ends the retries of updates that match nothing here, or that failed too often. They keep their payload, so
 * that an operator can investigate.
 */
export const setAsideProviderUpdates = async (
  tx: Db,
  ids: readonly string[],
  state: 'unmatched' | 'failed',
): Promise<void> => {
  if (ids.length === 0) return
  await tx
    .updateTable('provider_updates')
    .set(({ eb }) => ({ state, attempts: eb('attempts', '+', 1) }))
    .where(isOneOf(ids))
    .where(isWaiting)
    .execute()
}

/**
 * Applies what matched nothing once more: what was addressed to a number that has a channel now; null: messages of all
 * numbers.
 */
export const retryUnmatchedUpdates = async (db: Db, number: string | null): Promise<void> => {
  const isMeant =
    number === null
      ? sql`kind = 'message'`
      : sql`subject = ${number} and kind in ('message', 'status', 'preference')`
  await sql`
    update provider_updates set state = 'waiting', next_attempt_at = now()
    where state = 'unmatched' and ${isMeant}`.execute(db)
}

/** Messages that nobody sees, by the number they were sent to. `channel_id`: null without one. */
export const listUnmatchedMessages = async (
  db: Db,
): Promise<{ number: string; channel_id: string | null; count: number; since: string }[]> =>
  (
    await sql<{ number: string; channel_id: string | null; count: number; since: string }>`
    select u.subject as number, min(c.id)::text as channel_id, count(distinct u.id)::int as count,
      min(u.received_at) as since
    from provider_updates u left join channels c on c.provider_phone_number_id = u.subject
    where u.state = 'unmatched' and u.kind = 'message'
      and u.payload #>> '{message,type}' not in ('reaction', 'edit', 'revoke')
    group by u.subject order by u.subject`.execute(db)
  ).rows

/** Postpones updates, each by its seconds. */
export const postponeProviderUpdates = async (
  tx: Db,
  updates: readonly { id: string; seconds: number }[],
): Promise<void> => {
  if (updates.length === 0) return
  await sql`
    update provider_updates p
    set attempts = attempts + 1, next_attempt_at = now() + u.seconds * interval '1 second'
    from unnest(${updates.map((u) => u.id)}::bigint[], ${updates.map((u) => u.seconds)}::float8[])
      as u (id, seconds)
    where p.id = u.id and p.state = 'waiting'`.execute(tx)
}

/** Seconds until the next update is due, 0 when one is due now; undefined when none is waiting. */
export const findSecondsUntilNextUpdate = async (db: Db): Promise<number | undefined> => {
  const row = await db
    .selectFrom('provider_updates')
    .select(sql<number>`greatest(0, extract(epoch from next_attempt_at - now()))::float8`.as('seconds'))
    .where(isWaiting)
    .orderBy('next_attempt_at')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  return row?.seconds
}

/**
 * Lets no other server apply updates about these things until the transaction ends: of two, the one that is applied
 * second has to see what the first one did.
 */
export const lockUpdatesAbout = async (tx: Db, prefixes: readonly string[]): Promise<void> => {
  if (prefixes.length === 0) return
  // In the same order on every server.
  await sql`
    select pg_advisory_xact_lock(hashtextextended(prefix, 0))
    from unnest(${[...new Set(prefixes)].toSorted()}::text[]) as prefix`.execute(tx)
}

/**
 * Whether an update about the same thing, of a later second, is done already: keys of such updates are
 * `prefix:time:…`, of equal length up to the time. Of two in one second the last to arrive counts.
 */
export const hasLaterUpdate = async (tx: Db, prefix: string, dedupe: string): Promise<boolean> => {
  const row = await tx
    .selectFrom('provider_updates')
    .select('id')
    // `;` is the character after `:`.
    .where('dedupe', '>', `${dedupe.slice(0, dedupe.lastIndexOf(':'))};`)
    .where('dedupe', '<', `${prefix};`)
    .where('state', '=', 'done')
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Deletes the updates that were received before a time, in any state. Returns the count. */
export const deleteProviderUpdatesBefore = async (db: Db, time: string, limit: number): Promise<number> => {
  const { numDeletedRows } = await db
    .deleteFrom('provider_updates')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('provider_updates')
        .select('id')
        .where('received_at', '<', time)
        .orderBy('received_at')
        .limit(limit),
    )
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

import { sql } from 'kysely'
import type { Db, TableRow } from '../database.ts'
import { TEMPLATE_READS } from '../templates/templates.ts'
import { insertRun } from '../work/runs.ts'

type HealthRow = TableRow<'channel_health'>
type ChannelStatus = TableRow<'channels'>['status']

/** A channel with what is known of its health, locked; `ok` when no problem is known. */
export type ChannelHealth = {
  workspace_id: string
  id: string
  name: string | null
  account_id: string | null
  phone_number_id: string | null
  status: ChannelStatus
  quality_rating: string | null
} & Pick<
  HealthRow,
  'reason' | 'provider_code' | 'since' | 'until' | 'previous_status' | 'messaging_limit' | 'strikes'
> & { health: HealthRow['status'] }

/** Which channels: of a number, of an account, or those of an account with a displayed number (digits). */
export type ChannelsOf =
  | { phoneNumberId: string }
  | { accountId: string; displayNumber?: string | null }
  | { workspaceId: string; channelId: string }

const whereChannels = (of: ChannelsOf) => {
  if ('phoneNumberId' in of) return sql`c.provider_phone_number_id = ${of.phoneNumberId}`
  if ('channelId' in of) return sql`c.workspace_id = ${of.workspaceId} and c.id = ${of.channelId}`
  const digits = of.displayNumber ?? null
  // Bridged channels may name an account too; their replies do not pass through it.
  return sql`c.account_id = ${of.accountId} and c.type = 'chatapp' and (${digits}::text is null
    or regexp_replace(c.identifier, '[^0-9]', '', 'g') = ${digits}::text)`
}

/**
 * Locks channels, in the order of their ids, and returns them with their health. Called before the workspace
 * is known too: the provider's ids name it.
 */
export const lockChannelHealth = async (tx: Db, of: ChannelsOf): Promise<ChannelHealth[]> => {
  const { rows: ids } = await sql<{ workspace_id: string; id: string }>`
    select c.workspace_id, c.id from channels c where ${whereChannels(of)}
    order by c.workspace_id, c.id for update`.execute(tx)
  if (ids.length === 0) return []
  // Read after the lock: whoever held it may have changed the health.
  const { rows } = await sql<ChannelHealth>`
    select c.workspace_id, c.id, c.name, c.account_id, c.provider_phone_number_id as phone_number_id,
      c.status, c.quality_rating, coalesce(h.status, 'ok') as health, h.reason, h.provider_code, h.since,
      h.until, h.previous_status, h.messaging_limit, coalesce(h.strikes, 0) as strikes
    from unnest(${ids.map((row) => row.workspace_id)}::bigint[], ${ids.map((row) => row.id)}::bigint[])
      as u (workspace_id, id)
    join channels c on c.workspace_id = u.workspace_id and c.id = u.id
    left join channel_health h on h.workspace_id = c.workspace_id and h.channel_id = c.id
    order by c.workspace_id, c.id`.execute(tx)
  return rows
}

/** Writes the health of a locked channel. */
export const writeChannelHealth = async (tx: Db, row: ChannelHealth): Promise<void> => {
  const values = {
    status: row.health,
    reason: row.reason,
    provider_code: row.provider_code,
    since: row.since,
    until: row.until,
    previous_status: row.previous_status,
    messaging_limit: row.messaging_limit,
    strikes: row.strikes,
  }
  await tx
    .updateTable('channels')
    .set({ status: row.status, quality_rating: row.quality_rating })
    .where('workspace_id', '=', row.workspace_id)
    .where('id', '=', row.id)
    .execute()
  await tx
    .insertInto('channel_health')
    .values({ workspace_id: row.workspace_id, channel_id: row.id, ...values })
    .onConflict((conflict) => conflict.columns(['workspace_id', 'channel_id']).doUpdateSet(values))
    .execute()
}

/** Forgets the problem of a channel; its limit stays. */
export const clearChannelProblem = async (tx: Db, workspaceId: string, id: string): Promise<void> => {
  await tx
    .updateTable('channel_health')
    .set({
      status: 'ok',
      reason: null,
      provider_code: null,
      since: null,
      until: null,
      previous_status: null,
      strikes: 0,
    })
    .where('workspace_id', '=', workspaceId)
    .where('channel_id', '=', id)
    .execute()
}

/** What clients see of the health of each channel of a workspace that has a row, by the channel's id. */
export const readChannelHealth = async (db: Db, workspaceId: string): Promise<Map<string, HealthRow>> => {
  const rows = await db
    .selectFrom('channel_health')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .execute()
  return new Map(rows.map((row) => [row.channel_id, row]))
}

/** Lists channels whose problem has passed by itself, a few at a time. */
export const listPassedProblems = async (
  db: Db,
  now: string,
  limit: number,
): Promise<{ workspace_id: string; channel_id: string }[]> =>
  db
    .selectFrom('channel_health')
    .select(['workspace_id', 'channel_id'])
    .where('until', 'is not', null)
    .where('until', '<=', now)
    .orderBy('until')
    .limit(limit)
    .execute()

/** Checks of accounts: the subject is the account, empty for the numbers without one. */
const KIND = 'account_checks'

/** Adds the accounts of channels at the provider that are not checked, or read, yet, as due in so many seconds. */
export const addMissingChecks = async (db: Db, seconds: number): Promise<void> => {
  await sql`
    insert into runs (workspace_id, kind, subject, run_after)
    select distinct c.workspace_id, k.kind, coalesce(c.account_id, ''),
      clock_timestamp() + ${seconds}::float8 * interval '1 second'
    from channels c cross join unnest(${[KIND, TEMPLATE_READS]}::text[]) as k (kind)
    where c.provider_phone_number_id is not null and (c.account_id is not null or k.kind = ${KIND})
      and not exists (
        select from runs r
        where r.workspace_id = c.workspace_id and r.kind = k.kind and r.subject = coalesce(c.account_id, ''))
    on conflict (workspace_id, kind, subject) do nothing`.execute(db)
}

/** Lists the numbers at the provider of the channels of an account, or of those without one. */
export const listNumbersOfAccount = async (
  db: Db,
  workspaceId: string,
  accountId: string | null,
): Promise<string[]> => {
  const rows = await db
    .selectFrom('channels')
    .select('provider_phone_number_id as number')
    .where('workspace_id', '=', workspaceId)
    .where('account_id', 'is not distinct from', accountId)
    .where('provider_phone_number_id', 'is not', null)
    .execute()
  return rows.map((row) => row.number!)
}

/** Seconds until a problem passes by itself at real time `now`; undefined when none does. */
export const findSecondsUntilPassed = async (db: Db, now: string): Promise<number | undefined> => {
  const { rows } = await sql<{ seconds: number | null }>`
    select extract(epoch from min(until) - ${now}::timestamptz)::float8 as seconds from channel_health`.execute(
    db,
  )
  return rows[0]!.seconds ?? undefined
}

/** Sets in how many seconds an account is checked next, after so many failures. */
export const scheduleCheck = async (
  db: Db,
  workspaceId: string,
  accountId: string,
  seconds: number,
  failures: number,
): Promise<void> =>
  await insertRun(db, {
    workspace_id: workspaceId,
    kind: KIND,
    subject: accountId,
    seconds,
    attempts: failures,
  })

/** Makes the checks of accounts that use the server's own credentials due: they share a token. */
export const hastenSharedChecks = async (db: Db): Promise<void> => {
  await sql`
    update runs k set run_after = clock_timestamp()
    where k.kind = ${KIND} and k.attempts = 0 and k.lease is null and k.run_after > clock_timestamp()
      and not exists (select 1 from provider_accounts a
        where a.workspace_id = k.workspace_id and a.account_id = k.subject)`.execute(db)
}

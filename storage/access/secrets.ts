import { sql } from 'kysely'
import type { Db, TableRow } from '../database.ts'
import type { SealedAccount } from '../channels/provider-accounts.ts'
import { ensureSetting, findSetting, upsertSetting } from '../workspace/settings.ts'

/** Which secret seals, which servers can open what, and the values that are sealed in the database. */

/** A server that is silent for this long has stopped or died; the servers write every few seconds. */
const LIVE_SECONDS = 30

const FINGERPRINT = 'secret_fingerprint'
const MOVED_AT = 'secret_moved_at'
const RESEALED = 'secret_resealed'

/** What a running server tells of itself. `clock`: its time, ISO 8601 UTC. */
export type RunningServer = { id: string; secrets: readonly string[]; version: string; clock: string }

/** Records that this server runs and can open what its secrets sealed; forgets servers that died. */
export const recordServer = async (db: Db, { id, secrets, version, clock }: RunningServer): Promise<void> => {
  await sql`
    with dead as (
      delete from servers
      where id <> ${id} and seen_at < clock_timestamp() - ${LIVE_SECONDS}::float8 * interval '1 second'
    )
    insert into servers (id, secrets, seen_at, version, clock_ahead_ms)
    values (${id}, ${secrets}::text[], clock_timestamp(), ${version},
      extract(epoch from ${clock}::timestamptz - clock_timestamp())::float8 * 1000)
    on conflict (id) do update set secrets = excluded.secrets, seen_at = excluded.seen_at,
      version = excluded.version, clock_ahead_ms = excluded.clock_ahead_ms`.execute(db)
}

export const removeServer = async (db: Db, id: string): Promise<void> => {
  await db.deleteFrom('servers').where('id', '=', id).execute()
}

/** Forgets all servers: the caller owns the database alone. */
export const removeAllServers = async (db: Db): Promise<void> => {
  await db.deleteFrom('servers').execute()
}

/** Returns the secrets that each running server can open, by their fingerprints. */
export const listServerSecrets = async (db: Db): Promise<string[][]> => {
  const { rows } = await sql<{ secrets: string[] }>`
    select secrets from servers
    where seen_at >= clock_timestamp() - ${LIVE_SECONDS}::float8 * interval '1 second'`.execute(db)
  return rows.map((row) => row.secrets)
}

/** A running server, by its version and how far its clock is ahead of the database's; null: it is too old to say. */
export type ServerClock = { version: string | null; clockAheadMs: number | null }

export const listServers = async (db: Db): Promise<ServerClock[]> => {
  const { rows } = await sql<{ version: string | null; ahead: number | null }>`
    select version, clock_ahead_ms as ahead from servers
    where seen_at >= clock_timestamp() - ${LIVE_SECONDS}::float8 * interval '1 second'
    order by id`.execute(db)
  return rows.map(({ version, ahead }) => ({ version, clockAheadMs: ahead }))
}

/** Returns the fingerprint of the secret that seals; writes the given one when there is none yet. */
export const ensureSecretFingerprint = (db: Db, fingerprint: string): Promise<string> =>
  ensureSetting(db, FINGERPRINT, fingerprint)

export const findSecretFingerprint = (db: Db): Promise<string | undefined> => findSetting(db, FINGERPRINT)

/**
 * Makes another secret the one that seals, once every running server can open what it seals. Returns whether
 * it did.
 */
export const moveSecretFingerprint = async (db: Db, from: string, to: string): Promise<boolean> => {
  const { rows } = await sql`
    with moved as (
      update settings set value = ${to}
      where key = ${FINGERPRINT} and value = ${from} and not exists (
        select 1 from servers
        where seen_at >= clock_timestamp() - ${LIVE_SECONDS}::float8 * interval '1 second'
          and not ${to} = any(secrets))
      returning 1
    )
    insert into settings (key, value)
    select ${MOVED_AT}, extract(epoch from clock_timestamp())::text from moved
    on conflict (key) do update set value = excluded.value
    returning 1`.execute(db)
  return rows.length > 0
}

/** Seconds since another secret became the one that seals; undefined when none ever did. */
const findSecondsSinceMove = async (db: Db): Promise<number | undefined> => {
  const { rows } = await sql<{ seconds: number }>`
    select (extract(epoch from clock_timestamp()) - value::float8)::float8 as seconds
    from settings where key = ${MOVED_AT}`.execute(db)
  return rows[0]?.seconds
}

/**
 * Whether all servers seal with the current secret by now: each of them notices a change within the time
 * after which it would count as dead.
 */
export const isSecretSettled = async (db: Db): Promise<boolean> =>
  ((await findSecondsSinceMove(db)) ?? Infinity) > LIVE_SECONDS

/** The time at which the secret that seals became it, ISO 8601 UTC; undefined when it was the first. */
export const findSecretMovedAt = async (db: Db): Promise<string | undefined> => {
  const seconds = await findSetting(db, MOVED_AT)
  return seconds === undefined ? undefined : new Date(Number(seconds) * 1000).toISOString()
}

/** Since when the secret seals, at the latest; undefined where nothing was set up yet. */
export const findSecretSince = async (db: Db): Promise<string | undefined> => {
  const movedAt = await findSecretMovedAt(db)
  if (movedAt !== undefined) return movedAt
  const { rows } = await sql<{ at: string | null }>`select min(created_at) as at from workspaces`.execute(db)
  return rows[0]?.at ?? undefined
}

/** The fingerprint of the last secret with which all stored values were sealed again. */
export const findResealedFingerprint = (db: Db): Promise<string | undefined> => findSetting(db, RESEALED)

export const recordResealed = (db: Db, fingerprint: string): Promise<void> =>
  upsertSetting(db, RESEALED, fingerprint)

/** Sealed values begin with the id of their key and a dot; a deleted endpoint has none. */
const isStale = (column: string, keyId: string) =>
  sql<boolean>`(${sql.ref(column)} <> '' and not starts_with(${sql.ref(column)}, ${`${keyId}.`}))`

/** Whether another key than this one sealed a replaced secret that still signs. */
const hasStaleOldSecret = (keyId: string) => sql<boolean>`exists (
  select 1 from jsonb_array_elements(old_secrets) as old
  where not starts_with(old ->> 'secret', ${`${keyId}.`})
    and (old ->> 'until')::timestamptz > clock_timestamp())`

/** The sealed values of a webhook endpoint. */
export type SealedEndpoint = Pick<
  TableRow<'webhook_endpoints'>,
  'workspace_id' | 'id' | 'signing_secret' | 'old_secrets' | 'custom_headers'
>

/** Returns endpoints with a value that another key than this one sealed, in the order of their ids. */
export const listStaleEndpoints = async (
  db: Db,
  keyId: string,
  after: Pick<SealedEndpoint, 'workspace_id' | 'id'> | undefined,
  limit: number,
): Promise<SealedEndpoint[]> => {
  const { rows } = await sql<SealedEndpoint>`
    select workspace_id, id, signing_secret, old_secrets, custom_headers from webhook_endpoints
    where (${isStale('signing_secret', keyId)} or ${isStale('custom_headers', keyId)}
        or ${hasStaleOldSecret(keyId)})
      and (workspace_id, id) > (${after?.workspace_id ?? '0'}::bigint, ${after?.id ?? ''} collate "C")
    order by workspace_id, id limit ${limit}`.execute(db)
  return rows
}

/** Replaces the sealed values of an endpoint unless they changed meanwhile. Returns whether it did. */
export const replaceSealedEndpoint = async (
  db: Db,
  before: SealedEndpoint,
  after: SealedEndpoint,
): Promise<boolean> => {
  const { rows } = await sql`
    update webhook_endpoints set signing_secret = ${after.signing_secret},
      old_secrets = ${JSON.stringify(after.old_secrets)}::text::jsonb, custom_headers = ${after.custom_headers}
    where workspace_id = ${before.workspace_id} and id = ${before.id}
      and signing_secret = ${before.signing_secret} and custom_headers = ${before.custom_headers}
      and old_secrets = ${JSON.stringify(before.old_secrets)}::text::jsonb
    returning 1`.execute(db)
  return rows.length > 0
}

const isStaleAccount = (keyId: string) => sql<boolean>`(${isStale('token', keyId)}
  or coalesce(${isStale('app_secret', keyId)}, false) or coalesce(${isStale('verify_token', keyId)}, false))`

/** Returns accounts at the provider with a secret that another key than this one sealed, by their ids. */
export const listStaleAccounts = async (
  db: Db,
  keyId: string,
  after: Pick<SealedAccount, 'workspace_id' | 'account_id'> | undefined,
  limit: number,
): Promise<SealedAccount[]> => {
  const { rows } = await sql<SealedAccount>`
    select workspace_id, account_id, token, app_secret, verify_token, app_id from provider_accounts
    where ${isStaleAccount(keyId)} and (workspace_id, account_id)
      > (${after?.workspace_id ?? '0'}::bigint, ${after?.account_id ?? ''} collate "C")
    order by workspace_id, account_id limit ${limit}`.execute(db)
  return rows
}

/** Replaces the sealed secrets of an account unless they changed meanwhile. Returns whether it did. */
export const replaceSealedAccount = async (
  db: Db,
  before: SealedAccount,
  after: SealedAccount,
): Promise<boolean> => {
  const { rows } = await sql`
    update provider_accounts set token = ${after.token}, app_secret = ${after.app_secret},
      verify_token = ${after.verify_token}
    where workspace_id = ${before.workspace_id} and account_id = ${before.account_id}
      and token = ${before.token} and app_secret is not distinct from ${before.app_secret}
      and verify_token is not distinct from ${before.verify_token}
    returning 1`.execute(db)
  return rows.length > 0
}

/** A sealed response that is stored for retries. */
export type SealedResponse = Pick<TableRow<'idempotency'>, 'workspace_id' | 'staff_id' | 'key'> & {
  body: string
}

/** Returns responses of these operations that another key than this one sealed, in the order of their keys. */
export const listStaleResponses = async (
  db: Db,
  operations: readonly string[],
  keyId: string,
  after: SealedResponse | undefined,
  limit: number,
): Promise<SealedResponse[]> => {
  const { rows } = await sql<SealedResponse>`
    select workspace_id, staff_id, key, body from idempotency
    where operation = any(${operations}::text[]) and ${isStale('body', keyId)}
      and (workspace_id, staff_id, key)
        > (${after?.workspace_id ?? '0'}::bigint, ${after?.staff_id ?? '0'}::bigint,
          ${after?.key ?? ''} collate "C")
    order by workspace_id, staff_id, key limit ${limit}`.execute(db)
  return rows
}

/** Replaces a sealed response unless it changed meanwhile. Returns whether it did. */
export const replaceSealedResponse = async (
  db: Db,
  before: SealedResponse,
  body: string,
): Promise<boolean> => {
  const { rows } = await sql`
    update idempotency set body = ${body}
    where workspace_id = ${before.workspace_id} and staff_id = ${before.staff_id} and key = ${before.key}
      and body = ${before.body}
    returning 1`.execute(db)
  return rows.length > 0
}

/** Counts the rows with sealed values, and those of them that another key than this one sealed. */
export const countSealed = async (
  db: Db,
  operations: readonly string[],
  keyId: string,
): Promise<{ total: number; stale: number }> => {
  const { rows } = await sql<{ total: string; stale: string }>`
    with sealed as (
      select ${isStale('signing_secret', keyId)} or ${isStale('custom_headers', keyId)}
        or ${hasStaleOldSecret(keyId)} as stale
      from webhook_endpoints where signing_secret <> ''
      union all
      select ${isStaleAccount(keyId)} from provider_accounts
      union all
      select ${isStale('signing_secrets', keyId)} from channel_secrets
      union all
      select ${isStale('secrets', keyId)} from approvals where secrets is not null
      union all
      select ${isStale('body', keyId)} from idempotency
      where operation = any(${operations}::text[]) and body is not null
    )
    select count(*) as total, count(*) filter (where stale) as stale from sealed`.execute(db)
  return { total: Number(rows[0]!.total), stale: Number(rows[0]!.stale) }
}

import { sql } from 'kysely'
import type { Scope } from '../../catalog/operation.ts'
import { createKey, type KeyFields, SESSION_MINUTES } from './admin-keys.ts'
import { inTransaction } from '../workspace/admin.ts'
import type { Db, TableRow } from '../database.ts'

/** OAuth for hosted clients. Times are real times; hashes are SHA-256 of what a client holds. */

/** What the protocol keeps between requests. */
export type OauthKind =
  | 'Client'
  | 'Interaction'
  | 'Grant'
  | 'AuthorizationCode'
  | 'AccessToken'
  | 'RefreshToken'
export type OauthRecord = Omit<TableRow<'oauth_records'>, 'consumed_at'>

export const upsertOauthRecord = async (db: Db, record: OauthRecord): Promise<void> => {
  const { payload, expires_at, grant_hash, scopes } = record
  await db
    .insertInto('oauth_records')
    .values({ ...record, consumed_at: null })
    .onConflict((conflict) =>
      conflict.columns(['kind', 'hash']).doUpdateSet({ payload, expires_at, grant_hash, scopes }),
    )
    .execute()
}

/** Returns the record with this hash; undefined when there is none, or when it has expired. */
export const findOauthRecord = (
  db: Db,
  kind: string,
  hash: Uint8Array,
  now: string,
): Promise<Pick<TableRow<'oauth_records'>, 'payload' | 'consumed_at'> | undefined> =>
  db
    .selectFrom('oauth_records')
    .select(['payload', 'consumed_at'])
    .where('kind', '=', kind)
    .where('hash', '=', hash)
    .where('expires_at', '>', now)
    .executeTakeFirst()

/** Marks a record as used. Returns whether this was its first use. */
export const consumeOauthRecord = async (
  db: Db,
  kind: string,
  hash: Uint8Array,
  now: string,
): Promise<boolean> => {
  const row = await db
    .updateTable('oauth_records')
    .set({ consumed_at: now })
    .where('kind', '=', kind)
    .where('hash', '=', hash)
    .where('consumed_at', 'is', null)
    .returning('kind')
    .executeTakeFirst()
  return row !== undefined
}

export const deleteOauthRecord = async (db: Db, kind: string, hash: Uint8Array): Promise<void> => {
  await db.deleteFrom('oauth_records').where('kind', '=', kind).where('hash', '=', hash).execute()
}

/** Keeps a client at least until this time. */
export const extendOauthClient = async (db: Db, hash: Uint8Array, until: string): Promise<void> => {
  await db
    .updateTable('oauth_records')
    .set({ expires_at: until })
    .where('kind', '=', 'Client')
    .where('hash', '=', hash)
    .where('expires_at', '<', until)
    .execute()
}

/**
 * Counts the records of a kind that a client network made since a time, and those of all networks, up to
 * `limit` of each.
 */
export const countOauthRecords = async (
  db: Db,
  kind: OauthKind,
  { network, since, limit }: { network: string; since: string; limit: number },
): Promise<{ ofNetwork: number; all: number }> => {
  const { rows } = await sql<{ of_network: number; all: number }>`
    select
      (select count(*)::int from (select from oauth_records
        where kind = ${kind} and network = ${network} and created_at > ${since}::timestamptz
        limit ${limit}) as ours) as of_network,
      (select count(*)::int from (select from oauth_records where kind = ${kind} limit ${limit}) as any_network)
        as all`.execute(db)
  return { ofNetwork: rows[0]!.of_network, all: rows[0]!.all }
}

/** The API key that a grant acts with. */
export type GrantKey = { workspace_id: string; key_id: string; staff_id: string }

/** Returns the key of a grant; undefined unless it is valid now. */
export const findGrantKey = async (
  db: Db,
  grantHash: Uint8Array,
  now: string,
): Promise<GrantKey | undefined> =>
  (
    await sql<GrantKey>`
    select k.workspace_id, k.id as key_id, k.staff_id from oauth_grants g
    join api_keys k on k.workspace_id = g.workspace_id and k.id = g.key_id
    join staff s on s.workspace_id = k.workspace_id and s.id = k.staff_id
    where g.grant_hash = ${grantHash} and s.enabled and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > ${now}::timestamptz)`.execute(db)
  ).rows[0]

/** An access token that has not expired, and the key that it acts with. */
export type AccessTokenRow = { workspace_id: string; key_id: string; scopes: Scope[]; expires_at: string }

export const findAccessToken = async (
  db: Db,
  hash: Uint8Array,
  now: string,
): Promise<AccessTokenRow | undefined> =>
  (
    await sql<AccessTokenRow>`
    select g.workspace_id, g.key_id, coalesce(r.scopes, '{}') as scopes, r.expires_at from oauth_records r
    join oauth_grants g on g.grant_hash = r.grant_hash
    where r.kind = 'AccessToken' and r.hash = ${hash} and r.expires_at > ${now}::timestamptz`.execute(db)
  ).rows[0]

/** Creates the API key of a grant. Nobody holds the key itself: `hash` is of random bytes. Returns its id. */
export const createGrantKey = (
  db: Db,
  workspaceId: string,
  grant: { grantHash: Uint8Array; clientId: string; hash: Uint8Array; key: KeyFields },
  now: string,
): Promise<string> =>
  inTransaction(db, async (tx) => {
    const { id } = await createKey(tx, workspaceId, grant.hash, grant.key, now)
    await tx
      .insertInto('oauth_grants')
      .values({
        workspace_id: workspaceId,
        key_id: id,
        grant_hash: grant.grantHash,
        client_id: grant.clientId,
        created_at: now,
      })
      .execute()
    return id
  })

/** Ends a grant: its codes and tokens are deleted, and its key is revoked. */
export const revokeOauthGrant = async (db: Db, grantHash: Uint8Array, now: string): Promise<void> => {
  await sql`
    with gone as (delete from oauth_records where grant_hash = ${grantHash})
    update api_keys k set revoked_at = coalesce(k.revoked_at, ${now}::timestamptz)
    from oauth_grants g
    where g.grant_hash = ${grantHash} and k.workspace_id = g.workspace_id and k.id = g.key_id`.execute(db)
}

/** Deletes at most `limit` records and login codes that have expired. Returns their count. */
export const deleteExpiredOauth = async (db: Db, now: string, limit: number): Promise<number> => {
  const { rows } = await sql<{ n: string }>`
    with records as (
      delete from oauth_records where (kind, hash) in (
        select kind, hash from oauth_records where expires_at <= ${now}::timestamptz
        order by expires_at limit ${limit} for update skip locked)
      returning 1), codes as (
      delete from login_codes where (workspace_id, hash) in (
        select workspace_id, hash from login_codes where expires_at <= ${now}::timestamptz
        limit ${limit} for update skip locked)
      returning 1)
    select (select count(*) from records) + (select count(*) from codes) as n`.execute(db)
  return Number(rows[0]!.n)
}

/**
 * Revokes the keys of grants that nothing can use any more: they have no code and no token left. Those made
 * after `before` may still get one. Returns their count.
 */
export const revokeUnusableGrants = async (db: Db, before: string, now: string): Promise<number> => {
  const { rows } = await sql<{ n: string }>`
    with unusable as (
      delete from oauth_grants g where g.created_at < ${before}::timestamptz and not exists (
        select from oauth_records r where r.grant_hash = g.grant_hash and r.kind <> 'Grant')
      returning g.workspace_id, g.key_id, g.grant_hash), records as (
      delete from oauth_records where grant_hash in (select grant_hash from unusable)), keys as (
      update api_keys k set revoked_at = ${now}::timestamptz from unusable u
      where k.workspace_id = u.workspace_id and k.id = u.key_id and k.revoked_at is null)
    select count(*) as n from unusable`.execute(db)
  return Number(rows[0]!.n)
}

/** Whom a login code lets in, and what may be granted with it. */
export type LoginCode = {
  workspace_id: string
  workspace_name: string
  staff_id: string
  staff_name: string
  scopes: Scope[]
  key_expires_at: string | null
}

/** Stores a login code of a staff member in place of the one before. False when there is no such staff. */
export const createLoginCode = async (
  db: Db,
  workspaceId: string,
  code: { hash: Uint8Array; staffId: string; scopes: readonly Scope[]; keyExpiresAt: string | null },
  { now, expiresAt }: { now: string; expiresAt: string },
): Promise<boolean> => {
  const { rows } = await sql`
    with former as (
      delete from login_codes where workspace_id = ${workspaceId} and staff_id = ${code.staffId}::bigint)
    insert into login_codes (workspace_id, hash, staff_id, scopes, key_expires_at, created_at, expires_at)
    select s.workspace_id, ${code.hash}, s.id, ${code.scopes}::text[], ${code.keyExpiresAt}::timestamptz,
      ${now}::timestamptz, ${expiresAt}::timestamptz
    from staff s where s.workspace_id = ${workspaceId} and s.id = ${code.staffId}::bigint and s.enabled
    returning 1`.execute(db)
  return rows.length > 0
}

/** Takes a login code, which works once. Undefined when it is unknown, used or expired. */
export const takeLoginCode = async (db: Db, hash: Uint8Array, now: string): Promise<LoginCode | undefined> =>
  (
    await sql<LoginCode>`
    with taken as (
      delete from login_codes where hash = ${hash} and expires_at > ${now}::timestamptz returning *)
    select w.id as workspace_id, w.name as workspace_name, s.id as staff_id, s.name as staff_name, t.scopes,
      t.key_expires_at
    from taken t
    join staff s on s.workspace_id = t.workspace_id and s.id = t.staff_id and s.enabled
    join workspaces w on w.id = t.workspace_id`.execute(db)
  ).rows[0]

/** Deletes the login codes of a staff member that nobody has used yet. */
export const deleteLoginCodes = async (db: Db, workspaceId: string, staffId: string): Promise<void> => {
  await db
    .deleteFrom('login_codes')
    .where('workspace_id', '=', workspaceId)
    .where('staff_id', '=', staffId)
    .execute()
}

/** Lists the keys that work and were made by signing in as a staff member, on a page or in an AI client. */
export const listSignInKeys = async (
  db: Db,
  workspaceId: string,
  staffId: string,
  now: string,
): Promise<{ id: string; name: string | null }[]> =>
  (
    await sql<{ id: string; name: string | null }>`
    select k.id, k.name from api_keys k
    where k.workspace_id = ${workspaceId} and k.staff_id = ${staffId}::bigint and k.revoked_at is null
      and k.expires_at > ${now}::timestamptz
      and (exists (select from oauth_grants g where g.workspace_id = k.workspace_id and g.key_id = k.id)
        or (not k.agent and not k.test
          and k.expires_at <= k.created_at + ${SESSION_MINUTES}::int * interval '1 minute'))
    order by k.id`.execute(db)
  ).rows

/** Whether a staff member exists and may sign in. */
export const isStaffEnabled = async (db: Db, workspaceId: string, staffId: string): Promise<boolean> =>
  (await db
    .selectFrom('staff')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', staffId)
    .where('enabled', '=', true)
    .executeTakeFirst()) !== undefined

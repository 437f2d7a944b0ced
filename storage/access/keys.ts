import { type RawBuilder, sql } from 'kysely'
import type { KeyPolicy } from '../../catalog/policy.ts'
import type { Role } from '../../catalog/workspace.ts'
import type { Scope } from '../../catalog/operation.ts'
import type { Db } from '../database.ts'
import { familyOf, familyOfKey } from './key-families.ts'
import { findAccessToken } from './oauth.ts'

export type KeyRow = {
  workspace_id: string
  workspace_name: string
  timezone: string
  features: string[]
  contact_limit: string | null
  template_limit: string | null
  staff_id: string
  staff_name: string
  role: Role
  hide_phone_numbers: boolean
  reports: boolean
  channel_ids: string[] | null
  key_id: string
  /** The first of the keys that took each other's place, itself if it replaces none. */
  family_id: string
  key_name: string | null
  scopes: Scope[]
  test: boolean
  api_version: string
  expires_at: string | null
  allow_from: string[] | null
  agent: boolean
  policy: KeyPolicy | null
  paused_at: string | null
  phones: boolean
  contacts_per_day: number | null
}

// Every request sends this statement: three tables in one round trip.
const selectKey = (where: RawBuilder<unknown>) => sql<KeyRow>`
  select w.id as workspace_id, w.name as workspace_name, w.timezone, w.features, w.contact_limit,
    w.template_limit,
    s.id as staff_id, s.name as staff_name, s.role, s.hide_phone_numbers, s.reports, s.channel_ids,
    k.id as key_id, ${familyOf('k')} as family_id, k.name as key_name, k.scopes, k.test, k.api_version, k.expires_at,
    k.allow_from, k.agent, k.policy, k.paused_at, k.phones, k.contacts_per_day
  from api_keys k
  join staff s on s.workspace_id = k.workspace_id and s.id = k.staff_id
  join workspaces w on w.id = k.workspace_id
  where ${where}`

/** Returns the key with this hash, its owner and workspace; undefined when it is not valid now. */
export const findKey = async (db: Db, hash: Uint8Array, now: string): Promise<KeyRow | undefined> => {
  const { rows } = await selectKey(sql`
    k.hash = ${hash} and s.enabled and k.revoked_at is null
    and (k.expires_at is null or k.expires_at > ${now})`).execute(db)
  return rows[0]
}

/**
 * Returns the key that an access token acts with, with the scopes and the expiry of the token; undefined when
 * either is not valid now.
 */
export const findKeyOfToken = async (db: Db, hash: Uint8Array, now: string): Promise<KeyRow | undefined> => {
  const token = await findAccessToken(db, hash, now)
  if (!token) return undefined
  const { rows } = await selectKey(sql`
    k.workspace_id = ${token.workspace_id} and k.id = ${token.key_id} and s.enabled and k.revoked_at is null
    and (k.expires_at is null or k.expires_at > ${now})`).execute(db)
  const row = rows[0]
  if (!row) return undefined
  const expiresAt =
    row.expires_at !== null && row.expires_at < token.expires_at ? row.expires_at : token.expires_at
  return { ...row, scopes: row.scopes.filter((scope) => token.scopes.includes(scope)), expires_at: expiresAt }
}

/**
 * Returns a key by its id even if it was revoked or expired, to finish work that began while it was valid.
 */
export const findKeyById = async (db: Db, workspaceId: string, keyId: string): Promise<KeyRow | undefined> =>
  (await selectKey(sql`k.workspace_id = ${workspaceId} and k.id = ${keyId}`).execute(db)).rows[0]

/**
 * Returns the newest key that is valid now of those that took the place of this one, and this one: what was begun with
 * a key goes on with the one that replaced it.
 */
export const findLiveKeyById = async (
  db: Db,
  workspaceId: string,
  keyId: string,
  now: string,
): Promise<KeyRow | undefined> =>
  (
    await selectKey(sql`
      k.workspace_id = ${workspaceId} and ${familyOf('k')} = ${familyOfKey(workspaceId, keyId)}
      and s.enabled and k.revoked_at is null and (k.expires_at is null or k.expires_at > ${now})
      order by k.id desc limit 1`).execute(db)
  ).rows[0]

export const isKeyRevoked = async (db: Db, workspaceId: string, keyId: string): Promise<boolean> =>
  (
    await sql`
      select from api_keys where workspace_id = ${workspaceId} and id = ${keyId} and revoked_at is not null`.execute(
      db,
    )
  ).rows.length > 0

export const markKeyUsed = async (db: Db, workspaceId: string, keyId: string, now: string): Promise<void> => {
  await db
    .updateTable('api_keys')
    .set({ last_used_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', keyId)
    .execute()
}

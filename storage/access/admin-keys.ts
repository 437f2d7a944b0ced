import { sql } from 'kysely'
import type { Scope } from '../../catalog/operation.ts'
import type { KeyPolicy } from '../../catalog/policy.ts'
import { inTransaction } from '../workspace/admin.ts'
import type { Db, TableRow } from '../database.ts'
import { familyOf, familyOfKey } from './key-families.ts'

/** Administration of API keys, without an API key. */

export type KeyFields = {
  staff_id: string
  scopes: Scope[]
  name?: string | null
  test?: boolean
  agent?: boolean
  api_version: string
  expires_at?: string | null
  allow_from?: string[] | null
  policy?: KeyPolicy | null
  paused_at?: string | null
  phones?: boolean
  contacts_per_day?: number | null
  family_id?: string | null
}
export type AdminKeyRow = Omit<TableRow<'api_keys'>, 'workspace_id' | 'hash' | 'family_id'>

const keyColumns = [
  'id',
  'staff_id',
  'name',
  'scopes',
  'test',
  'agent',
  'api_version',
  'expires_at',
  'revoked_at',
  'last_used_at',
  'created_at',
  'allow_from',
  'phones',
  'contacts_per_day',
  'policy',
  'paused_at',
] as const

const toJsonb = (policy: KeyPolicy | null) =>
  sql<KeyPolicy | null>`${policy === null ? null : JSON.stringify(policy)}::text::jsonb`

/** Stores a key by its hash. */
export const createKey = (
  db: Db,
  workspaceId: string,
  hash: Uint8Array,
  fields: KeyFields,
  now: string,
): Promise<AdminKeyRow> =>
  db
    .insertInto('api_keys')
    .values({
      workspace_id: workspaceId,
      hash,
      name: null,
      expires_at: null,
      revoked_at: null,
      last_used_at: null,
      allow_from: null,
      ...fields,
      policy: toJsonb(fields.policy ?? null),
      created_at: now,
    })
    .returning(keyColumns)
    .executeTakeFirstOrThrow()

/** A key that signing in on a page makes lives at most this long. */
export const SESSION_MINUTES = 15

/**
 * Stores the key of a sign-in on a page, whose name is in `fields`. It takes the row of an earlier one of the same
 * person and name that has ended: so there are never more of them than were in use at a time, and what they did keeps
 * its names. Returns its id.
 */
export const createSessionKey = (
  db: Db,
  workspaceId: string,
  hash: Uint8Array,
  fields: KeyFields & { name: string; expires_at: string },
  now: string,
): Promise<string> =>
  inTransaction(db, async (tx) => {
    const { rows } = await sql<{ id: string }>`
      update api_keys set hash = ${hash}, scopes = ${fields.scopes}::text[], api_version = ${fields.api_version},
        phones = ${fields.phones ?? true}, expires_at = ${fields.expires_at}, created_at = ${now},
        revoked_at = null, last_used_at = null
      where workspace_id = ${workspaceId} and id = (
        select id from api_keys
        where workspace_id = ${workspaceId} and staff_id = ${fields.staff_id} and name = ${fields.name}
          and not agent and not test and expires_at <= created_at + ${SESSION_MINUTES}::int * interval '1 minute'
          and least(revoked_at, expires_at) <= ${now}::timestamptz
        order by id limit 1 for update skip locked)
      returning id`.execute(tx)
    return rows[0]?.id ?? (await createKey(tx, workspaceId, hash, fields, now)).id
  })

export const listKeys = (db: Db, workspaceId: string): Promise<AdminKeyRow[]> =>
  db.selectFrom('api_keys').select(keyColumns).where('workspace_id', '=', workspaceId).orderBy('id').execute()

export const revokeKey = (
  db: Db,
  workspaceId: string,
  id: string,
  now: string,
): Promise<AdminKeyRow | undefined> =>
  db
    .updateTable('api_keys')
    .set({ revoked_at: sql<string>`coalesce(revoked_at, ${now}::timestamptz)` })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .returning(keyColumns)
    .executeTakeFirst()

/** Returns a key, and locks it with those that `changeKey` changes; undefined when the workspace has no such key. */
export const lockKey = async (tx: Db, workspaceId: string, id: string): Promise<AdminKeyRow | undefined> => {
  const rows = await tx
    .selectFrom('api_keys as k')
    .select(keyColumns)
    .where('workspace_id', '=', workspaceId)
    .where(familyOf('k'), '=', familyOfKey(workspaceId, id))
    .orderBy('id')
    .forUpdate()
    .execute()
  return rows.find((row) => row.id === id)
}

/**
 * Changes what a key may do now, and with it what the keys may do that it replaced, or that replaced it. Undefined when
 * the workspace has no such key.
 */
export const changeKey = async (
  db: Db,
  workspaceId: string,
  id: string,
  fields: Partial<Pick<AdminKeyRow, 'policy' | 'paused_at' | 'contacts_per_day'>>,
): Promise<AdminKeyRow | undefined> => {
  const rows = await db
    .updateTable('api_keys as k')
    .set({
      ...(fields.paused_at === undefined ? {} : { paused_at: fields.paused_at }),
      ...(fields.contacts_per_day === undefined ? {} : { contacts_per_day: fields.contacts_per_day }),
      ...(fields.policy === undefined ? {} : { policy: toJsonb(fields.policy) }),
    })
    .where('workspace_id', '=', workspaceId)
    .where(familyOf('k'), '=', familyOfKey(workspaceId, id))
    .returning(keyColumns)
    .execute()
  return rows.find((row) => row.id === id)
}

/** Updates the fields of a key; undefined when the workspace has no such key. */
export const updateKey = (
  db: Db,
  workspaceId: string,
  id: string,
  fields: Partial<Pick<AdminKeyRow, 'name' | 'scopes' | 'api_version' | 'expires_at' | 'allow_from'>>,
): Promise<AdminKeyRow | undefined> =>
  db
    .updateTable('api_keys')
    .set(fields)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .returning(keyColumns)
    .executeTakeFirst()

/**
 * Stores a key that takes the place of another one, with its rights and limits; the other one expires at
 * `oldUntil` unless it expires sooner. `createHash` gets the other one, and may throw. Undefined when the
 * workspace has no such key.
 */
export const replaceKey = (
  db: Db,
  workspaceId: string,
  id: string,
  createHash: (old: AdminKeyRow) => Uint8Array,
  { oldUntil, expiresAt, now }: { oldUntil: string; expiresAt: string | null | undefined; now: string },
): Promise<{ key: AdminKeyRow; old: AdminKeyRow } | undefined> =>
  inTransaction(db, async (tx) => {
    const found = await tx
      .selectFrom('api_keys')
      .select([...keyColumns, 'family_id'])
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .forUpdate()
      .executeTakeFirst()
    if (!found) return undefined
    const hash = createHash(found)
    const {
      id: _,
      scopes,
      expires_at,
      revoked_at: __,
      last_used_at: ___,
      created_at: ____,
      ...rights
    } = found
    const fields = { ...rights, scopes: scopes as Scope[], family_id: rights.family_id ?? id }
    const expires = expiresAt === undefined ? expires_at : expiresAt
    const key = await createKey(tx, workspaceId, hash, { ...fields, expires_at: expires }, now)
    const until = expires_at !== null && expires_at < oldUntil ? expires_at : oldUntil
    const old = await updateKey(tx, workspaceId, id, { expires_at: until })
    return { key, old: old! }
  })

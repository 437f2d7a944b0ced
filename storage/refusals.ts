import { sql } from 'kysely'
import type { Db } from './database.ts'

/*
 * That the person behind an agent's client said no to a call, whatever idempotency key a repeat has: a record of
 * the idempotency table under a key that no client may give. It expires as the others do.
 */

/** Who asked: a key of a staff member. */
type Asker = { workspaceId: string; staffId: string; keyId: string }

const toPrefix = (keyId: string): string => `declined-${keyId}-`

/** Returns the key of a refusal. `digest`: of the operation and the input as it was sent. */
export const toRefusalKey = (keyId: string, digest: Uint8Array): string =>
  `${toPrefix(keyId)}${Buffer.from(digest).toString('hex')}`

export const insertRefusal = async (
  db: Db,
  { workspaceId, staffId, keyId }: Asker,
  digest: Uint8Array,
  { now, expiresAt }: { now: string; expiresAt: string },
): Promise<void> => {
  await sql`
    insert into idempotency (workspace_id, staff_id, key, operation, fingerprint, state, status, body,
      created_at, expires_at)
    values (${workspaceId}, ${staffId}, ${toRefusalKey(keyId, digest)}, 'declined', ${digest}::bytea, 'done', 403,
      '{}', ${now}::timestamptz, ${expiresAt}::timestamptz)
    on conflict (workspace_id, staff_id, key) do update set expires_at = excluded.expires_at`.execute(db)
}

/** What was refused to a key is refused to the one that takes its place. */
export const carryRefusals = async (
  tx: Db,
  workspaceId: string,
  fromKeyId: string,
  toKeyId: string,
): Promise<void> => {
  const prefix = toPrefix(fromKeyId)
  await sql`
    update idempotency set key = ${toPrefix(toKeyId)} || substr(key, ${prefix.length + 1}::int)
    where workspace_id = ${workspaceId}
      and staff_id = (select staff_id from api_keys where workspace_id = ${workspaceId} and id = ${fromKeyId})
      and starts_with(key, ${prefix}) and key >= ${prefix} and key < ${`declined-${fromKeyId}.`}`.execute(tx)
}

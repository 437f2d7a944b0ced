import { sql } from 'kysely'
import type { Db } from '../database.ts'

/*
 * That the person behind an agent's client said no to a call, whatever idempotency key a repeat has: a record of
 * the idempotency table under a key that no client may give. It expires as the others do.
 */

/** Who asked: the keys of a family (`key-families.ts`), of a staff member. */
type Asker = { workspaceId: string; staffId: string; familyId: string }

/** Returns the key of a refusal. `digest`: of the operation and the input as it was sent. */
export const toRefusalKey = (familyId: string, digest: Uint8Array): string =>
  `declined-${familyId}-${Buffer.from(digest).toString('hex')}`

export const insertRefusal = async (
  db: Db,
  { workspaceId, staffId, familyId }: Asker,
  digest: Uint8Array,
  { now, expiresAt }: { now: string; expiresAt: string },
): Promise<void> => {
  await sql`
    insert into idempotency (workspace_id, staff_id, key, operation, fingerprint, state, status, body,
      created_at, expires_at)
    values (${workspaceId}, ${staffId}, ${toRefusalKey(familyId, digest)}, 'declined', ${digest}::bytea, 'done', 403,
      '{}', ${now}::timestamptz, ${expiresAt}::timestamptz)
    on conflict (workspace_id, staff_id, key) do update set expires_at = excluded.expires_at`.execute(db)
}

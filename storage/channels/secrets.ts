import { sql } from 'kysely'
import type { Db, TableRow } from '../database.ts'

/**
 * The secrets of bridged channels: what signs their deliveries, and the tokens of their bridges. Times
 * are real times.
 */

/** The sealed secrets that sign a channel's deliveries. */
export type SealedChannel = TableRow<'channel_secrets'>

/** A channel whose bridge showed a valid token. */
export type TokenChannel = { workspace_id: string; id: string; type: string; status: string }

/** Returns the channel of a token's hash; undefined when the token is not valid now. */
export const findChannelByToken = async (db: Db, hash: Uint8Array): Promise<TokenChannel | undefined> =>
  (
    await sql<TokenChannel>`
    select h.workspace_id, h.id, h.type, h.status from channel_tokens t
    join channels h on h.workspace_id = t.workspace_id and h.id = t.channel_id
    where t.hash = ${hash} and coalesce(t.valid_until > clock_timestamp(), true)`.execute(db)
  ).rows[0]

/** Adds the token of a bridge. Those that it has are valid for this many seconds from now, at most. */
export const addChannelToken = async (
  db: Db,
  workspaceId: string,
  channelId: string,
  hash: Uint8Array,
  overlapSeconds: number,
): Promise<void> => {
  await sql`
    with gone as (
      delete from channel_tokens where workspace_id = ${workspaceId} and channel_id = ${channelId}
        and (valid_until <= clock_timestamp() or ${overlapSeconds}::float8 <= 0)
    ), old as (
      update channel_tokens
      set valid_until = least(valid_until, clock_timestamp() + ${overlapSeconds}::float8 * interval '1 second')
      where workspace_id = ${workspaceId} and channel_id = ${channelId}
        and coalesce(valid_until > clock_timestamp(), true) and ${overlapSeconds}::float8 > 0
    )
    insert into channel_tokens (workspace_id, channel_id, hash)
    values (${workspaceId}, ${channelId}, ${hash})`.execute(db)
}

/** Returns the sealed secrets of a channel, locked; undefined when it has none. */
export const lockChannelSecrets = (
  tx: Db,
  workspaceId: string,
  channelId: string,
): Promise<SealedChannel | undefined> =>
  tx
    .selectFrom('channel_secrets')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('channel_id', '=', channelId)
    .forUpdate()
    .executeTakeFirst()

/** Writes the sealed secrets of a channel. */
export const upsertChannelSecrets = async (db: Db, row: SealedChannel): Promise<void> => {
  await db
    .insertInto('channel_secrets')
    .values(row)
    .onConflict((conflict) =>
      conflict.columns(['workspace_id', 'channel_id']).doUpdateSet({ signing_secrets: row.signing_secrets }),
    )
    .execute()
}

/** Returns secrets that another key than this one sealed, in the order of their channels. */
export const listStaleChannels = async (
  db: Db,
  keyId: string,
  after: SealedChannel | undefined,
  limit: number,
): Promise<SealedChannel[]> =>
  (
    await sql<SealedChannel>`
    select workspace_id, channel_id, signing_secrets from channel_secrets
    where not starts_with(signing_secrets, ${`${keyId}.`})
      and (workspace_id, channel_id)
        > (${after?.workspace_id ?? '0'}::bigint, ${after?.channel_id ?? '0'}::bigint)
    order by workspace_id, channel_id limit ${limit}`.execute(db)
  ).rows

/** Replaces sealed secrets unless they changed meanwhile. Returns whether it did. */
export const replaceSealedChannel = async (
  db: Db,
  before: SealedChannel,
  after: SealedChannel,
): Promise<boolean> => {
  const { numUpdatedRows } = await db
    .updateTable('channel_secrets')
    .set({ signing_secrets: after.signing_secrets })
    .where('workspace_id', '=', before.workspace_id)
    .where('channel_id', '=', before.channel_id)
    .where('signing_secrets', '=', before.signing_secrets)
    .executeTakeFirstOrThrow()
  return numUpdatedRows === 1n
}

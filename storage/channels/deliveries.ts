import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { cancelRun, insertRun, type Run } from '../work/runs.ts'

/**
 * Replies to bridged channels that no bridge has taken yet. A row is deleted, with its run, when the bridge took the
 * reply, or when it failed for good. All times are real times.
 */

const KIND = 'channel_deliveries'

export type NewChannelDelivery = {
  message_id: string
  channel_id: string
  conversation_id: string
  body: string
}

/**
 * Adds a reply, due when those before it in its conversation are over. `expiresInSeconds`: it fails when its channel
 * takes no replies for so long.
 */
export const insertChannelDelivery = async (
  tx: Db,
  workspaceId: string,
  { message_id, channel_id, conversation_id, body }: NewChannelDelivery,
  expiresInSeconds: number,
): Promise<void> => {
  await sql`
    insert into channel_deliveries (workspace_id, message_id, channel_id, conversation_id, body, expires_at)
    values (${workspaceId}::bigint, ${message_id}::bigint, ${channel_id}::bigint, ${conversation_id}::bigint,
      ${body}, clock_timestamp() + ${expiresInSeconds}::float8 * interval '1 second')`.execute(tx)
  const run = { workspace_id: workspaceId, kind: KIND, subject: message_id }
  await insertRun(tx, { ...run, queue: channel_id, order_key: conversation_id })
}

/**
 * A reply that is to be delivered. `url` and secrets are null when the channel takes no replies now. `pending` is false
 * when the message is known to be sent or failed already; `error` is of the last attempt.
 */
export type ChannelDelivery = {
  workspace_id: string
  message_id: string
  channel_id: string
  body: string
  error: string | null
  pending: boolean
  expires_in: number
  url: string | null
  signing_secrets: string | null
}

/** Returns the reply of a run; undefined when it is over. */
export const findChannelDelivery = async (
  db: Db,
  { workspace_id, subject }: Run,
): Promise<ChannelDelivery | undefined> =>
  (
    await sql<ChannelDelivery>`
    select c.workspace_id, c.message_id, c.channel_id, c.body, c.error,
      coalesce(m.status = 'pending', false) as pending,
      extract(epoch from c.expires_at - clock_timestamp())::float8 as expires_in,
      case when h.status = 'connected' then h.url end as url, s.signing_secrets
    from channel_deliveries c
    left join messages m on m.workspace_id = c.workspace_id and m.id = c.message_id
    left join channels h on h.workspace_id = c.workspace_id and h.id = c.channel_id
    left join channel_secrets s on s.workspace_id = c.workspace_id and s.channel_id = c.channel_id
    where c.workspace_id = ${workspace_id} and c.message_id = ${subject}`.execute(db)
  ).rows[0]

/** Ends a delivery, also one that another process attempts meanwhile. */
export const deleteChannelDelivery = async (
  tx: Db,
  { workspace_id, message_id }: Pick<ChannelDelivery, 'workspace_id' | 'message_id'>,
): Promise<void> => {
  await tx
    .deleteFrom('channel_deliveries')
    .where('workspace_id', '=', workspace_id)
    .where('message_id', '=', message_id)
    .execute()
  await cancelRun(tx, { workspace_id, kind: KIND, subject: message_id })
}

/** Writes why an attempt failed. */
export const writeDeliveryError = async (
  db: Db,
  { workspace_id, message_id }: ChannelDelivery,
  error: string,
): Promise<void> => {
  await db
    .updateTable('channel_deliveries')
    .set({ error })
    .where('workspace_id', '=', workspace_id)
    .where('message_id', '=', message_id)
    .execute()
}

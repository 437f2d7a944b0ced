import { sql } from 'kysely'
import type { Db, MediaState } from './database.ts'
import { storable } from './ids.ts'

/** The file of a message. `channel_id`: of its conversation. */
export type MediaRow = {
  message_id: string
  channel_id: string | null
  state: MediaState
  content_type: string | null
  file_name: string | null
  size: string | null
  url: string | null
  key: string | null
  error: string | null
}

/**
 * What came with a message; its `state` is null when nothing did, and the whole is undefined when there is
 * no such message.
 */
export const readMedia = async (
  tx: Db,
  workspaceId: string,
  messageId: string,
): Promise<(Omit<MediaRow, 'state'> & { state: MediaState | null }) | undefined> =>
  (
    await sql<MediaRow>`
    select m.id as message_id, v.channel_id, d.state, d.content_type, d.file_name, d.size, d.url, d.key, d.error
    from messages m join conversations v on v.workspace_id = m.workspace_id and v.id = m.conversation_id
    left join media d on d.workspace_id = m.workspace_id and d.message_id = m.id
    where m.workspace_id = ${workspaceId} and m.id = ${storable(messageId)}`.execute(tx)
  ).rows[0]

export type WaitingMedia = {
  workspace_id: string
  message_id: string
  type: string
  content_type: string | null
  sha256: string | null
  provider_media_id: string
  attempts: number
}

/**
 * Takes files that are to be fetched for so many seconds; whoever dies over one leaves it to the next. Of
 * all workspaces: the server fetches for each.
 */
export const claimWaitingMedia = async (
  db: Db,
  leaseSeconds: number,
  most: number,
): Promise<WaitingMedia[]> =>
  (
    await sql<WaitingMedia>`
    with due as (
      select workspace_id, message_id from media where state = 'waiting' and next_attempt_at <= now() order by next_attempt_at limit ${most}::int for update skip locked
    )
    update media d set attempts = attempts + 1, next_attempt_at = now() + ${leaseSeconds}::int * interval '1 second'
    from due, messages m
    where d.workspace_id = due.workspace_id and d.message_id = due.message_id and m.workspace_id = d.workspace_id and m.id = d.message_id
    returning d.workspace_id, d.message_id, m.type, d.content_type, d.sha256, d.provider_media_id, d.attempts`.execute(
      db,
    )
  ).rows

export type KeptMedia = { key: string; content_type: string | null; size: number; sha256: string }

export const keepMedia = async (
  db: Db,
  workspaceId: string,
  messageId: string,
  kept: KeptMedia,
): Promise<void> => {
  await sql`
    update media set state = 'kept', key = ${kept.key}, content_type = ${kept.content_type}, size = ${kept.size}::bigint, sha256 = ${kept.sha256}, next_attempt_at = null, error = null
    where workspace_id = ${workspaceId} and message_id = ${messageId}::bigint and state = 'waiting'`.execute(
    db,
  )
}

/** `error`: why, for staff. */
export const giveUpMedia = async (
  db: Db,
  workspaceId: string,
  messageId: string,
  state: 'lost' | 'too_large',
  error: string,
): Promise<void> => {
  await sql`
    update media set state = ${state}, next_attempt_at = null, error = ${error}
    where workspace_id = ${workspaceId} and message_id = ${messageId}::bigint and state = 'waiting'`.execute(
    db,
  )
}

export const postponeMedia = async (
  db: Db,
  workspaceId: string,
  messageId: string,
  seconds: number,
): Promise<void> => {
  await sql`
    update media set next_attempt_at = now() + ${seconds}::int * interval '1 second'
    where workspace_id = ${workspaceId} and message_id = ${messageId}::bigint and state = 'waiting'`.execute(
    db,
  )
}

/** Seconds until a file is to be fetched, 0 when one is; undefined when none waits. */
export const nextMediaIn = async (db: Db): Promise<number | undefined> => {
  const {
    rows: [row],
  } = await sql<{ seconds: number }>`
    select greatest(0, extract(epoch from next_attempt_at - now()))::float8 as seconds from media where state = 'waiting' order by next_attempt_at limit 1`.execute(
    db,
  )
  return row?.seconds
}

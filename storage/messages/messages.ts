import { sql } from 'kysely'
import type { Db, MediaState, MessageDirection, MessageStatus } from '../database.ts'
import { insertDownload } from './media.ts'

/** A message to insert. Absent fields are null, or false for `note`. */
export type NewMessage = {
  conversation_id: string
  channel_id: string | null
  episode: number
  direction: MessageDirection
  type: string
  status: MessageStatus
  created_at: string
  text?: string | null
  content?: unknown
  note?: boolean
  staff_id?: string | null
  key_id?: string | null
  approved_by?: string | null
  template_name?: string | null
  template_language?: string | null
  reply_to_id?: string | null
  provider_id?: string | null
  reference?: string | null
  external_id?: string | null
  error?: string | null
  error_code?: number | null
  sent_at?: string | null
  media?: NewMedia
}
export type NewMedia = {
  state: MediaState
  content_type?: string | null
  file_name?: string | null
  size?: number | null
  sha256?: string | null
  url?: string | null
  provider_media_id?: string | null
}

const columns =
  sql.raw(`conversation_id bigint, channel_id bigint, episode integer, direction text, type text, status text,
    text text, content jsonb, note boolean, staff_id bigint, key_id bigint,
  approved_by bigint, template_name text, template_language text, reply_to_id bigint, provider_id text, reference text,
    external_id text, error text, error_code integer, created_at timestamptz, sent_at timestamptz`)
const names =
  sql.raw(`conversation_id, channel_id, episode, direction, type, status, text, content, note, staff_id, key_id,
  approved_by, template_name, template_language, reply_to_id, provider_id, reference, external_id, error, error_code,
    created_at, sent_at`)

/**
 * Inserts messages in one statement, and their media in another. Returns their ids in this order, null for a
 * message whose `provider_id`, `reference` or `external_id` already exists.
 */
export const insertMessages = async (
  tx: Db,
  workspaceId: string,
  messages: readonly NewMessage[],
): Promise<(string | null)[]> => {
  if (messages.length === 0) return []
  const given = messages.map(({ media: _, ...message }, n) => ({
    ...message,
    note: message.note ?? false,
    n,
  }))
  const { rows } = await sql<{ n: number; id: string }>`
    with given as materialized (
      select *, nextval(pg_get_serial_sequence('messages', 'id')) as id
        from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as r (n integer, ${columns})
    ), written as (
      insert into messages (workspace_id, id, ${names}) select ${workspaceId}::bigint, id, ${names} from given
        order by n on conflict do nothing returning id
    )
    select given.n, given.id from given join written using (id)`.execute(tx)
  const ids = new Map(rows.map(({ n, id }) => [n, id]))
  const media = messages.flatMap((message, n) =>
    message.media && ids.has(n) ? [{ ...message.media, message_id: ids.get(n)! }] : [],
  )
  if (media.length > 0) {
    await sql`
      insert into media (workspace_id, message_id, state, content_type, file_name, size, sha256, url,
        provider_media_id)
      select ${workspaceId}::bigint, message_id, state, content_type, file_name, size, sha256, url, provider_media_id
      from jsonb_to_recordset(${JSON.stringify(media)}::jsonb)
        as r (message_id bigint, state text, content_type text, file_name text, size bigint, sha256 text,
          url text, provider_media_id text)`.execute(tx)
    for (const { state, message_id, provider_media_id } of media)
      if (state === 'waiting') {
        const { channel_id: queue } = messages.find((_, n) => ids.get(n) === message_id)!
        await insertDownload(tx, {
          workspaceId,
          messageId: message_id,
          queue,
          isAtProvider: !!provider_media_id,
        })
      }
  }
  return messages.map((_, n) => ids.get(n) ?? null)
}

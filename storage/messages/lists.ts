import { sql } from 'kysely'
import type { StoredContent } from '../../catalog/message-content.ts'
import type { Db, MediaState, MessageDirection, MessageStatus } from '../database.ts'
import { QUICK } from '../client/driver.ts'
import { type AuthorKey, authorKeyColumn } from './authors.ts'
import { toStorableId } from '../values/ids.ts'
import { toIsoTime } from '../values/times.ts'

/** A reaction to a message. `at`: ISO 8601 UTC. */
type ReactionRow = { emoji: string; sender: 'customer' | 'staff'; at: string }

/**
 * A message with everything that is shown of it. `media_state` is null where it has no file. `reactions`:
 * oldest first.
 */
export type MessageRow = {
  id: string
  external_id: string | null
  conversation_id: string
  contact_id: string | null
  channel_id: string | null
  direction: MessageDirection
  type: string
  status: MessageStatus
  text: string | null
  content: StoredContent | null
  note: boolean
  staff_id: string | null
  staff_name: string | null
  author_key: AuthorKey | null
  template_name: string | null
  template_language: string | null
  reply_to_id: string | null
  error: string | null
  created_at: string
  delivered_at: string | null
  read_at: string | null
  failed_at: string | null
  edited_at: string | null
  deleted_at: string | null
  reactions: ReactionRow[]
  media_state: MediaState | null
  media_type: string | null
  media_name: string | null
  media_size: string | null
  media_url: string | null
}

const columns = sql`
  m.id, m.conversation_id, v.contact_id, v.channel_id, m.direction, m.type, m.status, m.text,
    m.content - 'call' as content, m.note,
    m.staff_id, s.name as staff_name, ${authorKeyColumn} as author_key, m.template_name, m.template_language,
  m.reply_to_id, m.external_id, m.error, m.created_at, m.delivered_at, m.read_at, m.failed_at, m.edited_at,
  m.deleted_at,
  (select json_agg(json_build_object('emoji', r.emoji, 'sender', r.sender, 'at', r.at)
      order by r.at, r.sender)
    from message_reactions r where r.workspace_id = m.workspace_id and r.message_id = m.id
      and r.emoji is not null) as reactions,
  d.state as media_state, d.content_type as media_type, d.file_name as media_name, d.size as media_size,
    d.url as media_url`

const joins = sql.raw(`
  join conversations v on v.workspace_id = m.workspace_id and v.id = m.conversation_id
  left join staff s on s.workspace_id = m.workspace_id and s.id = m.staff_id
  left join media d on d.workspace_id = m.workspace_id and d.message_id = m.id`)

type QueryRow = Omit<MessageRow, 'reactions'> & { reactions: ReactionRow[] | null }

/** Times within JSON are formatted as those of columns are. */
const toRow = (row: QueryRow): MessageRow => ({
  ...row,
  reactions: (row.reactions ?? []).map((reaction) => ({ ...reaction, at: toIsoTime(reaction.at) })),
})

/** Returns a message; undefined when there is none. */
export const readMessage = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<MessageRow | undefined> => {
  const { rows } = await sql<QueryRow>`${sql.raw(QUICK)}
    select ${columns} from messages m ${joins} where m.workspace_id = ${workspaceId}
      and m.id = ${toStorableId(id)}`.execute(tx)
  return rows[0] && toRow(rows[0])
}

/** Returns the message with this external id, and its channel; undefined when there is none. */
export const findMessageByExternalId = async (
  tx: Db,
  workspaceId: string,
  externalId: string,
): Promise<{ id: string; channel_id: string | null } | undefined> =>
  await tx
    .selectFrom('messages as m')
    .innerJoin('conversations as v', (join) =>
      join.onRef('v.workspace_id', '=', 'm.workspace_id').onRef('v.id', '=', 'm.conversation_id'),
    )
    .select(['m.id', 'v.channel_id'])
    .where('m.workspace_id', '=', workspaceId)
    .where('m.external_id', '=', externalId)
    .executeTakeFirst()

/** The position of a message in its conversation. */
export type MessagePosition = { createdAt: string; id: string }

/** Lists messages and notes of a conversation, newest first. */
export const listMessagePage = async (
  tx: Db,
  workspaceId: string,
  conversationId: string,
  after: MessagePosition | null,
  limit: number,
): Promise<MessageRow[]> =>
  (
    await sql<QueryRow>`${sql.raw(QUICK)}
    select ${columns} from (
      select * from messages where workspace_id = ${workspaceId}
        and conversation_id = ${toStorableId(conversationId)}
        ${
          after === null
            ? sql``
            : sql`and (created_at, id) <
          (${after.createdAt}::timestamptz, ${after.id}::bigint)`
        }
      order by created_at desc, id desc limit ${limit}) as m ${joins}
    order by m.created_at desc, m.id desc`.execute(tx)
  ).rows.map(toRow)

/** A message as a list of conversations shows it. `text`: the beginning. */
export type RecentMessageRow = Pick<
  MessageRow,
  'conversation_id' | 'direction' | 'type' | 'status' | 'text'
> & { is_deleted: boolean }

/**
 * Lists the latest messages of each of these conversations, at most `each`, oldest first; without notes and
 * system messages. `textLength`: how much of a text is read.
 */
export const listRecentMessages = async (
  tx: Db,
  workspaceId: string,
  conversationIds: readonly string[],
  each: number,
  textLength: number,
): Promise<RecentMessageRow[]> =>
  (
    await sql<RecentMessageRow>`
    select m.conversation_id, m.direction, m.type, m.status, left(m.text, ${sql.lit(textLength)}) as text,
      m.deleted_at is not null as is_deleted
    from unnest(${conversationIds}::bigint[]) as u (id) cross join lateral (
      select * from messages m where m.workspace_id = ${workspaceId} and m.conversation_id = u.id
        and m.direction <> 'system' order by m.created_at desc, m.id desc limit ${sql.lit(each)}) as m
    order by m.conversation_id, m.created_at, m.id`.execute(tx)
  ).rows

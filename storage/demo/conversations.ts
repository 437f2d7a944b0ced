import { sql } from 'kysely'
import type { Db, MessageDirection, MessageStatus, ReplyStatus } from '../database.ts'

/**
 * The stored columns of a generated conversation; absent ones are null or have their default. `last`: the
 * index of the last message in `messages`.
 */
export type NewDemoConversation = {
  channel_id: string | null
  state: string
  title: string | null
  episode: number
  assigned_staff_id: string | null
  assigned_team_id: string | null
  assigned_at: string | null
  unread_count: number
  reply_status: ReplyStatus | null
  last_inbound_at: string | null
  free_entry_at: string | null
  window_expires_at: string | null
  reminder_at: string | null
  sla_policy_id: string | null
  first_response_due_at: string | null
  next_response_due_at: string | null
  resolution_due_at: string | null
  sla_breached: boolean
  created_at: string
  updated_at: string
  last_activity_at: string
  waiting_since: string | null
  delivery_failed: boolean
  last: number
  messages: NewDemoMessage[]
  episodes: NewDemoEpisode[]
  waits: NewDemoWait[]
  tag_ids: readonly string[]
}
export type NewDemoMessage = {
  episode: number
  direction: MessageDirection
  type: string
  status: MessageStatus
  text: string | null
  content: unknown
  note: boolean
  staff_id: string | null
  template_name: string | null
  template_language: string | null
  provider_id: string | null
  error: string | null
  error_code: number | null
  created_at: string
  sent_at: string | null
  delivered_at: string | null
  read_at: string | null
  failed_at: string | null
  media: { content_type: string; file_name: string | null; size: number; url: string } | null
  /** Of the customer. */
  reaction: { emoji: string; at: string } | null
}
type NewDemoEpisode = {
  n: number
  opened_at: string
  opened_by: string | null
  closed_at: string | null
  closed_by: string | null
  close_reason: string | null
  first_response_at: string | null
  resolution_due_at: string | null
}
type NewDemoWait = {
  since: string
  kind: 'first_response' | 'next_response'
  episode: number
  due_at: string | null
  ended_at: string | null
  ended_by: string | null
}

/** Columns and types of the JSON that carries the rows. */
const CONVERSATION_COLUMNS = `channel_id bigint, state text, title text, episode integer,
  assigned_staff_id bigint, assigned_team_id bigint, assigned_at timestamptz, unread_count integer,
  reply_status text, last_inbound_at timestamptz, free_entry_at timestamptz,
  window_expires_at timestamptz, reminder_at timestamptz, sla_policy_id bigint,
  first_response_due_at timestamptz, next_response_due_at timestamptz, resolution_due_at timestamptz,
  sla_breached boolean, created_at timestamptz, updated_at timestamptz, last_activity_at timestamptz,
  waiting_since timestamptz, delivery_failed boolean`
const MESSAGE_COLUMNS = `episode integer, direction text, type text, status text, text text, content jsonb,
  note boolean, staff_id bigint, template_name text, template_language text, provider_id text, error text,
  error_code integer, created_at timestamptz, sent_at timestamptz, delivered_at timestamptz,
  read_at timestamptz, failed_at timestamptz`

const columnNames = (columns: string, prefix = ''): string =>
  columns
    .split(/,\s*/)
    .map((column) => prefix + column.split(' ')[0]!)
    .join(', ')

/**
 * Inserts conversations with their messages, episodes, waits and tags in one statement. Ids are drawn first,
 * so that a conversation can refer to its last message.
 */
export const insertDemoConversations = async (
  tx: Db,
  workspaceId: string,
  conversations: readonly (NewDemoConversation & { contact_id: string })[],
): Promise<void> => {
  if (conversations.length === 0) return
  const all = {
    conversations: [] as unknown[],
    messages: [] as unknown[],
    episodes: [] as unknown[],
    waits: [] as unknown[],
    tags: [] as unknown[],
  }
  for (const [
    index,
    { messages, episodes, waits, tag_ids: tagIds, last, ...row },
  ] of conversations.entries()) {
    all.conversations.push({ ...row, conversation_index: index, last_n: all.messages.length + last })
    for (const message of messages)
      all.messages.push({ ...message, conversation_index: index, m: all.messages.length })
    for (const episode of episodes) all.episodes.push({ ...episode, conversation_index: index })
    for (const wait of waits) all.waits.push({ ...wait, conversation_index: index })
    for (const tag_id of tagIds) all.tags.push({ conversation_index: index, tag_id })
  }
  // Most columns of most rows are null; leaving them out makes the JSON smaller.
  const rows = (of: keyof typeof all) =>
    sql`json_to_recordset(${JSON.stringify(all[of], (_, value: unknown) => value ?? undefined)}::text::json)`
  await sql`
    with v as materialized (
      select nextval(pg_get_serial_sequence('conversations', 'id')) as id, r.* 
      from ${rows('conversations')} as r (conversation_index integer, last_n integer, contact_id bigint,
        ${sql.raw(CONVERSATION_COLUMNS)})
    ), m as materialized (
      select nextval(pg_get_serial_sequence('messages', 'id')) as id, r.* 
      from ${rows('messages')} as r (conversation_index integer, m integer, media jsonb,
        reaction jsonb, ${sql.raw(MESSAGE_COLUMNS)})
    ), iv as (
      insert into conversations (workspace_id, id, contact_id, last_message_id,
        ${sql.raw(columnNames(CONVERSATION_COLUMNS))})
      select ${workspaceId}::bigint, v.id, v.contact_id, l.id,
        ${sql.raw(columnNames(CONVERSATION_COLUMNS, 'v.'))}
      from v left join (select id, m as last_n from m) as l using (last_n)
    ), im as (
      insert into messages (workspace_id, id, conversation_id, channel_id,
        ${sql.raw(columnNames(MESSAGE_COLUMNS))})
      select ${workspaceId}::bigint, m.id, v.id, v.channel_id,
        ${sql.raw(columnNames(MESSAGE_COLUMNS, 'm.'))}
      from m join v using (conversation_index)
    ), id as (
      insert into media (workspace_id, message_id, state, content_type, file_name, size, url)
      select ${workspaceId}::bigint, id, 'linked', media->>'content_type', media->>'file_name',
        (media->>'size')::bigint, media->>'url'
      from m where media is not null
    ), ir as (
      insert into message_reactions (workspace_id, message_id, sender, emoji, at)
      select ${workspaceId}::bigint, id, 'customer', reaction->>'emoji', (reaction->>'at')::timestamptz
      from m where reaction is not null
    ), ie as (
      insert into conversation_episodes (workspace_id, conversation_id, n, opened_at, opened_by, closed_at,
        closed_by, close_reason, first_response_at, resolution_due_at)
      select ${workspaceId}::bigint, v.id, r.n, r.opened_at, r.opened_by, r.closed_at, r.closed_by,
        r.close_reason, r.first_response_at, r.resolution_due_at
      from ${rows('episodes')} as r (conversation_index integer, n integer, opened_at timestamptz,
        opened_by bigint, closed_at timestamptz, closed_by bigint, close_reason text,
        first_response_at timestamptz, resolution_due_at timestamptz)
      join v using (conversation_index)
    ), iw as (
      insert into reply_waits (workspace_id, conversation_id, since, kind, episode, due_at, ended_at,
        ended_by)
      select ${workspaceId}::bigint, v.id, r.since, r.kind, r.episode, r.due_at, r.ended_at, r.ended_by
      from ${rows('waits')} as r (conversation_index integer, since timestamptz, kind text, episode integer,
        due_at timestamptz, ended_at timestamptz, ended_by bigint)
      join v using (conversation_index)
    )
    insert into conversation_tags (workspace_id, conversation_id, tag_id)
    select ${workspaceId}::bigint, v.id, r.tag_id
    from ${rows('tags')} as r (conversation_index integer, tag_id bigint)
      join v using (conversation_index)`.execute(tx)
}

export type RecentWriter = {
  number_id: string
  account_id: string
  phone: string
  name: string | null
  last_inbound_at: string
  free_entry_at: string | null
}

/** Lists when customers last wrote to numbers of the provider, if since then. */
export const listRecentWriters = async (
  tx: Db,
  workspaceId: string,
  since: string,
): Promise<RecentWriter[]> =>
  (
    await sql<RecentWriter>`
    select h.provider_phone_number_id as number_id, h.account_id, c.phone, c.name,
      max(v.last_inbound_at) as last_inbound_at, max(v.free_entry_at) as free_entry_at
    from conversations v
    join channels h on h.workspace_id = v.workspace_id and h.id = v.channel_id
    join contacts c on c.workspace_id = v.workspace_id and c.id = v.contact_id
    where v.workspace_id = ${workspaceId} and v.last_inbound_at >= ${since}::timestamptz
      and h.provider_phone_number_id is not null and h.account_id is not null and c.phone is not null
    group by 1, 2, 3, 4`.execute(tx)
  ).rows

/** Gives the newest message to a customer the id that another system has for it. */
export const setDemoExternalId = async (tx: Db, workspaceId: string, externalId: string): Promise<void> => {
  await tx
    .updateTable('messages')
    .set({ external_id: externalId })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', (eb) =>
      eb
        .selectFrom('messages')
        .select(({ fn }) => fn.max('id').as('id'))
        .where('workspace_id', '=', workspaceId)
        .where('direction', '=', 'outbound'),
    )
    .execute()
}

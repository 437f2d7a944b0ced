import { sql } from 'kysely'
import type { StoredContent } from '../../catalog/message-content.ts'
import {
  type ConversationFilter,
  type ConversationPosition,
  fetchCount,
  filterConditions,
  isEmptyList,
  type ListRequest,
  orderOf,
  planHint,
  selectHead,
} from './order.ts'
import { findMatchingIds } from './search.ts'
import { type AuthorKey, authorKeyColumn } from '../messages/authors.ts'
import type { Db, MediaState, MessageDirection, MessageStatus, ReplyStatus } from '../database.ts'
import { CUSTOM_PLAN, QUICK } from '../client/driver.ts'
import { toStorableId } from '../values/ids.ts'
import { loadNames, resolveNames, type NamedRef, namesVersionColumn } from '../workspace/names-cache.ts'

/**
 * A conversation with its contact, channel and last message; their columns are null when they do not exist.
 * `tags` and `groups` by name.
 */
export type ConversationRow = {
  id: string
  state: 'open' | 'closed'
  channel_id: string | null
  channel_type: string | null
  channel_name: string | null
  channel_status: string | null
  channel_has_url: boolean | null
  channel_has_number: boolean | null
  contact_id: string | null
  contact_name: string | null
  contact_phone: string | null
  /** Whether the provider, or the channel's bridge, knows how to reach the contact. */
  contact_reachable: boolean
  contact_dnd: boolean | null
  contact_starred: boolean | null
  assigned_staff_id: string | null
  assigned_staff_name: string | null
  assigned_team_id: string | null
  assigned_at: string | null
  unread_count: number
  reply_status: ReplyStatus | null
  reminder_at: string | null
  bot_active: boolean
  last_inbound_at: string | null
  free_entry_at: string | null
  /** The id of the group at the provider; null: it is with one customer. */
  group_id: string | null
  /** The last ad that brought the customer here. */
  ad: NonNullable<StoredContent['ad']> | null
  window_corrected_at: string | null
  window_expires_at: string | null
  sla_policy_name: string | null
  first_response_due_at: string | null
  next_response_due_at: string | null
  resolution_due_at: string | null
  sla_breached: boolean
  created_at: string
  updated_at: string
  activity_at: string
  /** Since when the customer waits for a reply; null when the customer does not wait. */
  waiting_since: string | null
  message_id: string | null
  message_direction: MessageDirection
  message_type: string
  message_status: MessageStatus
  message_text: string | null
  message_staff_id: string | null
  message_staff_name: string | null
  message_author_key: AuthorKey | null
  message_reply_to_id: string | null
  message_error: string | null
  message_created_at: string
  message_media_state: MediaState | null
  message_deleted_at: string | null
  tags: NamedRef[]
  groups: NamedRef[]
}
type ConversationQueryRow = Omit<ConversationRow, 'tags' | 'groups'> & {
  tag_ids: string[]
  group_ids: string[]
  names_version: string | null
}

/** More text than a last message shows, so that the cut is visible. */
const LAST_TEXT_LENGTH = 600

const columns = (workspaceId: string) => sql`
  v.id, v.state, v.channel_id, h.type as channel_type, h.name as channel_name,
    h.status as channel_status, h.url is not null as channel_has_url,
    h.provider_phone_number_id is not null as channel_has_number,
  c.id as contact_id, c.name as contact_name, c.phone as contact_phone, c.dnd as contact_dnd,
    c.starred as contact_starred,
    case when h.url is null then c.phone is not null or c.chatapp_user_id is not null else exists (
      select from channel_customers k where k.workspace_id = v.workspace_id and k.contact_id = v.contact_id
        and k.channel_id = v.channel_id) end as contact_reachable,
  v.assigned_staff_id, s.name as assigned_staff_name, v.assigned_team_id, v.assigned_at, v.unread_count,
    v.reply_status, v.reminder_at, v.bot_active,
  v.last_inbound_at, v.free_entry_at, v.window_corrected_at, v.window_expires_at, v.ad, v.group_id,
  p.name as sla_policy_name, v.first_response_due_at, v.next_response_due_at, v.resolution_due_at,
    v.sla_breached, v.created_at, v.updated_at, v.activity_at,
  case when v.state = 'open' and v.reply_status = 'incoming_no_reply'
    then coalesce(v.waiting_since, v.activity_at) end as waiting_since,
  m.id as message_id, m.direction as message_direction, m.type as message_type, m.status as message_status,
    left(m.text, ${sql.lit(LAST_TEXT_LENGTH)}) as message_text,
  m.staff_id as message_staff_id, ms.name as message_staff_name,
    ${authorKeyColumn} as message_author_key, m.reply_to_id as message_reply_to_id,
    m.error as message_error, m.created_at as message_created_at, d.state as message_media_state,
    m.deleted_at as message_deleted_at,
  array(select l.tag_id from conversation_tags l where l.workspace_id = v.workspace_id
    and l.conversation_id = v.id) as tag_ids,
  array(select l.group_id from contact_groups l where l.workspace_id = v.workspace_id
    and l.contact_id = v.contact_id) as group_ids,
  ${namesVersionColumn(workspaceId)}`

const joins = sql.raw(`
  left join channels h on h.workspace_id = v.workspace_id and h.id = v.channel_id
  left join contacts c on c.workspace_id = v.workspace_id and c.id = v.contact_id
  left join staff s on s.workspace_id = v.workspace_id and s.id = v.assigned_staff_id
  left join sla_policies p on p.workspace_id = v.workspace_id and p.id = v.sla_policy_id
  left join messages m on m.workspace_id = v.workspace_id and m.id = v.last_message_id
  left join staff ms on ms.workspace_id = v.workspace_id and ms.id = m.staff_id
  left join media d on d.workspace_id = v.workspace_id and d.message_id = m.id`)

/** Adds the names of their tags and groups to rows. */
const withNames = async (
  tx: Db,
  workspaceId: string,
  rows: readonly ConversationQueryRow[],
): Promise<ConversationRow[]> => {
  if (rows.length === 0) return []
  const known = await loadNames(tx, workspaceId, rows[0]!.names_version)
  const tags = await resolveNames(
    tx,
    workspaceId,
    known,
    'tag',
    rows.map((row) => row.tag_ids),
  )
  const groups = await resolveNames(
    tx,
    workspaceId,
    known,
    'group',
    rows.map((row) => row.group_ids),
  )
  return rows.map((row, i) => Object.assign(row, { tags: tags[i]!, groups: groups[i]! }))
}

/** Returns a conversation; undefined when there is none. */
export const readConversation = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<ConversationRow | undefined> => {
  const { rows } = await sql<ConversationQueryRow>`${sql.raw(QUICK)}
    select ${columns(workspaceId)} from conversations v ${joins} where v.workspace_id = ${workspaceId}
      and v.id = ${toStorableId(id)}`.execute(tx)
  return (await withNames(tx, workspaceId, rows))[0]
}

/** Returns the channel id of a conversation, null when it is gone; undefined without conversation. */
export const findConversationChannel = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<string | null | undefined> =>
  (
    await sql<{ channel_id: string | null }>`${sql.raw(QUICK)}
    select channel_id from conversations where workspace_id = ${workspaceId}
      and id = ${toStorableId(id)}`.execute(tx)
  ).rows[0]?.channel_id

/** Where a page begins, in the list by wait: among those who wait for a reply, or among the others. */
export type WaitPosition = ConversationPosition & { waiting: boolean }

/** Reads a page of one list, with one row more, or some, where there is a next page. */
const readPage = async (tx: Db, request: ListRequest): Promise<ConversationRow[]> => {
  if (isEmptyList(request)) return []
  const { workspaceId } = request
  const found =
    request.query === undefined
      ? selectHead(request, fetchCount(request.limit))
      : sql`select u.id from unnest(${await findMatchingIds(tx, request)}::bigint[]) as u (id)`
  const { rows } = await sql<ConversationQueryRow>`${sql.raw(planHint(request))}
    select ${columns(workspaceId)} from (${found}) as page
      join conversations v on v.workspace_id = ${workspaceId}
        and v.id = page.id ${joins} ${orderOf(request)}`.execute(tx)
  return await withNames(tx, workspaceId, rows)
}

/** Lists a page of conversations, newest activity first, with one row more where there is a next page. */
export const listConversationPage = (
  tx: Db,
  workspaceId: string,
  filter: ConversationFilter,
  after: ConversationPosition | null,
  limit: number,
): Promise<ConversationRow[]> =>
  readPage(tx, { ...filter, workspaceId, after, limit, order: 'newest_activity' })

/** Lists a page of the customers who wait for a reply, the longest wait first, with one row more. */
export const listWaitingPage = (
  tx: Db,
  workspaceId: string,
  filter: ConversationFilter,
  after: ConversationPosition | null,
  limit: number,
): Promise<ConversationRow[]> =>
  readPage(tx, { ...filter, workspaceId, after, limit, order: 'longest_wait', waiting: true })

/**
 * Counts the conversations of a list without `query`, up to `most`. `waiting`: only those whose customer waits
 * for a reply.
 */
export const countConversations = async (
  tx: Db,
  workspaceId: string,
  filter: ConversationFilter,
  most: number,
  waiting?: true,
): Promise<number> => {
  const request: ListRequest = {
    ...filter,
    workspaceId,
    after: null,
    limit: most,
    order: waiting ? 'longest_wait' : 'newest_activity',
    ...(waiting ? { waiting } : {}),
  }
  if (isEmptyList(request)) return 0
  const { rows } = await sql<{ n: string }>`${sql.raw(CUSTOM_PLAN)}
    select count(*) as n from (
      select from conversations v where v.workspace_id = ${workspaceId} ${filterConditions(request)}
        limit ${sql.lit(most)}) as v`.execute(tx)
  return Number(rows[0]!.n)
}

/**
 * Lists a page of conversations, with one row more where there is a next page: first those whose customer
 * waits for a reply, the longest wait first, then the others, newest activity first.
 */
export const listConversationPageByWait = async (
  tx: Db,
  workspaceId: string,
  filter: ConversationFilter,
  after: WaitPosition | null,
  limit: number,
): Promise<ConversationRow[]> => {
  const request = { ...filter, workspaceId, after, limit }
  const waiting =
    after?.waiting === false ? [] : await readPage(tx, { ...request, order: 'longest_wait', waiting: true })
  if (waiting.length > limit) return waiting
  // A whole page: one that was answered since the first statement is dropped here.
  const others = await readPage(tx, {
    ...request,
    after: after?.waiting === false ? after : null,
    order: 'newest_activity',
    waiting: false,
  })
  const seen = new Set(waiting.map((row) => row.id))
  return [...waiting, ...others.filter((row) => !seen.has(row.id))]
}

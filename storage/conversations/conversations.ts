import { sql } from 'kysely'
import type { Db, ReplyStatus } from '../database.ts'
import { toStorableId } from '../values/ids.ts'

/** The state of a conversation that its rules read and change. */
export type ConversationState = {
  id: string
  contact_id: string | null
  /** The id of the group at the provider; null: it is with one customer. */
  group_id: string | null
  channel_id: string | null
  channel_type: string | null
  state: 'open' | 'closed'
  episode: number
  assigned_staff_id: string | null
  assigned_team_id: string | null
  reply_status: ReplyStatus | null
  unread_count: number
  last_message_id: string | null
  last_activity_at: string | null
  last_inbound_at: string | null
  free_entry_at: string | null
  window_corrected_at: string | null
  reminder_at: string | null
  sla_policy_id: string | null
  first_response_due_at: string | null
  next_response_due_at: string | null
  resolution_due_at: string | null
  sla_breached: boolean
  created_at: string
}

const stateColumns = sql`
  v.id, v.contact_id, v.group_id, v.channel_id, h.type as channel_type, v.state, v.episode, v.assigned_staff_id,
    v.assigned_team_id, v.reply_status, v.unread_count, v.last_message_id, v.last_activity_at,
  v.last_inbound_at, v.free_entry_at, v.window_corrected_at, v.reminder_at, v.sla_policy_id,
    v.first_response_due_at, v.next_response_due_at, v.resolution_due_at, v.sla_breached, v.created_at`

/** Returns a conversation, locked; undefined when there is none. */
export const lockConversation = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<ConversationState | undefined> =>
  (
    await sql<ConversationState>`
    select ${stateColumns} from conversations v left join channels h on h.workspace_id = v.workspace_id
      and h.id = v.channel_id
    where v.workspace_id = ${workspaceId} and v.id = ${toStorableId(id)} for update of v`.execute(tx)
  ).rows[0]

/**
 * Returns those of these conversations that are on one of the channels, locked in the order of their ids. `channels`
 * null: on all, and those whose channel was deleted.
 */
export const lockConversations = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
  channels: readonly string[] | null,
): Promise<ConversationState[]> =>
  (
    await sql<ConversationState>`
    select ${stateColumns} from conversations v left join channels h on h.workspace_id = v.workspace_id
      and h.id = v.channel_id
    where v.workspace_id = ${workspaceId} and v.id = any(${ids.map(toStorableId)}::bigint[])
      ${channels === null ? sql`` : sql`and v.channel_id = any(${channels}::bigint[])`}
    order by v.id for update of v`.execute(tx)
  ).rows

/** Locks the conversations of contacts, in the order in which others lock them (`lockConversations`). */
export const lockConversationsOf = async (
  tx: Db,
  workspaceId: string,
  contactIds: readonly string[],
): Promise<void> => {
  await sql`
    select from conversations where workspace_id = ${workspaceId} and contact_id = any(${contactIds}::bigint[])
    order by id for update`.execute(tx)
}

/** Returns conversations of a contact, the open ones first, then the latest: as many as somebody may have. */
export const listConversationsOf = async (
  tx: Db,
  workspaceId: string,
  contactId: string,
): Promise<ConversationState[]> =>
  (
    await sql<ConversationState>`
    select ${stateColumns} from conversations v left join channels h on h.workspace_id = v.workspace_id
      and h.id = v.channel_id
    where v.workspace_id = ${workspaceId} and v.contact_id = ${contactId}::bigint
    order by ${latestFirst} limit 1000`.execute(tx)
  ).rows

/** The one that goes on: an open one, else the latest. */
const latestFirst = sql`(v.state = 'open') desc, v.activity_at desc, v.id desc`

/** Returns the conversation of a contact that goes on on a channel, locked. Creators hold the contact's lock. */
export const lockLatestConversation = async (
  tx: Db,
  workspaceId: string,
  contactId: string,
  channelId: string,
): Promise<ConversationState | undefined> =>
  (
    await sql<ConversationState>`
    select ${stateColumns} from conversations v left join channels h on h.workspace_id = v.workspace_id
      and h.id = v.channel_id
    where v.workspace_id = ${workspaceId} and v.contact_id = ${contactId}::bigint
      and v.channel_id = ${channelId}::bigint
    order by ${latestFirst} limit 1 for update of v`.execute(tx)
  ).rows[0]

/** Returns the conversation of a group on a channel, locked; nobody else creates it until the transaction ends. */
export const lockGroupConversation = async (
  tx: Db,
  workspaceId: string,
  groupId: string,
  channelId: string,
): Promise<ConversationState | undefined> => {
  const name = `group ${workspaceId} ${channelId} ${groupId}`
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(tx)
  const { rows } = await sql<ConversationState>`
    select ${stateColumns} from conversations v left join channels h on h.workspace_id = v.workspace_id
      and h.id = v.channel_id
    where v.workspace_id = ${workspaceId} and v.channel_id = ${channelId}::bigint and v.group_id = ${groupId}
    for update of v`.execute(tx)
  return rows[0]
}

import type { StoredContent } from '../../catalog/message-content.ts'
import { type RawBuilder, sql } from 'kysely'
import { markLatestRecipient } from '../broadcasts/sends.ts'
import { recordActParts } from '../agents/sessions.ts'
import type { ConversationState } from './conversations.ts'
import type { Db } from '../database.ts'
import { toStorableId } from '../values/ids.ts'
import type { Label } from '../labels/labels.ts'

/** Writes of conversation changes, each in one statement. The conversation is locked or new. */

/** The deadlines of an episode under an SLA policy. */
export type SlaClocks = Pick<
  ConversationState,
  'sla_policy_id' | 'first_response_due_at' | 'next_response_due_at' | 'resolution_due_at' | 'sla_breached'
>

/**
 * `openedBy`: the staff member; null: the customer or the system. `resumed`: because a reply failed, so that
 * the customer's wait goes on.
 */
export type EpisodeStart = {
  openedBy: string | null
  title: string | null
  clocks: SlaClocks
  resumed?: boolean
  now: string
}

/** With whom a conversation is: a customer, or a group. */
export type Party = { contactId: string } | { groupId: string }

/** Inserts a conversation with its first episode; one that is not open has none yet. */
export const insertConversation = async (
  tx: Db,
  workspaceId: string,
  party: Party,
  channelId: string,
  { openedBy, title, clocks, now, isOpen }: EpisodeStart & { isOpen: boolean },
): Promise<{ id: string; channel_type: string | null }> =>
  (
    await sql<{ id: string; channel_type: string | null }>`
    with v as (
      insert into conversations (workspace_id, contact_id, group_id, channel_id, state, episode, title, sla_policy_id,
        first_response_due_at, resolution_due_at, created_at, updated_at)
      values (${workspaceId}::bigint, ${'contactId' in party ? party.contactId : null}::bigint,
        ${'groupId' in party ? party.groupId : null}, ${channelId}::bigint, ${isOpen ? 'open' : 'closed'},
        ${isOpen ? 1 : 0}::int, ${title},
        ${clocks.sla_policy_id}::bigint,
        ${clocks.first_response_due_at}::timestamptz, ${clocks.resolution_due_at}::timestamptz,
          ${now}::timestamptz, ${now}::timestamptz)
      returning id
    ), e as (
      insert into conversation_episodes (workspace_id, conversation_id, n, title, opened_at, opened_by,
        resolution_due_at)
      select ${workspaceId}::bigint, id, 1, ${title}, ${now}::timestamptz, ${openedBy}::bigint,
        ${clocks.resolution_due_at}::timestamptz from v where ${isOpen}::boolean
    )
    select id, (select type from channels where workspace_id = ${workspaceId}
      and id = ${channelId}::bigint) as channel_type from v`.execute(tx)
  ).rows[0]!

/** Opens a closed conversation as this episode. */
export const openEpisode = async (
  tx: Db,
  workspaceId: string,
  id: string,
  episode: number,
  { openedBy, title, clocks, resumed = false, now }: EpisodeStart,
): Promise<void> => {
  await sql`
    with e as (
      insert into conversation_episodes (workspace_id, conversation_id, n, title, opened_at, opened_by,
        resolution_due_at, resumed)
      values (${workspaceId}::bigint, ${id}::bigint, ${episode}::int, ${title}, ${now}::timestamptz,
        ${openedBy}::bigint, ${clocks.resolution_due_at}::timestamptz, ${resumed}::boolean)
    )
    update conversations set state = 'open', episode = ${episode}::int, title = ${title},
      sla_policy_id = ${clocks.sla_policy_id}::bigint, sla_breached = false,
      first_response_due_at = ${clocks.first_response_due_at}::timestamptz, next_response_due_at = null,
        resolution_due_at = ${clocks.resolution_due_at}::timestamptz,
      updated_at = ${now}::timestamptz
    where workspace_id = ${workspaceId} and id = ${id}::bigint`.execute(tx)
}

/** `since`: when the customer wrote; `nextDue`: when a next (not the first) response is due. */
export type ReplyWait = { since: string; nextDue: string | null }

/**
 * Starts a wait for a reply; `first`: for the first response of an episode that the customer opened. The
 * provider reports whole seconds, so a message that was answered and the one after it may have the same time;
 * the later wait is then moved on to the first millisecond at which none began.
 */
const insertWaitParts = (
  workspaceId: string,
  { id, episode, first_response_due_at: firstDue }: ConversationState,
  { since, nextDue }: ReplyWait,
): RawBuilder<unknown> => sql`
  f as (
    select coalesce((select e.first_response_at is null and e.opened_by is null and not e.resumed
      from conversation_episodes e where e.workspace_id = ${workspaceId} and e.conversation_id = ${id}::bigint
        and e.n = ${episode}::int), false) as first
  ), w as (
    insert into reply_waits (workspace_id, conversation_id, since, kind, episode, due_at)
    select ${workspaceId}::bigint, ${id}::bigint,
      (select min(u.at) from (select ${since}::timestamptz as at union all
          select r.since + interval '1 millisecond' from reply_waits r
          where r.workspace_id = ${workspaceId} and r.conversation_id = ${id}::bigint
            and r.since >= ${since}::timestamptz and r.since < ${since}::timestamptz + interval '1 second') as u
        where not exists (select from reply_waits t
          where t.workspace_id = ${workspaceId} and t.conversation_id = ${id}::bigint and t.since = u.at)),
      case when first then 'first_response' else 'next_response' end, ${episode}::int,
      case when first then ${firstDue}::timestamptz else ${nextDue}::timestamptz end
    from f on conflict do nothing returning since
  )`

/** `waiting_since` is the start of the open wait; it counts while the customer waits. */
const setNextResponseDue = (wait: ReplyWait): RawBuilder<unknown> =>
  sql`next_response_due_at = case when (select first from f) then next_response_due_at
    else ${wait.nextDue}::timestamptz end,
    waiting_since = coalesce((select since from w), waiting_since)`

type NextDue = { next_response_due_at: string | null }

/** Starts a wait. Returns when the next response is due. */
export const startReplyWait = async (
  tx: Db,
  workspaceId: string,
  conversation: ConversationState,
  wait: ReplyWait,
): Promise<string | null> =>
  (
    await sql<NextDue>`
    with ${insertWaitParts(workspaceId, conversation, wait)}
    update conversations set ${setNextResponseDue(wait)} where workspace_id = ${workspaceId}
      and id = ${conversation.id}::bigint returning next_response_due_at`.execute(tx)
  ).rows[0]!.next_response_due_at

/** Updates the contact's last activity, never backwards. */
const updateContactPart = (
  workspaceId: string,
  { contact_id: id, last_activity_at: at }: ConversationState,
): RawBuilder<unknown> => sql`
  c as (
    update contacts set last_activity_at = ${at}::timestamptz
    where workspace_id = ${workspaceId} and id = ${id}::bigint
      and (last_activity_at is null or last_activity_at < ${at}::timestamptz)
  )`

/**
 * Writes what a customer's message changed, with the wait that it starts, if any. Returns when the next
 * response is due. `windowExpiresAt`: the raw value kept for compatibility.
 */
export const updateOnInbound = async (
  tx: Db,
  workspaceId: string,
  next: ConversationState,
  windowExpiresAt: string | null,
  wait: ReplyWait | null,
  { at, now, ad }: { at: string; now: string; ad: StoredContent['ad'] },
): Promise<string | null> =>
  (
    await sql<NextDue>`
    with ${updateContactPart(workspaceId, next)}${
      wait
        ? sql`,
      ${insertWaitParts(workspaceId, next, wait)}`
        : sql``
    }${
      next.contact_id === null
        ? sql``
        : sql`, ${markLatestRecipient(workspaceId, next.contact_id, {
            at,
            set: sql`responded = true, responded_at = coalesce(responded_at, ${at}::timestamptz)`,
            channelId: next.channel_id,
          })}`
    }
    update conversations set last_message_id = ${next.last_message_id}::bigint,
      last_activity_at = ${next.last_activity_at}::timestamptz, unread_count = ${next.unread_count}::int,
      reply_status = ${next.reply_status}, last_inbound_at = ${next.last_inbound_at}::timestamptz,
        free_entry_at = ${next.free_entry_at}::timestamptz,
        ${ad ? sql`ad = ${JSON.stringify(ad)}::text::jsonb,` : sql``}
      window_expires_at = ${windowExpiresAt}::timestamptz,
        ${wait ? sql`${setNextResponseDue(wait)},` : sql``} updated_at = ${now}::timestamptz
    where workspace_id = ${workspaceId} and id = ${next.id}::bigint returning next_response_due_at`.execute(
      tx,
    )
  ).rows[0]!.next_response_due_at

/**
 * Writes what a message to the customer changed. It ends the wait for a reply, and is the first response of
 * the episode if there was none. It belongs to the present episode, though it may have been written before.
 */
export const updateOnOutbound = async (
  tx: Db,
  workspaceId: string,
  next: ConversationState,
  sent: { id: string; at: string; staffId: string | null; keyId: string | null },
  now: string,
): Promise<void> => {
  await sql`
    with ${updateContactPart(workspaceId, next)}${
      next.state === 'open'
        ? sql`, ${recordActParts(workspaceId, { episodes: [next], keyId: sent.keyId, at: sent.at })}`
        : sql``
    }, m as (
      update messages set episode = ${next.episode}::int
      where workspace_id = ${workspaceId} and id = ${sent.id}::bigint and episode <> ${next.episode}::int
    ), w as (
      update reply_waits set ended_at = greatest(${sent.at}::timestamptz, since),
        ended_by = ${sent.staffId}::bigint
      where workspace_id = ${workspaceId} and conversation_id = ${next.id}::bigint and ended_at is null
    ), e as (
      update conversation_episodes set first_response_at = greatest(${sent.at}::timestamptz, opened_at)
      where workspace_id = ${workspaceId} and conversation_id = ${next.id}::bigint
        and n = ${next.episode}::int and first_response_at is null and closed_at is null
    )
    update conversations set last_message_id = ${next.last_message_id}::bigint,
      last_activity_at = ${next.last_activity_at}::timestamptz, unread_count = ${next.unread_count}::int,
      reply_status = ${next.reply_status}, first_response_due_at = null, next_response_due_at = null,
        sla_breached = ${next.sla_breached}::boolean, updated_at = ${now}::timestamptz
    where workspace_id = ${workspaceId} and id = ${next.id}::bigint`.execute(tx)
}

/** Ends the episodes of conversations with their clocks and waits. */
export const updateOnClose = async (
  tx: Db,
  workspaceId: string,
  closing: readonly ConversationState[],
  closed: { by: string | null; keyId: string | null; reason: string | null },
  now: string,
): Promise<void> => {
  if (closing.length === 0) return
  await sql`
    with ${recordActParts(workspaceId, { episodes: closing, keyId: closed.keyId, at: now })},
    closing as materialized (
      select * from unnest(${closing.map(({ id }) => id)}::bigint[],
        ${closing.map(({ episode }) => episode)}::int[],
        ${closing.map(({ created_at: at }) => at)}::text[]::timestamptz[],
        ${closing.map(({ sla_breached: breached }) => String(breached))}::text[]::boolean[])
          as u (id, episode, created_at, sla_breached)
    ), w as (
      update reply_waits r set ended_at = greatest(${now}::timestamptz, r.since), ended_by = ${closed.by}::bigint
      from closing c
      where r.workspace_id = ${workspaceId} and r.conversation_id = c.id and r.ended_at is null
    ), e as (
      insert into conversation_episodes as e
        (workspace_id, conversation_id, n, opened_at, closed_at, closed_by, close_reason)
      select ${workspaceId}::bigint, id, episode, created_at, greatest(${now}::timestamptz, created_at),
        ${closed.by}::bigint, ${closed.reason}
      from closing order by id
      on conflict (workspace_id, conversation_id, n) do update
        set closed_at = greatest(${now}::timestamptz, e.opened_at), closed_by = excluded.closed_by,
          close_reason = excluded.close_reason
    )
    update conversations v set state = 'closed', first_response_due_at = null, next_response_due_at = null,
      resolution_due_at = null, sla_breached = c.sla_breached, updated_at = ${now}::timestamptz
    from closing c where v.workspace_id = ${workspaceId} and v.id = c.id`.execute(tx)
}

export type Assignment = Pick<ConversationState, 'assigned_staff_id' | 'assigned_team_id'>

/** Assigns conversations, each to a staff member, a team, both or nobody. `at`: since when; null for nobody. */
export const updateAssignments = async (
  tx: Db,
  workspaceId: string,
  assigned: readonly ({ id: string } & Assignment)[],
  at: string | null,
  now: string,
): Promise<void> => {
  if (assigned.length === 0) return
  await sql`
    update conversations v set assigned_staff_id = u.staff_id, assigned_team_id = u.team_id,
      assigned_at = ${at}::timestamptz, updated_at = ${now}::timestamptz
    from unnest(${assigned.map(({ id }) => id)}::bigint[],
      ${assigned.map(({ assigned_staff_id: id }) => id)}::bigint[],
      ${assigned.map(({ assigned_team_id: id }) => id)}::bigint[]) as u (id, staff_id, team_id)
    where v.workspace_id = ${workspaceId} and v.id = u.id`.execute(tx)
}

/** Columns of a conversation that are set directly. */
export type ConversationSettings = Partial<
  Pick<
    ConversationState,
    | 'unread_count'
    | 'reply_status'
    | 'reminder_at'
    | 'window_corrected_at'
    | 'last_message_id'
    | 'last_activity_at'
    | 'last_inbound_at'
  >
>

export const updateConversation = async (
  tx: Db,
  workspaceId: string,
  id: string,
  settings: ConversationSettings,
  now: string,
): Promise<void> => {
  await tx
    .updateTable('conversations')
    .set({ ...settings, updated_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}

/** A staff member that a conversation may be assigned to. */
export type StaffAssignee = { name: string; enabled: boolean; channel_ids: string[] | null }

export const findStaffAssignee = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<StaffAssignee | undefined> =>
  await tx
    .selectFrom('staff')
    .select(['name', 'enabled', 'channel_ids'])
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', toStorableId(id))
    .executeTakeFirst()

export const findTeamName = async (tx: Db, workspaceId: string, id: string): Promise<string | undefined> =>
  (
    await tx
      .selectFrom('teams')
      .select('name')
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', toStorableId(id))
      .executeTakeFirst()
  )?.name

/** Returns the tags of a conversation, sorted by name. */
export const readConversationTags = async (tx: Db, workspaceId: string, id: string): Promise<Label[]> =>
  tx
    .selectFrom('conversation_tags as l')
    .innerJoin('tags as t', (join) =>
      join.onRef('t.workspace_id', '=', 'l.workspace_id').onRef('t.id', '=', 'l.tag_id'),
    )
    .select(['t.id', 't.name'])
    .where('l.workspace_id', '=', workspaceId)
    .where('l.conversation_id', '=', id)
    .orderBy('t.name_key')
    .orderBy('t.id')
    .execute()

/** Adds and removes tags of a conversation. Returns the number of tags that changed. */
export const updateConversationTags = async (
  tx: Db,
  workspaceId: string,
  id: string,
  add: readonly string[],
  remove: readonly string[],
): Promise<number> =>
  (
    await sql<{ tag_id: string }>`
    with added as (
      insert into conversation_tags (workspace_id, conversation_id, tag_id)
        select ${workspaceId}::bigint, ${id}::bigint, tag from unnest(${add}::bigint[]) as tag
      on conflict do nothing returning tag_id
    ), removed as (
      delete from conversation_tags where workspace_id = ${workspaceId} and conversation_id = ${id}::bigint
        and tag_id = any(${remove}::bigint[]) returning tag_id
    )
    select tag_id from added union all select tag_id from removed`.execute(tx)
  ).rows.length

import { sql } from 'kysely'
import type { ConversationState } from '../conversations/conversations.ts'
import type { Db } from '../database.ts'
import { toStorableId } from '../values/ids.ts'

/** What the bounds of an agent's policy read, and what its sends are counted by. */

export type BoundFacts = Pick<
  ConversationState,
  | 'contact_id'
  | 'channel_id'
  | 'channel_type'
  | 'assigned_staff_id'
  | 'last_inbound_at'
  | 'free_entry_at'
  | 'window_corrected_at'
> & { channel_name: string | null }

/**
 * Returns a conversation by its id, or the latest one of a contact (on a channel, where one is given); undefined
 * when there is none. `lock`: it stays as it is until the transaction ends.
 */
export const findBoundFacts = async (
  db: Db,
  workspaceId: string,
  {
    conversationId,
    contactId,
    channelId,
    lock = false,
  }: { conversationId?: string; contactId?: string; channelId?: string | undefined; lock?: boolean },
): Promise<BoundFacts | undefined> =>
  (
    await sql<BoundFacts>`
      select v.contact_id, v.channel_id, h.type as channel_type, v.assigned_staff_id, v.last_inbound_at,
        v.free_entry_at, v.window_corrected_at, h.name as channel_name
      from conversations v left join channels h on h.workspace_id = v.workspace_id and h.id = v.channel_id
      where v.workspace_id = ${workspaceId}
        and (${conversationId ?? null}::text is null or v.id = ${toStorableId(conversationId ?? '0')}::bigint)
        and (${contactId ?? null}::text is null or v.contact_id = ${toStorableId(contactId ?? '0')}::bigint)
        and (${channelId ?? null}::text is null or v.channel_id = ${toStorableId(channelId ?? '0')}::bigint)
      order by v.activity_at desc, v.id desc limit 1 ${lock ? sql`for update of v` : sql``}`.execute(db)
  ).rows[0]

/**
 * Counts a send of a family of keys, unless it sent `limit` times in the last hour (null: no limit). One statement on
 * one row, so that it is exact on all servers. Returns its time, by which it is taken back; undefined when the limit is
 * reached.
 */
export const takeSend = async (
  db: Db,
  workspaceId: string,
  familyId: string,
  limit: number | null,
): Promise<string | undefined> => {
  const recent = sql`array(select t from unnest(s.sent_at) as t where t > clock_timestamp() - interval '1 hour')`
  const { rows } = await sql<{ at: string }>`
    insert into agent_sends as s (workspace_id, key_id, sent_at)
    values (${workspaceId}, ${familyId}, array[clock_timestamp()])
    on conflict (workspace_id, key_id) do update set sent_at = ${recent} || clock_timestamp()
      where ${limit}::int is null or cardinality(${recent}) < ${limit}::int
    returning sent_at[cardinality(sent_at)]::text as at`.execute(db)
  return rows[0]?.at
}

/** Takes back the count of a send that was not made. */
export const releaseSend = async (
  db: Db,
  workspaceId: string,
  familyId: string,
  at: string,
): Promise<void> => {
  await sql`
    update agent_sends set sent_at = array_remove(sent_at, ${at}::text::timestamptz)
    where workspace_id = ${workspaceId} and key_id = ${familyId}`.execute(db)
}

/** Counts so many sends of a family of keys at once, whatever its limit. */
export const addSends = async (
  db: Db,
  workspaceId: string,
  familyId: string,
  count: number,
): Promise<void> => {
  await sql`
    insert into agent_sends as s (workspace_id, key_id, sent_at)
    values (${workspaceId}, ${familyId}, array_fill(clock_timestamp(), array[${count}::int]))
    on conflict (workspace_id, key_id) do update set
      sent_at = array(select t from unnest(s.sent_at) as t where t > clock_timestamp() - interval '1 hour')
        || excluded.sent_at`.execute(db)
}

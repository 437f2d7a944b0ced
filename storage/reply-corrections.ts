import { sql } from 'kysely'
import type { Db, ReplyStatus } from './database.ts'

/** What follows from the messages of a conversation, for when one of them fails afterwards. */

export type EpisodeRow = {
  n: number
  opened_at: string
  opened_by: string | null
  closed_at: string | null
  closed_by: string | null
  resolution_due_at: string | null
  resumed: boolean
}
export type WaitRow = {
  since: string
  kind: 'first_response' | 'next_response'
  episode: number
  due_at: string | null
  ended_at: string | null
  ended_by: string | null
}
export type ExchangedMessage = {
  direction: 'inbound' | 'outbound'
  episode: number
  created_at: string
  staff_id: string | null
}

/** Messages between customer and business that count: not pending, and not failed. */
const isExchanged = sql.raw(`(direction = 'inbound'
  or direction = 'outbound' and status in ('sent', 'delivered', 'read'))`)

/** Returns the episodes of a locked conversation, oldest first. */
export const loadEpisodes = (tx: Db, workspaceId: string, conversationId: string): Promise<EpisodeRow[]> =>
  tx
    .selectFrom('conversation_episodes')
    .select(['n', 'opened_at', 'opened_by', 'closed_at', 'closed_by', 'resolution_due_at', 'resumed'])
    .where('workspace_id', '=', workspaceId)
    .where('conversation_id', '=', conversationId)
    .orderBy('n')
    .execute()

/** Returns all waits of a conversation, oldest first. */
export const loadWaits = (tx: Db, workspaceId: string, conversationId: string): Promise<WaitRow[]> =>
  tx
    .selectFrom('reply_waits')
    .select(['since', 'kind', 'episode', 'due_at', 'ended_at', 'ended_by'])
    .where('workspace_id', '=', workspaceId)
    .where('conversation_id', '=', conversationId)
    .orderBy('since')
    .execute()

/**
 * Returns what was exchanged from an episode on, in the order in which it was written or arrived, and the
 * reply status before.
 */
export const loadExchange = async (
  tx: Db,
  workspaceId: string,
  conversationId: string,
  fromEpisode: number,
): Promise<{ messages: ExchangedMessage[]; before: ReplyStatus | null }> => {
  const { rows: messages } = await sql<ExchangedMessage>`
    select direction, episode, created_at, staff_id from messages
    where workspace_id = ${workspaceId} and conversation_id = ${conversationId}::bigint
      and episode >= ${fromEpisode}::int and ${isExchanged} order by id`.execute(tx)
  if (fromEpisode <= 1) return { messages, before: null }
  const { rows } = await sql<Pick<ExchangedMessage, 'direction'>>`
    select direction from messages
    where workspace_id = ${workspaceId} and conversation_id = ${conversationId}::bigint
      and episode < ${fromEpisode}::int and ${isExchanged} order by id desc limit 1`.execute(tx)
  const last = rows[0]?.direction
  return {
    messages,
    before: last === undefined ? null : last === 'inbound' ? 'incoming_no_reply' : 'outgoing_no_response',
  }
}

/** Replaces waits of a locked conversation by others, and sets the first responses of these episodes. */
export const replaceWaits = async (
  tx: Db,
  workspaceId: string,
  conversationId: string,
  { removed, added }: { removed: readonly WaitRow[]; added: readonly WaitRow[] },
  firstResponses: ReadonlyMap<number, string | null>,
): Promise<void> => {
  const responses = [...firstResponses].map(([n, at]) => ({ n, at }))
  // Two statements: in one, the deleted rows would still collide with the inserted ones.
  await sql`
    with e as (
      update conversation_episodes e set first_response_at = r.at
      from jsonb_to_recordset(${JSON.stringify(responses)}::text::jsonb) as r (n integer, at timestamptz)
      where e.workspace_id = ${workspaceId} and e.conversation_id = ${conversationId}::bigint and e.n = r.n
        and e.first_response_at is distinct from r.at
    )
    delete from reply_waits where workspace_id = ${workspaceId} and conversation_id = ${conversationId}::bigint
      and since = any(${removed.map(({ since }) => since)}::text[]::timestamptz[])`.execute(tx)
  if (added.length === 0) return
  await sql`
    insert into reply_waits (workspace_id, conversation_id, since, kind, episode, due_at, ended_at, ended_by)
    select ${workspaceId}::bigint, ${conversationId}::bigint, since, kind, episode, due_at, ended_at, ended_by
    from jsonb_to_recordset(${JSON.stringify(added)}::text::jsonb) as r (since timestamptz, kind text,
      episode integer, due_at timestamptz, ended_at timestamptz, ended_by bigint)`.execute(tx)
}

/** Lets an ended wait go on in this episode. */
export const reopenWait = async (
  tx: Db,
  workspaceId: string,
  conversationId: string,
  episode: number,
  since: string,
): Promise<void> => {
  await tx
    .updateTable('reply_waits')
    .set({ ended_at: null, ended_by: null, episode })
    .where('workspace_id', '=', workspaceId)
    .where('conversation_id', '=', conversationId)
    .where('since', '=', since)
    .execute()
}

/** What a conversation shows of its replies. */
export type ReplyState = {
  reply_status: ReplyStatus | null
  first_response_due_at: string | null
  next_response_due_at: string | null
  sla_breached: boolean
  /** When the open wait began; left as it is when there is none. */
  waiting_since?: string
}

export const updateReplyState = async (
  tx: Db,
  workspaceId: string,
  conversationId: string,
  state: ReplyState,
  now: string,
): Promise<void> => {
  await tx
    .updateTable('conversations')
    .set({ ...state, updated_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', conversationId)
    .execute()
}

import { type RawBuilder, sql } from 'kysely'
import type { Db, ReplyStatus } from '../database.ts'

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

/** Returns the waits of a conversation, oldest first: all, or those that began at a time or later. */
export const loadWaits = (
  tx: Db,
  workspaceId: string,
  conversationId: string,
  from?: string,
): Promise<WaitRow[]> =>
  tx
    .selectFrom('reply_waits')
    .select(['since', 'kind', 'episode', 'due_at', 'ended_at', 'ended_by'])
    .where('workspace_id', '=', workspaceId)
    .where('conversation_id', '=', conversationId)
    .$if(from !== undefined, (query) => query.where('since', '>=', from!))
    .orderBy('since')
    .execute()

/** Whether a wait of an episode that began before a time ended after its deadline. */
export const hasLateWait = async (
  tx: Db,
  workspaceId: string,
  conversationId: string,
  { episode, before }: { episode: number; before: string },
): Promise<boolean> => {
  const { rows } = await sql<{ late: boolean }>`
    select exists (select from reply_waits
      where workspace_id = ${workspaceId} and conversation_id = ${conversationId}::bigint
        and since < ${before}::timestamptz and episode = ${episode}::int and due_at < ended_at) as late`.execute(
    tx,
  )
  return rows[0]!.late
}

/** Messages before one that are looked at for a reply that settles what was before, and replies that are tried. */
const NEAR_MESSAGES = 200
const MAX_TRIES = 3
/** The provider reports whole seconds: waits of one second begin at different milliseconds of it. */
const CLEAR_GAP = sql.lit('1 second')

type Settling = { id: string; created_at: string; from: string }

/** Counted replies shortly before a message after which nobody wrote for a second, the latest first. */
const listSettlingReplies = async (
  tx: Db,
  workspaceId: string,
  conversationId: string,
  message: { id: string; created_at: string },
  episode: Pick<EpisodeRow, 'n' | 'opened_at' | 'closed_at'>,
): Promise<Settling[]> => {
  const { rows } = await sql<Settling>`
    select id, created_at, created_at + interval ${CLEAR_GAP} as from from (
      select near.*, lag(created_at) over newest as next_at,
        max(id) over (newest rows between 1 following and unbounded following) as highest_before
      from (
        select id, created_at, direction, status, episode from messages
        where workspace_id = ${workspaceId} and conversation_id = ${conversationId}::bigint
          and created_at < ${message.created_at}::timestamptz
        order by created_at desc, id desc limit ${sql.lit(NEAR_MESSAGES)}) as near
      window newest as (order by created_at desc, id desc)) as m
    where direction = 'outbound' and ${isExchanged} and episode = ${episode.n}::int and id < ${message.id}::bigint
      and created_at >= ${episode.opened_at}::timestamptz
      and created_at <= coalesce(${episode.closed_at}::timestamptz, 'infinity')
      and coalesce(next_at, ${message.created_at}::timestamptz) >= created_at + interval ${CLEAR_GAP}
      and id > coalesce(highest_before, 0)
    order by created_at desc limit ${sql.lit(MAX_TRIES)}`.execute(tx)
  return rows
}

/**
 * Finds the latest reply before a message of the latest episode that leaves nothing of what was before it to what comes
 * after: it ended every wait, and no message from before its time arrived later. Returns the time from which on
 * messages and waits depend on the message; undefined when there is none near.
 */
export const findSettledTime = async (
  tx: Db,
  workspaceId: string,
  conversationId: string,
  message: { id: string; created_at: string },
  episode: Pick<EpisodeRow, 'n' | 'opened_at' | 'closed_at'>,
): Promise<string | undefined> => {
  for (const { id, from } of await listSettlingReplies(tx, workspaceId, conversationId, message, episode)) {
    const { rows } = await sql<{ settled: boolean }>`
      select max(id) filter (where created_at < ${from}::timestamptz) = ${id}::bigint
        and min(id) filter (where created_at >= ${from}::timestamptz) > ${id}::bigint as settled
      from messages
      where workspace_id = ${workspaceId} and conversation_id = ${conversationId}::bigint`.execute(tx)
    if (rows[0]!.settled) return from
  }
  return undefined
}

const listExchanged = async (
  tx: Db,
  workspaceId: string,
  conversationId: string,
  condition: RawBuilder<unknown>,
): Promise<ExchangedMessage[]> =>
  (
    await sql<ExchangedMessage>`
    select direction, episode, created_at, staff_id from messages
    where workspace_id = ${workspaceId} and conversation_id = ${conversationId}::bigint
      and ${condition} and ${isExchanged} order by id`.execute(tx)
  ).rows

/**
 * Returns what was exchanged from an episode on, in the order in which it was written or arrived, and the
 * reply status before. `replayFrom`: from this time on only, before which a reply settled everything.
 */
export const loadExchange = async (
  tx: Db,
  workspaceId: string,
  conversationId: string,
  fromEpisode: number,
  replayFrom: string | undefined,
): Promise<{ messages: ExchangedMessage[]; before: ReplyStatus | null }> => {
  const load = (condition: RawBuilder<unknown>) => listExchanged(tx, workspaceId, conversationId, condition)
  if (replayFrom !== undefined)
    return {
      messages: await load(sql`created_at >= ${replayFrom}::timestamptz`),
      before: 'outgoing_no_response',
    }
  const messages = await load(sql`episode >= ${fromEpisode}::int`)
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

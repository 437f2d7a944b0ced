import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../database.ts'
import { isOnChannels, isWithin, type TimeRange, type VisibleChannels } from '../reports/reports.ts'

/** An episode of a conversation. */
export type EpisodeRef = { id: string; episode: number }
/** Acts of one key in episodes of conversations. `keyId`: the key that acted; null: unknown, as for the own app. */
export type EpisodeActs = { episodes: readonly EpisodeRef[]; keyId: string | null; at: string }

const selectActs = (episodes: readonly EpisodeRef[]) => sql`
  select * from unnest(${episodes.map(({ id }) => id)}::bigint[],
    ${episodes.map(({ episode }) => episode)}::int[]) as u (conversation_id, episode)`

/**
 * Parts of a statement that record who acted: an AI agent's key begins a session, a person takes it over.
 */
export const recordActParts = (
  workspaceId: string,
  { episodes, keyId, at }: EpisodeActs,
): RawBuilder<unknown> => sql`
  acted as (${selectActs(episodes)}),
  agent as (select id from api_keys where workspace_id = ${workspaceId} and id = ${keyId}::bigint and agent),
  agent_began as (
    insert into agent_sessions (workspace_id, conversation_id, episode, key_id, started_at)
    select ${workspaceId}::bigint, conversation_id, episode, id, ${at}::timestamptz
    from acted, agent order by conversation_id on conflict do nothing
  ), person_took_over as (
    update agent_sessions s set handed_over_at = ${at}::timestamptz from acted a
    where s.workspace_id = ${workspaceId} and s.conversation_id = a.conversation_id
      and s.episode = a.episode and s.handed_over_at is null and not exists (select from agent)
  )`

/**
 * Records that conversations were assigned to a team (`staffId` null) or a staff member: an AI agent's key
 * that did so begins a session, and the session is handed over unless the assignee owns its key.
 */
export const recordAssignments = async (
  tx: Db,
  workspaceId: string,
  { episodes, keyId, at }: EpisodeActs,
  staffId: string | null,
): Promise<void> => {
  if (episodes.length === 0) return
  await sql`
    insert into agent_sessions as s (workspace_id, conversation_id, episode, key_id, started_at,
      handed_over_at)
    select ${workspaceId}::bigint, a.conversation_id, a.episode, k.id, ${at}::timestamptz,
      case when k.staff_id is distinct from ${staffId}::bigint then ${at}::timestamptz end
    from (${selectActs(episodes)}) as a, api_keys k
    where k.workspace_id = ${workspaceId} and k.id = ${keyId}::bigint and k.agent
    order by a.conversation_id on conflict do nothing`.execute(tx)
  await sql`
    update agent_sessions s set handed_over_at = ${at}::timestamptz
    from (${selectActs(episodes)}) as a, api_keys k
    where s.workspace_id = ${workspaceId} and s.conversation_id = a.conversation_id
      and s.episode = a.episode and s.handed_over_at is null
      and k.workspace_id = s.workspace_id and k.id = s.key_id
      and k.staff_id is distinct from ${staffId}::bigint`.execute(tx)
}

/** `sessions`: begun in the range; `resolved`: of these, closed for good without a person. */
export type AgentFigures = { sessions: number; handoffs: number; resolved: number }

/** Counts sessions of AI agents, each once, in the range in which it began. */
export const loadAgentFigures = async (
  tx: Db,
  workspaceId: string,
  range: TimeRange,
  channels: VisibleChannels,
): Promise<AgentFigures> => {
  const {
    rows: [row],
  } = await sql<Record<keyof AgentFigures, string>>`
    select count(*) as sessions, count(s.handed_over_at) as handoffs,
      count(*) filter (where s.handed_over_at is null and e.closed_at is not null and not exists (
        select from conversation_episodes n where n.workspace_id = e.workspace_id
          and n.conversation_id = e.conversation_id and n.n = e.n + 1 and n.resumed)) as resolved
    from agent_sessions s
    left join conversation_episodes e on e.workspace_id = s.workspace_id
      and e.conversation_id = s.conversation_id and e.n = s.episode
    where s.workspace_id = ${workspaceId} and ${isWithin('s.started_at', range)}
      ${isOnChannels('s.conversation_id', workspaceId, channels)}`.execute(tx)
  return {
    sessions: Number(row!.sessions),
    handoffs: Number(row!.handoffs),
    resolved: Number(row!.resolved),
  }
}

/** When the first key of the workspace was marked as an AI agent's, revoked ones included; null: none is. */
export const findFirstAgentKeyTime = async (tx: Db, workspaceId: string): Promise<string | null> =>
  (
    await tx
      .selectFrom('api_keys')
      .select('created_at')
      .where('workspace_id', '=', workspaceId)
      .where('agent', '=', true)
      .orderBy('created_at')
      .limit(1)
      .executeTakeFirst()
  )?.created_at ?? null

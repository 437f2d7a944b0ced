import { type Kysely, sql } from 'kysely'

/** What a reply that fails afterwards changes, and whose work it was: of a person or of an AI agent. */
const statements = [
  // The key that wrote the message; null for customers, the business's own app, and older messages.
  `alter table messages add key_id bigint`,
  // True: opened because a reply failed after the close, so that the customer's wait goes on in this episode.
  `alter table conversation_episodes add resumed boolean not null default false`,
  // Episodes in which an AI agent's key replied, closed or assigned. handed_over_at: when a person first did.
  `create table agent_sessions (
    workspace_id bigint not null, conversation_id bigint not null, episode integer not null,
    key_id bigint not null, started_at timestamptz(3) not null, handed_over_at timestamptz(3),
    primary key (workspace_id, conversation_id, episode)
  )`,
  `create index agent_sessions_started on agent_sessions (workspace_id, started_at)`,
  // Real time. What the keys of agents that exist now did before is unknown.
  `insert into settings (key, value)
    select 'agent_sessions_since', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
    where exists (select from api_keys where agent) on conflict do nothing`,
  // False: what happened on the days changed after the report was generated, so that it is not used any more.
  // Reports of older versions counted closes and late clocks differently.
  `alter table staff_reports add valid boolean not null default true`,
  `update staff_reports set valid = false`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}

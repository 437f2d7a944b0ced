import { type Kysely, sql } from 'kysely'

/**
 * What a staff member may not see shows neither in the refusal of a code, nor in what an endpoint is sent, nor in
 * a stored answer.
 *
 * - Codes of quick messages are unique among those that a staff member may see (server/quick-messages/check.ts).
 * - An endpoint whose address an agent gave is sent no names of manager-only fields.
 * - A stored answer keeps what its reader could see; null: stored before this version.
 */
const statements = [
  `drop index quick_messages_code`,
  `create index quick_messages_code on quick_messages (workspace_id, code_key, id)`,
  `alter table webhook_endpoints add for_agents boolean not null default false`,
  `alter table idempotency add view jsonb`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}

import { type Kysely, sql } from 'kysely'

const statements = [
  // Business time after which a call to the provider whose outcome is unknown is given up.
  `alter table idempotency add column give_up_at timestamptz`,
  `update idempotency i
    set give_up_at = i.created_at + interval '24 hours' + w.clock_offset_ms * interval '1 millisecond'
    from workspaces w where w.id = i.workspace_id and i.state = 'running'`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}

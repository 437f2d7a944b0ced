import { type Kysely, sql } from 'kysely'

/**
 * Autovacuum visits these tables when 2 % of their rows are dead, as it does the other tables that change all day,
 * instead of 20 % (docs/capacity.md). Excludes neither readers nor writers, and rewrites nothing.
 */
const TABLES = [
  'conversation_episodes',
  'reply_waits',
  'contact_tags',
  'contact_groups',
  'broadcast_recipients',
  'channel_deliveries',
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const table of TABLES)
    await sql
      .raw(
        `alter table ${table} set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
          autovacuum_vacuum_insert_scale_factor = 0.02)`,
      )
      .execute(kysely)
}

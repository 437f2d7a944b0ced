import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { createFirstPartition, createPartitions } from './partitions.ts'
import { contacts } from './baseline-contacts.ts'
import { conversations } from './baseline-conversations.ts'
import { events } from './baseline-events.ts'
import { messageSearch } from './baseline-message-search.ts'
import { messages } from './baseline-messages.ts'
import { sandbox } from './baseline-sandbox.ts'
import { templates } from './baseline-templates.ts'
import { work } from './baseline-work.ts'
import { workspaces } from './baseline-workspaces.ts'

/**
 * The schema, a text for each domain, the same on PostgreSQL 15 and on the embedded database.
 *
 * Every primary and unique key begins with `workspace_id`. The exceptions are look-ups made before the workspace is
 * known (`api_keys.hash`), and tables of the server or of the provider's side (`settings`, `sandbox_…`), which
 * `tools/sharding/run.ts` lists. There are no foreign keys. Business timestamps have milliseconds, like JavaScript's
 * clock, so that a cursor keeps their precision; what is real time says so. Autovacuum visits tables that change all
 * day when 2 % of their rows are dead instead of 20 % (docs/capacity.md).
 */
const domains = [
  workspaces,
  contacts,
  conversations,
  messages,
  messageSearch,
  templates,
  events,
  work,
  sandbox,
]

/** Days of retention that the first partitions suit: the defaults. Servers create the next ones. */
const partitioned = [
  ['events', 400],
  ['audit_log', 400],
  ['webhook_attempts', 30],
] as const

export const up = async (db: Db): Promise<void> => {
  // One statement, since drivers send one at a time.
  for (const domain of domains) await sql.raw(`do $domain$ begin ${domain} end $domain$`).execute(db)
  const now = new Date().toISOString()
  for (const [table, retentionDays] of partitioned) {
    await createFirstPartition(db, table, now)
    await createPartitions(db, table, now, retentionDays)
  }
}

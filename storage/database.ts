import type { Kysely, KyselyPlugin, Selectable } from 'kysely'
import { agentTables } from './tables/agents.ts'
import { bulkJobTables } from './tables/bulk-jobs.ts'
import type { TableTypes } from './tables/columns.ts'
import { contactsTables } from './tables/contacts.ts'
import { conversationsTables } from './tables/conversations.ts'
import { erasureTables } from './tables/erasures.ts'
import { eventsTables } from './tables/events.ts'
import { exportTables } from './tables/exports.ts'
import { messagingTables } from './tables/messaging.ts'
import { oauthTables } from './tables/oauth.ts'
import { runTables } from './tables/runs.ts'
import { sandboxTables } from './tables/sandbox.ts'
import { serverTables } from './tables/server.ts'
import { workspaceTables } from './tables/workspace.ts'

/** Every table that the migrations make; tests/storage/schema.test.ts compares the two. */
export const tables = {
  ...workspaceTables,
  ...contactsTables,
  ...conversationsTables,
  ...messagingTables,
  ...eventsTables,
  ...serverTables,
  ...agentTables,
  ...bulkJobTables,
  ...erasureTables,
  ...exportTables,
  ...runTables,
  ...oauthTables,
  ...sandboxTables,
}

type Tables = typeof tables

export type Database = { [Name in keyof Tables]: TableTypes<Tables[Name]> }

type Derivation =
  | 'withoutPlugins'
  | 'withSchema'
  | 'withTables'
  | '$extendTables'
  | '$omitTables'
  | '$pickTables'

/**
 * A connection or a transaction; storage functions take either. Without most methods that return their own class: to
 * see that a transaction is a connection, the compiler would compare what those return, and so on, ten levels deep.
 */
export interface Db extends Omit<Kysely<Database>, Derivation | 'withPlugin'> {
  withPlugin(plugin: KyselyPlugin): Db
}

/** A selected row: `TableRow<'staff'>`. */
export type TableRow<Name extends keyof Database> = Selectable<Database[Name]>

export type ReplyStatus = NonNullable<TableRow<'conversations'>['reply_status']>
export type MessageDirection = TableRow<'messages'>['direction']
export type MessageStatus = TableRow<'messages'>['status']
export type MediaState = TableRow<'media'>['state']
export type DeliveryStatus = TableRow<'webhook_deliveries'>['status']
export type DeliveryTrigger = TableRow<'webhook_deliveries'>['trigger']

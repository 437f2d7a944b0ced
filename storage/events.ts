import { sql } from 'kysely'
import type { Db } from './database.ts'

export type EventRow = { id: string; type: string; occurred_at: string; data: unknown }

/** SQL that writes events, to stand in a common table expression. */
export const insertEvents = (workspaceId: string, events: readonly EventRow[]) => sql`
  insert into events (workspace_id, id, type, occurred_at, data)
  select ${workspaceId}::bigint, e->>'id', e->>'type', (e->>'occurred_at')::timestamptz, e->'data' from jsonb_array_elements(${JSON.stringify(events)}::jsonb) as e`

/** Writes the events of a change that no request asked for, in its transaction. */
export const writeEvents = async (tx: Db, workspaceId: string, events: readonly EventRow[]): Promise<void> => {
  if (events.length > 0) await insertEvents(workspaceId, events).execute(tx)
}

import { sql } from 'kysely'
import type { Db, SlaPoliciesTable } from './database.ts'

/**
 * A service level: targets in seconds, null where there is none. `channel_ids` null: all channels; `hours`
 * null: around the clock.
 */
export type PolicyFields = {
  name: string
  enabled: boolean
  channel_ids: string[] | null
  first_response_seconds: number | null
  next_response_seconds: number | null
  resolution_seconds: number | null
  hours: unknown
}
export type PolicyRow = PolicyFields & { id: string; created_at: string }

const columns = [
  'id',
  'name',
  'enabled',
  'channel_ids',
  'first_response_seconds',
  'next_response_seconds',
  'resolution_seconds',
  'hours',
  'created_at',
] as const

/** Text, since the driver writes an object as its own text. */
const stored = <T extends { hours?: unknown }>(fields: T): T =>
  fields.hours === undefined || fields.hours === null
    ? fields
    : { ...fields, hours: JSON.stringify(fields.hours) }

export const listPolicies = (db: Db, workspaceId: string): Promise<PolicyRow[]> =>
  db
    .selectFrom('sla_policies')
    .select(columns)
    .where('workspace_id', '=', workspaceId)
    .orderBy('id')
    .execute()

export const createPolicy = (
  db: Db,
  workspaceId: string,
  fields: PolicyFields,
  now: string,
): Promise<PolicyRow> =>
  db
    .insertInto('sla_policies')
    .values({ workspace_id: workspaceId, ...stored(fields), created_at: now })
    .returning(columns)
    .executeTakeFirstOrThrow()

/** What is not given stays. Undefined when there is none. */
export const updatePolicy = (
  db: Db,
  workspaceId: string,
  id: string,
  fields: Partial<PolicyFields>,
): Promise<PolicyRow | undefined> =>
  db
    .updateTable('sla_policies')
    .set(stored(fields) as Partial<SlaPoliciesTable> as never)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirst()

/** False when there is none. */
export const deletePolicy = async (db: Db, workspaceId: string, id: string): Promise<boolean> =>
  (
    await db
      .deleteFrom('sla_policies')
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .returning('id')
      .execute()
  ).length > 0

export type ActivePolicy = Pick<
  PolicyRow,
  'id' | 'channel_ids' | 'first_response_seconds' | 'next_response_seconds' | 'resolution_seconds' | 'hours'
> & { timezone: string }

/** The enabled policies, oldest first, with the workspace's time zone. */
export const readPolicies = async (tx: Db, workspaceId: string): Promise<ActivePolicy[]> =>
  (
    await sql<ActivePolicy>`
    select p.id, p.channel_ids, p.first_response_seconds, p.next_response_seconds, p.resolution_seconds, p.hours, w.timezone
    from sla_policies p join workspaces w on w.id = p.workspace_id
    where p.workspace_id = ${workspaceId} and p.enabled order by p.id`.execute(tx)
  ).rows

import type { Db } from '../database.ts'

/**
 * A service level: targets in seconds, null for none. `channel_ids`: null for all channels. `hours`: null for
 * around the clock.
 */
export type SlaPolicyFields = {
  name: string
  enabled: boolean
  channel_ids: string[] | null
  first_response_seconds: number | null
  next_response_seconds: number | null
  resolution_seconds: number | null
  hours: unknown
}
export type SlaPolicyRow = SlaPolicyFields & { id: string; created_at: string }

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

/** Hours as JSON text, since the driver would write an object as `[object Object]`. */
const toStoredFields = <T extends { hours?: unknown }>(fields: T): T =>
  fields.hours === undefined || fields.hours === null
    ? fields
    : { ...fields, hours: JSON.stringify(fields.hours) }

export const listSlaPolicies = (db: Db, workspaceId: string): Promise<SlaPolicyRow[]> =>
  db
    .selectFrom('sla_policies')
    .select(columns)
    .where('workspace_id', '=', workspaceId)
    .orderBy('id')
    .execute()

export const insertSlaPolicy = (
  db: Db,
  workspaceId: string,
  fields: SlaPolicyFields,
  now: string,
): Promise<SlaPolicyRow> =>
  db
    .insertInto('sla_policies')
    .values({ workspace_id: workspaceId, ...toStoredFields(fields), created_at: now })
    .returning(columns)
    .executeTakeFirstOrThrow()

/** Updates the given columns. Undefined when the policy does not exist. */
export const updateSlaPolicy = (
  db: Db,
  workspaceId: string,
  id: string,
  fields: Partial<SlaPolicyFields>,
): Promise<SlaPolicyRow | undefined> =>
  db
    .updateTable('sla_policies')
    .set(toStoredFields(fields))
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirst()

/** False when the policy does not exist. */
export const deleteSlaPolicy = async (db: Db, workspaceId: string, id: string): Promise<boolean> =>
  (
    await db
      .deleteFrom('sla_policies')
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .returning('id')
      .execute()
  ).length > 0

export type ActiveSlaPolicy = Pick<
  SlaPolicyRow,
  'id' | 'channel_ids' | 'first_response_seconds' | 'next_response_seconds' | 'resolution_seconds' | 'hours'
> & { timezone: string }

/** Lists the enabled policies, oldest first, with the workspace's time zone. */
export const listActiveSlaPolicies = (tx: Db, workspaceId: string): Promise<ActiveSlaPolicy[]> =>
  tx
    .selectFrom('sla_policies as p')
    .innerJoin('workspaces as w', 'w.id', 'p.workspace_id')
    .select([
      'p.id',
      'p.channel_ids',
      'p.first_response_seconds',
      'p.next_response_seconds',
      'p.resolution_seconds',
      'p.hours',
      'w.timezone',
    ])
    .where('p.workspace_id', '=', workspaceId)
    .where('p.enabled', '=', true)
    .orderBy('p.id')
    .execute()

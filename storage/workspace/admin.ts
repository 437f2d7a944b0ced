import { retryUnmatchedUpdates } from '../channels/provider-updates.ts'
import { sql } from 'kysely'
import type { Role } from '../../catalog/workspace.ts'
import { clearChannelProblem } from '../channels/health.ts'
import type { TableRow, Db } from '../database.ts'
import { schemaOfTables } from '../migrations/has-table.ts'
import { requireNoProviderOwner } from '../channels/provider-owners.ts'
import { hastenQueue } from '../work/runs.ts'

/** Administration on the server's own machine, without an API key. */

export type WorkspaceRow = Omit<TableRow<'workspaces'>, 'names_version' | 'clock_offset_ms'>
export type WorkspaceFields = {
  name: string
  timezone?: string
  features?: string[]
  contact_limit?: number | null
  template_limit?: number | null
}

const workspaceColumns = [
  'id',
  'name',
  'timezone',
  'features',
  'contact_limit',
  'template_limit',
  'created_at',
] as const

/** Runs `work` in the caller's transaction, or else in a new one. */
export const inTransaction = <T>(db: Db, work: (tx: Db) => Promise<T>): Promise<T> =>
  db.isTransaction ? work(db) : db.transaction().execute(work)

/** Creates a workspace with the built-in custom field `email`. */
export const createWorkspace = async (db: Db, fields: WorkspaceFields, now: string): Promise<WorkspaceRow> =>
  await inTransaction(db, async (tx) => {
    const row = await tx
      .insertInto('workspaces')
      .values({ ...fields, created_at: now })
      .returning(workspaceColumns)
      .executeTakeFirstOrThrow()
    await tx
      .insertInto('custom_fields')
      .values({
        workspace_id: row.id,
        key: 'email',
        label: 'Email',
        type: 'email',
        options: null,
        visibility: 'visible_to_all',
        created_at: now,
        deleted_at: null,
      })
      .execute()
    return row
  })

export const listWorkspaces = (db: Db): Promise<WorkspaceRow[]> =>
  db.selectFrom('workspaces').select(workspaceColumns).orderBy('id').execute()

export const updateWorkspace = (
  db: Db,
  id: string,
  fields: Partial<WorkspaceFields>,
): Promise<WorkspaceRow | undefined> =>
  db.updateTable('workspaces').set(fields).where('id', '=', id).returning(workspaceColumns).executeTakeFirst()

export type StaffFields = {
  name: string
  role: Role
  enabled?: boolean
  hide_phone_numbers?: boolean
  reports?: boolean
  channel_ids?: string[] | null
}
export type AdminStaffRow = Omit<TableRow<'staff'>, 'workspace_id' | 'created_at'> & { team_ids: string[] }

const selectStaff = (db: Db, workspaceId: string) =>
  db
    .selectFrom('staff as s')
    .where('s.workspace_id', '=', workspaceId)
    .select(['s.id', 's.name', 's.role', 's.enabled', 's.hide_phone_numbers', 's.reports', 's.channel_ids'])
    .select((row) =>
      sql<string[]>`array(
        select team_id from team_members m
        where m.workspace_id = s.workspace_id and m.staff_id = ${row.ref('s.id')} order by team_id)`.as(
        'team_ids',
      ),
    )

export const createStaff = async (
  db: Db,
  workspaceId: string,
  fields: StaffFields,
  teamIds: readonly string[],
  now: string,
): Promise<AdminStaffRow> =>
  await inTransaction(db, async (tx) => {
    const { id } = await tx
      .insertInto('staff')
      .values({ workspace_id: workspaceId, channel_ids: null, ...fields, created_at: now })
      .returning('id')
      .executeTakeFirstOrThrow()
    await replaceTeams(tx, workspaceId, id, teamIds)
    return await selectStaff(tx, workspaceId).where('s.id', '=', id).executeTakeFirstOrThrow()
  })

export const updateStaff = async (
  db: Db,
  workspaceId: string,
  id: string,
  fields: Partial<StaffFields>,
  teamIds: readonly string[] | undefined,
): Promise<AdminStaffRow | undefined> =>
  await inTransaction(db, async (tx) => {
    const found = await tx
      .selectFrom('staff')
      .select('id')
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .forUpdate()
      .executeTakeFirst()
    if (!found) return undefined
    if (Object.keys(fields).length > 0)
      await tx
        .updateTable('staff')
        .set(fields)
        .where('workspace_id', '=', workspaceId)
        .where('id', '=', id)
        .execute()
    if (teamIds) await replaceTeams(tx, workspaceId, id, teamIds)
    return await selectStaff(tx, workspaceId).where('s.id', '=', id).executeTakeFirst()
  })

const replaceTeams = async (
  tx: Db,
  workspaceId: string,
  staffId: string,
  teamIds: readonly string[],
): Promise<void> => {
  await tx
    .deleteFrom('team_members')
    .where('workspace_id', '=', workspaceId)
    .where('staff_id', '=', staffId)
    .execute()
  if (teamIds.length > 0)
    await tx
      .insertInto('team_members')
      .values(teamIds.map((id) => ({ workspace_id: workspaceId, team_id: id, staff_id: staffId })))
      .execute()
}

export const listAllStaff = (db: Db, workspaceId: string): Promise<AdminStaffRow[]> =>
  selectStaff(db, workspaceId).orderBy('s.id').execute()

export type AdminTeamRow = { id: string; name: string; staff_ids: string[] }

const selectTeams = (db: Db, workspaceId: string) =>
  db
    .selectFrom('teams as t')
    .where('t.workspace_id', '=', workspaceId)
    .select(['t.id', 't.name'])
    .select((row) =>
      sql<string[]>`array(
        select staff_id from team_members m
        where m.workspace_id = t.workspace_id and m.team_id = ${row.ref('t.id')} order by staff_id)`.as(
        'staff_ids',
      ),
    )

const replaceMembers = async (
  tx: Db,
  workspaceId: string,
  teamId: string,
  staffIds: readonly string[],
): Promise<void> => {
  await tx
    .deleteFrom('team_members')
    .where('workspace_id', '=', workspaceId)
    .where('team_id', '=', teamId)
    .execute()
  if (staffIds.length > 0)
    await tx
      .insertInto('team_members')
      .values(staffIds.map((id) => ({ workspace_id: workspaceId, team_id: teamId, staff_id: id })))
      .execute()
}

export const createTeam = (
  db: Db,
  workspaceId: string,
  name: string,
  now: string,
  staffIds: readonly string[] = [],
): Promise<AdminTeamRow> =>
  inTransaction(db, async (tx) => {
    const { id } = await tx
      .insertInto('teams')
      .values({ workspace_id: workspaceId, name, created_at: now })
      .returning('id')
      .executeTakeFirstOrThrow()
    await replaceMembers(tx, workspaceId, id, staffIds)
    return await selectTeams(tx, workspaceId).where('t.id', '=', id).executeTakeFirstOrThrow()
  })

export const updateTeam = (
  db: Db,
  workspaceId: string,
  id: string,
  name: string | undefined,
  staffIds: readonly string[] | undefined,
): Promise<AdminTeamRow | undefined> =>
  inTransaction(db, async (tx) => {
    const found = await tx
      .selectFrom('teams')
      .select('id')
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .forUpdate()
      .executeTakeFirst()
    if (!found) return undefined
    if (name !== undefined)
      await tx
        .updateTable('teams')
        .set({ name })
        .where('workspace_id', '=', workspaceId)
        .where('id', '=', id)
        .execute()
    if (staffIds) await replaceMembers(tx, workspaceId, id, staffIds)
    return await selectTeams(tx, workspaceId).where('t.id', '=', id).executeTakeFirst()
  })

export const listAllTeams = (db: Db, workspaceId: string): Promise<AdminTeamRow[]> =>
  selectTeams(db, workspaceId).orderBy('t.id').execute()

export type ChannelFields = Partial<
  Omit<TableRow<'channels'>, 'workspace_id' | 'id' | 'created_at' | 'is_default'>
> & { is_default?: boolean }
export type AdminChannelRow = Omit<TableRow<'channels'>, 'workspace_id'>

/** A workspace has one default channel, so the old one is cleared before a new one is set. */
const clearDefaultChannel = async (tx: Db, workspaceId: string): Promise<void> => {
  await tx
    .updateTable('channels')
    .set({ is_default: false })
    .where('workspace_id', '=', workspaceId)
    .where('is_default', '=', true)
    .execute()
}

export const createChannel = async (
  db: Db,
  workspaceId: string,
  fields: ChannelFields & { type: string },
  now: string,
): Promise<AdminChannelRow> =>
  await inTransaction(db, async (tx) => {
    await requireNoProviderOwner(tx, workspaceId, fields, null)
    if (fields.is_default) await clearDefaultChannel(tx, workspaceId)
    const { workspace_id: _, ...row } = await tx
      .insertInto('channels')
      .values({
        workspace_id: workspaceId,
        name: null,
        identifier: null,
        status: 'unknown',
        account_id: null,
        account_name: null,
        provider_channel_id: null,
        provider_phone_number_id: null,
        web_surface: null,
        payment_configuration: null,
        quality_rating: null,
        url: null,
        ...fields,
        created_at: now,
      })
      .returningAll()
      .executeTakeFirstOrThrow()
    if (row.provider_phone_number_id !== null) await retryUnmatchedUpdates(tx, row.provider_phone_number_id)
    return row
  })

export const updateChannel = async (
  db: Db,
  workspaceId: string,
  id: string,
  fields: ChannelFields,
): Promise<AdminChannelRow | undefined> =>
  await inTransaction(db, async (tx) => {
    await requireNoProviderOwner(tx, workspaceId, fields, id)
    if (fields.is_default) await clearDefaultChannel(tx, workspaceId)
    const row = await tx
      .updateTable('channels')
      .set(fields)
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .returningAll()
      .executeTakeFirst()
    if (!row) return undefined
    // What the provider had to say was of another state, number or account.
    if ('status' in fields || 'account_id' in fields || 'provider_phone_number_id' in fields)
      await clearChannelProblem(tx, workspaceId, id)
    if (typeof fields.provider_phone_number_id === 'string')
      await retryUnmatchedUpdates(tx, fields.provider_phone_number_id)
    // Replies that waited until the channel takes any.
    if ('status' in fields || 'url' in fields)
      await hastenQueue(tx, { workspace_id: workspaceId, kind: 'channel_deliveries', queue: id })
    const { workspace_id: _, ...channel } = row
    return channel
  })

export const listAllChannels = async (db: Db, workspaceId: string): Promise<AdminChannelRow[]> =>
  (
    await db
      .selectFrom('channels')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .orderBy('id')
      .execute()
  ).map(({ workspace_id: _, ...row }) => row)

/** True when the database has no workspace. */
export const hasNoWorkspace = async (db: Db): Promise<boolean> =>
  (await db.selectFrom('workspaces').select('id').limit(1).execute()).length === 0

/**
 * Prevents others from creating workspaces until the transaction ends: of two servers that start on an empty
 * database, one creates the demo.
 */
export const lockWorkspaces = async (tx: Db): Promise<void> => {
  await sql`lock table workspaces in share row exclusive mode`.execute(tx)
}

/**
 * Has the ids of all workspaces' records begin with 1 again. Only for a database that has no workspace, whose lock the
 * transaction holds: one that was cut off before has used ids, which no rollback gives back.
 */
export const restartIds = async (tx: Db): Promise<void> => {
  await sql`
    select setval(s.name, 1, false) from (
      select pg_get_serial_sequence(quote_ident(c.relname), a.attname)::regclass as name
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attidentity <> ''
      where c.relnamespace = ${schemaOfTables} and c.relkind in ('r', 'p') and (c.relname = 'workspaces' or exists (
        select from pg_attribute w
        where w.attrelid = c.oid and w.attname = 'workspace_id' and w.attnotnull))
    ) as s where pg_sequence_last_value(s.name) is not null`.execute(tx)
}

/** Sets the id of the next record of these tables. */
export const setNextIds = async (tx: Db, ids: Readonly<Record<string, number>>): Promise<void> => {
  for (const [table, id] of Object.entries(ids))
    await sql`select setval(pg_get_serial_sequence(${table}, 'id'), ${id}, false)`.execute(tx)
}

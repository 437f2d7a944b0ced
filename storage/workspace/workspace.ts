import { sql } from 'kysely'
import type { Role } from '../../catalog/workspace.ts'
import type { TableRow, Db } from '../database.ts'

/**
 * A workspace has few staff members, teams and channels. All of them are read, and the handler filters and
 * pages them, with the case folding of contacts.
 */
export type StaffRow = {
  id: string
  name: string
  role: Role
  enabled: boolean
  team_ids: string[] | null
  channel_ids: string[] | null
}
export type TeamRow = { id: string; name: string; staff_ids: string[] | null }
export type ChannelRow = Omit<TableRow<'channels'>, 'workspace_id'>

/** Returns all staff of a workspace, by id. */
export const readStaff = async (tx: Db, workspaceId: string): Promise<StaffRow[]> =>
  (
    await sql<StaffRow>`
    select x.id, x.name, x.role, x.enabled, x.channel_ids,
      (select array_agg(m.team_id order by m.team_id) from team_members m
        where m.workspace_id = x.workspace_id and m.staff_id = x.id) as team_ids
    from staff x where x.workspace_id = ${workspaceId} order by x.id`.execute(tx)
  ).rows

/** Returns all teams of a workspace, by id. */
export const readTeams = async (tx: Db, workspaceId: string): Promise<TeamRow[]> =>
  (
    await sql<TeamRow>`
    select x.id, x.name,
      (select array_agg(m.staff_id order by m.staff_id) from team_members m
        where m.workspace_id = x.workspace_id and m.team_id = x.id) as staff_ids
    from teams x where x.workspace_id = ${workspaceId} order by x.id`.execute(tx)
  ).rows

/** Returns all channels of a workspace, by id. */
export const readChannels = async (tx: Db, workspaceId: string): Promise<ChannelRow[]> =>
  tx.selectFrom('channels').selectAll().where('workspace_id', '=', workspaceId).orderBy('id').execute()

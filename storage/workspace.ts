import { sql } from 'kysely'
import type { Role } from '../catalog/workspace.ts'
import type { ChannelsTable, Db } from './database.ts'
import { containsPattern } from './text.ts'

/** Staff, teams and channels are few: filtered by plain conditions, paged by id. */
export type StaffRow = { id: string; name: string; role: Role; enabled: boolean; team_ids: string[] | null; channel_ids: string[] | null }
export type TeamRow = { id: string; name: string; staff_ids: string[] | null }
export type ChannelRow = Omit<ChannelsTable, 'workspace_id' | 'id' | 'is_default'> & { id: string; is_default: boolean }

const pattern = (search: string | undefined): string | null => (search === undefined ? null : containsPattern(search.normalize('NFC').toLowerCase()))

const page = (after: string | null, limit: number) => sql`and (${after}::bigint is null or x.id > ${after}) order by x.id limit ${limit}`

const count = async (tx: Db, from: ReturnType<typeof sql>): Promise<number> => Number((await sql<{ n: string }>`select count(*) as n ${from}`.execute(tx)).rows[0]!.n)

const staffFrom = (workspaceId: string, search: string | undefined) => sql`
  from staff x where x.workspace_id = ${workspaceId} and (${pattern(search)}::text is null or lower(x.name) like ${pattern(search)})`

export const pageOfStaff = async (tx: Db, workspaceId: string, search: string | undefined, after: string | null, limit: number): Promise<StaffRow[]> =>
  (await sql<StaffRow>`
    select x.id, x.name, x.role, x.enabled, x.channel_ids,
      (select array_agg(m.team_id order by m.team_id) from team_members m where m.workspace_id = x.workspace_id and m.staff_id = x.id) as team_ids
    ${staffFrom(workspaceId, search)} ${page(after, limit)}`.execute(tx)).rows

export const countStaff = (tx: Db, workspaceId: string, search: string | undefined): Promise<number> => count(tx, staffFrom(workspaceId, search))

const teamsFrom = (workspaceId: string, search: string | undefined) => sql`
  from teams x where x.workspace_id = ${workspaceId} and (${pattern(search)}::text is null or lower(x.name) like ${pattern(search)})`

export const pageOfTeams = async (tx: Db, workspaceId: string, search: string | undefined, after: string | null, limit: number): Promise<TeamRow[]> =>
  (await sql<TeamRow>`
    select x.id, x.name,
      (select array_agg(m.staff_id order by m.staff_id) from team_members m where m.workspace_id = x.workspace_id and m.team_id = x.id) as staff_ids
    ${teamsFrom(workspaceId, search)} ${page(after, limit)}`.execute(tx)).rows

export const countTeams = (tx: Db, workspaceId: string, search: string | undefined): Promise<number> => count(tx, teamsFrom(workspaceId, search))

export type ChannelFilter = { type?: string | undefined; search?: string | undefined; onlyIds: readonly string[] | null }

const channelsFrom = (workspaceId: string, { type, search, onlyIds }: ChannelFilter) => sql`
  from channels x where x.workspace_id = ${workspaceId} and (${type ?? null}::text is null or x.type = ${type ?? null})
    and (${onlyIds}::bigint[] is null or x.id = any(${onlyIds}::bigint[]))
    and (${pattern(search)}::text is null or lower(x.name) like ${pattern(search)} or lower(x.identifier) like ${pattern(search)})`

export const pageOfChannels = async (tx: Db, workspaceId: string, filter: ChannelFilter, after: string | null, limit: number): Promise<ChannelRow[]> =>
  (await sql<ChannelRow>`select x.* ${channelsFrom(workspaceId, filter)} ${page(after, limit)}`.execute(tx)).rows

export const countChannels = (tx: Db, workspaceId: string, filter: ChannelFilter): Promise<number> => count(tx, channelsFrom(workspaceId, filter))

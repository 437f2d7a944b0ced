import { roles } from '../../catalog/workspace.ts'
import {
  createStaff,
  createTeam,
  listAllChannels,
  listAllStaff,
  listAllTeams,
  type StaffFields,
  updateStaff,
  updateTeam,
} from '../../storage/workspace/admin.ts'
import { countActiveEndpoints } from '../../storage/webhooks/webhooks.ts'
import { usageError } from '../error.ts'
import {
  parseId,
  idsFlag,
  notFoundError,
  nameFlag,
  nothingToChangeError,
  choiceFlag,
  requireExistingIds,
  omitUndefined,
  stringFlag,
} from './flags.ts'
import type { AdminFlags, AdminGroup, AdminSession } from './verb.ts'

const booleanFlag = (flags: AdminFlags, name: string): boolean | undefined =>
  typeof flags[name] === 'boolean' ? flags[name] : undefined

/** Parses `--enabled` and `--disabled`; undefined when both are absent. */
export const enabledFlag = (flags: AdminFlags): boolean | undefined => {
  if (flags['enabled'] === true && flags['disabled'] === true)
    throw usageError('--enabled and --disabled are mutually exclusive.', '--disabled')
  return flags['disabled'] === true ? false : flags['enabled'] === true ? true : undefined
}

/** Parses the flags and checks their ids against the workspace. */
const readStaffFields = async (session: AdminSession, flags: AdminFlags) => {
  const channelIds = stringFlag(flags, 'channels') === 'all' ? null : idsFlag(flags, 'channels')
  const teamIds = idsFlag(flags, 'teams')
  const fields = omitUndefined({
    name: nameFlag(flags),
    role: choiceFlag(flags, 'role', roles),
    enabled: enabledFlag(flags),
    hide_phone_numbers: booleanFlag(flags, 'hidePhoneNumbers'),
    reports: booleanFlag(flags, 'reports'),
    channel_ids: channelIds,
  })
  const db = await session.db()
  const { id } = await session.workspace()
  if (channelIds?.length)
    requireExistingIds(channelIds, await listAllChannels(db, id), { noun: 'channel', group: 'channels' })
  if (teamIds?.length)
    requireExistingIds(teamIds, await listAllTeams(db, id), { noun: 'team', group: 'teams' })
  return { db, workspaceId: id, fields, teamIds }
}

const warnIneffectiveHiding = (
  session: AdminSession,
  row: { role: string; hide_phone_numbers: boolean },
): void => {
  if (row.hide_phone_numbers && row.role !== 'agent')
    session.io.stderr.write(
      'Warning: --hide-phone-numbers only affects agents; it has no effect with another role.\n',
    )
}

/** Endpoints go on as they are, whoever gave their addresses (docs/visibility.md). */
const warnOfEndpoints = async (
  session: AdminSession,
  { enabled, role, hide_phone_numbers: hides, channel_ids: channels }: Partial<StaffFields>,
): Promise<void> => {
  const maySeeLess = enabled === false || role === 'agent' || hides === true || channels
  if (!maySeeLess) return
  const count = await countActiveEndpoints(await session.db(), (await session.workspace()).id)
  if (count === 0) return
  const endpoints = count === 1 ? '1 webhook endpoint gets' : `${count} webhook endpoints get`
  session.io.stderr.write(
    `Warning: ${endpoints} the events of the whole workspace, whoever set the URL. Disable endpoints ` +
      'that only this person reads: wcrm webhooks list, wcrm webhooks disable ID\n',
  )
}

export const staffGroup: AdminGroup = {
  name: 'staff',
  summary: 'Staff members, their roles and permissions',
  verbs: [
    {
      name: 'create',
      summary: 'Add a staff member',
      scoped: true,
      required: [
        ['--name <name>', 'display name'],
        ['--role <role>', `one of: ${roles.join(', ')}`],
      ],
      options: [
        ['--hide-phone-numbers', 'mask phone numbers for this agent'],
        ['--reports', 'allow reading the staff report'],
        ['--disabled', 'refuse the API keys of this staff member'],
        ['--channels <ids>', 'channels this staff member may use, or all (default: all)'],
        ['--teams <ids>', 'teams this staff member belongs to'],
      ],
      run: async (session, flags) => {
        const { db, workspaceId, fields, teamIds } = await readStaffFields(session, flags)
        const row = await createStaff(
          db,
          workspaceId,
          { ...fields, name: fields.name!, role: fields.role! },
          teamIds ?? [],
          session.now,
        )
        warnIneffectiveHiding(session, row)
        return row
      },
    },
    {
      name: 'list',
      access: 'read',
      summary: 'List the staff',
      scoped: true,
      columns: ['id', 'name', 'role', 'enabled', 'hide_phone_numbers', 'reports', 'channel_ids', 'team_ids'],
      run: async (session) => ({
        data: await listAllStaff(await session.db(), (await session.workspace()).id),
      }),
    },
    {
      name: 'update',
      summary: 'Update a staff member; omitted values stay',
      scoped: true,
      argument: ['<id>', 'staff member'],
      options: [
        ['--name <name>', 'display name'],
        ['--role <role>', `one of: ${roles.join(', ')}`],
        ['--hide-phone-numbers', 'mask phone numbers for this agent'],
        ['--no-hide-phone-numbers', 'show phone numbers'],
        ['--reports', 'allow reading the staff report'],
        ['--no-reports', 'do not allow reading the staff report'],
        ['--disabled', 'refuse the API keys of this staff member'],
        ['--enabled', 'accept the API keys of this staff member'],
        ['--channels <ids>', 'channels this staff member may use, or all'],
        ['--teams <ids>', 'teams this staff member belongs to; replaces the previous ones'],
      ],
      run: async (session, flags, argument) => {
        const staffId = parseId(argument, '<id>')
        const { db, workspaceId, fields, teamIds } = await readStaffFields(session, flags)
        if (Object.keys(fields).length === 0 && !teamIds) throw nothingToChangeError()
        const row = await updateStaff(db, workspaceId, staffId, fields, teamIds)
        if (!row)
          throw notFoundError(
            `The workspace has no staff member ${staffId}.`,
            '<id>',
            'List them with: wcrm admin staff list',
          )
        warnIneffectiveHiding(session, row)
        await warnOfEndpoints(session, fields)
        return row
      },
    },
  ],
}

const membersFlag = async (session: AdminSession, flags: AdminFlags): Promise<string[] | undefined> => {
  const staffIds = idsFlag(flags, 'staff')
  if (staffIds?.length)
    requireExistingIds(staffIds, await listAllStaff(await session.db(), (await session.workspace()).id), {
      noun: 'staff member',
      group: 'staff',
    })
  return staffIds
}

export const teamsGroup: AdminGroup = {
  name: 'teams',
  summary: 'Teams and their members',
  verbs: [
    {
      name: 'create',
      summary: 'Create a team',
      scoped: true,
      required: [['--name <name>', 'display name']],
      options: [['--staff <ids>', 'members']],
      run: async (session, flags) => {
        const name = nameFlag(flags)!
        const members = await membersFlag(session, flags)
        return await createTeam(
          await session.db(),
          (await session.workspace()).id,
          name,
          session.now,
          members,
        )
      },
    },
    {
      name: 'list',
      access: 'read',
      summary: 'List the teams',
      scoped: true,
      columns: ['id', 'name', 'staff_ids'],
      run: async (session) => ({
        data: await listAllTeams(await session.db(), (await session.workspace()).id),
      }),
    },
    {
      name: 'update',
      summary: 'Update a team; omitted values stay',
      scoped: true,
      argument: ['<id>', 'team'],
      options: [
        ['--name <name>', 'display name'],
        ['--staff <ids>', 'members; replaces the previous ones'],
      ],
      run: async (session, flags, argument) => {
        const id = parseId(argument, '<id>')
        const name = nameFlag(flags)
        const members = await membersFlag(session, flags)
        if (name === undefined && members === undefined) throw nothingToChangeError()
        const row = await updateTeam(await session.db(), (await session.workspace()).id, id, name, members)
        if (!row)
          throw notFoundError(
            `The workspace has no team ${id}.`,
            '<id>',
            'List them with: wcrm admin teams list',
          )
        return row
      },
    },
  ],
}

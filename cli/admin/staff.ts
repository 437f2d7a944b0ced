import { roles } from '../../catalog/workspace.ts'
import {
  createStaff,
  createTeam,
  listAllChannels,
  listAllStaff,
  listAllTeams,
  updateStaff,
  updateTeam,
} from '../../storage/admin.ts'
import { usage } from '../fault.ts'
import { idOf, idsOf, missing, nameOf, nothingSaid, oneOf, requireKnown, said, text } from './flags.ts'
import type { Flags, Group, Session } from './verb.ts'

const flag = (flags: Flags, name: string): boolean | undefined =>
  typeof flags[name] === 'boolean' ? flags[name] : undefined

/** Undefined when neither was said. */
export const enabledOf = (flags: Flags): boolean | undefined => {
  if (flags['enabled'] === true && flags['disabled'] === true)
    throw usage('--enabled and --disabled exclude each other.', '--disabled')
  return flags['disabled'] === true ? false : flags['enabled'] === true ? true : undefined
}

/** The fields of the flags, their ids checked against the workspace. */
const fieldsOf = async (session: Session, flags: Flags) => {
  const channelIds = text(flags, 'channels') === 'all' ? null : idsOf(flags, 'channels')
  const teamIds = idsOf(flags, 'teams')
  const fields = said({
    name: nameOf(flags),
    role: oneOf(flags, 'role', roles),
    enabled: enabledOf(flags),
    hide_phone_numbers: flag(flags, 'hidePhoneNumbers'),
    reports: flag(flags, 'reports'),
    channel_ids: channelIds,
  })
  const db = await session.db()
  const { id } = await session.workspace()
  if (channelIds?.length)
    requireKnown(
      channelIds,
      (await listAllChannels(db, id)).map((c) => c.id),
      'channel',
      '--channels',
      'channels',
    )
  if (teamIds?.length)
    requireKnown(
      teamIds,
      (await listAllTeams(db, id)).map((t) => t.id),
      'team',
      '--teams',
      'teams',
    )
  return { db, workspaceId: id, fields, teamIds }
}

const noteHidden = (session: Session, row: { role: string; hide_phone_numbers: boolean }): void => {
  if (row.hide_phone_numbers && row.role !== 'agent')
    session.io.stderr.write(
      'Note: phones are hidden from agents only; as long as the role is another, --hide-phone-numbers does nothing.\n',
    )
}

export const staff: Group = {
  name: 'staff',
  summary: 'Staff members, their roles and what they may see',
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
        ['--hide-phone-numbers', 'phone numbers are masked for this agent'],
        ['--reports', 'may read the staff report'],
        ['--disabled', 'keys of this staff member are refused'],
        ['--channels <ids>', 'channels this staff member may use, or all (default: all)'],
        ['--teams <ids>', 'teams this staff member belongs to'],
      ],
      run: async (session, flags) => {
        const { db, workspaceId, fields, teamIds } = await fieldsOf(session, flags)
        const row = await createStaff(
          db,
          workspaceId,
          { ...fields, name: fields.name!, role: fields.role! },
          teamIds ?? [],
          session.now,
        )
        noteHidden(session, row)
        return row
      },
    },
    {
      name: 'list',
      summary: 'List the staff',
      scoped: true,
      columns: ['id', 'name', 'role', 'enabled', 'hide_phone_numbers', 'reports', 'channel_ids', 'team_ids'],
      run: async (session) => ({
        data: await listAllStaff(await session.db(), (await session.workspace()).id),
      }),
    },
    {
      name: 'update',
      summary: 'Change a staff member; what is not given stays',
      scoped: true,
      argument: ['<id>', 'staff member'],
      options: [
        ['--name <name>', 'display name'],
        ['--role <role>', `one of: ${roles.join(', ')}`],
        ['--hide-phone-numbers', 'phone numbers are masked for this agent'],
        ['--no-hide-phone-numbers', 'phone numbers are shown'],
        ['--reports', 'may read the staff report'],
        ['--no-reports', 'may not'],
        ['--disabled', 'keys of this staff member are refused'],
        ['--enabled', 'keys of this staff member work'],
        ['--channels <ids>', 'channels this staff member may use, or all'],
        ['--teams <ids>', 'teams this staff member belongs to, instead of those before'],
      ],
      run: async (session, flags, argument) => {
        const staffId = idOf(argument, '<id>')
        const { db, workspaceId, fields, teamIds } = await fieldsOf(session, flags)
        if (Object.keys(fields).length === 0 && !teamIds) throw nothingSaid()
        const row = await updateStaff(db, workspaceId, staffId, fields, teamIds)
        if (!row)
          throw missing(
            `The workspace has no staff member ${staffId}.`,
            '<id>',
            'wcrm admin staff list shows those it has.',
          )
        noteHidden(session, row)
        return row
      },
    },
  ],
}

const membersOf = async (session: Session, flags: Flags): Promise<string[] | undefined> => {
  const staffIds = idsOf(flags, 'staff')
  if (staffIds?.length)
    requireKnown(
      staffIds,
      (await listAllStaff(await session.db(), (await session.workspace()).id)).map((s) => s.id),
      'staff member',
      '--staff',
      'staff',
    )
  return staffIds
}

export const teams: Group = {
  name: 'teams',
  summary: 'Teams and who is in them',
  verbs: [
    {
      name: 'create',
      summary: 'Make a team',
      scoped: true,
      required: [['--name <name>', 'display name']],
      options: [['--staff <ids>', 'members']],
      run: async (session, flags) => {
        const name = nameOf(flags)!
        const members = await membersOf(session, flags)
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
      summary: 'List the teams',
      scoped: true,
      columns: ['id', 'name', 'staff_ids'],
      run: async (session) => ({
        data: await listAllTeams(await session.db(), (await session.workspace()).id),
      }),
    },
    {
      name: 'update',
      summary: 'Change a team; what is not given stays',
      scoped: true,
      argument: ['<id>', 'team'],
      options: [
        ['--name <name>', 'display name'],
        ['--staff <ids>', 'members, instead of those before'],
      ],
      run: async (session, flags, argument) => {
        const id = idOf(argument, '<id>')
        const name = nameOf(flags)
        const members = await membersOf(session, flags)
        if (name === undefined && members === undefined) throw nothingSaid()
        const row = await updateTeam(await session.db(), (await session.workspace()).id, id, name, members)
        if (!row)
          throw missing(
            `The workspace has no team ${id}.`,
            '<id>',
            'wcrm admin teams list shows those it has.',
          )
        return row
      },
    },
  ],
}

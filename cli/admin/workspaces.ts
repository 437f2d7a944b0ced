import {
  createWorkspace,
  listWorkspaces,
  updateWorkspace,
  type WorkspaceRow,
} from '../../storage/workspace/admin.ts'
import { usageError } from '../error.ts'
import {
  parseId,
  limitFlag,
  listFlag,
  notFoundError,
  nameFlag,
  nothingToChangeError,
  omitUndefined,
  timezoneFlag,
} from './flags.ts'
import type { CommandResult } from '../result.ts'
import type { AdminFlags, AdminGroup } from './verb.ts'

const toResult = (row: WorkspaceRow): CommandResult => ({
  ...row,
  contact_limit: row.contact_limit === null ? null : Number(row.contact_limit),
  template_limit: row.template_limit === null ? null : Number(row.template_limit),
})

const featuresFlag = (flags: AdminFlags): string[] | undefined => {
  const features = listFlag(flags, 'features')
  const invalid = features?.find((feature) => !/^[a-z][a-z0-9_]*$/.test(feature))
  if (invalid !== undefined)
    throw usageError(
      `--features has an invalid name: "${invalid}".`,
      '--features',
      'Names are lower case with underscores, such as api_access.',
    )
  return features && [...new Set(features)]
}

const workspaceFields = (flags: AdminFlags) =>
  omitUndefined({
    name: nameFlag(flags),
    timezone: timezoneFlag(flags),
    features: featuresFlag(flags),
    contact_limit: limitFlag(flags, 'contactLimit'),
    template_limit: limitFlag(flags, 'templateLimit'),
  })

const optionalFlags = [
  ['--timezone <zone>', 'IANA time zone of reports and relative dates (default: UTC)'],
  ['--features <list>', 'features of the plan; empty for none (default: api_access)'],
  ['--contact-limit <n>', 'maximum number of contacts, or none for no limit'],
  ['--template-limit <n>', 'maximum number of templates, or none for no limit'],
] as const

export const workspacesGroup: AdminGroup = {
  name: 'workspaces',
  summary: 'Workspaces and their plans',
  verbs: [
    {
      name: 'create',
      access: 'create',
      summary: 'Create a workspace',
      scoped: false,
      required: [['--name <name>', 'display name']],
      options: optionalFlags,
      run: async (session, flags) => {
        const fields = workspaceFields(flags)
        return toResult(
          await createWorkspace(await session.db(), { ...fields, name: fields.name! }, session.now),
        )
      },
    },
    {
      name: 'list',
      access: 'read',
      summary: 'List the workspaces',
      scoped: false,
      columns: ['id', 'name', 'timezone', 'features', 'contact_limit', 'template_limit', 'created_at'],
      run: async (session) => ({ data: (await listWorkspaces(await session.db())).map(toResult) }),
    },
    {
      name: 'update',
      summary: 'Update a workspace; omitted values stay',
      scoped: true,
      argument: ['[id]', 'workspace (default: that of --workspace, or the only one)'],
      options: [
        ['--name <name>', 'display name'],
        ...optionalFlags.map(([flag, about]) => [flag, about.replace(/ \(default.*/, '')] as const),
      ],
      run: async (session, flags, argument) => {
        const fields = workspaceFields(flags)
        if (Object.keys(fields).length === 0) throw nothingToChangeError()
        const id = argument === '' ? (await session.workspace()).id : parseId(argument, '<id>')
        const row = await updateWorkspace(await session.db(), id, fields)
        if (!row) throw notFoundError(`There is no workspace ${id}.`, '<id>')
        return toResult(row)
      },
    },
  ],
}

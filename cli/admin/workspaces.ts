import { createWorkspace, listWorkspaces, updateWorkspace, type WorkspaceRow } from '../../storage/admin.ts'
import { usage } from '../fault.ts'
import { idOf, limitOf, listOf, missing, nameOf, nothingSaid, said, timezoneOf } from './flags.ts'
import type { Flags, Group, Result } from './verb.ts'

const show = (row: WorkspaceRow): Result => ({
  ...row,
  contact_limit: row.contact_limit === null ? null : Number(row.contact_limit),
  template_limit: row.template_limit === null ? null : Number(row.template_limit),
})

const featuresOf = (flags: Flags): string[] | undefined => {
  const features = listOf(flags, 'features')
  const odd = features?.find((feature) => !/^[a-z][a-z0-9_]*$/.test(feature))
  if (odd !== undefined)
    throw usage(
      `--features has an odd name: "${odd}".`,
      '--features',
      'Names are lower case with underscores, such as api_access.',
    )
  return features && [...new Set(features)]
}

const fieldsOf = (flags: Flags) =>
  said({
    name: nameOf(flags),
    timezone: timezoneOf(flags),
    features: featuresOf(flags),
    contact_limit: limitOf(flags, 'contactLimit'),
    template_limit: limitOf(flags, 'templateLimit'),
  })

const options = [
  ['--timezone <zone>', 'IANA time zone of reports and relative dates (default: UTC)'],
  ['--features <list>', 'what the plan includes; empty for nothing (default: api_access)'],
  ['--contact-limit <n>', 'most contacts, or none'],
  ['--template-limit <n>', 'most templates, or none'],
] as const

export const workspaces: Group = {
  name: 'workspaces',
  summary: 'Workspaces and their plans',
  verbs: [
    {
      name: 'create',
      summary: 'Make a workspace',
      scoped: false,
      required: [['--name <name>', 'display name']],
      options,
      run: async (session, flags) => {
        const fields = fieldsOf(flags)
        return show(await createWorkspace(await session.db(), { ...fields, name: fields.name! }, session.now))
      },
    },
    {
      name: 'list',
      summary: 'List the workspaces',
      scoped: false,
      columns: ['id', 'name', 'timezone', 'features', 'contact_limit', 'template_limit', 'created_at'],
      run: async (session) => ({ data: (await listWorkspaces(await session.db())).map(show) }),
    },
    {
      name: 'update',
      summary: 'Change a workspace; what is not given stays',
      scoped: true,
      argument: ['[id]', 'workspace; else the one of --workspace, or the only one'],
      options: [
        ['--name <name>', 'display name'],
        ...options.map(([flag, about]) => [flag, about.replace(/ \(default.*/, '')] as const),
      ],
      run: async (session, flags, argument) => {
        const fields = fieldsOf(flags)
        if (Object.keys(fields).length === 0) throw nothingSaid()
        const id = argument === '' ? (await session.workspace()).id : idOf(argument, '<id>')
        const row = await updateWorkspace(await session.db(), id, fields)
        if (!row) throw missing(`There is no workspace ${id}.`, '<id>')
        return show(row)
      },
    },
  ],
}

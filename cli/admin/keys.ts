import { currentVersion, type Scope, scopes } from '../../catalog/index.ts'
import { hashApiKey, createApiKey } from '../../server/api-keys.ts'
import { createKey, listAllStaff, listKeys, revokeKey } from '../../storage/admin.ts'
import { usageError } from '../error.ts'
import {
  parseId,
  listFlag,
  notFoundError,
  timestampFlag,
  nameFlag,
  requireExistingIds,
  stringFlag,
} from './flags.ts'
import type { AdminFlags, AdminGroup, AdminSession } from './verb.ts'

const scopesFlag = (flags: AdminFlags): Scope[] => {
  const words = listFlag(flags, 'scopes')!
  if (words.length === 1 && words[0] === 'all') return [...scopes]
  const unknown = words.find((word) => !scopes.includes(word as Scope))
  if (unknown !== undefined || words.length === 0)
    throw usageError(
      `--scopes does not accept "${unknown ?? ''}".`,
      '--scopes',
      `Use all, or one or more of: ${scopes.join(', ')}.`,
    )
  return scopes.filter((scope) => words.includes(scope))
}

const expiryFlag = (session: AdminSession, flags: AdminFlags, timezone: string): string | null => {
  const expires = timestampFlag(flags, 'expires', timezone) ?? null
  if (expires !== null && expires <= session.now)
    session.io.stderr.write('Warning: --expires is in the past, so the key is already expired.\n')
  return expires
}

export const keysGroup: AdminGroup = {
  name: 'keys',
  summary: 'API keys',
  verbs: [
    {
      name: 'create',
      summary: 'Create an API key; it is shown only once',
      scoped: true,
      required: [
        ['--staff <id>', 'staff member that its requests act as'],
        ['--scopes <list>', `all, or some of: ${scopes.join(', ')}`],
      ],
      options: [
        ['--name <name>', 'purpose of the key'],
        ['--test', 'create a test key: every write runs as a dry run'],
        ['--agent', 'mark it as the key of an AI agent'],
        ['--expires <date>', "last day (in the workspace's time zone) or time at which it is valid"],
      ],
      run: async (session, flags) => {
        const staffId = parseId(stringFlag(flags, 'staff')!, '--staff')
        const granted = scopesFlag(flags)
        const name = nameFlag(flags) ?? null
        const db = await session.db()
        const workspace = await session.workspace()
        const expires = expiryFlag(session, flags, workspace.timezone)
        requireExistingIds(
          [staffId],
          (await listAllStaff(db, workspace.id)).map((s) => s.id),
          'staff member',
          '--staff',
          'staff',
        )
        const key = createApiKey(flags['test'] === true)
        const { id, ...row } = await createKey(
          db,
          workspace.id,
          hashApiKey(key),
          {
            staff_id: staffId,
            scopes: granted,
            name,
            test: flags['test'] === true,
            agent: flags['agent'] === true,
            api_version: currentVersion,
            expires_at: expires,
          },
          session.now,
        )
        return { id, key, ...row }
      },
    },
    {
      name: 'list',
      summary: 'List the keys (the secret parts are not stored)',
      scoped: true,
      columns: [
        'id',
        'staff_id',
        'name',
        'scopes',
        'test',
        'agent',
        'expires_at',
        'revoked_at',
        'last_used_at',
        'created_at',
      ],
      run: async (session) => ({ data: await listKeys(await session.db(), (await session.workspace()).id) }),
    },
    {
      name: 'revoke',
      summary: 'Revoke a key; running servers refuse it within a second',
      scoped: true,
      argument: ['<id>', 'key'],
      run: async (session, _flags, argument) => {
        const id = parseId(argument, '<id>')
        const row = await revokeKey(await session.db(), (await session.workspace()).id, id, session.now)
        if (!row)
          throw notFoundError(
            `The workspace has no key ${id}.`,
            '<id>',
            'List them with: wcrm admin keys list',
          )
        return row
      },
    },
  ],
}

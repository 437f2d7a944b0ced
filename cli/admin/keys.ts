import { currentVersion, type Scope, scopes } from '../../catalog/index.ts'
import { hashApiKey, newApiKey } from '../../server/keys.ts'
import { createKey, listAllStaff, listKeys, revokeKey } from '../../storage/admin.ts'
import { usage } from '../fault.ts'
import { idOf, listOf, missing, momentOf, nameOf, requireKnown, text } from './flags.ts'
import type { Flags, Group, Session } from './verb.ts'

const scopesOf = (flags: Flags): Scope[] => {
  const words = listOf(flags, 'scopes')!
  if (words.length === 1 && words[0] === 'all') return [...scopes]
  const unknown = words.find((word) => !scopes.includes(word as Scope))
  if (unknown !== undefined || words.length === 0)
    throw usage(
      `--scopes has no "${unknown ?? ''}".`,
      '--scopes',
      `all, or one or more of: ${scopes.join(', ')}.`,
    )
  return scopes.filter((scope) => words.includes(scope))
}

const expiryOf = (session: Session, flags: Flags, timezone: string): string | null => {
  const expires = momentOf(flags, 'expires', timezone) ?? null
  if (expires !== null && expires <= session.now)
    session.io.stderr.write('Note: --expires is in the past, so the key never works.\n')
  return expires
}

export const keys: Group = {
  name: 'keys',
  summary: 'API keys',
  verbs: [
    {
      name: 'create',
      summary: 'Make an API key; it is shown this once',
      scoped: true,
      required: [
        ['--staff <id>', 'staff member that requests act as'],
        ['--scopes <list>', `all, or some of: ${scopes.join(', ')}`],
      ],
      options: [
        ['--name <name>', 'what the key is for'],
        ['--test', 'a test key: every change runs as a dry run'],
        ['--agent', 'marks the key as one of an AI agent'],
        ['--expires <date>', "last day (in the workspace's time zone) or moment that it works"],
      ],
      run: async (session, flags) => {
        const staffId = idOf(text(flags, 'staff')!, '--staff')
        const granted = scopesOf(flags)
        const name = nameOf(flags) ?? null
        const db = await session.db()
        const workspace = await session.workspace()
        const expires = expiryOf(session, flags, workspace.timezone)
        requireKnown(
          [staffId],
          (await listAllStaff(db, workspace.id)).map((s) => s.id),
          'staff member',
          '--staff',
          'staff',
        )
        const key = newApiKey(flags['test'] === true)
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
      summary: 'List the keys; the keys themselves are not kept',
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
        const id = idOf(argument, '<id>')
        const row = await revokeKey(await session.db(), (await session.workspace()).id, id, session.now)
        if (!row)
          throw missing(`The workspace has no key ${id}.`, '<id>', 'wcrm admin keys list shows those it has.')
        return row
      },
    },
  ],
}

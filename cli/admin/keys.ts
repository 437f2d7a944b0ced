import { currentVersion, type Scope, scopes } from '../../catalog/index.ts'
import { hashApiKey, createApiKey } from '../../server/api-keys.ts'
import { parseSubnet } from '../../server/client-address.ts'
import { parseDuration } from '../../server/duration.ts'
import {
  type AdminKeyRow,
  createKey,
  listKeys,
  replaceKey,
  revokeKey,
  updateKey,
} from '../../storage/access/admin-keys.ts'
import { listAllStaff } from '../../storage/workspace/admin.ts'
import { deleteLoginCodes, listSignInKeys } from '../../storage/access/oauth.ts'
import type { CommandResult } from '../result.ts'
import { usageError } from '../error.ts'
import {
  listFlag,
  nameFlag,
  nothingToChangeError,
  omitUndefined,
  parseId,
  requireExistingIds,
  stringFlag,
  timestampFlag,
} from './flags.ts'
import { noSuchKeyError, pauseVerb, policyVerb, resumeVerb } from './key-policy.ts'
import type { AdminFlags, AdminGroup, AdminSession, AdminVerb } from './verb.ts'

const DEFAULT_OVERLAP = '24h'
const MAX_OVERLAP_MS = 90 * 24 * 60 * 60 * 1000
const MAX_ALLOWED_SUBNETS = 100

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

/** Parses `--expires`; null for `never`. Warns when it is in the past. */
const expiryFlag = (
  session: AdminSession,
  flags: AdminFlags,
  timezone: string,
): string | null | undefined => {
  if (stringFlag(flags, 'expires')?.trim() === 'never') return null
  const expires = timestampFlag(flags, 'expires', timezone)
  if (expires !== undefined && expires <= session.now)
    session.io.stderr.write('Warning: --expires is in the past, so the key is already expired.\n')
  return expires
}

/** Parses `--allow-from`, addresses and CIDRs; null for `anywhere`. */
const allowFromFlag = (flags: AdminFlags): string[] | null | undefined => {
  const items = listFlag(flags, 'allowFrom')
  if (items === undefined || (items.length === 1 && items[0] === 'anywhere')) return items && null
  const fix = 'Use addresses and CIDRs, such as 203.0.113.7 or 2001:db8::/32, or anywhere.'
  if (items.length === 0 || items.length > MAX_ALLOWED_SUBNETS)
    throw usageError(`--allow-from takes 1 to ${MAX_ALLOWED_SUBNETS} items.`, '--allow-from', fix)
  const subnets = items.map((item) => {
    const subnet = parseSubnet(item)
    if (subnet === undefined) throw usageError(`--allow-from does not accept "${item}".`, '--allow-from', fix)
    return subnet
  })
  return [...new Set(subnets)]
}

/** Parses `--overlap`: milliseconds that what is replaced stays valid. */
export const overlapFlag = (flags: AdminFlags): number => {
  const text = (stringFlag(flags, 'overlap') ?? DEFAULT_OVERLAP).trim()
  const ms = text === '0' ? 0 : parseDuration(text)
  if (ms === undefined || ms > MAX_OVERLAP_MS)
    throw usageError(
      `--overlap does not accept "${text}".`,
      '--overlap',
      'Use a duration of at most 90 days, such as 24h or 7d, or 0.',
    )
  return ms
}

type KeyState = 'active' | 'paused' | 'expired' | 'revoked' | 'disabled'

/** Whether a key is valid, and if not, why. */
const getState = (row: AdminKeyRow, now: string, isStaffEnabled: boolean): KeyState => {
  if (row.revoked_at !== null) return 'revoked'
  if (row.expires_at !== null && row.expires_at <= now) return 'expired'
  if (!isStaffEnabled) return 'disabled'
  return row.paused_at === null ? 'active' : 'paused'
}

const showKeys = async (
  session: AdminSession,
  workspaceId: string,
  rows: readonly AdminKeyRow[],
): Promise<(AdminKeyRow & { state: KeyState })[]> => {
  const staff = await listAllStaff(await session.db(), workspaceId)
  const enabled = new Set(staff.filter((one) => one.enabled).map((one) => one.id))
  return rows.map((row) => ({ ...row, state: getState(row, session.now, enabled.has(row.staff_id)) }))
}

const showKey = async (session: AdminSession, row: AdminKeyRow): Promise<CommandResult> => {
  const [shown] = await showKeys(session, (await session.workspace()).id, [row])
  return shown!
}

const allowFromOption = [
  '--allow-from <list>',
  'addresses and CIDRs that it may be used from; anywhere: no limit',
] as const
const expiresOption = [
  '--expires <date>',
  "last day (in the workspace's time zone) or time of its validity; never: no limit",
] as const

const SOON_MS = 7 * 86_400_000

/** A key that was replaced before expires with that overlap, and so would the one that replaces it again. */
const warnOfInheritedExpiry = (session: AdminSession, expiresAt: string | null, inherited: boolean): void => {
  if (!inherited || expiresAt === null || Date.parse(expiresAt) - Date.parse(session.now) > SOON_MS) return
  session.io.stderr.write(
    `Warning: the new key has the expiry of the old one, ${expiresAt}. Set another with: ` +
      'wcrm admin keys update ID --expires DATE\n',
  )
}

/**
 * Who held a key could sign in with it: a code that was not used yet is deleted. What was signed in before has keys of
 * its own, which people may rely on.
 */
const endSignIns = async (session: AdminSession, row: AdminKeyRow): Promise<void> => {
  if (row.agent || row.test) return
  const [db, { id: workspaceId }] = [await session.db(), await session.workspace()]
  await deleteLoginCodes(db, workspaceId, row.staff_id)
  const keys = await listSignInKeys(db, workspaceId, row.staff_id, session.now)
  if (keys.length === 0) return
  const named = keys.map(({ id, name }) => `${id} (${name ?? 'no name'})`).join(', ')
  session.io.stderr.write(
    `Warning: keys that were made by signing in as this person go on: ${named}. ` +
      'Revoke those that the person does not know: wcrm admin keys revoke ID\n',
  )
}

const revokeVerb: AdminVerb = {
  name: 'revoke',
  summary: 'Revoke a key; takes effect within a second',
  about:
    'A login code of its staff member that was not used yet is deleted. Keys that were made by signing in with ' +
    'earlier ones go on; they are named.',
  scoped: true,
  argument: ['<id>', 'key'],
  run: async (session, _flags, argument) => {
    const id = parseId(argument, '<id>')
    const row = await revokeKey(await session.db(), (await session.workspace()).id, id, session.now)
    if (!row) throw noSuchKeyError(id)
    await endSignIns(session, row)
    return await showKey(session, row)
  },
}

const rotateVerb: AdminVerb = {
  name: 'rotate',
  summary: 'Create a key in place of another one, which stays valid for a while',
  about:
    'The new key has the staff member, scopes, name, flags, addresses and expiry of the old one, and ' +
    'is shown only once. Both are valid until the overlap ends, and share policy, pause and the counts ' +
    'of an AI agent.',
  scoped: true,
  argument: ['<id>', 'key to replace'],
  options: [
    [
      '--overlap <duration>',
      `time that the old key stays valid, such as 24h or 7d; 0: none (default ${DEFAULT_OVERLAP})`,
    ],
    expiresOption,
  ],
  run: async (session, flags, argument) => {
    const id = parseId(argument, '<id>')
    const overlap = overlapFlag(flags)
    const db = await session.db()
    const workspace = await session.workspace()
    const expiresAt = expiryFlag(session, flags, workspace.timezone)
    let key = ''
    const replaced = await replaceKey(
      db,
      workspace.id,
      id,
      (old) => {
        const state = getState(old, session.now, true)
        if (state === 'revoked' || (state === 'expired' && expiresAt === undefined))
          throw usageError(
            `The key ${id} is ${state}.`,
            '<id>',
            state === 'expired'
              ? 'Give the new key an expiry of its own with --expires.'
              : 'Create a new one with: wcrm admin keys create',
          )
        key = createApiKey(old.test)
        return hashApiKey(key)
      },
      {
        oldUntil: new Date(Date.parse(session.now) + overlap).toISOString(),
        expiresAt,
        now: session.now,
      },
    )
    if (!replaced) throw noSuchKeyError(id)
    const { id: newId, ...row } = await showKey(session, replaced.key)
    warnOfInheritedExpiry(session, row.expires_at as string | null, expiresAt === undefined)
    return { id: newId, key, ...row, replaces: { id, expires_at: replaced.old.expires_at } }
  },
}

const updateVerb: AdminVerb = {
  name: 'update',
  summary: 'Change the name, scopes, expiry or addresses of a key; takes effect within a second',
  scoped: true,
  argument: ['<id>', 'key'],
  options: [
    ['--name <name>', 'purpose of the key'],
    ['--scopes <list>', `the new scopes: all, or some of: ${scopes.join(', ')}`],
    expiresOption,
    allowFromOption,
  ],
  run: async (session, flags, argument) => {
    const id = parseId(argument, '<id>')
    const given = {
      name: nameFlag(flags),
      scopes: flags['scopes'] === undefined ? undefined : scopesFlag(flags),
      allow_from: allowFromFlag(flags),
    }
    const db = await session.db()
    const workspace = await session.workspace()
    const fields = omitUndefined({ ...given, expires_at: expiryFlag(session, flags, workspace.timezone) })
    if (Object.keys(fields).length === 0) throw nothingToChangeError()
    const row = await updateKey(db, workspace.id, id, fields)
    if (!row) throw noSuchKeyError(id)
    return await showKey(session, row)
  },
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
        ['--agent', "mark it as an AI agent's key, which asks a person before it sends or deletes"],
        ['--phones', 'show phone numbers to an AI agent; without it they are masked, and imports refused'],
        expiresOption,
        allowFromOption,
      ],
      run: async (session, flags) => {
        const staffId = parseId(stringFlag(flags, 'staff')!, '--staff')
        const granted = scopesFlag(flags)
        const agent = flags['agent'] === true
        if (flags['phones'] === true && !agent)
          throw usageError('--phones is for keys of AI agents.', '--phones', 'Leave it out, or add --agent.')
        const name = nameFlag(flags) ?? null
        const allowFrom = allowFromFlag(flags) ?? null
        const db = await session.db()
        const workspace = await session.workspace()
        const expires = expiryFlag(session, flags, workspace.timezone) ?? null
        requireExistingIds(
          [staffId],
          (await listAllStaff(db, workspace.id)).map((s) => s.id),
          'staff member',
          '--staff',
          'staff',
        )
        const key = createApiKey(flags['test'] === true)
        const created = await createKey(
          db,
          workspace.id,
          hashApiKey(key),
          {
            staff_id: staffId,
            scopes: granted,
            name,
            test: flags['test'] === true,
            agent,
            phones: !agent || flags['phones'] === true,
            api_version: currentVersion,
            expires_at: expires,
            allow_from: allowFrom,
          },
          session.now,
        )
        const { id, ...row } = await showKey(session, created)
        return { id, key, ...row }
      },
    },
    {
      name: 'list',
      access: 'read',
      summary: 'List the keys (secrets are not stored)',
      scoped: true,
      columns: [
        'id',
        'staff_id',
        'name',
        'scopes',
        'test',
        'agent',
        'phones',
        'policy',
        'api_version',
        'state',
        'last_used_at',
        'expires_at',
        'revoked_at',
        'allow_from',
        'created_at',
      ],
      run: async (session) => {
        const { id } = await session.workspace()
        return { data: await showKeys(session, id, await listKeys(await session.db(), id)) }
      },
    },
    updateVerb,
    rotateVerb,
    policyVerb,
    pauseVerb,
    resumeVerb,
    revokeVerb,
  ],
}

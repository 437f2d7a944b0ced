import { currentVersion, type Scope, scopes, catalog, type ConfirmVerb } from '../../catalog/index.ts'
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
  changeKey,
  lockKey,
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
  choiceFlag,
  limitFlag,
  notFoundError,
} from './flags.ts'
import type { AdminFlags, AdminGroup, AdminSession, AdminVerb } from './verb.ts'
import {
  type Decision,
  decisions,
  defaultPolicy,
  type KeyPolicy,
  type PolicyBounds,
  type Weekday,
  weekdays,
} from '../../catalog/policy.ts'
import type { Db } from '../../storage/database.ts'

const verbs: readonly ConfirmVerb[] = ['send', 'submit', 'delete', 'erase', 'archive', 'rotate']
const operations = catalog.filter(({ scope }) => scope !== 'mcp:read' && scope !== 'approvals:write')
const MAX_EXPIRY_MS = 30 * 24 * 60 * 60 * 1000

const noSuchKeyError = (id: string) =>
  notFoundError(`The workspace has no key ${id}.`, '<id>', 'List them with: wcrm admin keys list')

/** Writes the decisions of `--allow`, `--ask` and `--deny`: names of verbs or of operations that change something. */
const applyDecisions = (policy: KeyPolicy, flags: AdminFlags): void => {
  const given = new Set<string>()
  for (const decision of decisions)
    for (const name of listFlag(flags, decision) ?? []) {
      if (given.has(name)) throw usageError(`${name} is named twice.`, `--${decision}`, 'Name it once.')
      given.add(name)
      applyDecision(policy, decision, name)
    }
}

const applyDecision = (policy: KeyPolicy, decision: Decision, name: string): void => {
  const verb = verbs.find((one) => one === name)
  if (verb) policy.verbs[verb] = decision
  else if (operations.some((op) => op.name === name)) policy.operations[name] = decision
  else
    throw usageError(
      `--${decision} does not accept "${name}".`,
      `--${decision}`,
      `Name a verb (${verbs.join(', ')}) or an operation that changes something, such as crm_delete_contact.`,
    )
}

const TIME = /^([01]\d|2[0-3]):[0-5]\d$/

/** Parses `mon-fri 09:00-18:00` or `mon,wed 22:00-06:00`. */
const parseHours = (text: string): NonNullable<PolicyBounds['hours']> => {
  const fix = "Use days and times, such as 'mon-fri 09:00-18:00' or 'sat,sun 10:00-24:00', or none."
  const wrong = () => usageError(`--hours does not accept "${text}".`, '--hours', fix)
  const [dayText = '', timeText = '', ...rest] = text.trim().toLowerCase().split(/\s+/)
  const [from = '', to = ''] = timeText.split('-')
  if (rest.length > 0 || !TIME.test(from) || !(TIME.test(to) || to === '24:00') || from === to) throw wrong()
  const days = new Set<Weekday>()
  for (const part of dayText.split(',')) {
    const [first, last = first] = part.split('-').map((day) => weekdays.indexOf(day as Weekday))
    if (first === undefined || last === undefined || first < 0 || last < 0) throw wrong()
    for (let n = first; ; n = (n + 1) % 7) {
      days.add(weekdays[n]!)
      if (n === last) break
    }
  }
  return { days: weekdays.filter((day) => days.has(day)), from, to }
}

/** Parses a flag of a number from `min` to `max`; null for `none`. */
const numberFlag = (
  flags: AdminFlags,
  name: string,
  { min, max }: { min: number; max: number },
): number | null | undefined => {
  const value = limitFlag(flags, name)
  if (typeof value !== 'number' || (value >= min && value <= max)) return value
  const flag = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
  throw usageError(`${flag} must be ${min} to ${max}, or none.`, flag)
}

/** Sets a number of a policy, or leaves it to the default where it is null. */
const setOrDelete = <K extends string>(
  record: Partial<Record<K, number>>,
  key: K,
  value: number | null | undefined,
) => {
  if (value === null) delete record[key]
  else if (value !== undefined) record[key] = value
}

const applyBounds = (bounds: PolicyBounds, flags: AdminFlags): void => {
  if (flags['withinWindow'] === true) bounds.window_open = true
  if (flags['assignedOnly'] === true) bounds.assigned = true
  const templates = listFlag(flags, 'templates')
  if (templates?.length === 1 && templates[0] === 'any') delete bounds.templates
  else if (templates) bounds.templates = templates
  setOrDelete(bounds, 'sends_per_hour', numberFlag(flags, 'sendsPerHour', { min: 1, max: 10_000 }))
  const hours = stringFlag(flags, 'hours')
  if (hours?.trim() === 'none') delete bounds.hours
  else if (hours !== undefined) bounds.hours = parseHours(hours)
}

const applyApproval = (policy: KeyPolicy, flags: AdminFlags): void => {
  const approval = choiceFlag(flags, 'approval', ['person', 'client'])
  if (approval) policy.approval = approval
  setOrDelete(policy, 'open_approvals', numberFlag(flags, 'openApprovals', { min: 1, max: 1000 }))
  const expires = stringFlag(flags, 'expiresAfter')
  if (expires === undefined) return
  const ms = parseDuration(expires.trim())
  if (ms === undefined || ms < 60_000 || ms > MAX_EXPIRY_MS)
    throw usageError(
      `--expires-after does not accept "${expires}".`,
      '--expires-after',
      'Use a duration of one minute to 30 days, such as 4h.',
    )
  policy.expires_after = Math.round(ms / 1000)
}

const CHANGES = [
  'allow',
  'ask',
  'deny',
  'withinWindow',
  'assignedOnly',
  'templates',
  'sendsPerHour',
  'hours',
  'approval',
  'expiresAfter',
  'openApprovals',
  'contactsPerDay',
  'reset',
]

const requireAgentKey = async (tx: Db, workspaceId: string, argument: string): Promise<AdminKeyRow> => {
  const id = parseId(argument, '<id>')
  const row = await lockKey(tx, workspaceId, id)
  if (!row) throw noSuchKeyError(id)
  if (!row.agent)
    throw usageError(
      `The key ${id} is that of a person: only keys of AI agents have a policy.`,
      '<id>',
      'Create one with: wcrm admin keys create --agent',
    )
  return row
}

const showPolicy = ({ id, name, policy, contacts_per_day }: AdminKeyRow): CommandResult => ({
  id,
  name,
  ...(policy ?? defaultPolicy),
  default: policy === null,
  contacts_per_day,
})

const policyVerb: AdminVerb = {
  name: 'policy',
  summary: "Show or change what an AI agent's key may do without approval; takes effect within a second",
  about:
    'Without flags it shows the policy. By default, reads and changes that can be undone are allowed; ' +
    'operations with a confirm verb (send, submit, delete, erase, archive, rotate) and those that set ' +
    'webhook targets are asked: a person approves each call (wcrm approvals). Outside a bound of an ' +
    'allowed operation a person is asked. Only the given flags change.',
  scoped: true,
  argument: ['<id>', 'key'],
  options: [
    ['--allow <list>', 'verbs or operations that run without approval'],
    ['--ask <list>', 'verbs or operations that a person approves'],
    ['--deny <list>', 'verbs or operations that are refused'],
    ['--within-window', 'sends without approval only inside an open reply window'],
    ['--assigned-only', 'only conversations assigned to its staff member'],
    ['--templates <list>', 'templates that it sends without approval; any: no limit'],
    ['--sends-per-hour <number>', 'most messages an hour without approval; none: no limit'],
    [
      '--hours <times>',
      "hours of sends without approval, in the workspace's time zone: 'mon-fri 09:00-18:00', or none",
    ],
    [
      '--approval <who>',
      "person: approval with a person's key; client: confirmation in the MCP client suffices",
    ],
    ['--expires-after <duration>', 'time to decide, such as 4h (default 24h)'],
    ['--open-approvals <number>', 'most requests that wait for a decision; none: 20, then 429'],
    [
      '--contacts-per-day <number>',
      "different contacts that it may see in a day; none: the server's default (WCRM_CONTACT_BUDGET)",
    ],
    ['--reset', 'start from the default policy'],
  ],
  run: async (session, flags, argument) => {
    const db = await session.db()
    const { id: workspaceId } = await session.workspace()
    return await db.transaction().execute(async (tx) => {
      const row = await requireAgentKey(tx, workspaceId, argument)
      if (!CHANGES.some((name) => flags[name] !== undefined)) return showPolicy(row)
      const policy = structuredClone(flags['reset'] === true ? defaultPolicy : (row.policy ?? defaultPolicy))
      applyDecisions(policy, flags)
      applyBounds(policy.bounds, flags)
      applyApproval(policy, flags)
      const isDefault = JSON.stringify(policy) === JSON.stringify(defaultPolicy)
      const contacts = numberFlag(flags, 'contactsPerDay', { min: 0, max: 1_000_000 })
      const fields = {
        policy: isDefault ? null : policy,
        ...(contacts === undefined ? {} : { contacts_per_day: contacts }),
      }
      return showPolicy((await changeKey(tx, workspaceId, row.id, fields))!)
    })
  },
}

const createPauseVerb = (name: 'pause' | 'resume', summary: string): AdminVerb => ({
  name,
  summary,
  scoped: true,
  argument: ['<id>', 'key'],
  run: async (session, _flags, argument) => {
    const id = parseId(argument, '<id>')
    const pausedAt = name === 'pause' ? session.now : null
    const row = await changeKey(await session.db(), (await session.workspace()).id, id, {
      paused_at: pausedAt,
    })
    if (!row) throw noSuchKeyError(id)
    return { id: row.id, name: row.name, agent: row.agent, paused_at: row.paused_at }
  },
})

const pauseVerb = createPauseVerb(
  'pause',
  'Pause a key: every call, including reads, is refused within a second, until it is resumed',
)
const resumeVerb = createPauseVerb('resume', 'Resume a paused key')

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
        requireExistingIds([staffId], await listAllStaff(db, workspace.id), {
          noun: 'staff member',
          group: 'staff',
        })
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

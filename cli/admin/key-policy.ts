import { catalog, type ConfirmVerb } from '../../catalog/index.ts'
import {
  type Decision,
  decisions,
  defaultPolicy,
  type KeyPolicy,
  type PolicyBounds,
  type Weekday,
  weekdays,
} from '../../catalog/policy.ts'
import { parseDuration } from '../../server/duration.ts'
import { type AdminKeyRow, changeKey, lockKey } from '../../storage/access/admin-keys.ts'
import type { Db } from '../../storage/database.ts'
import { usageError } from '../error.ts'
import type { CommandResult } from '../result.ts'
import { choiceFlag, limitFlag, listFlag, notFoundError, parseId, stringFlag } from './flags.ts'
import type { AdminFlags, AdminVerb } from './verb.ts'

const verbs: readonly ConfirmVerb[] = ['send', 'submit', 'delete', 'erase', 'archive', 'rotate']
const operations = catalog.filter(({ scope }) => scope !== 'mcp:read' && scope !== 'approvals:write')
const MAX_EXPIRY_MS = 30 * 24 * 60 * 60 * 1000

export const noSuchKeyError = (id: string) =>
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

const applyBounds = (bounds: PolicyBounds, flags: AdminFlags): void => {
  if (flags['withinWindow'] === true) bounds.window_open = true
  if (flags['assignedOnly'] === true) bounds.assigned = true
  const templates = listFlag(flags, 'templates')
  if (templates?.length === 1 && templates[0] === 'any') delete bounds.templates
  else if (templates) bounds.templates = templates
  const sends = limitFlag(flags, 'sendsPerHour')
  if (sends === null) delete bounds.sends_per_hour
  else if (sends !== undefined) {
    if (sends < 1 || sends > 10_000)
      throw usageError('--sends-per-hour must be 1 to 10000, or none.', '--sends-per-hour')
    bounds.sends_per_hour = sends
  }
  const hours = stringFlag(flags, 'hours')
  if (hours?.trim() === 'none') delete bounds.hours
  else if (hours !== undefined) bounds.hours = parseHours(hours)
}

const applyApproval = (policy: KeyPolicy, flags: AdminFlags): void => {
  const approval = choiceFlag(flags, 'approval', ['person', 'client'])
  if (approval) policy.approval = approval
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

const MAX_CONTACTS = 1_000_000

/** Parses `--contacts-per-day`; null for the server's default. */
const contactsFlag = (flags: AdminFlags): number | null | undefined => {
  const contacts = limitFlag(flags, 'contactsPerDay')
  if (typeof contacts === 'number' && contacts > MAX_CONTACTS)
    throw usageError('--contacts-per-day must be 0 to 1000000, or none.', '--contacts-per-day')
  return contacts
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

export const policyVerb: AdminVerb = {
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
      const contacts = contactsFlag(flags)
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

export const pauseVerb = createPauseVerb(
  'pause',
  'Pause a key: every call, including reads, is refused within a second, until it is resumed',
)
export const resumeVerb = createPauseVerb('resume', 'Resume a paused key')

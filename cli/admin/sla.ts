import { Problem } from '../../server/kernel/problem.ts'
import { parseFields } from '../../server/kernel/validate.ts'
import { BusinessHours } from '../../server/domains/inbox/hours.ts'
import { parseDuration } from '../../server/duration.ts'
import { listAllChannels } from '../../storage/workspace/admin.ts'
import {
  insertSlaPolicy,
  deleteSlaPolicy,
  listSlaPolicies,
  type SlaPolicyFields,
  updateSlaPolicy,
} from '../../storage/conversations/sla.ts'
import { usageError } from '../error.ts'
import { parseObjectArgument, createArgumentReader } from '../values.ts'
import {
  parseId,
  idsFlag,
  notFoundError,
  nameFlag,
  nothingToChangeError,
  requireExistingIds,
  omitUndefined,
  stringFlag,
} from './flags.ts'
import { enabledFlag } from './staff.ts'
import type { AdminFlags, AdminGroup, AdminSession } from './verb.ts'

const MAX_TARGET_SECONDS = 365 * 86_400

/** Parses a target; returns seconds, or null for `none`. */
const targetFlag = (flags: AdminFlags, name: string, flag: string): number | null | undefined => {
  const value = stringFlag(flags, name)
  if (value === undefined) return undefined
  if (value === 'none') return null
  const ms = parseDuration(value)
  if (ms === undefined || ms < 1000 || ms > MAX_TARGET_SECONDS * 1000)
    throw usageError(
      `${flag} must be a duration from 1s to 365d, or none, not "${value}".`,
      flag,
      'For example 30m, 8h or "1d 4h".',
    )
  return Math.round(ms / 1000)
}

/** Parses business hours; null for `none`. */
const hoursFlag = async (
  session: AdminSession,
  flags: AdminFlags,
): Promise<BusinessHours | null | undefined> => {
  const value = stringFlag(flags, 'hours')
  if (value === undefined) return undefined
  if (value === 'none') return null
  const given = await parseObjectArgument(value, '--hours', createArgumentReader(session.io))
  try {
    return parseFields(BusinessHours, given)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const { pointer, code, detail } = error.extras.errors![0]!
    const field = pointer!.slice(2).replaceAll('/', '.')
    throw usageError(
      `--hours: ${field} ${code === 'unknown_field' ? 'is not a field here' : detail}.`,
      '--hours',
      'For example {"days":{"mon":[["09:00","12:30"],["13:30","18:00"]]},"holidays":["2026-12-25"]}.',
    )
  }
}

const readPolicyFields = async (session: AdminSession, flags: AdminFlags) => {
  const channelIds = stringFlag(flags, 'channels') === 'all' ? null : idsFlag(flags, 'channels')
  if (channelIds?.length === 0)
    throw usageError('--channels names no channel.', '--channels', 'Use ids separated by commas, or all.')
  const fields: Partial<SlaPolicyFields> = omitUndefined({
    name: nameFlag(flags),
    enabled: enabledFlag(flags),
    channel_ids: channelIds,
    first_response_seconds: targetFlag(flags, 'firstResponse', '--first-response'),
    next_response_seconds: targetFlag(flags, 'nextResponse', '--next-response'),
    resolution_seconds: targetFlag(flags, 'resolution', '--resolution'),
    hours: await hoursFlag(session, flags),
  })
  const db = await session.db()
  const { id } = await session.workspace()
  if (channelIds)
    requireExistingIds(channelIds, await listAllChannels(db, id), { noun: 'channel', group: 'channels' })
  return { db, workspaceId: id, fields }
}

const optionalFlags = [
  [
    '--first-response <duration>',
    'target for the first response in a conversation, in business time, such as 30m; or none',
  ],
  ['--next-response <duration>', 'target for each further response, in business time; or none'],
  ['--resolution <duration>', 'target for closing a conversation, in business time, such as 8h; or none'],
  [
    '--hours <json>',
    'business hours as JSON, @file or -, such as {"timezone":"Europe/Berlin",' +
      '"days":{"mon":[["09:00","18:00"]]},"holidays":["2026-12-25"]}; none for around the clock ' +
      "(default time zone: the workspace's)",
  ],
  ['--channels <ids>', 'channels it applies to, or all'],
] as const

const policyNotFoundError = (id: string) =>
  notFoundError(`The workspace has no service level ${id}.`, '<id>', 'List them with: wcrm admin sla list')

export const slaGroup: AdminGroup = {
  name: 'sla',
  summary: 'Service levels: response time targets',
  verbs: [
    {
      name: 'create',
      summary: 'Add a service level',
      scoped: true,
      required: [['--name <name>', 'display name']],
      options: [...optionalFlags, ['--disabled', 'create it disabled']],
      about:
        'It applies to conversations opened from now on. Of several service levels for a channel the ' +
        'one for the ' +
        'fewest channels applies; among those, the oldest.',
      run: async (session, flags) => {
        const { db, workspaceId, fields } = await readPolicyFields(session, flags)
        const defaults = {
          enabled: true,
          channel_ids: null,
          first_response_seconds: null,
          next_response_seconds: null,
          resolution_seconds: null,
          hours: null,
        }
        const policy = { ...defaults, ...fields, name: fields.name! }
        if (
          policy.first_response_seconds === null &&
          policy.next_response_seconds === null &&
          policy.resolution_seconds === null
        ) {
          throw usageError(
            'A service level needs a target.',
            '--first-response',
            'Give --first-response, --next-response or --resolution.',
          )
        }
        return await insertSlaPolicy(db, workspaceId, policy, session.now)
      },
    },
    {
      name: 'list',
      access: 'read',
      summary: 'List the service levels',
      scoped: true,
      columns: [
        'id',
        'name',
        'enabled',
        'channel_ids',
        'first_response_seconds',
        'next_response_seconds',
        'resolution_seconds',
        'hours',
      ],
      run: async (session) => ({
        data: await listSlaPolicies(await session.db(), (await session.workspace()).id),
      }),
    },
    {
      name: 'update',
      summary: 'Update a service level; omitted values stay',
      scoped: true,
      argument: ['<id>', 'service level'],
      about: 'Targets of running conversations do not change.',
      options: [
        ['--name <name>', 'display name'],
        ...optionalFlags,
        ['--disabled', 'stop applying it to new conversations'],
        ['--enabled', 'apply it to new conversations again'],
      ],
      run: async (session, flags, argument) => {
        const id = parseId(argument, '<id>')
        const { db, workspaceId, fields } = await readPolicyFields(session, flags)
        if (Object.keys(fields).length === 0) throw nothingToChangeError()
        const row = await updateSlaPolicy(db, workspaceId, id, fields)
        if (!row) throw policyNotFoundError(id)
        return row
      },
    },
    {
      name: 'delete',
      summary: 'Delete a service level; conversations no longer show it',
      scoped: true,
      argument: ['<id>', 'service level'],
      run: async (session, _flags, argument) => {
        const id = parseId(argument, '<id>')
        if (!(await deleteSlaPolicy(await session.db(), (await session.workspace()).id, id)))
          throw policyNotFoundError(id)
        return { id, deleted: true }
      },
    },
  ],
}

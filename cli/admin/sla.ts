import { type Hours, Hours as HoursSchema } from '../../server/inbox/hours.ts'
import { durationOf } from '../../server/sandbox/control/duration.ts'
import { listAllChannels } from '../../storage/admin.ts'
import {
  createPolicy,
  deletePolicy,
  listPolicies,
  type PolicyFields,
  updatePolicy,
} from '../../storage/sla.ts'
import { usage } from '../fault.ts'
import { readObject, textReader } from '../values.ts'
import { idOf, idsOf, missing, nameOf, nothingSaid, requireKnown, said, text } from './flags.ts'
import { enabledOf } from './staff.ts'
import type { Flags, Group, Session } from './verb.ts'

const MOST_SECONDS = 365 * 86_400

/** A target in seconds; null for `none`. */
const targetOf = (flags: Flags, name: string, flag: string): number | null | undefined => {
  const value = text(flags, name)
  if (value === undefined) return undefined
  if (value === 'none') return null
  const ms = durationOf(value)
  if (ms === undefined || ms < 1000 || ms > MOST_SECONDS * 1000)
    throw usage(
      `${flag} takes a duration from 1s to 365d, or none, not "${value}".`,
      flag,
      'For example 30m, 8h or "1d 4h".',
    )
  return Math.round(ms / 1000)
}

/** Business hours; null for `none`. */
const hoursOf = async (session: Session, flags: Flags): Promise<Hours | null | undefined> => {
  const value = text(flags, 'hours')
  if (value === undefined) return undefined
  if (value === 'none') return null
  const read = HoursSchema.safeParse(await readObject(value, '--hours', textReader(session.io)))
  if (read.success) return read.data
  const { path, message } = read.error.issues[0]!
  throw usage(
    `--hours: ${path.length > 0 ? `${path.join('.')} ` : ''}${message}.`,
    '--hours',
    'For example {"days":{"mon":[["09:00","12:30"],["13:30","18:00"]]},"holidays":["2026-12-25"]}.',
  )
}

const fieldsOf = async (session: Session, flags: Flags) => {
  const channelIds = text(flags, 'channels') === 'all' ? null : idsOf(flags, 'channels')
  if (channelIds?.length === 0)
    throw usage('--channels names no channel.', '--channels', 'Give ids parted by commas, or all.')
  const fields: Partial<PolicyFields> = said({
    name: nameOf(flags),
    enabled: enabledOf(flags),
    channel_ids: channelIds,
    first_response_seconds: targetOf(flags, 'firstResponse', '--first-response'),
    next_response_seconds: targetOf(flags, 'nextResponse', '--next-response'),
    resolution_seconds: targetOf(flags, 'resolution', '--resolution'),
    hours: await hoursOf(session, flags),
  })
  const db = await session.db()
  const { id } = await session.workspace()
  if (channelIds)
    requireKnown(
      channelIds,
      (await listAllChannels(db, id)).map((c) => c.id),
      'channel',
      '--channels',
      'channels',
    )
  return { db, workspaceId: id, fields }
}

const options = [
  [
    '--first-response <duration>',
    'a customer who opens a conversation is answered within this business time, such as 30m; none for no target',
  ],
  [
    '--next-response <duration>',
    'a customer who writes again is answered within this business time; or none',
  ],
  ['--resolution <duration>', 'a conversation is closed within this business time, such as 8h; or none'],
  [
    '--hours <json>',
    'business hours as JSON, @file or -, such as {"timezone":"Europe/Berlin","days":{"mon":[["09:00","18:00"]]},"holidays":["2026-12-25"]}; none for around the clock; the time zone is the workspace\'s when absent',
  ],
  ['--channels <ids>', 'channels it applies to, or all'],
] as const

const missingPolicy = (id: string) =>
  missing(`The workspace has no service level ${id}.`, '<id>', 'wcrm admin sla list shows those it has.')

export const sla: Group = {
  name: 'sla',
  summary: 'Service levels: how fast customers are answered',
  verbs: [
    {
      name: 'create',
      summary: 'Add a service level',
      scoped: true,
      required: [['--name <name>', 'display name']],
      options: [...options, ['--disabled', 'not applied until it is enabled']],
      about:
        'It applies to conversations that open from then on. Of several for a channel the one for the fewest channels applies, and of those the oldest.',
      run: async (session, flags) => {
        const { db, workspaceId, fields } = await fieldsOf(session, flags)
        const none = {
          enabled: true,
          channel_ids: null,
          first_response_seconds: null,
          next_response_seconds: null,
          resolution_seconds: null,
          hours: null,
        }
        const policy = { ...none, ...fields, name: fields.name! }
        if (
          policy.first_response_seconds === null &&
          policy.next_response_seconds === null &&
          policy.resolution_seconds === null
        ) {
          throw usage(
            'A service level needs a target.',
            '--first-response',
            'Give --first-response, --next-response or --resolution.',
          )
        }
        return await createPolicy(db, workspaceId, policy, session.now)
      },
    },
    {
      name: 'list',
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
        data: await listPolicies(await session.db(), (await session.workspace()).id),
      }),
    },
    {
      name: 'update',
      summary: 'Change a service level; what is not given stays',
      scoped: true,
      argument: ['<id>', 'service level'],
      about: 'Clocks that run already keep their time.',
      options: [
        ['--name <name>', 'display name'],
        ...options,
        ['--disabled', 'no clock starts by it any more'],
        ['--enabled', 'it applies again'],
      ],
      run: async (session, flags, argument) => {
        const id = idOf(argument, '<id>')
        const { db, workspaceId, fields } = await fieldsOf(session, flags)
        if (Object.keys(fields).length === 0) throw nothingSaid()
        const row = await updatePolicy(db, workspaceId, id, fields)
        if (!row) throw missingPolicy(id)
        return row
      },
    },
    {
      name: 'delete',
      summary: 'Delete a service level; conversations show it no more',
      scoped: true,
      argument: ['<id>', 'service level'],
      run: async (session, _flags, argument) => {
        const id = idOf(argument, '<id>')
        if (!(await deletePolicy(await session.db(), (await session.workspace()).id, id)))
          throw missingPolicy(id)
        return { id, deleted: true }
      },
    },
  ],
}

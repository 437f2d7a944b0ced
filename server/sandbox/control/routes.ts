import { z } from 'zod'
import { Id } from '../../../catalog/fields.ts'
import {
  channelToSay,
  messageAtProvider,
  numberedChannels,
  templateAtProvider,
} from '../../../storage/sandbox-control.ts'
import type { App } from '../../app.ts'
import { advanceClock } from '../../clock.ts'
import { parsePhone } from '../../contacts/phone.ts'
import { type Actor, phonesHidden } from '../../core/context.ts'
import { invalidField, notFound, Problem } from '../../core/problem.ts'
import type { Control } from './client.ts'
import { durationOf } from './duration.ts'
import { accountOf, type Sync } from './sync.ts'

/** What an act works with. */
type At = { app: App; control: Control; sync: Sync; actor: Actor }

/** One thing that can be done to the sandbox: a route below `/sandbox`, what it takes, and how it is done. */
export type Act = {
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  changes: boolean
  input: z.ZodObject
  run: (at: At, input: never) => Promise<unknown>
}

const act = <S extends z.ZodObject>(
  method: Act['method'],
  path: string,
  changes: boolean,
  input: S,
  run: (at: At, input: z.output<S>) => Promise<unknown>,
): Act => ({ method, path, changes, input: input.strict(), run: run as Act['run'] })

const digitsOf = (field: string, text: string): string => {
  const phone = parsePhone(text)
  if ('fault' in phone) throw invalidField(field, 'invalid_phone', phone.fault, { fix: phone.fix })
  return phone.digits
}

const mayUse = (actor: Actor, channelId: string | null): boolean =>
  actor.staff.channelIds === null || (channelId !== null && actor.staff.channelIds.includes(channelId))

const numberOf = async (
  { app, actor }: At,
  id: string | undefined,
): Promise<{ channelId: string; numberId: string }> => {
  const channel = await channelToSay(app.db, actor.workspace.id, 'chatapp', id)
  if (!channel || !mayUse(actor, channel.id)) {
    if (id !== undefined) throw notFound('channel', id)
    throw new Problem(
      'conflict',
      'The workspace has no chatapp channel that customers could write to. Make one: wcrm admin channels create --type chatapp …',
      { reason: 'no_channel' },
    )
  }
  if (channel.type !== 'chatapp')
    throw invalidField(
      'channel_id',
      'wrong_type',
      `names a ${channel.type} channel; the sandbox plays customers of chatapp channels`,
      { fix: 'Name a chatapp channel, or leave it out.' },
    )
  if (channel.provider_phone_number_id === null) {
    throw new Problem(
      'conflict',
      `Channel ${channel.id} has no number at the provider. Give it one: wcrm admin channels update ${channel.id} --provider-phone-number-id <digits>`,
      { reason: 'no_provider_number' },
    )
  }
  return { channelId: channel.id, numberId: channel.provider_phone_number_id }
}

const Say = z.object({
  from: z.string().min(1).max(64).optional(),
  name: z.string().trim().min(1).max(255).optional(),
  user_id: z
    .string()
    .regex(/^[A-Z]{2}\.[A-Za-z0-9.]{1,134}$/, 'must look like US.13491208655302741918')
    .optional(),
  channel_id: Id.optional(),
  ad: z.boolean().optional(),
  text: z.string().min(1).max(4096).optional(),
  message: z
    .object({ type: z.string().min(1).max(40) })
    .catchall(z.unknown())
    .optional(),
})

const say = act('POST', 'say', true, Say, async (at, input) => {
  if (input.from === undefined && input.user_id === undefined)
    throw invalidField('from', 'required', 'is required', {
      fix: 'Send from, a phone number, or user_id of a customer who shows none.',
    })
  if ((input.text === undefined) === (input.message === undefined))
    throw invalidField('text', 'required', 'or message is required, and not both', {
      fix: "Send text, or message with a message of the provider's making.",
    })
  const from = input.from === undefined ? undefined : digitsOf('from', input.from)
  const { channelId, numberId } = await numberOf(at, input.channel_id)
  await at.sync.sync(at.actor.workspace.id)
  const { channel_id: _, from: _from, ...rest } = input
  const { id } = await at.control.ask<{ id: string }>('POST', 'say', {
    number_id: numberId,
    ...(from === undefined ? {} : { from }),
    ...rest,
  })
  return { id, channel_id: channelId }
})

const clockOf = (app: App) => ({ now: app.now(), offset_ms: app.clock.offsetMs })

const showClock = act('GET', 'clock', false, z.object({}), async ({ app }) => clockOf(app))

const advance = act(
  'POST',
  'clock',
  true,
  z.object({ advance: z.string().max(40) }),
  async ({ app, control }, input) => {
    const ms = durationOf(input.advance)
    if (ms === undefined || ms === 0)
      throw invalidField('advance', 'invalid_duration', 'is not a duration', {
        fix: 'Send a number and a unit, such as 25h: s, m, h, d or w.',
      })
    const offset = await advanceClock(app, ms)
    if (offset === undefined)
      throw invalidField('advance', 'too_far', 'would put the clock more than ten years ahead', {
        fix: 'Start over with an empty database.',
      })
    if (!control.builtIn) await control.ask('POST', 'clock', { offset_ms: offset })
    return clockOf(app)
  },
)

const Review = z.object({
  template_id: Id,
  decision: z.enum(['approve', 'reject', 'pause', 'category']),
  reason: z.string().trim().min(1).max(500).optional(),
  category: z.enum(['MARKETING', 'UTILITY', 'AUTHENTICATION']).optional(),
})

const review = act('POST', 'review', true, Review, async (at, { template_id: id, ...rest }) => {
  if (rest.decision === 'category' && rest.category === undefined)
    throw invalidField('category', 'required', 'is required with this decision', {
      fix: 'Send the new category.',
    })
  await at.sync.sync(at.actor.workspace.id)
  const template = await templateAtProvider(at.app.db, at.actor.workspace.id, id)
  if (!template) throw notFound('template', id)
  if (template.provider_id === null)
    throw new Problem('conflict', `Template ${id} has not reached the provider; submit it first.`, {
      reason: 'not_submitted',
    })
  await at.control.ask('POST', 'review', { template_id: template.provider_id, ...rest })
  return { template_id: id, decision: rest.decision }
})

const Code = z.int().min(0).max(9_999_999)

const status = act(
  'POST',
  'status',
  true,
  z.object({ message_id: Id, status: z.enum(['delivered', 'read', 'failed']), code: Code.optional() }),
  async (at, { message_id: id, ...rest }) => {
    const message = await messageAtProvider(at.app.db, at.actor.workspace.id, id)
    if (!message || !mayUse(at.actor, message.channel_id)) throw notFound('message', id)
    if (message.direction !== 'outbound')
      throw new Problem('conflict', `Message ${id} was not sent to a customer, so it has no delivery.`, {
        reason: 'not_outbound',
      })
    if (message.provider_id === null)
      throw new Problem('conflict', `Message ${id} has not reached the provider yet.`, { reason: 'not_sent' })
    if (rest.code !== undefined && rest.status !== 'failed')
      throw invalidField('code', 'not_failed', 'goes with the status failed', { fix: 'Leave it out.' })
    await at.control.ask('POST', 'status', { message_id: message.provider_id, ...rest })
    return { message_id: id, status: rest.status }
  },
)

const Fault = z.object({
  on: z.enum(['messages', 'templates', 'links', 'media']),
  to: z.string().min(1).max(64).optional(),
  code: Code.optional(),
  drop_answer: z.literal(true).optional(),
  latency_ms: z.int().min(1).max(600_000).optional(),
  times: z.int().min(1).max(1_000_000).optional(),
})

const addFault = act('POST', 'faults', true, Fault, async ({ control }, { to, ...rest }) => {
  const kinds = [rest.code, rest.drop_answer, rest.latency_ms].filter((kind) => kind !== undefined).length
  if (kinds !== 1)
    throw invalidField('code', 'one_of', 'or drop_answer or latency_ms is required, and only one of them', {
      fix: 'Say what the fault is: an error code, an answer that gets lost, or a delay.',
    })
  return await control.ask('POST', 'faults', {
    ...rest,
    ...(to === undefined ? {} : { to: digitsOf('to', to) }),
  })
})

const clearFaults = act('DELETE', 'faults', true, z.object({}), async ({ control }) => {
  await control.ask('DELETE', 'faults')
  return { cleared: true }
})

const webhooks = act(
  'POST',
  'webhooks',
  true,
  z.object({ duplicates: z.int().min(0).max(20).optional(), shuffle: z.boolean().optional() }),
  async ({ control }, input) => await control.ask('POST', 'webhooks', input),
)

type Row = Record<string, unknown>

/** What the provider holds of the workspace's numbers or accounts, in its own JSON. */
const gather = async (
  at: At,
  what: string,
  queries: readonly Record<string, string>[],
): Promise<{ data: Row[] }> => {
  if (phonesHidden(at.actor))
    throw new Problem(
      'forbidden',
      "The provider's records show phone numbers, which are hidden from this staff member.",
      { reason: 'phone_hidden' },
    )
  await at.sync.sync(at.actor.workspace.id)
  const data: Row[] = []
  for (const query of queries)
    data.push(...(await at.control.ask<{ data: Row[] }>('GET', `${what}?${new URLSearchParams(query)}`)).data)
  return { data }
}

const numbersOf = async ({ app, actor }: At) =>
  (await numberedChannels(app.db, actor.workspace.id)).filter((channel) => mayUse(actor, channel.id))

const time = (row: Row): number =>
  typeof row['created_at'] === 'number' ? row['created_at'] : Date.parse(String(row['created_at']))

const messages = act(
  'GET',
  'messages',
  false,
  z.object({ to: z.string().min(1).max(64).optional() }),
  async (at, { to }) => {
    const digits: Record<string, string> = to === undefined ? {} : { to: digitsOf('to', to) }
    const { data } = await gather(
      at,
      'messages',
      (await numbersOf(at)).map((channel) => ({ number_id: channel.provider_phone_number_id, ...digits })),
    )
    return { data: data.toSorted((a, b) => time(a) - time(b)) }
  },
)

const templates = act(
  'GET',
  'templates',
  false,
  z.object({}),
  async (at) =>
    await gather(
      at,
      'templates',
      [...new Set((await numbersOf(at)).map((channel) => accountOf(channel)))].map((account) => ({
        account_id: account,
      })),
    ),
)

const links = act(
  'GET',
  'links',
  false,
  z.object({}),
  async (at) =>
    await gather(
      at,
      'links',
      (await numbersOf(at)).map((channel) => ({ number_id: channel.provider_phone_number_id })),
    ),
)

const numbers = act('POST', 'numbers', true, z.object({}), async (at) => {
  await at.sync.sync(at.actor.workspace.id)
  return {
    data: (await numbersOf(at)).map((channel) => ({
      id: channel.provider_phone_number_id,
      channel_id: channel.id,
      account_id: accountOf(channel),
    })),
  }
})

/** Everything that can be done, in the order in which the guide tells it. */
export const acts: readonly Act[] = [
  say,
  showClock,
  advance,
  review,
  status,
  addFault,
  clearFaults,
  webhooks,
  messages,
  templates,
  links,
  numbers,
]

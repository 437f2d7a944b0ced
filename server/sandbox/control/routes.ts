import { z } from 'zod'
import { Id } from '../../../catalog/fields.ts'
import {
  findSandboxChannel,
  findProviderMessage,
  listProviderChannels,
  findProviderTemplate,
} from '../../../storage/sandbox-control.ts'
import type { App } from '../../core/app.ts'
import { advanceClock } from '../../clock.ts'
import { parsePhone } from '../../contacts/phone.ts'
import { type Actor, hasHiddenPhones } from '../../core/context.ts'
import { invalidField, notFound, Problem } from '../../core/problem.ts'
import type { ControlClient } from './client.ts'
import { parseDuration } from './duration.ts'
import { providerAccountId, type SandboxSync } from './sync.ts'

type RouteContext = { app: App; control: ControlClient; sync: SandboxSync; actor: Actor }

/**
 * A route below `/sandbox`. `changes`: needs the scope `messaging:write` and a live key. `run` returns the
 * JSON of the response.
 */
export type ControlRoute = {
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  changes: boolean
  input: z.ZodObject
  run: (ctx: RouteContext, input: never) => Promise<unknown>
}

const defineRoute = <S extends z.ZodObject>(
  method: ControlRoute['method'],
  path: string,
  changes: boolean,
  input: S,
  run: (ctx: RouteContext, input: z.output<S>) => Promise<unknown>,
): ControlRoute => ({ method, path, changes, input: input.strict(), run: run as ControlRoute['run'] })

const parseDigits = (field: string, text: string): string => {
  const phone = parsePhone(text)
  if ('error' in phone) throw invalidField(field, 'invalid_phone', phone.error, { fix: phone.fix })
  return phone.digits
}

const mayUseChannel = (actor: Actor, channelId: string | null): boolean =>
  actor.staff.channelIds === null || (channelId !== null && actor.staff.channelIds.includes(channelId))

const requireNumber = async (
  { app, actor }: RouteContext,
  id: string | undefined,
): Promise<{ channelId: string; numberId: string }> => {
  const channel = await findSandboxChannel(app.db, actor.workspace.id, 'chatapp', id)
  if (!channel || !mayUseChannel(actor, channel.id)) {
    if (id !== undefined) throw notFound('channel', id)
    throw new Problem(
      'conflict',
      'The workspace has no chatapp channel that customers could write to. ' +
        'Create one: wcrm admin channels create --type chatapp …',
      { reason: 'no_channel' },
    )
  }
  if (channel.type !== 'chatapp')
    throw invalidField(
      'channel_id',
      'wrong_type',
      `names a ${channel.type} channel; the sandbox simulates customers of chatapp channels only`,
      { fix: 'Send the id of a chatapp channel, or leave it out.' },
    )
  if (channel.provider_phone_number_id === null) {
    throw new Problem(
      'conflict',
      `Channel ${channel.id} has no number at the provider. ` +
        `Set one: wcrm admin channels update ${channel.id} --provider-phone-number-id <digits>`,
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

const say = defineRoute('POST', 'say', true, Say, async (ctx, input) => {
  if (input.from === undefined && input.user_id === undefined)
    throw invalidField('from', 'required', 'is required', {
      fix: 'Send from, a phone number, or the user_id of a customer who hides it.',
    })
  if ((input.text === undefined) === (input.message === undefined))
    throw invalidField('text', 'required', 'or message is required, and not both', {
      fix: 'Send text, or message in the form of the provider.',
    })
  const from = input.from === undefined ? undefined : parseDigits('from', input.from)
  const { channelId, numberId } = await requireNumber(ctx, input.channel_id)
  await ctx.sync.sync(ctx.actor.workspace.id)
  const { channel_id: _, from: _from, ...rest } = input
  const { id } = await ctx.control.request<{ id: string }>('POST', 'say', {
    number_id: numberId,
    ...(from === undefined ? {} : { from }),
    ...rest,
  })
  return { id, channel_id: channelId }
})

const readClock = (app: App) => ({ now: app.now(), offset_ms: app.clock.offsetMs })

const showClock = defineRoute('GET', 'clock', false, z.object({}), async ({ app }) => readClock(app))

const advance = defineRoute(
  'POST',
  'clock',
  true,
  z.object({ advance: z.string().max(40) }),
  async ({ app, control }, input) => {
    const ms = parseDuration(input.advance)
    if (ms === undefined || ms === 0)
      throw invalidField('advance', 'invalid_duration', 'is not a duration', {
        fix: 'Send a number and a unit, such as 25h: s, m, h, d or w.',
      })
    const offset = await advanceClock(app, ms)
    if (offset === undefined)
      throw invalidField('advance', 'too_far', 'would put the clock more than ten years ahead', {
        fix: 'Start again with an empty database.',
      })
    if (!control.builtIn) await control.request('POST', 'clock', { offset_ms: offset })
    return readClock(app)
  },
)

const Review = z.object({
  template_id: Id,
  decision: z.enum(['approve', 'reject', 'pause', 'category']),
  reason: z.string().trim().min(1).max(500).optional(),
  category: z.enum(['MARKETING', 'UTILITY', 'AUTHENTICATION']).optional(),
})

const review = defineRoute('POST', 'review', true, Review, async (ctx, { template_id: id, ...rest }) => {
  if (rest.decision === 'category' && rest.category === undefined)
    throw invalidField('category', 'required', 'is required with this decision', {
      fix: 'Send the new category.',
    })
  await ctx.sync.sync(ctx.actor.workspace.id)
  const template = await findProviderTemplate(ctx.app.db, ctx.actor.workspace.id, id)
  if (!template) throw notFound('template', id)
  if (template.provider_id === null)
    throw new Problem('conflict', `Template ${id} has not reached the provider; submit it first.`, {
      reason: 'not_submitted',
    })
  await ctx.control.request('POST', 'review', { template_id: template.provider_id, ...rest })
  return { template_id: id, decision: rest.decision }
})

const Code = z.int().min(0).max(9_999_999)

const status = defineRoute(
  'POST',
  'status',
  true,
  z.object({ message_id: Id, status: z.enum(['delivered', 'read', 'failed']), code: Code.optional() }),
  async (ctx, { message_id: id, ...rest }) => {
    const message = await findProviderMessage(ctx.app.db, ctx.actor.workspace.id, id)
    if (!message || !mayUseChannel(ctx.actor, message.channel_id)) throw notFound('message', id)
    if (message.direction !== 'outbound')
      throw new Problem('conflict', `Message ${id} was not sent to a customer, so it has no delivery.`, {
        reason: 'not_outbound',
      })
    if (message.provider_id === null)
      throw new Problem('conflict', `Message ${id} has not reached the provider yet.`, { reason: 'not_sent' })
    if (rest.code !== undefined && rest.status !== 'failed')
      throw invalidField('code', 'not_failed', 'is only allowed with the status failed', {
        fix: 'Leave it out.',
      })
    await ctx.control.request('POST', 'status', { message_id: message.provider_id, ...rest })
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

const addFault = defineRoute('POST', 'faults', true, Fault, async ({ control }, { to, ...rest }) => {
  const kinds = [rest.code, rest.drop_answer, rest.latency_ms].filter((kind) => kind !== undefined).length
  if (kinds !== 1)
    throw invalidField('code', 'one_of', 'or drop_answer or latency_ms is required, and only one of them', {
      fix: 'Send what the fault is: an error code, a lost response, or a delay.',
    })
  return await control.request('POST', 'faults', {
    ...rest,
    ...(to === undefined ? {} : { to: parseDigits('to', to) }),
  })
})

const clearFaults = defineRoute('DELETE', 'faults', true, z.object({}), async ({ control }) => {
  await control.request('DELETE', 'faults')
  return { cleared: true }
})

const webhooks = defineRoute(
  'POST',
  'webhooks',
  true,
  z.object({ duplicates: z.int().min(0).max(20).optional(), shuffle: z.boolean().optional() }),
  async ({ control }, input) => await control.request('POST', 'webhooks', input),
)

type Row = Record<string, unknown>

/** Lists the provider's records of the workspace's numbers or accounts, in the provider's own JSON. */
const listRecords = async (
  ctx: RouteContext,
  what: string,
  queries: readonly Record<string, string>[],
): Promise<{ data: Row[] }> => {
  if (hasHiddenPhones(ctx.actor))
    throw new Problem(
      'forbidden',
      "The provider's records show phone numbers, which are hidden from this staff member.",
      { reason: 'phone_hidden' },
    )
  await ctx.sync.sync(ctx.actor.workspace.id)
  const data: Row[] = []
  for (const query of queries)
    data.push(
      ...(await ctx.control.request<{ data: Row[] }>('GET', `${what}?${new URLSearchParams(query)}`)).data,
    )
  return { data }
}

const listChannels = async ({ app, actor }: RouteContext) =>
  (await listProviderChannels(app.db, actor.workspace.id)).filter((channel) =>
    mayUseChannel(actor, channel.id),
  )

const createdAtMs = (row: Row): number =>
  typeof row['created_at'] === 'number' ? row['created_at'] : Date.parse(String(row['created_at']))

const messages = defineRoute(
  'GET',
  'messages',
  false,
  z.object({ to: z.string().min(1).max(64).optional() }),
  async (ctx, { to }) => {
    const digits: Record<string, string> = to === undefined ? {} : { to: parseDigits('to', to) }
    const { data } = await listRecords(
      ctx,
      'messages',
      (await listChannels(ctx)).map((channel) => ({
        number_id: channel.provider_phone_number_id,
        ...digits,
      })),
    )
    return { data: data.toSorted((a, b) => createdAtMs(a) - createdAtMs(b)) }
  },
)

const templates = defineRoute(
  'GET',
  'templates',
  false,
  z.object({}),
  async (ctx) =>
    await listRecords(
      ctx,
      'templates',
      [...new Set((await listChannels(ctx)).map((channel) => providerAccountId(channel)))].map((account) => ({
        account_id: account,
      })),
    ),
)

const links = defineRoute(
  'GET',
  'links',
  false,
  z.object({}),
  async (ctx) =>
    await listRecords(
      ctx,
      'links',
      (await listChannels(ctx)).map((channel) => ({ number_id: channel.provider_phone_number_id })),
    ),
)

const numbers = defineRoute('POST', 'numbers', true, z.object({}), async (ctx) => {
  await ctx.sync.sync(ctx.actor.workspace.id)
  return {
    data: (await listChannels(ctx)).map((channel) => ({
      id: channel.provider_phone_number_id,
      channel_id: channel.id,
      account_id: providerAccountId(channel),
    })),
  }
})

/** All routes, in the order of the guide (docs/sandbox.md). */
export const routes: readonly ControlRoute[] = [
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

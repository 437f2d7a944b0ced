import { z } from 'zod'
import { Id } from '../../../catalog/fields.ts'
import {
  findSandboxChannel,
  findProviderMessage,
  listProviderChannels,
  findProviderTemplate,
} from '../../../storage/workspace/sandbox-control.ts'
import { advanceClock, businessTime, MAX_CLOCK_OFFSET_MS, resetClock } from '../../../server/clock.ts'
import { invalidField, notFound, Problem } from '../../../server/kernel/problem.ts'
import { parseDuration } from '../../../server/duration.ts'
import { messageChangeRoutes, requireMessage } from './message-changes.ts'
import { type ControlRoute, defineRoute, parseDigits, type RouteContext } from './route.ts'
import { providerAccountId } from './sync.ts'
import { canSeeChannel } from '../../../server/visibility/policy.ts'

const requireNumber = async (
  { app, actor }: RouteContext,
  id: string | undefined,
): Promise<{ channelId: string; numberId: string }> => {
  const channel = await findSandboxChannel(app.db, actor.workspace.id, 'chatapp', id)
  if (!channel || !canSeeChannel(actor, channel.id)) {
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
  username: z.string().trim().min(1).max(60).optional(),
  channel_id: Id.optional(),
  ad: z.boolean().optional(),
  echo: z.boolean().optional(),
  text: z.string().min(1).max(4096).optional(),
  message: z
    .object({ type: z.string().min(1).max(40) })
    .catchall(z.unknown())
    .optional(),
  tap: z.string().min(1).max(256).optional(),
  reply_to: Id.optional(),
})

const say = defineRoute('sandbox.say', 'POST say', Say, async (ctx, input) => {
  if (input.from === undefined && input.user_id === undefined)
    throw invalidField('from', 'required', 'is required', {
      fix: 'Send from, a phone number, or the user_id of a customer who hides it.',
    })
  const others = input.message === undefined && input.tap === undefined
  if ((input.text === undefined) === others)
    throw invalidField('text', 'required', 'or message or tap is required, and text only alone', {
      fix: 'Send text, or message in the form of the provider, or tap, the title of a button.',
    })
  const quoted = input.reply_to === undefined ? undefined : await requireMessage(ctx, input.reply_to)
  const from = input.from === undefined ? undefined : parseDigits('from', input.from)
  const { channelId, numberId } = await requireNumber(
    ctx,
    input.channel_id ?? quoted?.channel_id ?? undefined,
  )
  await ctx.sync.sync(ctx.actor.workspace.id)
  const { channel_id: _, from: _from, reply_to: _replyTo, ...rest } = input
  const { id } = await ctx.control.request<{ id: string }>('POST', 'say', {
    number_id: numberId,
    ...(from === undefined ? {} : { from }),
    ...(quoted ? { reply_to: quoted.provider_id } : {}),
    ...rest,
  })
  return { id, channel_id: channelId }
})

const readClock = ({ app, actor: { workspace } }: RouteContext) => ({
  now: businessTime(app, workspace.id),
  offset_ms: app.clockOffsets.get(workspace.id) ?? 0,
})

const showClock = defineRoute('sandbox.show_clock', 'GET clock', z.object({}), async (ctx) => readClock(ctx))

const MAX_CLOCK_DAYS = MAX_CLOCK_OFFSET_MS / 86_400_000

const advance = defineRoute(
  'sandbox.advance_clock',
  'POST clock',
  z.object({ advance: z.string().max(40) }),
  async (ctx, input) => {
    const ms = parseDuration(input.advance)
    if (ms === undefined || ms === 0)
      throw invalidField('advance', 'invalid_duration', 'is not a duration', {
        fix: 'Send a number and a unit, such as 25h: s, m, h, d or w.',
      })
    if (!(await advanceClock(ctx.app, ctx.actor.workspace.id, ms)))
      throw invalidField('advance', 'too_far', `would put the clock more than ${MAX_CLOCK_DAYS} days ahead`, {
        fix: 'Advance it by less, or reset it first: wcrm sandbox clock reset.',
      })
    return await applyClock(ctx)
  },
)

const reset = defineRoute('sandbox.reset_clock', 'DELETE clock', z.object({}), async (ctx) => {
  await resetClock(ctx.app, ctx.actor.workspace.id)
  return await applyClock(ctx)
})

/** Gives the provider's side the clock: its numbers have that of their workspace. */
const applyClock = async (ctx: RouteContext) => {
  await ctx.sync.sync(ctx.actor.workspace.id)
  return readClock(ctx)
}

const Review = z.object({
  template_id: Id,
  decision: z.enum(['approve', 'reject', 'pause', 'category']),
  reason: z.string().trim().min(1).max(500).optional(),
  category: z.enum(['MARKETING', 'UTILITY', 'AUTHENTICATION']).optional(),
})

const reviewTemplate = async (ctx: RouteContext, { template_id: id, ...rest }: z.output<typeof Review>) => {
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
}

const review = defineRoute('sandbox.review', 'POST review', Review, reviewTemplate, {
  type: 'template',
  field: 'template_id',
})

const listChannels = async ({ app, actor }: RouteContext) =>
  (await listProviderChannels(app.db, actor.workspace.id)).filter((channel) =>
    canSeeChannel(actor, channel.id),
  )

/** The accounts of the workspace at the provider: faults and settings are theirs. */
const listAccounts = async (ctx: RouteContext): Promise<string[]> => [
  ...new Set((await listChannels(ctx)).map((channel) => providerAccountId(channel))),
]

const Code = z.int().min(0).max(9_999_999)

const status = defineRoute(
  'sandbox.status',
  'POST status',
  z.object({ message_id: Id, status: z.enum(['delivered', 'read', 'failed']), code: Code.optional() }),
  async (ctx, { message_id: id, ...rest }) => {
    const message = await findProviderMessage(ctx.app.db, ctx.actor.workspace.id, id)
    if (!message || !canSeeChannel(ctx.actor, message.channel_id)) throw notFound('message', id)
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
  { type: 'message', field: 'message_id' },
)

const Fault = z.object({
  on: z.enum(['messages', 'templates', 'links', 'media']),
  to: z.string().min(1).max(64).optional(),
  code: Code.optional(),
  drop_answer: z.literal(true).optional(),
  latency_ms: z.int().min(1).max(600_000).optional(),
  times: z.int().min(1).max(1_000_000).optional(),
})

const addFault = defineRoute('sandbox.add_fault', 'POST faults', Fault, async (ctx, { to, ...rest }) => {
  const kinds = [rest.code, rest.drop_answer, rest.latency_ms].filter((kind) => kind !== undefined).length
  if (kinds !== 1)
    throw invalidField('code', 'one_of', 'or drop_answer or latency_ms is required, and only one of them', {
      fix: 'Send what the fault is: an error code, a lost response, or a delay.',
    })
  return await ctx.control.request('POST', 'faults', {
    ...rest,
    account_ids: await listAccounts(ctx),
    ...(to === undefined ? {} : { to: parseDigits('to', to) }),
  })
})

const clearFaults = defineRoute('sandbox.clear_faults', 'DELETE faults', z.object({}), async (ctx) => {
  await ctx.control.request('DELETE', 'faults', { account_ids: await listAccounts(ctx) })
  return { cleared: true }
})

const webhooks = defineRoute(
  'sandbox.webhooks',
  'POST webhooks',
  z.object({ duplicates: z.int().min(0).max(20).optional(), shuffle: z.boolean().optional() }),
  async (ctx, input) => {
    const account_ids = await listAccounts(ctx)
    const { duplicates, shuffle } = await ctx.control.request<{ duplicates: number; shuffle: boolean }>(
      'POST',
      'webhooks',
      { ...input, account_ids },
    )
    return { duplicates, shuffle }
  },
)

const Account = z.object({
  action: z.enum(['restrict', 'ban', 'revoke-token', 'restore', 'quality', 'limit']),
  channel_id: Id.optional(),
  value: z.string().trim().min(1).max(40).optional(),
})

/** Values of the actions that change a figure of numbers. */
const figures: Readonly<Record<string, { field: string; values: readonly string[] }>> = {
  quality: { field: 'quality_rating', values: ['GREEN', 'RED'] },
  limit: {
    field: 'messaging_limit',
    values: ['TIER_50', 'TIER_250', 'TIER_1K', 'TIER_2K', 'TIER_10K', 'TIER_100K', 'TIER_UNLIMITED'],
  },
}

/** What the provider does to the numbers and accounts of the workspace. */
const account = defineRoute('sandbox.account', 'POST account', Account, async (ctx, input) => {
  const { action, channel_id: channelId, value } = input
  const figure = figures[action]
  if (figure && (value === undefined || !figure.values.includes(value)))
    throw invalidField(
      'value',
      'invalid_value',
      `is required with ${action}, and must be one that it knows`,
      {
        fix: `Send one of ${figure.values.join(', ')}.`,
        allowed: [...figure.values],
      },
    )
  if (!figure && value !== undefined)
    throw invalidField('value', 'unexpected', `is not used by ${action}`, { fix: 'Leave it out.' })
  const chosen = channelId === undefined ? undefined : (await requireNumber(ctx, channelId)).channelId
  await ctx.sync.sync(ctx.actor.workspace.id)
  const channels = (await listChannels(ctx)).filter(({ id }) => chosen === undefined || id === chosen)
  if (figure)
    for (const channel of channels)
      await ctx.control.request('POST', 'number', {
        id: channel.provider_phone_number_id,
        [figure.field]: value,
      })
  else
    await ctx.control.request('POST', 'account', {
      action,
      account_ids: [...new Set(channels.map((channel) => providerAccountId(channel)))],
    })
  return { action, channel_ids: channels.map(({ id }) => id) }
})

type Row = Record<string, unknown>

/** Lists the provider's records of the workspace's numbers or accounts, in the provider's own JSON. */
const listRecords = async (
  ctx: RouteContext,
  what: string,
  queries: readonly Record<string, string>[],
): Promise<{ data: Row[] }> => {
  await ctx.sync.sync(ctx.actor.workspace.id)
  const data: Row[] = []
  for (const query of queries)
    data.push(
      ...(await ctx.control.request<{ data: Row[] }>('GET', `${what}?${new URLSearchParams(query)}`)).data,
    )
  return { data }
}

const createdAtMs = (row: Row): number =>
  typeof row['created_at'] === 'number' ? row['created_at'] : Date.parse(String(row['created_at']))

const messages = defineRoute(
  'sandbox.messages',
  'GET messages',
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
  'sandbox.templates',
  'GET templates',
  z.object({}),
  async (ctx) =>
    await listRecords(
      ctx,
      'templates',
      (await listAccounts(ctx)).map((account) => ({ account_id: account })),
    ),
)

const links = defineRoute(
  'sandbox.links',
  'GET links',
  z.object({}),
  async (ctx) =>
    await listRecords(
      ctx,
      'links',
      (await listChannels(ctx)).map((channel) => ({ number_id: channel.provider_phone_number_id })),
    ),
)

const numbers = defineRoute('sandbox.numbers', 'POST numbers', z.object({}), async (ctx) => {
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
  ...messageChangeRoutes,
  showClock,
  advance,
  reset,
  review,
  status,
  addFault,
  clearFaults,
  account,
  webhooks,
  messages,
  templates,
  links,
  numbers,
]

import { requireProviderConfigured } from '../../provider/port.ts'
import type { Context, Handler, InputOf, OutputOf } from '../../handler.ts'
import { listCandidates } from '../../../storage/broadcasts/audience.ts'
import { insertSend, type NewRecipient } from '../../../storage/broadcasts/sends.ts'
import { loadBroadcast } from '../../../storage/broadcasts/broadcasts.ts'
import { findJob, insertJob } from '../../../storage/work/bulk-jobs.ts'
import { toIds } from '../../../storage/contacts/matches.ts'
import { listFields } from '../../../storage/contacts/custom-fields.ts'
import type { SendingChannel } from '../../../storage/messages/sends.ts'
import type { TemplateRow } from '../../../storage/templates/templates.ts'
import { showBroadcast } from '../broadcasts/broadcasts.ts'
import { requireExplicitAll } from '../bulk-jobs/change-target.ts'
import { contactRecords } from '../bulk-jobs/contact-records.ts'
import { findRecords, toNewJob } from '../bulk-jobs/find-records.ts'
import { ANY_READER, showJob } from '../bulk-jobs/view.ts'
import type { FoundRecords } from '../../kernel/context.ts'
import { invalidField, Problem } from '../../kernel/problem.ts'
import { distinctIds } from '../labels/labels.ts'
import { chooseChannel } from '../messaging/channels.ts'
import { fillOrThrow, requireApprovedTemplate } from '../messaging/send-template.ts'
import { fillTemplate } from '../messaging/template-fill.ts'
import { describeParts } from '../messaging/template-parts.ts'
import { phoneHiddenProblem, showContactName } from '../../visibility/phones.ts'
import { hasHiddenPhones } from '../../visibility/policy.ts'
import { digestText, needsApproval } from './approved-text.ts'
import { type Audience, chooseAudience } from './audience.ts'
import { parseStart, showStart } from './schedule.ts'
import { personalize, type Personal } from './values.ts'

type Input = InputOf<'messaging_send_bulk'>
type Output = OutputOf<'messaging_send_bulk'>

const OPERATION = 'messaging_send_bulk'
const PREVIEWS = 10

/**
 * The contacts that an input names. `batches`: for the plan of a dry run. `approved`: digests of the values that a
 * person was asked about, by contact.
 */
type Named = {
  ids: string[]
  batches: readonly string[]
  approved?: ReadonlyMap<string, string> | undefined
}

const findNamed = async (ctx: Context, input: Input): Promise<Named> => {
  const batches = findRecords(ctx, contactRecords, await listMatches(ctx, input))
  return { ids: batches.flatMap(toIds), batches, approved: listApproved(ctx.call.found) }
}

/** Returns the contacts, as texts of arrays of ids. */
const listMatches = async (ctx: Context, input: Input): Promise<readonly string[]> => {
  if (input.contact_ids !== undefined) return [`{${distinctIds(input.contact_ids).join(',')}}`]
  requireExplicitAll(contactRecords, input)
  return await contactRecords.listMatches(ctx, input)
}

const listApproved = (found: FoundRecords = []): ReadonlyMap<string, string> | undefined => {
  const pairs = found.flatMap(({ ids, digests }) => {
    if (digests === null) return []
    const each = digests.split(' ')
    return toIds(ids).map((id, n) => [id, each[n]!] as const)
  })
  return pairs.length === 0 ? undefined : new Map(pairs)
}

/**
 * Whether a person decides, or has decided, on the values: a call of an agent that is asked for, or that does what its
 * plan showed. They are then those of that plan, so that nobody rewrites what was approved, in a client or elsewhere.
 */
const holdsValues = ({ actor, dryRun }: Context, { sources }: Personal, { approved }: Named): boolean =>
  sources.length > 0 && actor.key.agent && (dryRun || approved !== undefined || needsApproval(actor))

/** Hours tell the countries of phones: by who is left out for them, and by when a message comes. */
const checkHours = ({ actor }: Context, { hours }: Input): void => {
  if (hours && hasHiddenPhones(actor))
    throw phoneHiddenProblem(actor, '#/hours', 'hours of their countries are', 'Leave `hours` out.')
  if (hours && hours.from >= hours.to)
    throw invalidField('hours', 'contradiction', 'end before they begin', {
      path: ['to'],
      fix: 'Send `to` after `from`, within one day.',
    })
}

/** What is sent, checked as a send to one contact checks it. `start`: when, business time. */
type Prepared = {
  channel: SendingChannel
  template: TemplateRow
  personal: Personal
  start: string
}

const prepare = async (ctx: Context, input: Input): Promise<Prepared> => {
  checkHours(ctx, input)
  const start = input.scheduled_at === undefined ? ctx.now : parseStart(ctx, input.scheduled_at)
  const channel = await chooseChannel(ctx, input.channel_id, undefined)
  const template = await requireApprovedTemplate(ctx, channel, input)
  if (template.category === 'AUTHENTICATION')
    throw new Problem('conflict', 'A template of this category holds a code for one person.', {
      reason: 'template_not_supported',
    })
  const personal = personalize(ctx.actor, input.template, await listFields(ctx.tx, ctx.actor.workspace.id))
  // Whatever contacts have must fit; what is the same for all must be right.
  fillOrThrow({ now: start }, template, { template: personal.label('x') })
  return { channel, template, personal, start }
}

const requireSomebody = (input: Input, { recipients, leftOut }: Audience): void => {
  const count = recipients.length
  if (count === 0 && leftOut.length === 1 && leftOut[0]!.reason === 'not_found')
    throw new Problem('not_found', 'There is no contact with one of these ids.')
  if (count === 0)
    throw new Problem('conflict', 'Nobody would get the message; a dry run says why.', {
      reason: 'no_recipients',
    })
  if (input.max_recipients !== undefined && count > input.max_recipients)
    throw new Problem('conflict', `It would be for ${count} recipients, more than max_recipients.`, {
      reason: 'too_many_recipients',
      recipients: count,
    })
}

/** Values and previews tell what contacts have, whoever names them. Throws 403. */
const requireReader = ({ actor }: Context): void => {
  if (actor.key.scopes.includes('mcp:read')) return
  const detail = 'Messages with values of contacts need the scope mcp:read too: they tell what contacts have.'
  throw new Problem('insufficient_scope', detail, { scope: 'mcp:read' })
}

export const sendBulk: Handler<'messaging_send_bulk'> = async (ctx, input) => {
  requireReader(ctx)
  requireProviderConfigured(ctx.services.provider)
  const prepared = await prepare(ctx, input)
  const { personal, template, start } = prepared
  const named = await findNamed(ctx, input)
  const holds = holdsValues(ctx, personal, named)
  const audience = await chooseAudience(ctx, named.ids, {
    channelType: prepared.channel.type,
    isMarketing: template.category === 'MARKETING',
    start,
    hours: input.hours,
    personal,
    // Values that are the same for all were checked with the template.
    fits: (values) => personal.sources.length === 0 || 'preview' in fillTemplate(template, values, start),
    holdsValues: holds,
    approved: holds ? named.approved : undefined,
  })
  const counts = {
    matched: named.ids.length,
    recipients: audience.recipients.length,
    left_out: audience.leftOut,
  }
  if (ctx.dryRun) return { ...counts, ...(await rehearse(ctx, input, { prepared, named, audience })) }
  requireSomebody(input, audience)
  return { ...counts, ...(await begin(ctx, input, { prepared, audience })) }
}

type Whole = { prepared: Prepared; named: Named; audience: Audience }

const begin = async (
  ctx: Context,
  input: Input,
  { prepared: { channel, template, personal, start }, audience }: Omit<Whole, 'named'>,
): Promise<Pick<Output, 'broadcast' | 'job'>> => {
  const workspaceId = ctx.actor.workspace.id
  const { per_second, stop_at_error_percent, hours } = input
  const name = input.name ?? template.name
  const frozen = {
    name,
    channel_id: channel.id,
    template: input.template,
    per_second,
    stop_at_error_percent,
    ...(hours ? { hours } : {}),
  }
  const job = {
    ...toNewJob(ctx),
    operation: OPERATION,
    input: frozen,
    total: audience.recipients.length,
    state: 'running',
  } as const
  const jobId = await insertJob(ctx.tx, job, [])
  ctx.pending.wakes = ['bulk-sends']
  const send = {
    name,
    scheduled_at: input.scheduled_at === undefined ? null : start,
    template_name: template.name,
    channel_id: channel.id,
    job_id: jobId,
    input: needsApproval(ctx.actor) ? { ...frozen, text_digest: digestText(template, personal) } : frozen,
    approved_by: ctx.actor.approvedBy ?? null,
    left_out: audience.leftOut,
  }
  const broadcastId = await insertSend(ctx.tx, workspaceId, send, audience.recipients, ctx.now)
  return {
    broadcast: showBroadcast(ctx.actor, (await loadBroadcast(ctx.tx, workspaceId, broadcastId))!),
    job: showJob(ctx.actor, (await findJob(ctx.tx, workspaceId, ANY_READER, jobId))!),
  }
}

/** What a dry run tells. */
const rehearse = async (
  ctx: Context,
  input: Input,
  { prepared, named, audience }: Whole,
): Promise<Partial<Output>> => {
  const { template, personal, start } = prepared
  const { recipients, lacking } = audience
  const labels = personal.label()
  const shown = fillTemplate(template, { ...labels, ...withoutLabels(personal) }, start)
  // Of a plan that is carried out, the values stay those that it holds.
  if (!named.approved)
    ctx.pending.found = named.batches.map((ids) => ({ ids, digests: listDigests(ids, audience.digests) }))
  return {
    ...(input.scheduled_at === undefined ? {} : { starts_at: showStart(ctx, start) }),
    ...(hasHiddenPhones(ctx.actor) ? {} : { countries: countCountries(recipients) }),
    values: personal.sources.map(({ variable, fallback }) => ({
      variable,
      missing: lacking.get(variable) ?? 0,
      fallback,
    })),
    text:
      'preview' in shown
        ? shown.preview
        : fillOrThrow({ now: start }, template, { template: personal.label('x') }).preview,
    parts: describeParts(template.components, labels),
    previews: await renderPreviews(ctx, recipients, prepared),
  }
}

/** Values outside of the body that are checked more strictly than what stands for them passes. */
const withoutLabels = (personal: Personal) => {
  const { header, buttons } = personal.label('x')
  return { ...(header ? { header } : {}), ...(buttons ? { buttons } : {}) }
}

const countCountries = (recipients: readonly NewRecipient[]) =>
  [...Map.groupBy(recipients, ({ country }) => country)]
    .map(([country, all]) => ({ country, count: all.length }))
    .toSorted((a, b) => b.count - a.count)

/** Renders messages of recipients that are evenly spread. */
const renderPreviews = async (
  ctx: Context,
  recipients: readonly NewRecipient[],
  { channel, template, personal, start }: Prepared,
): Promise<NonNullable<Output['previews']>> => {
  const count = Math.min(PREVIEWS, recipients.length)
  const ids = Array.from(
    { length: count },
    (_, n) => recipients[Math.floor((n * recipients.length) / count)]!.contactId,
  )
  const { fieldIds } = personal
  const contacts = await listCandidates(ctx.tx, ctx.actor.workspace.id, ids, {
    channelType: channel.type,
    fieldIds,
  })
  return contacts.map((contact) => {
    const filled = fillTemplate(template, personal.fill(contact).values, start)
    return {
      contact_id: contact.id,
      name: showContactName(ctx.actor, contact.name),
      text: 'preview' in filled ? filled.preview : 'The values of this contact do not fit the template.',
    }
  })
}

/** The digests of a batch, in the order of its ids, `-` of a contact that was gone; null where there are none. */
const listDigests = (batch: string, digests: ReadonlyMap<string, string>): string | null =>
  digests.size === 0
    ? null
    : toIds(batch)
        .map((id) => digests.get(id) ?? '-')
        .join(' ')

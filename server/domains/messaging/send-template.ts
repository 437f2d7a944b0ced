import { takeContactId } from '../contacts/ids.ts'
import type { Context, InputOf } from '../../handler.ts'
import { toPhoneKey } from '../../../storage/contacts/lines.ts'
import { buildContactInsert, lockContact, lockContactByPhone } from '../../../storage/contacts/contacts.ts'
import { runDeferredWrite } from '../../../storage/client/deferred-write.ts'
import { readRecipient, type Recipient, type SendingChannel } from '../../../storage/messages/sends.ts'
import { findTemplate, type TemplateRow } from '../../../storage/templates/templates.ts'
import { requirePhone } from '../contacts/input.ts'
import { requireRoomForContact } from '../contacts/limit.ts'
import type { PhoneLine } from '../contacts/phone-lines.ts'
import { toChangeContext } from '../../change-context.ts'
import { findOrCreateConversation } from '../inbox/lifecycle.ts'
import { notFound, Problem } from '../../kernel/problem.ts'
import { requireMarketingAllowed } from '../consent/require.ts'
import { chooseChannel, requireReachable } from './channels.ts'
import {
  type SendIntent,
  sharedSendParts,
  completeSend,
  giveUpSend,
  undoSend,
  insertPendingMessage,
} from './send.ts'
import { announceCreated, createEmitCreated } from './message-status.ts'
import { providerCodeOf } from '../../provider/port.ts'
import { defineProviderHandler } from '../../provider/provider-handler.ts'
import { fillTemplate } from './template-fill.ts'
import { describeParts, type TemplatePart } from './template-parts.ts'
import type { TemplateValues } from './template-values.ts'
import { describeSend } from '../templates/send-schema.ts'
import { markMissing } from '../templates/sync.ts'
import { BLIND_WARNING, isBlindRehearsal, requireBlindPlan } from '../../visibility/rehearsals.ts'

type Input = InputOf<'messaging_send_template'>
/** `parts`: of a dry run. */
type Intent = SendIntent & { preview: string; parts?: TemplatePart[] }

const MAX_ERRORS = 50
/** The provider has no template of the name in the language. */
const TEMPLATE_MISSING_CODE = 132001

export const sendTemplate = defineProviderHandler<'messaging_send_template', Intent, { id: string }>({
  ...sharedSendParts,
  prepare: async (ctx, input) => {
    const { known, line } = await findRecipient(ctx, input)
    const channel = await chooseChannel(ctx, input.channel_id, known?.id)
    const template = await requireApprovedTemplate(ctx, channel, input)
    const { components, preview } = fillOrThrow(ctx, template, input)
    if (known) await requireRecipientAllowed(ctx, known, channel, template)
    const recipient = known ? requireReachable(known) : await createContact(ctx, line!)
    // Events of rows that are created here are emitted once it is sure that no refusal undoes them.
    const silent = { ...toChangeContext(ctx), emit: () => {} }
    const { conversation, created } = await findOrCreateConversation(
      silent,
      { contactId: recipient.id },
      channel.id,
      {
        by: ctx.actor.staff.id,
      },
    )
    const { name, language } = template
    const link = input.template.header?.media_url
    const content = {
      type: 'TEMPLATE',
      external_id: input.external_id ?? null,
      text: preview,
      template_name: name,
      template_language: language,
      ...(link === undefined
        ? {}
        : {
            media: {
              state: 'linked' as const,
              url: link,
              file_name: input.template.header?.file_name ?? null,
            },
          }),
    }
    const body = {
      type: 'template',
      template: { name, language: { code: language }, ...(components.length > 0 ? { components } : {}) },
    }
    return {
      ...(await insertPendingMessage(
        ctx,
        { conversation, channel, recipient, opens: created, makesContact: !known },
        content,
        body,
      )),
      preview,
      ...(ctx.dryRun ? { parts: describeParts(template.components, input.template) } : {}),
    }
  },
  complete: async (ctx, intent, result) => ({
    ...(await completeSend(ctx, intent, result, createEmitCreated(toChangeContext(ctx)))),
    preview: intent.preview,
    ...(intent.parts ? { parts: intent.parts } : {}),
    ...(isBlindRehearsal(ctx) && intent.makesContact ? { warnings: [BLIND_WARNING] } : {}),
  }),
  compensate: async (ctx, intent, problem) => {
    await undoSend(ctx, intent, problem, createEmitCreated(toChangeContext(ctx)))
    if (providerCodeOf(problem) !== TEMPLATE_MISSING_CODE) return
    const { phoneNumberId, outgoing } = intent
    const { name, language } = outgoing.body['template'] as { name: string; language: { code: string } }
    await markMissing(toChangeContext(ctx), { phoneNumberId, name, language: language.code }, problem)
  },
  giveUp: (ctx, intent, problem) => giveUpSend(ctx, intent, problem, createEmitCreated(toChangeContext(ctx))),
  leaveOpen: ({ opens, makesContact, messageId }) => {
    if (!opens && !makesContact) return undefined
    return async (ctx) => {
      const flow = toChangeContext(ctx)
      await announceCreated(flow, messageId, createEmitCreated(flow))
    }
  },
})

/** Finds and locks the contact of the input; returns the phone line when no contact has it yet. */
const findRecipient = async (
  ctx: Context,
  { contact_id: id, phone: phoneText }: Input,
): Promise<{ known?: Recipient; line?: PhoneLine }> => {
  const workspaceId = ctx.actor.workspace.id
  if (id === undefined) {
    const line = requirePhone(phoneText!)
    if (isBlindRehearsal(ctx)) return { line }
    const knownId = await lockContactByPhone(ctx.tx, workspaceId, line.key)
    if (knownId !== undefined) requireBlindPlan(ctx)
    return knownId === undefined ? { line } : { known: (await readRecipient(ctx.tx, workspaceId, knownId))! }
  }
  if (!(await lockContact(ctx.tx, workspaceId, id))) throw notFound('contact', id)
  return { known: (await readRecipient(ctx.tx, workspaceId, id))! }
}

/** Finds the template on the channel's account. Throws 404 without one, 409 when it is not approved. */
export const requireApprovedTemplate = async (
  ctx: Context,
  channel: SendingChannel,
  { template: { name, language } }: { template: { name: string; language: string } },
): Promise<TemplateRow> => {
  const template = await findTemplate(ctx.tx, ctx.actor.workspace.id, channel.account_id, name, language)
  if (!template)
    throw new Problem(
      'not_found',
      `Channel ${channel.id} has no template ${name} in the language ${language}.`,
    )
  if (template.status === 'APPROVED') return template
  throw new Problem(
    'conflict',
    `The template ${name} (${language}) is ${template.status}; only APPROVED templates can be sent.`,
    { reason: 'template_not_approved', template_status: template.status },
  )
}

/** Formats a JSON Pointer for people: `template.body[1]`. */
const formatPointer = (pointer: string): string =>
  pointer
    .slice(2)
    .split('/')
    .map((part, i) => (/^\d+$/.test(part) ? `[${part}]` : i === 0 ? part : `.${part}`))
    .join('')

/** Fills a template as a customer gets it. `now`: when it is sent. Throws 400 where the values do not fit. */
export const fillOrThrow = (
  { now }: Pick<Context, 'now'>,
  row: TemplateRow,
  { template: values }: { template: TemplateValues },
) => {
  const { name, category, components } = row
  const filled = fillTemplate({ category, components }, values, now)
  if ('unsupported' in filled)
    throw new Problem(
      'conflict',
      `The template ${name} has a ${filled.unsupported} button, which this service cannot send.`,
      { reason: 'template_not_supported' },
    )
  if (!('errors' in filled)) return filled
  const [first, ...others] = filled.errors
  const firstDetail = `${formatPointer(first!.pointer!)} ${first!.detail}.`
  const detail =
    others.length === 0
      ? firstDetail
      : `${filled.errors.length} values do not fit the template; the first: ${firstDetail}`
  throw new Problem('invalid_input', detail, {
    reason: 'template_values',
    errors: filled.errors.slice(0, MAX_ERRORS),
    send_example: describeSend(row, now)?.example ?? null,
  })
}

const requireRecipientAllowed = async (
  ctx: Context,
  recipient: Recipient,
  { type }: SendingChannel,
  { category }: TemplateRow,
): Promise<void> => {
  if (category === 'MARKETING') await requireMarketingAllowed(ctx, recipient, type)
  if (recipient.phone === null && category === 'AUTHENTICATION') {
    throw new Problem(
      'conflict',
      'The contact has no phone number, and the provider sends codes only to phone numbers.',
      { reason: 'phone_required' },
    )
  }
}

/**
 * Creates a contact with this phone and nothing else, within the contact limit of the plan. A dry run that
 * must not tell whether a contact has the phone leaves it out: it is unique.
 */
const createContact = async (ctx: Context, line: PhoneLine): Promise<Recipient> => {
  const { workspace } = ctx.actor
  await requireRoomForContact(ctx)
  const id = await takeContactId(ctx)
  await runDeferredWrite(
    ctx.tx,
    buildContactInsert(
      workspace.id,
      id,
      {
        ...(isBlindRehearsal(ctx) ? { phone: null } : { phone: line.phone, phoneKey: toPhoneKey(line) }),
        name: null,
        email: null,
        attrs: {},
        types: new Map(),
        tagIds: [],
        groupIds: [],
      },
      ctx.now,
    ),
  )
  return { id, phone: line.phone, provider_phone: null, chatapp_user_id: null, dnd: false }
}

import { contactInsert, lockContact, lockContactByPhone, lockContactLimit } from '../../storage/contacts.ts'
import { readCounter } from '../../storage/counters.ts'
import { runFinale } from '../../storage/deferred-write.ts'
import { readRecipient, type Recipient, type SendingChannel } from '../../storage/sends.ts'
import { findTemplate, type TemplateRow } from '../../storage/templates.ts'
import { readPhone } from '../contacts/input.ts'
import { limitReached } from '../contacts/upsert.ts'
import type { Context } from '../core/context.ts'
import { conversationFor, flowOf } from '../inbox/lifecycle.ts'
import type { InputOf, OutputOf } from '../core/handler.ts'
import { invalidField, notFound, Problem } from '../core/problem.ts'
import { chooseChannel, reachable } from './channels.ts'
import { doNotDisturb, inThreeParts, type SendIntent, sending, settleSend, writePending } from './send.ts'
import { fillTemplate } from './template-fill.ts'

type Input = InputOf<'messaging_send_template'>
type Intent = SendIntent & { preview: string }

export const sendTemplate = inThreeParts<Input, OutputOf<'messaging_send_template'>, Intent, { id: string }>({
  ...sending,
  prepare: async (ctx, input) => {
    const { known, phone } = await findRecipient(ctx, input)
    const channel = await chooseChannel(ctx, input.channel_id, known?.id)
    const template = await approved(ctx, channel, input)
    const { components, preview } = fill(ctx, template, input)
    if (known) requireWilling(known, template)
    const recipient = known ? reachable(known) : await makeContact(ctx, phone!)
    // What is made is announced once the provider has taken the message.
    const quiet = { ...flowOf(ctx), emit: () => {} }
    const { conversation, created } = await conversationFor(
      quiet,
      recipient.id,
      channel.id,
      ctx.actor.staff.id,
    )
    const { name, language } = template
    const link = input.template.header?.media_url
    const content = {
      type: 'TEMPLATE',
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
      ...(await writePending(
        ctx,
        { conversation, channel, recipient, opens: created, makesContact: !known },
        content,
        body,
      )),
      preview,
    }
  },
  settle: async (ctx, intent, result) => ({
    ...(await settleSend(ctx, intent, result)),
    preview: intent.preview,
  }),
})

/** The contact that is meant, locked; or the phone that is to become one. */
const findRecipient = async (
  ctx: Context,
  { contact_id: id, phone: given }: Input,
): Promise<{ known?: Recipient; phone?: string }> => {
  const workspaceId = ctx.actor.workspace.id
  if (id === undefined && given === undefined)
    throw invalidField('contact_id', 'required', 'or phone is required', {
      fix: 'Send contact_id, or phone.',
    })
  if (id !== undefined && given !== undefined)
    throw invalidField('phone', 'ambiguous', 'stands beside contact_id', { fix: 'Send one of them.' })
  if (id === undefined) {
    const phone = readPhone(given!)
    const there = await lockContactByPhone(ctx.tx, workspaceId, phone)
    return there === undefined ? { phone } : { known: (await readRecipient(ctx.tx, workspaceId, there))! }
  }
  if (!(await lockContact(ctx.tx, workspaceId, id))) throw notFound('contact', id)
  return { known: (await readRecipient(ctx.tx, workspaceId, id))! }
}

/** The template on the channel's account, if it may be sent. */
const approved = async (
  ctx: Context,
  channel: SendingChannel,
  { template: { name, language } }: Input,
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

/** A pointer as people read it: `template.body[1]`. */
const nameOf = (pointer: string): string =>
  pointer
    .slice(2)
    .split('/')
    .map((part, i) => (/^\d+$/.test(part) ? `[${part}]` : i === 0 ? part : `.${part}`))
    .join('')

const fill = (ctx: Context, { name, category, components }: TemplateRow, { template: given }: Input) => {
  const filled = fillTemplate({ category, components }, given, ctx.now)
  if ('unsupported' in filled)
    throw new Problem(
      'conflict',
      `The template ${name} has a ${filled.unsupported} button, which cannot be filled here.`,
      { reason: 'template_not_supported' },
    )
  if (!('faults' in filled)) return filled
  const [first, ...more] = filled.faults
  const detail =
    more.length === 0
      ? `${nameOf(first!.pointer!)} ${first!.detail}.`
      : `${filled.faults.length} values do not fit the template; the first: ${nameOf(first!.pointer!)} ${first!.detail}.`
  throw new Problem('invalid_input', detail, {
    reason: 'template_values',
    errors: filled.faults.slice(0, 50),
  })
}

const requireWilling = ({ dnd, phone }: Recipient, { category }: TemplateRow): void => {
  if (dnd && category === 'MARKETING') throw doNotDisturb()
  if (phone === null && category === 'AUTHENTICATION') {
    throw new Problem(
      'conflict',
      'The contact shows no phone number, and the provider sends codes to phone numbers alone.',
      { reason: 'phone_required' },
    )
  }
}

/** A contact with this phone and nothing else, within the plan. */
const makeContact = async (ctx: Context, phone: string): Promise<Recipient> => {
  const { workspace } = ctx.actor
  if (workspace.contactLimit !== null) {
    await lockContactLimit(ctx.tx, workspace.id)
    if ((await readCounter(ctx.tx, workspace.id, 'contacts')) >= workspace.contactLimit)
      throw limitReached(workspace.contactLimit)
  }
  const id = await ctx.newContactId()
  await runFinale(
    ctx.tx,
    contactInsert(
      workspace.id,
      id,
      { phone, name: null, email: null, attrs: {}, types: new Map(), tagIds: [], groupIds: [] },
      ctx.now,
    ),
  )
  return { id, phone, chatapp_user_id: null, dnd: false }
}

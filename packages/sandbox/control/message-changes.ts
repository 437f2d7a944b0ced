import { z } from 'zod'
import { Id } from '../../../catalog/fields.ts'
import { findProviderMessage, type ProviderMessageRow } from '../../../storage/workspace/sandbox-control.ts'
import { invalidField, notFound, Problem } from '../../../server/kernel/problem.ts'
import { canSeeChannel } from '../../../server/visibility/policy.ts'
import { defineRoute, parseDigits, type RouteContext } from './route.ts'

/** What a customer does to a message: reacts to it, or edits or deletes one of their own. */

const MessageInput = z.object({ message_id: Id, from: z.string().min(1).max(64).optional() })
const TARGET = { type: 'message', field: 'message_id' } as const

type Target = ProviderMessageRow & { provider_id: string; number_id: string }

export const requireMessage = async ({ app, actor }: RouteContext, id: string): Promise<Target> => {
  const message = await findProviderMessage(app.db, actor.workspace.id, id)
  if (!message || !canSeeChannel(actor, message.channel_id)) throw notFound('message', id)
  const { provider_id, number_id } = message
  if (provider_id === null || number_id === null)
    throw new Problem('conflict', `Message ${id} is not at the provider, so no customer sees it.`, {
      reason: 'not_sent',
    })
  return { ...message, provider_id, number_id }
}

const requireOwnMessage = async (ctx: RouteContext, id: string): Promise<Target> => {
  const message = await requireMessage(ctx, id)
  if (message.direction !== 'inbound')
    throw new Problem('conflict', `Message ${id} is not a customer's; customers change only their own.`, {
      reason: 'not_inbound',
    })
  return message
}

/** Sends the change as the customer of the conversation, or of the given phone. */
const sendChange = async (
  ctx: RouteContext,
  { number_id, contact_phone: phone, contact_user_id: userId }: Target,
  from: string | undefined,
  message: Record<string, unknown>,
): Promise<void> => {
  const sender =
    from === undefined
      ? { ...(phone === null ? {} : { from: phone }), ...(userId === null ? {} : { user_id: userId }) }
      : { from: parseDigits('from', from) }
  if (Object.keys(sender).length === 0)
    throw invalidField('from', 'required', 'is required, since the contact of the message was deleted', {
      fix: "Send the customer's phone number.",
    })
  await ctx.sync.sync(ctx.actor.workspace.id)
  await ctx.control.request('POST', 'say', { number_id, ...sender, message })
}

const react = defineRoute(
  'sandbox.react',
  'POST react',
  MessageInput.extend({ emoji: z.string().min(1).max(40).optional(), remove: z.literal(true).optional() }),
  async (ctx, { message_id: id, from, emoji, remove }) => {
    if ((emoji === undefined) === (remove === undefined))
      throw invalidField('emoji', 'required', 'or remove is required, and not both', {
        fix: 'Send an emoji, or remove: true.',
      })
    const message = await requireMessage(ctx, id)
    await sendChange(ctx, message, from, {
      type: 'reaction',
      reaction: { message_id: message.provider_id, ...(emoji === undefined ? {} : { emoji }) },
    })
    return { message_id: id, emoji: emoji ?? null }
  },
  TARGET,
)

/** Where the text of an editable message is, by its type here. */
const textMembers: Readonly<Record<string, readonly [type: string, member: string]>> = {
  TEXT: ['text', 'body'],
  IMAGE: ['image', 'caption'],
  VIDEO: ['video', 'caption'],
  DOCUMENT: ['document', 'caption'],
}

const edit = defineRoute(
  'sandbox.edit',
  'POST edit',
  MessageInput.extend({ text: z.string().min(1).max(4096) }),
  async (ctx, { message_id: id, from, text }) => {
    const message = await requireOwnMessage(ctx, id)
    const place = textMembers[message.type]
    if (!place)
      throw new Problem(
        'conflict',
        `Message ${id} is of the type ${message.type}, which has no text to edit.`,
        {
          reason: 'not_editable',
        },
      )
    const [type, member] = place
    await sendChange(ctx, message, from, {
      type: 'edit',
      edit: {
        original_message_id: message.provider_id,
        message: { context: { id: message.provider_id }, type, [type]: { [member]: text } },
      },
    })
    return { message_id: id }
  },
  TARGET,
)

const deletion = defineRoute(
  'sandbox.delete',
  'POST delete',
  MessageInput,
  async (ctx, { message_id: id, from }) => {
    const message = await requireOwnMessage(ctx, id)
    await sendChange(ctx, message, from, {
      type: 'revoke',
      revoke: { original_message_id: message.provider_id },
    })
    return { message_id: id }
  },
  TARGET,
)

export const messageChangeRoutes = [react, edit, deletion]

import { readContact } from '../../storage/contacts.ts'
import { readAnswered, readQuickMessage, readRecipient, readSendingChannel } from '../../storage/sends.ts'
import type { Context } from '../core/context.ts'
import { reachConversation } from '../inbox/access.ts'
import type { ConversationState } from '../inbox/lifecycle.ts'
import { windowOf } from '../inbox/window.ts'
import type { InputOf, OutputOf } from '../core/handler.ts'
import { invalidField, notFound, Problem } from '../core/problem.ts'
import { viewerOf } from '../quick-messages/rights.ts'
import type { Outgoing } from '../provider/port.ts'
import { reachable, usable } from './channels.ts'
import { fillPlaceholders } from './placeholders.ts'
import { inThreeParts, type SendIntent, sending, settleSend, windowClosed, writePending } from './send.ts'

type Input = InputOf<'messaging_send_reply'>
/** What is sent: text alone, or a file with or without a caption. */
type Said =
  | { type: 'TEXT'; text: string }
  | { type: string; text: string | null; url: string; fileName: string | null }

const CAPTIONED = new Set(['IMAGE', 'VIDEO', 'DOCUMENT'])
const LONGEST_TEXT = 4096
const LONGEST_CAPTION = 1024

export const sendReply = inThreeParts<Input, OutputOf<'messaging_send_reply'>, SendIntent, { id: string }>({
  ...sending,
  prepare: async (ctx, input) => {
    const given = readGiven(input)
    const workspaceId = ctx.actor.workspace.id
    const conversation = await reachConversation(ctx, input.conversation_id)
    const contact =
      conversation.contact_id === null
        ? undefined
        : await readContact(ctx.tx, workspaceId, conversation.contact_id)
    if (!contact)
      throw new Problem(
        'conflict',
        'The contact of this conversation was deleted, so nobody can be written to.',
        { reason: 'contact_deleted' },
      )
    const said = given ?? (await quickMessage(ctx, input.quick_message_id!, contact))
    const answered =
      input.reply_to_id === undefined
        ? undefined
        : await findAnswered(ctx, conversation.id, input.reply_to_id)
    const channel =
      conversation.channel_id === null
        ? undefined
        : await readSendingChannel(ctx.tx, workspaceId, conversation.channel_id)
    if (!channel)
      throw new Problem('conflict', 'The channel of this conversation is gone.', {
        reason: 'channel_not_connected',
      })
    usable(channel)
    requireOpen(ctx, conversation)
    const recipient = reachable((await readRecipient(ctx.tx, workspaceId, contact.contact.id))!)
    const content = {
      type: said.type,
      text: said.text,
      reply_to_id: answered?.id ?? null,
      ...('url' in said
        ? { media: { state: 'linked' as const, url: said.url, file_name: said.fileName } }
        : {}),
    }
    return await writePending(
      ctx,
      { conversation, channel, recipient, opens: false, makesContact: false },
      content,
      bodyOf(said),
      answered?.provider_id,
    )
  },
  settle: settleSend,
})

/** What the input says; undefined when it names a saved reply. Refuses what does not go together. */
const readGiven = (input: Input): Said | undefined => {
  const { text, media_url: url, quick_message_id: quick, type, caption, file_name: fileName } = input
  const chosen = (['text', 'media_url', 'quick_message_id'] as const).filter(
    (field) => input[field] !== undefined,
  )
  if (chosen.length === 0)
    throw invalidField('text', 'required', 'or media_url or quick_message_id is required', {
      fix: 'Send one of text, media_url with type, and quick_message_id.',
    })
  if (chosen.length > 1)
    throw invalidField(chosen[1]!, 'ambiguous', `stands beside ${chosen[0]}`, {
      fix: 'Send one of text, media_url and quick_message_id.',
    })
  if (url === undefined) {
    const stray = (['type', 'caption', 'file_name'] as const).find((field) => input[field] !== undefined)
    if (stray)
      throw invalidField(stray, 'not_allowed', 'goes with media_url alone', {
        fix: 'Leave it out, or send media_url.',
      })
    if (quick !== undefined) return undefined
    if (text!.trim() === '')
      throw invalidField('text', 'blank', 'is blank', { fix: 'Send text that can be read.' })
    return { type: 'TEXT', text: text! }
  }
  if (type === undefined)
    throw invalidField('type', 'required', 'is required with media_url', {
      fix: 'Say what the file is.',
      allowed: ['IMAGE', 'VIDEO', 'AUDIO', 'DOCUMENT', 'STICKER'],
    })
  if (caption !== undefined && !CAPTIONED.has(type))
    throw invalidField('caption', 'not_allowed', `does not go with ${type}`, {
      fix: 'Leave it out; images, videos and documents have captions.',
    })
  if (fileName !== undefined && type !== 'DOCUMENT')
    throw invalidField('file_name', 'not_allowed', `does not go with ${type}`, {
      fix: 'Leave it out; only documents have file names.',
    })
  return { type, text: captionOf(caption), url, fileName: fileName ?? null }
}

/** A blank caption is none: the provider refuses it. */
const captionOf = (text: string | null | undefined): string | null =>
  text === null || text === undefined || text.trim() === '' ? null : text

type ReadContact = NonNullable<Awaited<ReturnType<typeof readContact>>>

const quickMessage = async (ctx: Context, id: string, { contact, fields }: ReadContact): Promise<Said> => {
  const quick = await readQuickMessage(ctx.tx, ctx.actor.workspace.id, viewerOf(ctx.actor), id)
  if (!quick) throw notFound('quick message', id)
  if (quick.type === 'TEMPLATE') {
    throw new Problem(
      'conflict',
      `This saved reply is the template ${quick.template_name ?? ''}. Send it with messaging_send_template.`,
      { reason: 'quick_message_is_template', template_name: quick.template_name },
    )
  }
  if (quick.type !== 'TEXT' && !CAPTIONED.has(quick.type))
    throw new Problem('conflict', `Saved replies of type ${quick.type} cannot be sent here.`, {
      reason: 'quick_message_not_supported',
    })
  const text = captionOf(fillPlaceholders(quick.text ?? '', ctx.actor, contact, fields))
  const most = quick.type === 'TEXT' ? LONGEST_TEXT : LONGEST_CAPTION
  if ((text?.length ?? 0) > most)
    throw invalidField(
      'quick_message_id',
      'too_long',
      `names a saved reply of ${text!.length} characters when filled; ${most} can be sent`,
      { fix: 'Shorten it.' },
    )
  if (quick.type === 'TEXT' ? text === null : quick.media_url === null) {
    throw new Problem(
      'conflict',
      `The saved reply has no ${quick.type === 'TEXT' ? 'text' : 'media_url'}. Complete it first.`,
      { reason: 'quick_message_incomplete' },
    )
  }
  return quick.type === 'TEXT'
    ? { type: 'TEXT', text: text! }
    : {
        type: quick.type,
        text,
        url: quick.media_url!,
        fileName: quick.type === 'DOCUMENT' ? quick.file_name : null,
      }
}

const findAnswered = async (
  ctx: Context,
  conversationId: string,
  id: string,
): Promise<{ id: string; provider_id: string }> => {
  const message = await readAnswered(ctx.tx, ctx.actor.workspace.id, conversationId, id)
  if (!message)
    throw invalidField('reply_to_id', 'unknown_message', 'is not the id of a message of this conversation', {
      fix: 'List the messages of the conversation to find it.',
    })
  if (message.provider_id === null) {
    throw new Problem(
      'conflict',
      'That message never reached the messaging provider, so it cannot be answered. Leave out reply_to_id.',
      { reason: 'not_at_provider' },
    )
  }
  return { id: message.id, provider_id: message.provider_id }
}

/** The same function that shows the window decides. */
const requireOpen = (ctx: Context, conversation: ConversationState): void => {
  const window = windowOf(conversation, ctx.now)
  if (!window.open) throw windowClosed(window)
}

/** The message as the provider takes it (reference 2.2). Types are ours in lower case. */
const bodyOf = (said: Said): Outgoing['body'] => {
  if (!('url' in said)) return { type: 'text', text: { body: said.text, preview_url: false } }
  const type = said.type.toLowerCase()
  return {
    type,
    [type]: {
      link: said.url,
      ...(said.text === null ? {} : { caption: said.text }),
      ...(said.fileName === null ? {} : { filename: said.fileName }),
    },
  }
}

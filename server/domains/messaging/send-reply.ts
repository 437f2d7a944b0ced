import { type Interactive, maxTextWith } from '../../../catalog/interactive.ts'
import type { Context, InputOf } from '../../handler.ts'
import { findBoundFacts } from '../../../storage/agents/policy.ts'
import { lockContact, readContact } from '../../../storage/contacts/contacts.ts'
import {
  findReplyTarget,
  readQuickMessage,
  readRecipient,
  readSendingChannel,
  type SendingChannel,
} from '../../../storage/messages/sends.ts'
import { findChannelCustomerId } from '../../../storage/channels/customers.ts'
import { findChannelOfConversation } from '../../../storage/channels/messages.ts'
import { queueReply } from '../channels/queue-reply.ts'
import { lockVisibleConversation } from '../inbox/access.ts'
import { findReplyRefusal, toWindow } from '../inbox/window.ts'
import { invalidField, notFound, Problem } from '../../kernel/problem.ts'
import { toViewer } from '../quick-messages/rights.ts'
import { canSeeChannel } from '../../visibility/policy.ts'
import type { OutgoingMessage } from '../../provider/port.ts'
import { contactUnreachable, isOwnChannel, toChannelFacts, toChannelProblem } from './channels.ts'
import { requireTextFits, toProviderInteractive } from './offers.ts'
import { fillPlaceholders } from './placeholders.ts'
import {
  type SendIntent,
  sharedSendParts,
  completeSend,
  windowClosedProblem,
  insertPendingMessage,
} from './send.ts'
import { defineProviderHandler } from '../../provider/provider-handler.ts'

type Input = InputOf<'messaging_send_reply'>
/** Text, also with what can be tapped, or a file with an optional caption. */
type ReplyContent =
  | { type: 'TEXT'; text: string }
  | { type: 'INTERACTIVE'; text: string; interactive: Interactive }
  | { type: string; text: string | null; url: string; fileName: string | null }

const CAPTIONED = new Set(['IMAGE', 'VIDEO', 'DOCUMENT'])
const MAX_TEXT_LENGTH = 4096
const MAX_CAPTION_LENGTH = 1024

export const sendReply = defineProviderHandler<'messaging_send_reply', SendIntent, { id: string }>({
  ...sharedSendParts,
  prepare: async (ctx, input) => {
    const inputContent = parseReplyContent(input)
    const externalId = input.external_id ?? null
    const workspaceId = ctx.actor.workspace.id
    if (ctx.dryRun) await lockContactFirst(ctx, input.conversation_id)
    const conversation = await lockVisibleConversation(ctx, input.conversation_id)
    const contact =
      conversation.contact_id === null
        ? undefined
        : await readContact(ctx.tx, workspaceId, conversation.contact_id)
    const channel =
      conversation.channel_id === null
        ? undefined
        : await readSendingChannel(ctx.tx, workspaceId, conversation.channel_id)
    const isOwn = channel !== undefined && isOwnChannel(channel)
    const customerId =
      isOwn && contact
        ? await findChannelCustomerId(ctx.tx, workspaceId, channel.id, contact.contact.id)
        : undefined
    const facts = {
      ...conversation,
      ...(channel && toChannelFacts(channel)),
      contact_id: contact?.contact.id ?? null,
      contact_reachable: isOwn
        ? customerId !== undefined
        : (contact?.contact.phone ?? contact?.contact.chatapp_user_id ?? null) !== null,
    }
    const window = toWindow(conversation, ctx.now)
    const refusal = findReplyRefusal(facts, window)
    if (refusal || !contact || !channel) throw toRefusal(refusal ?? 'contact_deleted', channel, window)
    const reply = inputContent ?? (await loadQuickMessage(ctx, input.quick_message_id!, contact))
    const repliedTo =
      input.reply_to_id === undefined
        ? undefined
        : await findRepliedMessage(ctx, conversation.id, input.reply_to_id)
    if (customerId !== undefined)
      return await queueReply(ctx, {
        conversation,
        channel,
        contact: contact.contact,
        customerId,
        content: { ...toMessageContent(reply), external_id: externalId },
        repliedTo,
      })
    const recipient = (await readRecipient(ctx.tx, workspaceId, contact.contact.id))!
    const content = {
      ...toMessageContent(reply),
      reply_to_id: repliedTo?.id ?? null,
      external_id: externalId,
    }
    return await insertPendingMessage(
      ctx,
      { conversation, channel, recipient, opens: false, makesContact: false },
      content,
      toProviderBody(reply),
      repliedTo?.provider_id,
    )
  },
  complete: completeSend,
  queue: {
    job: 'channel-deliveries',
    takes: ({ queued }) => queued === true,
  },
  needsNoProvider: async (ctx, { conversation_id: id }) => {
    const channel = await findChannelOfConversation(ctx.tx, ctx.actor.workspace.id, id)
    // One that the actor may not see answers like one that does not exist.
    return channel !== undefined && canSeeChannel(ctx.actor, channel.id) && isOwnChannel(channel)
  },
})

type Refusal = NonNullable<ReturnType<typeof findReplyRefusal>>

/** Says why no reply is taken, and what to do. */
const toRefusal = (
  reason: Refusal,
  channel: SendingChannel | undefined,
  window: ReturnType<typeof toWindow>,
): Problem => {
  if (reason === 'group')
    return new Problem(
      'conflict',
      'This is a group: it is read here, and answered in the phone app. Write to one of its members in private.',
      { reason },
    )
  if (reason === 'contact_deleted')
    return new Problem('conflict', 'The contact of this conversation was deleted, so no reply can be sent.', {
      reason,
    })
  if (reason === 'contact_unreachable')
    return contactUnreachable(channel && isOwnChannel(channel) ? channel.id : undefined)
  if (reason === 'window_closed') return windowClosedProblem(window)
  return channel
    ? toChannelProblem(channel, reason)
    : new Problem('window_closed', 'The channel of this conversation was deleted.', { reason, window })
}

/**
 * Locks the contact of a conversation. A dry run completes the send in the transaction that prepares it, and
 * contacts are locked before conversations: otherwise it and a send that completes wait for each other.
 */
const lockContactFirst = async ({ tx, actor }: Context, conversationId: string): Promise<void> => {
  const facts = await findBoundFacts(tx, actor.workspace.id, { conversationId })
  if (facts?.contact_id) await lockContact(tx, actor.workspace.id, facts.contact_id)
}

const toMessageContent = (reply: ReplyContent) => ({
  type: reply.type,
  text: reply.text,
  ...('url' in reply
    ? { media: { state: 'linked' as const, url: reply.url, file_name: reply.fileName } }
    : {}),
  ...('interactive' in reply ? { content: { content: reply.interactive } } : {}),
})

/**
 * Returns the content of the input; undefined when it names a quick message. Throws 400 for fields that
 * cannot be combined.
 */
const parseReplyContent = (input: Input): ReplyContent | undefined => {
  const {
    text,
    interactive,
    media_url: url,
    quick_message_id: quick,
    type,
    caption,
    file_name: fileName,
  } = input
  if (url === undefined) {
    if (quick !== undefined) return undefined
    if (text!.trim() === '')
      throw invalidField('text', 'blank', 'is blank', { fix: 'Send text that is not blank.' })
    if (!interactive) return { type: 'TEXT', text: text! }
    requireTextFits(text!, interactive)
    return { type: 'INTERACTIVE', text: text!, interactive }
  }
  if (caption !== undefined && !CAPTIONED.has(type!))
    throw invalidField('caption', 'not_allowed', `is not allowed with ${type}`, {
      fix: 'Remove it; only images, videos and documents have captions.',
    })
  if (fileName !== undefined && type !== 'DOCUMENT')
    throw invalidField('file_name', 'not_allowed', `is not allowed with ${type}`, {
      fix: 'Remove it; only documents have file names.',
    })
  return { type: type!, text: toCaption(caption), url, fileName: fileName ?? null }
}

/** Returns null for a blank caption, which the provider refuses. */
const toCaption = (text: string | null | undefined): string | null =>
  text === null || text === undefined || text.trim() === '' ? null : text

type ContactWithFields = NonNullable<Awaited<ReturnType<typeof readContact>>>

const loadQuickMessage = async (
  ctx: Context,
  id: string,
  { contact, fields }: ContactWithFields,
): Promise<ReplyContent> => {
  const quick = await readQuickMessage(ctx.tx, ctx.actor.workspace.id, toViewer(ctx.actor), id)
  if (!quick) throw notFound('quick message', id)
  if (quick.type === 'TEMPLATE') {
    throw new Problem(
      'conflict',
      `This quick message is the template ${quick.template_name ?? ''}. ` +
        'Send it with messaging_send_template.',
      { reason: 'quick_message_is_template', template_name: quick.template_name },
    )
  }
  const { interactive } = quick
  if (quick.type !== 'TEXT' && !interactive && !CAPTIONED.has(quick.type))
    throw new Problem('conflict', `Quick messages of type ${quick.type} cannot be sent here.`, {
      reason: 'quick_message_not_supported',
    })
  const text = toCaption(fillPlaceholders(quick.text ?? '', ctx.actor, contact, fields))
  const hasText = quick.type === 'TEXT' || interactive !== null
  const maxLength = interactive
    ? maxTextWith(interactive)
    : quick.type === 'TEXT'
      ? MAX_TEXT_LENGTH
      : MAX_CAPTION_LENGTH
  if ((text?.length ?? 0) > maxLength)
    throw invalidField(
      'quick_message_id',
      'too_long',
      `names a quick message of ${text!.length} characters when filled; at most ${maxLength} can be sent`,
      { fix: 'Shorten it.' },
    )
  if (hasText ? text === null : quick.media_url === null) {
    throw new Problem(
      'conflict',
      `The quick message has no ${hasText ? 'text' : 'media_url'}. Complete it first.`,
      { reason: 'quick_message_incomplete' },
    )
  }
  if (interactive) return { type: 'INTERACTIVE', text: text!, interactive }
  return quick.type === 'TEXT'
    ? { type: 'TEXT', text: text! }
    : {
        type: quick.type,
        text,
        url: quick.media_url!,
        fileName: quick.type === 'DOCUMENT' ? quick.file_name : null,
      }
}

const findRepliedMessage = async (
  ctx: Context,
  conversationId: string,
  id: string,
): Promise<{ id: string; provider_id: string }> => {
  const message = await findReplyTarget(ctx.tx, ctx.actor.workspace.id, conversationId, id)
  if (!message)
    throw invalidField('reply_to_id', 'unknown_message', 'is not the id of a message of this conversation', {
      fix: 'List the messages of the conversation to find it.',
    })
  if (message.provider_id === null) {
    throw new Problem(
      'conflict',
      'That message never reached the messaging provider, so it cannot be replied to. Remove reply_to_id.',
      { reason: 'not_at_provider' },
    )
  }
  return { id: message.id, provider_id: message.provider_id }
}

/** Returns the message in the provider's form. Its types are ours in lower case. */
const toProviderBody = (reply: ReplyContent): OutgoingMessage['body'] => {
  if ('interactive' in reply)
    return { type: 'interactive', interactive: toProviderInteractive(reply.text, reply.interactive) }
  if (!('url' in reply)) return { type: 'text', text: { body: reply.text, preview_url: false } }
  const type = reply.type.toLowerCase()
  return {
    type,
    [type]: {
      link: reply.url,
      ...(reply.text === null ? {} : { caption: reply.text }),
      ...(reply.fileName === null ? {} : { filename: reply.fileName }),
    },
  }
}

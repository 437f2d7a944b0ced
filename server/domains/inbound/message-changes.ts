import {
  type ChangedMessage,
  eraseMessage,
  lockMessagesByProviderId,
  readReactions,
  updateMessageText,
  upsertReaction,
} from '../../../storage/messages/changes.ts'
import type { ChangeContext } from '../../change-context.ts'
import { clipText, eventMessage } from '../messaging/view.ts'
import { parseContent } from './content.ts'
import type { InboundCustomer } from './customers.ts'
import { type JsonObject, asObject, asText } from './json.ts'

/*
 * Reactions, edits and deletions arrive in the form of messages, but are none: they change the message that
 * they name. They open no conversation and no reply window, start and end no wait, and are not unread.
 */

/** What a customer does to a message. `target`: the provider's id of the message. */
export type MessageChange = { target: string } & (
  | { kind: 'reaction'; emoji: string | null }
  | { kind: 'edit'; text: string | null }
  | { kind: 'deletion' }
)

/** An emoji is one character, of up to some ten code points. */
const MAX_EMOJI_LENGTH = 32

type ChangeParser = (body: JsonObject) => MessageChange | undefined

const parseReaction: ChangeParser = (body) => {
  const [target, emoji] = [asText(body['message_id']), asText(body['emoji'])]
  if (target === null) return undefined
  return { kind: 'reaction', target, emoji: emoji === null ? null : clipText(emoji, MAX_EMOJI_LENGTH).text }
}

/** The new message has the form of any other; only its text or caption can differ from the old one. */
const parseEdit: ChangeParser = (body) => {
  const target = asText(body['original_message_id'])
  const { type, text } = parseContent(asObject(body['message']))
  return target === null || type === 'SYSTEM' ? undefined : { kind: 'edit', target, text }
}

const parseDeletion: ChangeParser = (body) => {
  const target = asText(body['original_message_id'])
  return target === null ? undefined : { kind: 'deletion', target }
}

const parsers: Readonly<Record<string, ChangeParser>> = {
  reaction: parseReaction,
  edit: parseEdit,
  revoke: parseDeletion,
}

/** Whether the provider reports the change of a message in the form of a message. */
export const isMessageChange = (message: JsonObject): boolean =>
  Object.hasOwn(parsers, asText(message['type']) ?? '')

/** Parses the change of a message; undefined when it does not say which message, or what. */
export const parseMessageChange = (message: JsonObject): MessageChange | undefined => {
  const type = asText(message['type'])!
  return parsers[type]!(asObject(message[type]))
}

/** `updateId`: decides between two changes of the same time; `at`: ISO 8601 UTC. `by`: staff in the phone app. */
export type ReceivedChange = {
  updateId: string
  channelId: string
  customer: InboundCustomer
  by: 'customer' | 'staff'
  change: MessageChange
  at: string
}

type ChangeEvent = 'message.reaction_changed/1' | 'message.edited/1' | 'message.deleted/1'

/**
 * Whether the message is in a conversation of this customer. Where there is nothing to compare, such as a
 * phone here and a user id there, the provider's word is enough: only participants can change a message.
 */
const isOfCustomer = ({ phone, userId }: InboundCustomer, message: ChangedMessage): boolean => {
  const { contact_line: contactLine, contact_user_id: contactUserId } = message
  if (phone !== null && phone.key === contactLine) return true
  if (userId !== null && contactUserId !== null) return userId === contactUserId
  return phone === null || contactLine === null
}

/** Both sides react to any message of the conversation, and edit and delete their own. */
const concerns = ({ channelId, customer, by, change }: ReceivedChange, message: ChangedMessage): boolean =>
  message.channel_id === channelId &&
  message.direction !== 'system' &&
  (change.kind === 'reaction' || message.direction === (by === 'customer' ? 'inbound' : 'outbound')) &&
  isOfCustomer(customer, message)

const byTime = (a: ReceivedChange, b: ReceivedChange): number =>
  a.at === b.at ? Number(BigInt(a.updateId) - BigInt(b.updateId)) : a.at < b.at ? -1 : 1

/**
 * Applies changes of messages in the order in which they happened; one that a later one overtook changes
 * nothing. Returns the ids of updates whose message is `unknown` so far, and of those that name a message of
 * another conversation (`foreign`).
 */
export const applyMessageChanges = async (
  context: ChangeContext<ChangeEvent>,
  changes: readonly ReceivedChange[],
): Promise<{ unknown: string[]; foreign: string[] }> => {
  const result: { unknown: string[]; foreign: string[] } = { unknown: [], foreign: [] }
  if (changes.length === 0) return result
  const { tx, workspaceId } = context
  const rows = await lockMessagesByProviderId(tx, workspaceId, [
    ...new Set(changes.map(({ change }) => change.target)),
  ])
  const reactions = await readReactions(
    tx,
    workspaceId,
    rows.map((row) => row.id),
  )
  for (const received of changes.toSorted(byTime)) {
    const named = rows.filter((row) => row.named_by.includes(received.change.target))
    const message = named.find((row) => concerns(received, row))
    if (named.length === 0) result.unknown.push(received.updateId)
    else if (!message) result.foreign.push(received.updateId)
    else if (message.deleted_at === null) await applyChange(context, received, message, reactions)
  }
  return result
}

const applyChange = async (
  context: ChangeContext<ChangeEvent>,
  { by, change, at: reportedAt, updateId }: ReceivedChange,
  message: ChangedMessage,
  reactions: Map<string, string>,
): Promise<void> => {
  const at = reportedAt < message.created_at ? message.created_at : reportedAt
  if (change.kind === 'reaction')
    return await applyReaction(context, message, { by, emoji: change.emoji, at, updateId }, reactions)
  if (change.kind === 'edit') return await applyEdit(context, message, change.text, at)
  await eraseMessage(context.tx, context.workspaceId, message.id, at)
  Object.assign(message, { text: null, content: null, deleted_at: at })
  context.emit('message.deleted/1', { message: eventMessage(message), deleted_at: at })
}

/** A person has one reaction to a message: a new emoji replaces it, and none removes it. */
const applyReaction = async (
  context: ChangeContext<'message.reaction_changed/1'>,
  message: ChangedMessage,
  { by, emoji, at, updateId }: Pick<ReceivedChange, 'by' | 'at' | 'updateId'> & { emoji: string | null },
  reactions: Map<string, string>,
): Promise<void> => {
  const reaction = { messageId: message.id, sender: by, emoji, at, updateId }
  if (!(await upsertReaction(context.tx, context.workspaceId, reaction))) return
  const key = `${by} ${message.id}`
  const previous = reactions.get(key) ?? null
  if (emoji === previous) return
  if (emoji === null) reactions.delete(key)
  else reactions.set(key, emoji)
  context.emit('message.reaction_changed/1', {
    message: eventMessage(message),
    reaction: { emoji, previous_emoji: previous, from: by, at },
  })
}

const applyEdit = async (
  context: ChangeContext<'message.edited/1'>,
  message: ChangedMessage,
  text: string | null,
  at: string,
): Promise<void> => {
  if (message.edited_at !== null && at < message.edited_at) return
  await updateMessageText(context.tx, context.workspaceId, message.id, text, at)
  const previous = message.text
  Object.assign(message, { text, edited_at: at })
  context.emit('message.edited/1', {
    message: eventMessage(message),
    previous_text: previous,
    edited_at: at,
  })
}

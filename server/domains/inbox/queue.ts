import type { Context, Handler, OutputOf } from '../../handler.ts'
import { QUEUE_OLDER_TEXT_LENGTH, QUEUE_TEXT_LENGTH } from '../../../catalog/conversations/queue.ts'
import { type ConversationRow, listWaitingPage } from '../../../storage/conversations/lists.ts'
import { listRecentMessages, type RecentMessageRow } from '../../../storage/messages/lists.ts'
import { listUsableChannels } from '../../../storage/messages/sends.ts'
import type { Actor } from '../../kernel/context.ts'
import { clipText } from '../messaging/view.ts'
import { showContactName, showMessageText } from '../../visibility/phones.ts'
import { showTotal, toConversationFilter } from './filters.ts'
import { loadTemplateChoice, type TemplateChoice } from './queue-templates.ts'
import { toSla } from './sla.ts'
import { showReply } from './view.ts'
import { findReplyRefusal, toWindow } from './window.ts'

type QueueRow = OutputOf<'inbox_queue'>['data'][number]

const MESSAGES = 3
/** More than is shown, since letters can have many combining marks. */
const READ_TEXT_LENGTH = 4 * QUEUE_TEXT_LENGTH

/** Returns a text on one line, of at most `max` characters. */
const shorten = (given: string, max: number): string => {
  const line = given.replaceAll(/\s+/g, ' ').trim()
  const { text, truncated } = clipText(line, max)
  return truncated ? `${clipText(text, max - 1).text}…` : text
}

const showRecent = (
  actor: Actor,
  row: RecentMessageRow,
  isNewest: boolean,
): QueueRow['messages'][number] => ({
  from: row.direction === 'inbound' ? 'customer' : 'staff',
  text:
    shorten(showMessageText(actor, row) ?? '', isNewest ? QUEUE_TEXT_LENGTH : QUEUE_OLDER_TEXT_LENGTH) ||
    (row.is_deleted ? '[deleted]' : `[${row.type}]`),
  ...(row.status === 'failed' ? { failed: true as const } : {}),
})

const showRow = (
  { actor, now }: Context,
  row: ConversationRow,
  messages: readonly RecentMessageRow[],
  templates: TemplateChoice,
): QueueRow => {
  const window = toWindow(row, now)
  const reply = showReply(row, window)
  return {
    id: row.id,
    contact:
      row.contact_id === null ? null : { id: row.contact_id, name: showContactName(actor, row.contact_name) },
    ...(row.group_id === null ? {} : { group: { id: row.group_id } }),
    channel_id: row.channel_type === null ? null : row.channel_id,
    waiting_since: row.waiting_since!,
    unread_count: row.unread_count,
    assignee:
      row.assigned_staff_id === null
        ? null
        : { staff_id: row.assigned_staff_id, name: row.assigned_staff_name },
    ...(row.assigned_team_id === null ? {} : { team_id: row.assigned_team_id }),
    tags: row.tags.map(({ name }) => name),
    sla: toSla(row, now)?.status ?? null,
    ...reply,
    ...(window.closes_at === null ? {} : { window_closes_at: window.closes_at }),
    ...(reply.can_reply ? {} : { template_ids: templates.idsFor(row) }),
    messages: messages.map((message, i) => showRecent(actor, message, i === messages.length - 1)),
  }
}

export const inboxQueue: Handler<'inbox_queue'> = async (ctx, input) => {
  const { tx, actor } = ctx
  const { limit } = input
  const position = ctx.cursors.open(input.cursor)
  const filter = await toConversationFilter(ctx, input)
  const after = position && { at: String(position[0]), id: String(position[1]) }
  const rows = await listWaitingPage(tx, actor.workspace.id, filter, after, limit)
  const shown = rows.slice(0, limit)
  const [total, usableChannels, messages] = await Promise.all([
    showTotal(ctx, position !== null, rows, limit, filter, true),
    listUsableChannels(tx, actor.workspace.id),
    listRecentMessages(
      tx,
      actor.workspace.id,
      shown.map(({ id }) => id),
      MESSAGES,
      READ_TEXT_LENGTH,
    ),
  ])
  const usable = new Map(usableChannels.map((channel) => [channel.id, channel]))
  const shut = shown.filter((row) => findReplyRefusal(row, toWindow(row, ctx.now)) !== null)
  const templates = await loadTemplateChoice(ctx, shut, usable)
  const byConversation = Map.groupBy(messages, (message) => message.conversation_id)
  const last = rows.length > limit ? shown.at(-1)! : undefined
  return {
    data: shown.map((row) => showRow(ctx, row, byConversation.get(row.id) ?? [], templates)),
    templates: templates.list(shown),
    ...total,
    next_cursor: last ? ctx.cursors.seal([last.waiting_since, last.id]) : null,
  }
}

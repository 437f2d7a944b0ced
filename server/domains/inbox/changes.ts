import type { Handler } from '../../handler.ts'
import { updateConversation } from '../../../storage/conversations/changes.ts'
import { readMessage } from '../../../storage/messages/lists.ts'
import { insertMessages } from '../../../storage/messages/messages.ts'
import { showMessage } from '../messaging/view.ts'
import { invalidField } from '../../kernel/problem.ts'
import { lockVisibleConversation } from './access.ts'
import { toChangeContext } from '../../change-context.ts'
import { applyCloses, applyReopen } from './lifecycle.ts'
import { showConversationSummary } from './summary.ts'

export const closeConversation: Handler<'inbox_close_conversation'> = async (ctx, input) => {
  const conversation = await lockVisibleConversation(ctx, input.conversation_id)
  const changed = conversation.state === 'open'
  ctx.auditChange({ state: conversation.state }, { state: 'closed' })
  if (changed)
    await applyCloses(
      toChangeContext(ctx),
      [conversation],
      { by: ctx.actor.staff.id, keyId: ctx.actor.key.id },
      input.reason || null,
    )
  return { conversation: await showConversationSummary(ctx, conversation), changed }
}

export const reopenConversation: Handler<'inbox_reopen_conversation'> = async (ctx, input) => {
  const conversation = await lockVisibleConversation(ctx, input.conversation_id)
  const changed = conversation.state === 'closed'
  ctx.auditChange({ state: conversation.state }, { state: 'open' })
  if (changed) await applyReopen(toChangeContext(ctx), conversation, ctx.actor.staff.id, input.title ?? null)
  return { conversation: await showConversationSummary(ctx, conversation), changed }
}

/** A note is listed among the messages, but is never the last message and answers nobody. */
export const addNote: Handler<'inbox_add_note'> = async (ctx, input) => {
  const { workspace, staff, key } = ctx.actor
  const { id, channel_id, episode } = await lockVisibleConversation(ctx, input.conversation_id)
  const [noteId] = await insertMessages(ctx.tx, workspace.id, [
    {
      conversation_id: id,
      channel_id,
      episode,
      direction: 'system',
      type: 'TEXT',
      status: 'system',
      text: input.text,
      note: true,
      staff_id: staff.id,
      key_id: key.id,
      approved_by: ctx.actor.approvedBy?.staffId ?? null,
      created_at: ctx.now,
    },
  ])
  await updateConversation(ctx.tx, workspace.id, id, {}, ctx.now)
  const message = showMessage(ctx, (await readMessage(ctx.tx, workspace.id, noteId!))!)
  return { message: { ...message, id: ctx.dryRun ? null : message.id } }
}

/** The latest time with a year of four digits. */
const MAX_TIME = Date.parse('9999-12-31T23:59:59.999Z')

const parseReminder = (at: string | null, now: string): string | null => {
  if (at === null) return null
  const time = Date.parse(at)
  if (!(time > Date.parse(now)))
    throw invalidField('at', 'not_future', `must be later than now, ${now}`, {
      fix: 'Send a future time, or null to clear the reminder.',
    })
  if (time > MAX_TIME)
    throw invalidField('at', 'too_late', 'is after the year 9999 in UTC', { fix: 'Send an earlier time.' })
  return new Date(time).toISOString()
}

export const setReminder: Handler<'inbox_set_reminder'> = async (ctx, input) => {
  const at = parseReminder(input.at, ctx.now)
  const conversation = await lockVisibleConversation(ctx, input.conversation_id)
  const changed = at !== conversation.reminder_at
  ctx.auditChange(conversation, { reminder_at: at })
  if (changed)
    await updateConversation(ctx.tx, ctx.actor.workspace.id, conversation.id, { reminder_at: at }, ctx.now)
  return { conversation: { ...(await showConversationSummary(ctx, conversation)), reminder_at: at }, changed }
}

/** The customer is not notified, and still waits for a reply. */
export const markRead: Handler<'inbox_mark_read'> = async (ctx, input) => {
  const conversation = await lockVisibleConversation(ctx, input.conversation_id)
  const changed = conversation.unread_count > 0
  if (changed)
    await updateConversation(ctx.tx, ctx.actor.workspace.id, conversation.id, { unread_count: 0 }, ctx.now)
  return { conversation: { ...(await showConversationSummary(ctx, conversation)), unread_count: 0 }, changed }
}

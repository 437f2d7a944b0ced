import { setConversation } from '../../storage/conversation-changes.ts'
import { readMessage } from '../../storage/message-lists.ts'
import { insertMessages } from '../../storage/messages.ts'
import { showMessage } from '../messaging/view.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { invalidField } from '../core/problem.ts'
import { reachConversation } from './access.ts'
import { close, flowOf, reopen } from './lifecycle.ts'
import { showRef } from './ref.ts'

export const closeConversation: Handler<
  InputOf<'inbox_close_conversation'>,
  OutputOf<'inbox_close_conversation'>
> = async (ctx, input) => {
  const conversation = await reachConversation(ctx, input.conversation_id)
  const changed = conversation.state === 'open'
  ctx.note({ state: conversation.state }, { state: 'closed' })
  if (changed) await close(flowOf(ctx), conversation, ctx.actor.staff.id, input.reason || null)
  return { conversation: await showRef(ctx, conversation), changed }
}

export const reopenConversation: Handler<
  InputOf<'inbox_reopen_conversation'>,
  OutputOf<'inbox_reopen_conversation'>
> = async (ctx, input) => {
  const conversation = await reachConversation(ctx, input.conversation_id)
  const changed = conversation.state === 'closed'
  ctx.note({ state: conversation.state }, { state: 'open' })
  if (changed) await reopen(flowOf(ctx), conversation, ctx.actor.staff.id, input.title ?? null)
  return { conversation: await showRef(ctx, conversation), changed }
}

/** A note stands among the messages, but is none: it is not the last message and answers nobody. */
export const addNote: Handler<InputOf<'inbox_add_note'>, OutputOf<'inbox_add_note'>> = async (ctx, input) => {
  const { workspace, staff } = ctx.actor
  const { id, channel_id, episode } = await reachConversation(ctx, input.conversation_id)
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
      created_at: ctx.now,
    },
  ])
  await setConversation(ctx.tx, workspace.id, id, {}, ctx.now)
  const message = showMessage(ctx, (await readMessage(ctx.tx, workspace.id, noteId!))!)
  return { message: { ...message, id: ctx.dryRun ? null : message.id } }
}

/** The latest time that is written with a year of four digits. */
const LAST_TIME = Date.parse('9999-12-31T23:59:59.999Z')

const readReminder = (at: string | null, now: string): string | null => {
  if (at === null) return null
  const time = Date.parse(at)
  if (!(time > Date.parse(now)))
    throw invalidField('at', 'not_future', `must be later than now, ${now}`, {
      fix: 'Send a time to come, or null to clear the reminder.',
    })
  if (time > LAST_TIME)
    throw invalidField('at', 'too_late', 'is after the year 9999 in UTC', { fix: 'Send an earlier time.' })
  return new Date(time).toISOString()
}

export const setReminder: Handler<InputOf<'inbox_set_reminder'>, OutputOf<'inbox_set_reminder'>> = async (
  ctx,
  input,
) => {
  const at = readReminder(input.at, ctx.now)
  const conversation = await reachConversation(ctx, input.conversation_id)
  const changed = at !== conversation.reminder_at
  ctx.note(conversation, { reminder_at: at })
  if (changed)
    await setConversation(ctx.tx, ctx.actor.workspace.id, conversation.id, { reminder_at: at }, ctx.now)
  return { conversation: { ...(await showRef(ctx, conversation)), reminder_at: at }, changed }
}

/** The customer is not told, and still waits for an answer. */
export const markRead: Handler<InputOf<'inbox_mark_read'>, OutputOf<'inbox_mark_read'>> = async (
  ctx,
  input,
) => {
  const conversation = await reachConversation(ctx, input.conversation_id)
  const changed = conversation.unread_count > 0
  if (changed)
    await setConversation(ctx.tx, ctx.actor.workspace.id, conversation.id, { unread_count: 0 }, ctx.now)
  return { conversation: { ...(await showRef(ctx, conversation)), unread_count: 0 }, changed }
}

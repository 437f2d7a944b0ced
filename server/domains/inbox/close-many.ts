import { recordUndone, type BulkOutput, toBulkOutput } from '../bulk-jobs/output.ts'
import type { Context, Handler, InputOf } from '../../handler.ts'
import type { EventTypeId } from '../../../catalog/events.ts'
import { countIds } from '../../../storage/contacts/matches.ts'
import { countOpen } from '../../../storage/conversations/matches.ts'
import { changeTarget } from '../bulk-jobs/change-target.ts'
import {
  conversationRecords,
  type ConversationsChange,
  lockVisibleConversations,
} from '../bulk-jobs/conversation-records.ts'
import { toChangeContext } from '../../change-context.ts'
import { applyCloses, applyReopen } from './lifecycle.ts'

const closing: ConversationsChange<InputOf<'inbox_close_conversations'>, 'conversation.closed/1'> = {
  operation: 'inbox_close_conversations',
  records: conversationRecords,
  apply: async (ctx, { reason }, ids) => {
    const { requested, conversations, missing } = await lockVisibleConversations(ctx, ids)
    const open = conversations.filter(({ state }) => state === 'open')
    const who = { by: ctx.actor.staff.id, keyId: ctx.actor.key.id }
    await applyCloses(toChangeContext(ctx), open, who, reason || null)
    for (const { id, episode } of open) recordUndone(ctx, { conversation_id: id, episode })
    return toBulkOutput(ctx, requested, missing)
  },
  preview: async (ctx, _input, batches) => ({
    unchanged: countIds(batches) - (await countOpen(ctx.tx, ctx.actor.workspace.id, batches)),
  }),
  freeze: async (_ctx, { reason }) => (reason ? { reason } : {}),
}

export const closeConversations: Handler<'inbox_close_conversations'> = (ctx, input) =>
  changeTarget(ctx, closing, input)

/** Reopens conversations that a job closed, where they are closed as it left them. */
export const restoreClosed = async (
  ctx: Context<EventTypeId>,
  { conversations: undone }: { conversations: readonly { conversation_id: string; episode: number }[] },
): Promise<BulkOutput<never>> => {
  const episodes = new Map(undone.map(({ conversation_id: id, episode }) => [id, episode]))
  const { requested, conversations, missing } = await lockVisibleConversations(ctx, [...episodes.keys()])
  const context = toChangeContext(ctx)
  for (const conversation of conversations) {
    const { id, state, episode } = conversation
    if (state !== 'closed' || episode !== episodes.get(id)) continue
    await applyReopen(context, conversation, ctx.actor.staff.id, null)
    recordUndone(ctx, { conversation_id: id, episode: conversation.episode })
  }
  return toBulkOutput(ctx, requested, missing)
}

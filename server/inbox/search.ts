import { listConversationPage, readConversation } from '../../storage/conversation-lists.ts'
import type { Actor } from '../core/context.ts'
import type { Handler } from '../core/handler.ts'
import { notFound } from '../core/problem.ts'
import { showConversation } from './view.ts'
import { refuseHiddenDigits } from '../visibility/phones.ts'
import { canSeeChannel } from '../visibility/policy.ts'

/** Returns the channels of a list; undefined: all, and conversations whose channel was deleted. */
const selectChannels = (actor: Actor, channelId: string | undefined): readonly string[] | undefined => {
  if (channelId === undefined) return actor.staff.channelIds ?? undefined
  return canSeeChannel(actor, channelId) ? [channelId] : []
}

export const searchConversations: Handler<'inbox_search_conversations'> = async (ctx, input) => {
  refuseHiddenDigits(ctx.actor, input.query)
  const { query, state, assigned, limit } = input
  const position = ctx.cursors.open(input.cursor)
  const after = position && { activityAt: String(position[0]), id: String(position[1]) }
  const conditions = {
    query,
    state,
    assigned,
    replyStatus: input.reply_status,
    channels: selectChannels(ctx.actor, input.channel_id),
    inShortSteps: ctx.filters.stepMs !== undefined,
  }
  const rows = await listConversationPage(ctx.tx, ctx.actor.workspace.id, conditions, after, limit)
  const last = rows.length > limit ? rows[limit - 1]! : undefined
  return {
    data: rows.slice(0, limit).map((row) => showConversation(ctx, row)),
    next_cursor: last ? ctx.cursors.seal([last.activity_at, last.id]) : null,
  }
}

export const getConversation: Handler<'inbox_get_conversation'> = async (ctx, { conversation_id: id }) => {
  const row = await readConversation(ctx.tx, ctx.actor.workspace.id, id)
  if (!row || !canSeeChannel(ctx.actor, row.channel_id)) throw notFound('conversation', id)
  return showConversation(ctx, row)
}

import { pageOfConversations, readConversation } from '../../storage/conversation-lists.ts'
import { refuseHiddenDigits } from '../contacts/search.ts'
import type { Actor } from '../core/context.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { notFound } from '../core/problem.ts'
import { mayUse } from './access.ts'
import { showConversation } from './view.ts'

/** The channels that a list is of; undefined: all, and conversations whose channel is gone. */
const channelsOf = (actor: Actor, channelId: string | undefined): readonly string[] | undefined => {
  if (channelId === undefined) return actor.staff.channelIds ?? undefined
  return mayUse(actor, channelId) ? [channelId] : []
}

export const searchConversations: Handler<
  InputOf<'inbox_search_conversations'>,
  OutputOf<'inbox_search_conversations'>
> = async (ctx, input) => {
  refuseHiddenDigits(ctx.actor, input.query)
  const { query, state, assigned, limit } = input
  const position = ctx.cursors.open(input.cursor)
  const after = position && { activityAt: String(position[0]), id: String(position[1]) }
  const wanted = {
    query,
    state,
    assigned,
    replyStatus: input.reply_status,
    channels: channelsOf(ctx.actor, input.channel_id),
  }
  const rows = await pageOfConversations(ctx.tx, ctx.actor.workspace.id, wanted, after, limit)
  const last = rows.length > limit ? rows[limit - 1]! : undefined
  return {
    data: rows.slice(0, limit).map((row) => showConversation(ctx, row)),
    next_cursor: last ? ctx.cursors.seal([last.activity_at, last.id]) : null,
  }
}

export const getConversation: Handler<
  InputOf<'inbox_get_conversation'>,
  OutputOf<'inbox_get_conversation'>
> = async (ctx, { conversation_id: id }) => {
  const row = await readConversation(ctx.tx, ctx.actor.workspace.id, id)
  if (!row || !mayUse(ctx.actor, row.channel_id)) throw notFound('conversation', id)
  return showConversation(ctx, row)
}

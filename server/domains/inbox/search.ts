import type { Context, Handler } from '../../handler.ts'
import {
  type ConversationRow,
  listConversationPage,
  listConversationPageByWait,
  readConversation,
} from '../../../storage/conversations/lists.ts'
import type { ConversationFilter } from '../../../storage/conversations/order.ts'
import { notFound } from '../../kernel/problem.ts'
import { showConversation } from './view.ts'
import { showTotal, toConversationFilter } from './filters.ts'
import { refuseHiddenDigits } from '../../visibility/phones.ts'
import { canSeeChannel } from '../../visibility/policy.ts'

type Position = ReturnType<Context['cursors']['open']>
/** One order of the list: reads a page after a position, and returns the position of a row. */
type ConversationList = {
  read: (
    ctx: Context,
    filter: ConversationFilter,
    after: Position,
    limit: number,
  ) => Promise<ConversationRow[]>
  toPosition: (row: ConversationRow) => NonNullable<Position>
}

const newestActivity: ConversationList = {
  read: (ctx, filter, after, limit) =>
    listConversationPage(
      ctx.tx,
      ctx.actor.workspace.id,
      filter,
      after && { at: String(after[0]), id: String(after[1]) },
      limit,
    ),
  toPosition: (row) => [row.activity_at, row.id],
}

const longestWait: ConversationList = {
  read: (ctx, filter, after, limit) =>
    listConversationPageByWait(
      ctx.tx,
      ctx.actor.workspace.id,
      filter,
      after && { at: String(after[0]), id: String(after[1]), waiting: after[2] === true },
      limit,
    ),
  toPosition: (row) =>
    row.waiting_since === null ? [row.activity_at, row.id, false] : [row.waiting_since, row.id, true],
}

export const searchConversations: Handler<'inbox_search_conversations'> = async (ctx, input) => {
  refuseHiddenDigits(ctx.actor, input.query)
  const { query, limit } = input
  const list = input.sort === 'longest_wait' ? longestWait : newestActivity
  const filter: ConversationFilter = { ...(await toConversationFilter(ctx, input)), query }
  const after = ctx.cursors.open(input.cursor)
  const rows = await list.read(ctx, filter, after, limit)
  const last = rows.length > limit ? rows[limit - 1]! : undefined
  const isCounted = input.count === true && query === undefined
  return {
    data: rows.slice(0, limit).map((row) => showConversation(ctx, row)),
    ...(await showTotal(ctx, after !== null, rows, limit, isCounted ? filter : undefined)),
    next_cursor: last ? ctx.cursors.seal(list.toPosition(last)) : null,
  }
}

export const getConversation: Handler<'inbox_get_conversation'> = async (ctx, { conversation_id: id }) => {
  const row = await readConversation(ctx.tx, ctx.actor.workspace.id, id)
  if (!row || !canSeeChannel(ctx.actor, row.channel_id)) throw notFound('conversation', id)
  return showConversation(ctx, row)
}

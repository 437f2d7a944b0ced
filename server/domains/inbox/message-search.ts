import type { Context, Handler } from '../../handler.ts'
import type { MessageType } from '../../../catalog/message-schemas.ts'
import { type MessageHitRow, searchMessageRows } from '../../../storage/messages/search.ts'
import { readSearchTerms, type SearchTerm } from '../../../storage/messages/search-terms.ts'
import { invalidField } from '../../kernel/problem.ts'
import { refuseHiddenDigits, showContactName, showMessageText } from '../../visibility/phones.ts'
import { toExcerpt } from './excerpt.ts'
import { selectChannels } from './filters.ts'

const showHit = ({ actor }: Context, row: MessageHitRow, terms: readonly SearchTerm[]) => ({
  id: row.id,
  conversation_id: row.conversation_id,
  contact:
    row.contact_id === null ? null : { id: row.contact_id, name: showContactName(actor, row.contact_name) },
  channel_id: row.channel_id,
  direction: row.direction,
  type: row.type as MessageType,
  note: row.note,
  from: row.direction === 'inbound' ? null : { staff_id: row.staff_id, name: row.staff_name },
  excerpt: toExcerpt(showMessageText(actor, row), terms),
  created_at: row.created_at,
})

export const searchMessages: Handler<'inbox_search_messages'> = async (ctx, input) => {
  refuseHiddenDigits(ctx.actor, input.query)
  const terms = await readSearchTerms(ctx.tx, input.query)
  if (terms.length === 0)
    throw invalidField('query', 'invalid_value', 'has no words', { fix: 'Send letters or digits.' })
  const position = ctx.cursors.open(input.cursor)
  const { limit } = input
  const { rows, searchedTo } = await searchMessageRows(ctx.tx, {
    workspaceId: ctx.actor.workspace.id,
    terms,
    channels: selectChannels(ctx.actor, input.channel_id),
    staffId: input.staff_id,
    conversationId: input.conversation_id,
    contactId: input.contact_id,
    direction: input.direction,
    from: input.from,
    to: input.to,
    after: position && { createdAt: String(position[0]), id: String(position[1]) },
    limit: limit + 1,
  })
  const last = rows.length > limit ? rows[limit - 1]! : undefined
  const end = last ? { createdAt: last.created_at, id: last.id } : searchedTo
  return {
    data: rows.slice(0, limit).map((row) => showHit(ctx, row, terms)),
    next_cursor: end && ctx.cursors.seal([end.createdAt, end.id]),
    searched_to: rows.length < limit && searchedTo ? searchedTo.createdAt : null,
  }
}

import { pageOfContacts, type Position, type Sort } from '../../storage/contact-lists.ts'
import { type Context, phonesHidden } from '../context.ts'
import type { Handler, InputOf, OutputOf } from '../operations.ts'
import { Problem } from '../problem.ts'
import { distinctIds } from './input.ts'
import { showContact } from './view.ts'

type Input = InputOf<'crm_search_contacts'>

/** Search must never tell hidden digits: not by what matches, not by the order. */
const refusePhoneOracle = (ctx: Context, input: Input): void => {
  if (!phonesHidden(ctx.actor)) return
  const field = input.query !== undefined && /\p{N}/u.test(input.query.normalize('NFKC')) ? 'query' : input.sort?.field === 'phoneNumber' ? 'sort' : undefined
  if (field === undefined) return
  throw new Problem('forbidden', `Phone numbers are hidden from you, so ${field === 'query' ? 'digits in query are' : 'sorting by phoneNumber is'} refused.`, {
    reason: 'phone_hidden',
    errors: [{ pointer: field === 'query' ? '#/query' : '#/sort/field', code: 'phone_hidden', detail: 'would compare hidden phone numbers', fix: field === 'query' ? 'Search by the letters of the name.' : 'Sort by another field.' }],
  })
}

export const searchContacts: Handler<Input, OutputOf<'crm_search_contacts'>> = async (ctx, input) => {
  refusePhoneOracle(ctx, input)
  const sort: Sort = input.sort ?? { field: 'createdAt', direction: 'desc' }
  const position = ctx.cursors.open(input.cursor)
  const after: Position | null = position && { key: String(position[0]), id: String(position[1]) }
  const page = await pageOfContacts(ctx.tx, ctx.actor.workspace.id, {
    query: input.query, tagIds: distinctIds(input.tag_ids), groupIds: distinctIds(input.group_ids),
    starred: input.starred, dnd: input.dnd, notInAnyGroup: input.not_in_any_group,
  }, sort, after, input.limit, input.detail === 'full')
  const last = page.positions.length > input.limit ? page.positions[input.limit - 1] : undefined
  return {
    data: page.rows.map((row) => showContact(ctx.actor, row, page.fields, input.detail)),
    total: page.total?.n ?? null, approximate: page.total?.approximate ?? null,
    resolved_dates: [], warnings: [],
    next_cursor: last ? ctx.cursors.seal([last.key, last.id]) : null,
  }
}

import { pageOfContacts, type Position, type Sort } from '../../storage/contact-lists.ts'
import type { Condition } from '../../storage/filters/predicates.ts'
import { type Actor, type Context, phonesHidden } from '../core/context.ts'
import { readConditions } from '../filters/read.ts'
import { inFilterTime } from '../filters/time.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { Problem } from '../core/problem.ts'
import { distinctIds } from './input.ts'
import { withTimeline } from './timeline.ts'
import { showContact } from './view.ts'

type Input = InputOf<'crm_search_contacts'>

const phoneHidden = (pointer: string, what: string, fix: string): Problem =>
  new Problem('forbidden', `Phone numbers are hidden from you, so ${what} refused.`, {
    reason: 'phone_hidden',
    errors: [{ pointer, code: 'phone_hidden', detail: 'would compare hidden phone numbers', fix }],
  })

/** Search must never tell hidden digits by what matches. Throws 403 `phone_hidden`. */
export const refuseHiddenDigits = (actor: Actor, query: string | undefined): void => {
  if (query === undefined || !phonesHidden(actor) || !/\p{N}/u.test(query.normalize('NFKC'))) return
  throw phoneHidden('#/query', 'digits in query are', 'Search by the letters of the name.')
}

/** Nor by the order. */
const refusePhoneOracle = ({ actor }: Context, input: Input): void => {
  refuseHiddenDigits(actor, input.query)
  if (input.sort?.field === 'phoneNumber' && phonesHidden(actor))
    throw phoneHidden('#/sort/field', 'sorting by phoneNumber is', 'Sort by another field.')
}

/** What the plain fields ask for. */
const plainConditions = (input: Input): Condition[] => [
  ...(input.query === undefined ? [] : [{ kind: 'query', text: input.query } as const]),
  ...(input.starred === undefined
    ? []
    : [{ kind: 'flag', field: 'starred', test: { op: 'eq', value: input.starred } } as const]),
  ...(input.dnd === undefined
    ? []
    : [{ kind: 'flag', field: 'dnd', test: { op: 'eq', value: input.dnd } } as const]),
  ...(input.tag_ids?.length
    ? [
        {
          kind: 'tags',
          quantifier: 'some',
          where: [{ field: 'id', test: { op: 'in', values: distinctIds(input.tag_ids) } }],
        } as const,
      ]
    : []),
  ...(input.group_ids?.length
    ? [
        {
          kind: 'groups',
          quantifier: 'some',
          where: [{ field: 'id', test: { op: 'in', values: distinctIds(input.group_ids) } }],
        } as const,
      ]
    : []),
  ...(input.not_in_any_group === undefined
    ? []
    : [{ kind: 'groups', quantifier: input.not_in_any_group ? 'none' : 'some', where: [] } as const]),
]

export const searchContacts: Handler<Input, OutputOf<'crm_search_contacts'>> = async (ctx, input) => {
  refusePhoneOracle(ctx, input)
  const sort: Sort = input.sort ?? { field: 'createdAt', direction: 'desc' }
  const position = ctx.cursors.open(input.cursor)
  const after: Position | null = position && { key: String(position[0]), id: String(position[1]) }
  // Relative dates mean on every page what they meant on the first.
  const began = position ? String(position[2]) : ctx.now
  const { filter, resolvedDates, warnings } = await readConditions(ctx, input, began)
  const conditions = filter ? [...plainConditions(input), filter] : plainConditions(input)
  const page = await inFilterTime(
    withTimeline(ctx, (timeline) =>
      pageOfContacts(
        ctx.tx,
        ctx.actor.workspace.id,
        conditions,
        sort,
        after,
        input.limit,
        input.detail === 'full',
        timeline,
      ),
    ),
  )
  const last = page.positions.length > input.limit ? page.positions[input.limit - 1] : undefined
  return {
    data: page.rows.map((row) => showContact(ctx.actor, row, page.fields, input.detail)),
    total: page.total?.n ?? null,
    approximate: page.total?.approximate ?? null,
    resolved_dates: resolvedDates,
    warnings,
    next_cursor: last ? ctx.cursors.seal([last.key, last.id, began]) : null,
  }
}

import { listContactPage, type ContactPosition, type ContactSort } from '../../storage/contact-lists.ts'
import type { Condition } from '../../storage/filters/predicates.ts'
import { type Actor, type Context, hasHiddenPhones } from '../core/context.ts'
import { parseConditions } from '../filters/parse-filter.ts'
import { withFilterTimeout } from '../filters/timeout.ts'
import type { Handler, InputOf } from '../core/handler.ts'
import { Problem } from '../core/problem.ts'
import { distinctIds } from '../labels/labels.ts'
import { withTimeline } from './timeline.ts'
import { showContact } from './view.ts'

type SearchInput = InputOf<'crm_search_contacts'>

const phoneHiddenProblem = (pointer: string, what: string, fix: string): Problem =>
  new Problem('forbidden', `Phone numbers are hidden from you, so ${what} refused.`, {
    reason: 'phone_hidden',
    errors: [{ pointer, code: 'phone_hidden', detail: 'would compare hidden phone numbers', fix }],
  })

/** Search results must not reveal hidden digits by what matches. Throws 403 `phone_hidden`. */
export const refuseHiddenDigits = (actor: Actor, query: string | undefined): void => {
  if (query === undefined || !hasHiddenPhones(actor) || !/\p{N}/u.test(query.normalize('NFKC'))) return
  throw phoneHiddenProblem('#/query', 'digits in query are', 'Search by the letters of the name.')
}

/** Neither matches nor the order may reveal hidden digits. Throws 403 `phone_hidden`. */
const refusePhoneOracle = ({ actor }: Context, input: SearchInput): void => {
  refuseHiddenDigits(actor, input.query)
  if (input.sort?.field === 'phoneNumber' && hasHiddenPhones(actor))
    throw phoneHiddenProblem('#/sort/field', 'sorting by phoneNumber is', 'Sort by another field.')
}

/** Returns the conditions of the plain fields; those of `filter` are read elsewhere. */
const toConditions = (input: SearchInput): Condition[] => [
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

export const searchContacts: Handler<'crm_search_contacts'> = async (ctx, input) => {
  refusePhoneOracle(ctx, input)
  const sort: ContactSort = input.sort ?? { field: 'createdAt', direction: 'desc' }
  const position = ctx.cursors.open(input.cursor)
  const after: ContactPosition | null = position && { key: String(position[0]), id: String(position[1]) }
  // Relative dates mean the same on every page as on the first.
  const startedAt = position ? String(position[2]) : ctx.now
  const { filter, resolvedDates, warnings } = await parseConditions(ctx, input, startedAt)
  const conditions = filter ? [...toConditions(input), filter] : toConditions(input)
  const page = await withFilterTimeout(
    withTimeline(ctx, (timeline) =>
      listContactPage(ctx.tx, ctx.actor.workspace.id, {
        conditions,
        sort,
        after,
        limit: input.limit,
        full: input.detail === 'full',
        timeline,
      }),
    ),
  )
  const last = page.positions.length > input.limit ? page.positions[input.limit - 1] : undefined
  return {
    data: page.rows.map((row) => showContact(ctx.actor, row, page.fields, input.detail)),
    total: page.total?.n ?? null,
    approximate: page.total?.approximate ?? null,
    resolved_dates: resolvedDates,
    warnings,
    next_cursor: last ? ctx.cursors.seal([last.key, last.id, startedAt]) : null,
  }
}

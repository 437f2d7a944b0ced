import { listContactPage } from '../../storage/contact-lists.ts'
import type { ContactPosition, ContactSort } from '../../storage/contact-pages.ts'
import type { Condition } from '../../storage/filters/predicates.ts'
import type { Context } from '../core/context.ts'
import { parseConditions } from '../filters/parse-filter.ts'
import type { Handler, InputOf } from '../core/handler.ts'
import { distinctIds } from '../labels/labels.ts'
import { withTimeline } from './timeline.ts'
import { showContact } from './view.ts'
import { phoneHiddenProblem, refuseHiddenDigits } from '../visibility/phones.ts'
import { hasHiddenPhones } from '../visibility/policy.ts'

type SearchInput = InputOf<'crm_search_contacts'>

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
  const page = await withTimeline(ctx, (timeline) =>
    listContactPage(ctx.tx, ctx.actor.workspace.id, {
      conditions,
      sort,
      after,
      limit: input.limit,
      full: input.detail === 'full',
      timeline,
      stepMs: ctx.filters.stepMs,
    }),
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

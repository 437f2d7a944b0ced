import type { Context, Handler, InputOf } from '../../handler.ts'
import { listContactPage } from '../../../storage/contacts/lists.ts'
import type { ContactPosition, ContactSort } from '../../../storage/contacts/pages.ts'
import type { LabelKind } from '../../../storage/labels/labels.ts'
import type { Condition } from '../../../storage/filters/predicates.ts'
import { parseConditions } from '../filters/parse-filter.ts'
import { type LabelRefs, resolveLabelIds } from '../labels/labels.ts'
import { withTimeline } from './timeline.ts'
import { detailShape, showContactView } from './view.ts'
import { phoneHiddenProblem, refuseHiddenDigits } from '../../visibility/phones.ts'
import { hasHiddenPhones } from '../../visibility/policy.ts'

type SearchInput = InputOf<'crm_search_contacts'>

/** Neither matches nor the order may reveal hidden digits. Throws 403 `phone_hidden`. */
const refusePhoneOracle = ({ actor }: Context, input: SearchInput): void => {
  refuseHiddenDigits(actor, input.query)
  if (input.sort?.field === 'phoneNumber' && hasHiddenPhones(actor))
    throw phoneHiddenProblem(actor, '#/sort/field', 'sorting by phoneNumber is', 'Sort by another field.')
}

/** Returns the condition of being in one of these groups, or having one of these tags. Throws 400. */
const toLabelCondition = async (
  ctx: Context,
  kind: LabelKind,
  refs: LabelRefs | undefined,
): Promise<Condition[]> => {
  if (!refs?.length) return []
  const values = await resolveLabelIds(ctx, kind, refs, (index) => [`${kind}_ids`, index])
  const where = [{ field: 'id', test: { op: 'in', values } } as const]
  return [{ kind: `${kind}s`, quantifier: 'some', where }]
}

/** Returns the conditions of the plain fields; those of `filter` and of labels are read elsewhere. */
const toConditions = (input: SearchInput): Condition[] => [
  ...(input.query === undefined ? [] : [{ kind: 'query', text: input.query } as const]),
  ...(input.external_id === undefined
    ? []
    : [{ kind: 'text', field: 'externalId', test: { op: 'eq', value: input.external_id } } as const]),
  ...(input.starred === undefined
    ? []
    : [{ kind: 'flag', field: 'starred', test: { op: 'eq', value: input.starred } } as const]),
  ...(input.dnd === undefined
    ? []
    : [{ kind: 'flag', field: 'dnd', test: { op: 'eq', value: input.dnd } } as const]),
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
  const conditions = [
    ...toConditions(input),
    ...(input.tag_ids ? await toLabelCondition(ctx, 'tag', input.tag_ids) : []),
    ...(input.group_ids ? await toLabelCondition(ctx, 'group', input.group_ids) : []),
    ...(filter ? [filter] : []),
  ]
  const shape = detailShape(ctx.actor, input.detail)
  const page = await withTimeline(ctx, (timeline) =>
    listContactPage(ctx.tx, ctx.actor.workspace.id, {
      conditions,
      sort,
      after,
      limit: input.limit,
      full: shape.labels,
      timeline: shape.timeline ? timeline : 'none',
      stepMs: ctx.services.config.filters.stepMs,
    }),
  )
  const last = page.positions.length > input.limit ? page.positions[input.limit - 1] : undefined
  return {
    data: page.rows.map((row) => showContactView(ctx.actor, row, page.fields, input.detail)),
    total: page.total?.n ?? null,
    approximate: page.total?.approximate ?? null,
    resolved_dates: resolvedDates,
    warnings,
    next_cursor: last ? ctx.cursors.seal([last.key, last.id, startedAt]) : null,
  }
}

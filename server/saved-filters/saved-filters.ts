import { MAX_STORED_FILTER_BYTES } from '../../catalog/saved-filters.ts'
import type { ContactFilter } from '../../storage/filters/filter.ts'
import { inSavepoint } from '../../storage/savepoint.ts'
import {
  countSavedFilters,
  deleteSavedFilterRow,
  findSavedFilters,
  insertSavedFilter,
  lockSavedFilter,
  lockSavedFilterReferences,
  listSavedFilterPage,
  type SavedFilterRow,
  updateSavedFilterRow,
} from '../../storage/saved-filters.ts'
import { countMatching } from '../contacts/count.ts'
import { maskPhone } from '../contacts/phone.ts'
import { maskDigits } from '../contacts/view.ts'
import { type Actor, type Context, hasHiddenPhones } from '../core/context.ts'
import { canonicalJson } from '../core/cursors.ts'
import { parseConditions, parseFilter } from '../filters/parse-filter.ts'
import type { Handler } from '../core/handler.ts'
import { createPage } from '../core/paging.ts'
import { invalidField, Problem } from '../core/problem.ts'
import { toDatabaseProblem } from '../core/steps/deadline.ts'

const createNotFoundProblem = (id: string): Problem =>
  new Problem('not_found', `No saved filter with the id ${id}.`, { reason: 'saved_filter_not_found' })

/**
 * How digits in the operands of a condition are masked. Custom fields may contain phone numbers, but mostly
 * contain other text.
 */
const masks: Readonly<Record<string, (text: string) => string>> = {
  phoneNumber: (text) => text.replaceAll(/\d+/g, maskPhone),
  chatappUserId: (text) => text.replaceAll(/\d+/g, maskPhone),
  stringValue: (text) => maskDigits(text)!,
}

/** Masks parts of phone numbers completely: their last digits may be in the middle of the number. */
const PARTIAL_OPERATORS = new Set(['contains', 'notContains', 'startsWith', 'endsWith', 'regex'])
const maskPart = (text: string): string => text.replaceAll(/\d/g, '*')

const maskValues = <T>(value: T, mask?: (text: string) => string): T => {
  if (typeof value === 'string') return (mask ? mask(value) : value) as T
  if (Array.isArray(value)) return value.map((item) => maskValues(item, mask)) as T
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      maskValues(member, masks[key] ?? (mask && PARTIAL_OPERATORS.has(key) ? maskPart : mask)),
    ]),
  ) as T
}

/**
 * Staff from whom phone numbers are hidden do not see those in a colleague's filter either. Their own filters
 * are returned as they wrote them.
 */
const showSavedFilter = (
  actor: Actor,
  { id, kind, name, description, owner_staff_id, filter, updated_at }: SavedFilterRow,
) => ({
  id,
  kind,
  name,
  description,
  owner_staff_id,
  filter: hasHiddenPhones(actor) && owner_staff_id !== actor.staff.id ? maskValues(filter) : filter,
  updated_at,
})

export const listSavedFilters: Handler<'crm_list_saved_filters'> = (ctx, input) =>
  createPage({
    cursors: ctx.cursors,
    input,
    load: (after, limit) =>
      listSavedFilterPage(ctx.tx, ctx.actor.workspace.id, {
        search: input.search,
        after: after && { nameKey: after[0]!, id: after[1]! },
        limit,
      }),
    count: () => countSavedFilters(ctx.tx, ctx.actor.workspace.id, input.search),
    toPosition: (row) => [row.name_key, row.id],
    toItem: (row) => showSavedFilter(ctx.actor, row),
  })

export const getSavedFilter: Handler<'crm_get_saved_filter'> = async (ctx, { saved_filter_id: id }) => {
  const [row] = await findSavedFilters(ctx.tx, ctx.actor.workspace.id, [id])
  if (!row) throw createNotFoundProblem(id)
  return showSavedFilter(ctx.actor, row)
}

const requireDryRunForCount = (ctx: Context, count: boolean | undefined): void => {
  if (count && !ctx.dryRun)
    throw invalidField('count', 'dry_run_only', 'is for rehearsals only', {
      fix: 'Send dry_run=true too, or omit count.',
    })
}

const requireStorableSize = (filter: Record<string, unknown>): void => {
  const bytes = Buffer.byteLength(JSON.stringify(filter))
  if (bytes <= MAX_STORED_FILTER_BYTES) return
  throw invalidField(
    'filter',
    'too_large',
    `would be stored as ${bytes} bytes, and at most ${MAX_STORED_FILTER_BYTES} are kept`,
    { reason: 'filter_too_large', fix: 'Save a smaller filter.' },
  )
}

/** Counts matches for a dry run. A failed count does not fail the dry run. */
const countIfRequested = async (
  ctx: Context,
  wanted: boolean | undefined,
  filter: () => Promise<ContactFilter>,
) => {
  if (!wanted) return {}
  try {
    return await inSavepoint(ctx.tx, async () => await countMatching(ctx, await filter()))
  } catch (error) {
    const problem = error instanceof Problem ? error : toDatabaseProblem(error)
    if (!problem) throw error
    return { count: null, count_error: { code: problem.code, message: problem.message } }
  }
}

/** Returns a saved filter; in a dry run a new one has no id, and none has a time of update. */
const showResult = (ctx: Context, row: ReturnType<typeof showSavedFilter>, isNew: boolean) =>
  ctx.dryRun ? { ...row, ...(isNew ? { id: null } : {}), updated_at: null } : row

export const createSavedFilter: Handler<'crm_create_saved_filter'> = async (ctx, input) => {
  requireDryRunForCount(ctx, input.count)
  const parsed = await parseFilter(ctx, input.filter)
  requireStorableSize(parsed.absolute)
  const row = await insertSavedFilter(
    ctx.tx,
    ctx.actor.workspace.id,
    {
      name: input.name,
      description: input.description ?? null,
      owner_staff_id: ctx.actor.staff.id,
      filter: parsed.absolute,
    },
    ctx.now,
  )
  return {
    saved_filter: showResult(ctx, showSavedFilter(ctx.actor, row), true),
    resolved_dates: parsed.resolvedDates,
    warnings: parsed.warnings,
    ...(await countIfRequested(ctx, input.count, async () => parsed.filter)),
  }
}

/** Returns a saved filter that the actor may change, locked. */
const lockOwnSavedFilter = async (ctx: Context, id: string): Promise<SavedFilterRow> => {
  const row = await lockSavedFilter(ctx.tx, ctx.actor.workspace.id, id)
  if (!row) throw createNotFoundProblem(id)
  if (row.owner_staff_id !== ctx.actor.staff.id) {
    throw new Problem(
      'forbidden',
      'Only the staff member who saved this filter may change it. Save a copy under another name instead.',
      {
        reason: 'not_owner',
        owner_staff_id: row.owner_staff_id,
      },
    )
  }
  return row
}

export const updateSavedFilter: Handler<'crm_update_saved_filter'> = async (ctx, input) => {
  requireDryRunForCount(ctx, input.count)
  if (input.filter) await lockSavedFilterReferences(ctx.tx, ctx.actor.workspace.id)
  const row = await lockOwnSavedFilter(ctx, input.saved_filter_id)
  if (input.filter && row.kind !== 'contact') {
    throw invalidField(
      'filter',
      'wrong_kind',
      'is a contact filter, and this saved filter filters conversations',
      { fix: 'Save the contact filter under another name.' },
    )
  }
  const parsed = input.filter && (await parseFilter(ctx, input.filter, { ownId: row.id }))
  const next: SavedFilterRow = {
    ...row,
    name: input.name ?? row.name,
    description: input.description === undefined ? row.description : input.description,
    filter: parsed?.absolute ?? row.filter,
  }
  requireStorableSize(next.filter)
  const changes = (['name', 'description', 'filter'] as const).filter(
    (field) => canonicalJson(next[field]) !== canonicalJson(row[field]),
  )
  ctx.auditChange(row, { name: next.name, description: next.description, filter: next.filter })
  const written =
    changes.length > 0 ? await updateSavedFilterRow(ctx.tx, ctx.actor.workspace.id, next, ctx.now) : row
  return {
    saved_filter: showResult(ctx, showSavedFilter(ctx.actor, written), false),
    changes,
    resolved_dates: parsed?.resolvedDates ?? [],
    warnings: parsed?.warnings ?? [],
    ...(await countIfRequested(
      ctx,
      input.count,
      async () => parsed?.filter ?? (await parseStored(ctx, row)),
    )),
  }
}

/**
 * A stored filter may be longer than the one that was sent, because its dates are absolute, so it is parsed
 * as a saved filter.
 */
const parseStored = async (ctx: Context, { id }: SavedFilterRow): Promise<ContactFilter> =>
  (await parseConditions(ctx, { saved_filter_id: id })).filter!

export const deleteSavedFilter: Handler<'crm_delete_saved_filter'> = async (ctx, { saved_filter_id: id }) => {
  const { name, description, filter } = await lockOwnSavedFilter(ctx, id)
  ctx.auditChange({ name, description, filter }, null)
  await deleteSavedFilterRow(ctx.tx, ctx.actor.workspace.id, id)
  return { id, deleted: true }
}

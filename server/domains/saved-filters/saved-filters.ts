import type { Context, Handler } from '../../handler.ts'
import { MAX_STORED_FILTER_BYTES } from '../../../catalog/saved-filters.ts'
import type { ContactFilter } from '../../../storage/filters/filter.ts'
import { inSavepoint } from '../../../storage/client/savepoint.ts'
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
} from '../../../storage/filters/saved-filters.ts'
import { countMatching } from '../contacts/count.ts'
import type { Actor } from '../../kernel/context.ts'
import { canonicalJson } from '../../kernel/cursors.ts'
import { parseConditions, parseFilter } from '../filters/parse-filter.ts'
import { createPage } from '../../kernel/paging.ts'
import { invalidField, Problem } from '../../kernel/problem.ts'
import { toDatabaseProblem } from '../../kernel/deadline.ts'
import { showOwnedFilter } from '../../visibility/records.ts'
import { listFiltersNaming } from './naming.ts'
import { loadConditionView } from './hidden-conditions.ts'

const createNotFoundProblem = (id: string): Problem =>
  new Problem('not_found', `No saved filter with the id ${id}.`, { reason: 'saved_filter_not_found' })

/** `view`: what the staff member may see of conditions (hidden-conditions.ts). */
const toShownFilter = (
  actor: Actor,
  view: ConditionView,
  { id, kind, name, description, owner_staff_id, filter, updated_at, version }: SavedFilterRow,
) => ({
  id,
  kind,
  name,
  description,
  owner_staff_id,
  filter: showOwnedFilter(actor, owner_staff_id, view(filter)),
  updated_at,
  version: String(version),
})

type ConditionView = Awaited<ReturnType<typeof loadConditionView>>

const showSavedFilter = async (ctx: Context, row: SavedFilterRow) =>
  toShownFilter(ctx.actor, await loadConditionView(ctx), row)

export const listSavedFilters: Handler<'crm_list_saved_filters'> = async (ctx, input) => {
  const view = await loadConditionView(ctx)
  return await createPage({
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
    toItem: (row) => toShownFilter(ctx.actor, view, row),
  })
}

export const getSavedFilter: Handler<'crm_get_saved_filter'> = async (ctx, { saved_filter_id: id }) => {
  const [row] = await findSavedFilters(ctx.tx, ctx.actor.workspace.id, [id])
  if (!row) throw createNotFoundProblem(id)
  return await showSavedFilter(ctx, row)
}

const requireDryRunForCount = (ctx: Context, count: boolean | undefined): void => {
  if (count && !ctx.dryRun)
    throw invalidField('count', 'dry_run_only', 'is for dry runs only', {
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
const showResult = (ctx: Context, row: ReturnType<typeof toShownFilter>, isNew: boolean) =>
  ctx.dryRun ? { ...row, ...(isNew ? { id: null } : {}), updated_at: null } : row

export const createSavedFilter: Handler<'crm_create_saved_filter'> = async (ctx, input) => {
  requireDryRunForCount(ctx, input.count)
  await lockSavedFilterReferences(ctx.tx, ctx.actor.workspace.id)
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
    saved_filter: showResult(ctx, await showSavedFilter(ctx, row), true),
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
    saved_filter: showResult(ctx, await showSavedFilter(ctx, written), false),
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
  const filters = await listFiltersNaming(ctx.tx, ctx.actor.workspace.id, {
    input: { saved_filter_id: id },
    isDeletion: true,
  })
  await deleteSavedFilterRow(ctx.tx, ctx.actor.workspace.id, id)
  return { id, deleted: true, saved_filters: filters }
}

import { MOST_STORED_BYTES } from '../../catalog/saved-filters.ts'
import type { Filter } from '../../storage/filters/filter.ts'
import { inSavepoint } from '../../storage/savepoint.ts'
import {
  countSavedFilters,
  deleteSavedFilter as deleteRow,
  findSavedFilters,
  insertSavedFilter,
  lockSavedFilter,
  lockSavedFilterReferences,
  pageOfSavedFilters,
  type SavedFilterRow,
  updateSavedFilter as updateRow,
} from '../../storage/saved-filters.ts'
import { countMatching } from '../contacts/count.ts'
import { maskPhone } from '../contacts/phone.ts'
import { maskDigits } from '../contacts/view.ts'
import { type Actor, type Context, phonesHidden } from '../core/context.ts'
import { canonicalJson } from '../core/cursors.ts'
import { readConditions, readFilter } from '../filters/read.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { pageOf } from '../core/paging.ts'
import { invalidField, Problem } from '../core/problem.ts'
import { databaseProblem } from '../core/steps/deadline.ts'

const missing = (id: string): Problem =>
  new Problem('not_found', `No saved filter with the id ${id}.`, { reason: 'saved_filter_not_found' })

/**
 * How digits of a condition's values are hidden. Custom fields hold phones too, but most of what they hold
 * is none.
 */
const masks: Readonly<Record<string, (text: string) => string>> = {
  phoneNumber: (text) => text.replaceAll(/\d+/g, maskPhone),
  chatappUserId: (text) => text.replaceAll(/\d+/g, maskPhone),
  stringValue: (text) => maskDigits(text)!,
}

/** Pieces of a phone are hidden whole: what the end of a number may show would show its middle here. */
const pieces = new Set(['contains', 'notContains', 'startsWith', 'endsWith', 'regex'])
const maskPiece = (text: string): string => text.replaceAll(/\d/g, '*')

const masked = <T>(value: T, mask?: (text: string) => string): T => {
  if (typeof value === 'string') return (mask ? mask(value) : value) as T
  if (Array.isArray(value)) return value.map((item) => masked(item, mask)) as T
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      masked(member, masks[key] ?? (mask && pieces.has(key) ? maskPiece : mask)),
    ]),
  ) as T
}

/**
 * Staff from whom phones are hidden do not see those that a colleague filters by either; their own filter
 * is what they wrote.
 */
const show = (
  actor: Actor,
  { id, kind, name, description, owner_staff_id, filter, updated_at }: SavedFilterRow,
) => ({
  id,
  kind,
  name,
  description,
  owner_staff_id,
  filter: phonesHidden(actor) && owner_staff_id !== actor.staff.id ? masked(filter) : filter,
  updated_at,
})

export const listSavedFilters: Handler<
  InputOf<'crm_list_saved_filters'>,
  OutputOf<'crm_list_saved_filters'>
> = (ctx, input) =>
  pageOf(
    ctx.cursors,
    input,
    (after, limit) =>
      pageOfSavedFilters(
        ctx.tx,
        ctx.actor.workspace.id,
        input.search,
        after && { nameKey: after[0]!, id: after[1]! },
        limit,
      ),
    () => countSavedFilters(ctx.tx, ctx.actor.workspace.id, input.search),
    (row) => [row.name_key, row.id],
    (row) => show(ctx.actor, row),
  )

export const getSavedFilter: Handler<
  InputOf<'crm_get_saved_filter'>,
  OutputOf<'crm_get_saved_filter'>
> = async (ctx, { saved_filter_id: id }) => {
  const [row] = await findSavedFilters(ctx.tx, ctx.actor.workspace.id, [id])
  if (!row) throw missing(id)
  return show(ctx.actor, row)
}

const refuseCountForReal = (ctx: Context, count: boolean | undefined): void => {
  if (count && !ctx.dryRun)
    throw invalidField('count', 'dry_run_only', 'is for rehearsals only', {
      fix: 'Send dry_run=true too, or leave count out.',
    })
}

const refuseTooLarge = (filter: Record<string, unknown>): void => {
  const bytes = Buffer.byteLength(JSON.stringify(filter))
  if (bytes <= MOST_STORED_BYTES) return
  throw invalidField(
    'filter',
    'too_large',
    `would be stored as ${bytes} bytes, and at most ${MOST_STORED_BYTES} are kept`,
    { reason: 'filter_too_large', fix: 'Save a smaller filter.' },
  )
}

/** The count that a rehearsal may ask for. When it fails, the rehearsal answers all the same. */
const counted = async (ctx: Context, wanted: boolean | undefined, filter: () => Promise<Filter>) => {
  if (!wanted) return {}
  try {
    return await inSavepoint(ctx.tx, async () => await countMatching(ctx, await filter()))
  } catch (error) {
    const problem = error instanceof Problem ? error : databaseProblem(error)
    if (!problem) throw error
    return { count: null, count_error: { code: problem.code, message: problem.message } }
  }
}

/** What is not there yet has no id, and what is not written has no time. */
const rehearsed = (ctx: Context, row: ReturnType<typeof show>, isNew: boolean) =>
  ctx.dryRun ? { ...row, ...(isNew ? { id: null } : {}), updated_at: null } : row

export const createSavedFilter: Handler<
  InputOf<'crm_create_saved_filter'>,
  OutputOf<'crm_create_saved_filter'>
> = async (ctx, input) => {
  refuseCountForReal(ctx, input.count)
  const read = await readFilter(ctx, input.filter)
  refuseTooLarge(read.absolute)
  const row = await insertSavedFilter(
    ctx.tx,
    ctx.actor.workspace.id,
    {
      name: input.name,
      description: input.description ?? null,
      owner_staff_id: ctx.actor.staff.id,
      filter: read.absolute,
    },
    ctx.now,
  )
  return {
    saved_filter: rehearsed(ctx, show(ctx.actor, row), true),
    resolved_dates: read.resolvedDates,
    warnings: read.warnings,
    ...(await counted(ctx, input.count, async () => read.filter)),
  }
}

/** A saved filter that the actor may change, locked. */
const lockOwn = async (ctx: Context, id: string): Promise<SavedFilterRow> => {
  const row = await lockSavedFilter(ctx.tx, ctx.actor.workspace.id, id)
  if (!row) throw missing(id)
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

export const updateSavedFilter: Handler<
  InputOf<'crm_update_saved_filter'>,
  OutputOf<'crm_update_saved_filter'>
> = async (ctx, input) => {
  refuseCountForReal(ctx, input.count)
  if (input.filter) await lockSavedFilterReferences(ctx.tx, ctx.actor.workspace.id)
  const row = await lockOwn(ctx, input.saved_filter_id)
  if (input.filter && row.kind !== 'contact') {
    throw invalidField(
      'filter',
      'wrong_kind',
      'is a contact filter, and this saved filter filters conversations',
      { fix: 'Save the contact filter under a name of its own.' },
    )
  }
  const read = input.filter && (await readFilter(ctx, input.filter, { ownId: row.id }))
  const next: SavedFilterRow = {
    ...row,
    name: input.name ?? row.name,
    description: input.description === undefined ? row.description : input.description,
    filter: read?.absolute ?? row.filter,
  }
  refuseTooLarge(next.filter)
  const changes = (['name', 'description', 'filter'] as const).filter(
    (field) => canonicalJson(next[field]) !== canonicalJson(row[field]),
  )
  ctx.note(row, { name: next.name, description: next.description, filter: next.filter })
  const written = changes.length > 0 ? await updateRow(ctx.tx, ctx.actor.workspace.id, next, ctx.now) : row
  return {
    saved_filter: rehearsed(ctx, show(ctx.actor, written), false),
    changes,
    resolved_dates: read?.resolvedDates ?? [],
    warnings: read?.warnings ?? [],
    ...(await counted(ctx, input.count, async () => read?.filter ?? (await readStored(ctx, row)))),
  }
}

/**
 * What is stored may be longer than what was sent, its dates being absolute, so it is read as a saved
 * filter.
 */
const readStored = async (ctx: Context, { id }: SavedFilterRow): Promise<Filter> =>
  (await readConditions(ctx, { saved_filter_id: id })).filter!

export const deleteSavedFilter: Handler<
  InputOf<'crm_delete_saved_filter'>,
  OutputOf<'crm_delete_saved_filter'>
> = async (ctx, { saved_filter_id: id }) => {
  const { name, description, filter } = await lockOwn(ctx, id)
  ctx.note({ name, description, filter }, null)
  await deleteRow(ctx.tx, ctx.actor.workspace.id, id)
  return { id, deleted: true }
}

import type { Context, Handler, InputOf } from '../../handler.ts'
import {
  deleteTagRow,
  hasContacts,
  insertTags,
  type Label,
  lockTag,
  lockTags,
  renameTagRow,
} from '../../../storage/labels/labels.ts'
import { countIds, countLabelled } from '../../../storage/contacts/matches.ts'
import { fold } from '../../../storage/values/text.ts'
import { changeTarget } from '../bulk-jobs/change-target.ts'
import { contactRecords, type ContactsChange } from '../bulk-jobs/contact-records.ts'
import { notFound, Problem } from '../../kernel/problem.ts'
import {
  changeLabels,
  distinctIds,
  findNearestLabel,
  changeLabelsOptimistically,
  type LabelRefs,
  listLabels,
  loadLabelNames,
  requireFreeName,
  unknownLabelIds,
} from '../labels/labels.ts'
import { moveFilters } from '../saved-filters/follow-labels.ts'
import { listFiltersNaming } from '../saved-filters/naming.ts'
import { isIdText, cacheLabels } from '../labels/label-cache.ts'

export const listTags: Handler<'crm_list_tags'> = (ctx, input) =>
  listLabels(ctx, 'tag', input, (row) => ({
    id: row.id,
    name: row.name,
    contacts_count: Number(row.contacts_count),
    created_at: row.created_at,
  }))

export const renameTag: Handler<'crm_rename_tag'> = async (ctx, { tag_id: id, name }) => {
  const tag = await lockTag(ctx.tx, ctx.actor.workspace.id, id)
  if (!tag) throw notFound('tag', id)
  const renamed = { id, name }
  if (tag.name === name) return { tag: renamed, changed: false }
  await requireFreeName(ctx, 'tag', id, name)
  await renameTagRow(ctx.tx, ctx.actor.workspace.id, id, name)
  const filters = await moveFilters(ctx, { kind: 'tag', from: tag, to: renamed })
  ctx.emit('tag.renamed/1', { tag: { ...renamed, previous_name: tag.name } })
  ctx.auditChange(tag, renamed)
  return { tag: renamed, changed: true, ...(filters.length > 0 ? { saved_filters: filters } : {}) }
}

export const deleteTag: Handler<'crm_delete_tag'> = async (ctx, { tag_id: id }) => {
  const tag = await lockTag(ctx.tx, ctx.actor.workspace.id, id)
  if (!tag) throw notFound('tag', id)
  const filters = await listFiltersNaming(ctx.tx, ctx.actor.workspace.id, {
    input: { tag_id: id },
    isDeletion: true,
  })
  await deleteTagRow(ctx.tx, ctx.actor.workspace.id, id)
  ctx.emit('tag.deleted/1', { tag })
  ctx.auditChange(tag, null)
  return { id, deleted: true, saved_filters: filters }
}

const addTags: ContactsChange<InputOf<'crm_tag_contacts'>, 'contact.tags_added/1'> = {
  operation: 'crm_tag_contacts',
  records: contactRecords,
  apply: async (ctx, input, ids) => {
    // A tag is created for contacts, so not where none of them exists.
    const hasAny = () => hasContacts(ctx.tx, ctx.actor.workspace.id, distinctIds(ids))
    const { output, changes } =
      changeLabelsOptimistically(ctx, 'tag', 'add', input.tags, ids) ??
      (await changeLabels(ctx, 'tag', 'add', await resolveTags(ctx, input.tags, hasAny), ids))
    for (const { labels, contactIds } of changes)
      ctx.emit('contact.tags_added/1', { contact_ids: contactIds, tags: labels })
    return output
  },
  preview: async (ctx, input, batches) => {
    const index = await findTags(ctx, input.tags)
    const names = listNewTagNames(index, input.tags)
    const created = await listNearest(ctx, names)
    const labelIds = selectTags(index, input.tags).map(({ id }) => id)
    const atLeast = labelIds.length
    const count = () => countLabelled(ctx.tx, ctx.actor.workspace.id, 'tag', { labelIds, batches, atLeast })
    return { created, unchanged: created.length > 0 ? 0 : await count() }
  },
  freeze: async (ctx, input) => ({
    tags: (await resolveTags(ctx, input.tags, async () => true)).map(({ id }) => Number(id)),
  }),
}

/** Returns names of tags to be, each once, with the most similar one that exists. */
const listNearest = async (ctx: Context, names: readonly string[]) => {
  const known = names.length > 0 ? await loadLabelNames(ctx, 'tag') : []
  const distinct = new Map(names.toReversed().map((name) => [fold(name), name]))
  return [...distinct.values()]
    .toReversed()
    .map((name) => ({ name, nearest: findNearestLabel(name, known) ?? null }))
}

const removeTags: ContactsChange<InputOf<'crm_untag_contacts'>, 'contact.tags_removed/1'> = {
  operation: 'crm_untag_contacts',
  records: contactRecords,
  apply: async (ctx, input, ids) => {
    const readTags = async () => selectTags(await findTags(ctx, input.tags), input.tags)
    const { output, changes } =
      changeLabelsOptimistically(ctx, 'tag', 'remove', input.tags, ids) ??
      (await changeLabels(ctx, 'tag', 'remove', await readTags(), ids))
    for (const { labels, contactIds } of changes)
      ctx.emit('contact.tags_removed/1', { contact_ids: contactIds, tags: labels })
    return output
  },
  preview: async (ctx, input, batches) => {
    const labelIds = selectTags(await findTags(ctx, input.tags), input.tags).map(({ id }) => id)
    const tagged = await countLabelled(ctx.tx, ctx.actor.workspace.id, 'tag', {
      labelIds,
      batches,
      atLeast: 1,
    })
    return { unchanged: countIds(batches) - tagged }
  },
  freeze: async (ctx, input) => ({
    tags: selectTags(await findTags(ctx, input.tags), input.tags).map(({ id }) => Number(id)),
  }),
}

export const tagContacts: Handler<'crm_tag_contacts'> = (ctx, input) => changeTarget(ctx, addTags, input)

export const untagContacts: Handler<'crm_untag_contacts'> = (ctx, input) =>
  changeTarget(ctx, removeTags, input)

/** Tags by id and by folded name. */
export type TagIndex = { byId: ReadonlyMap<string, Label>; byName: ReadonlyMap<string, Label> }

/** Reads the tags that these refs may mean, locked against deletion. */
export const findTags = async (ctx: Context, refs: LabelRefs): Promise<TagIndex> => {
  const names = refs.filter((ref) => typeof ref === 'string')
  const found =
    refs.length === 0
      ? []
      : await lockTags(ctx.tx, ctx.actor.workspace.id, refs.filter(isIdText).map(String), names.map(fold))
  cacheLabels(ctx, 'tag', refs, found)
  return {
    byId: new Map(found.map(({ id, name }) => [id, { id, name }])),
    byName: new Map(found.map(({ id, name, name_key: key }) => [key, { id, name }])),
  }
}

/** An integer, or a digit string that is an existing tag's id, is an id; any other string is a name. */
const lookUpTag = ({ byId, byName }: TagIndex, ref: string | number): Label | undefined =>
  (isIdText(ref) ? byId.get(String(ref)) : undefined) ??
  (typeof ref === 'string' ? byName.get(fold(ref)) : undefined)

/** Returns the distinct tags that these refs mean, in their order; unknown refs are ignored. */
export const selectTags = (index: TagIndex, refs: LabelRefs): Label[] => [
  ...new Map(refs.flatMap((ref) => lookUpTag(index, ref) ?? []).map((tag) => [tag.id, tag])).values(),
]

/**
 * Returns the names that no tag has yet. Throws 400 `unknown_tag` for unknown integers, which cannot be
 * names. `field` is the input field that holds the refs.
 */
export const listNewTagNames = (index: TagIndex, refs: LabelRefs, field = 'tags'): string[] => {
  const missing = refs.filter((ref) => lookUpTag(index, ref) === undefined)
  const unknownIds = missing.filter((ref) => typeof ref === 'number')
  if (unknownIds.length > 0) throw unknownLabelIds('tag', field, refs, unknownIds.map(String))
  return missing.filter((ref) => typeof ref === 'string')
}

const MAX_CREATIONS = 3

/**
 * Creates tags of these names, and returns the index of `refs` read again. Of several spellings of a name
 * the first is used. Throws 409 `deleted_meanwhile`.
 */
export const createTags = async (
  ctx: Context,
  index: TagIndex,
  names: readonly string[],
  refs: LabelRefs,
): Promise<TagIndex> => {
  if (names.length === 0) return index
  const firstSpellings = new Map(names.map((name) => [fold(name), name] as const).toReversed())
  // A tag that somebody else made, or had, may be deleted before it is locked here: it is made again then.
  for (let attempt = 0; attempt < MAX_CREATIONS; attempt++) {
    await insertTags(ctx.tx, ctx.actor.workspace.id, [...firstSpellings.values()], ctx.now)
    const found = await findTags(ctx, refs)
    if ([...firstSpellings.keys()].every((key) => found.byName.has(key))) return found
  }
  throw new Problem(
    'conflict',
    'A tag was deleted again and again while this call made it. Send the call again.',
    {
      reason: 'deleted_meanwhile',
    },
  )
}

/** `createdInDryRun`: the tag is rolled back with the dry run, so that its id means nothing to the caller. */
export type ResolvedTag = Label & { createdInDryRun: boolean }

/**
 * Resolves tags given by name or id. Unknown names become tags where `mayCreate` returns true, which is called
 * only for them, and are ignored otherwise. Throws 400 `unknown_tag` for unknown integers, which cannot be names.
 */
export const resolveTags = async (
  ctx: Context,
  refs: LabelRefs,
  mayCreate: () => Promise<boolean>,
): Promise<ResolvedTag[]> => {
  const before = await findTags(ctx, refs)
  const names = listNewTagNames(before, refs)
  const index = names.length > 0 && (await mayCreate()) ? await createTags(ctx, before, names, refs) : before
  return selectTags(index, refs).map((tag) => ({
    ...tag,
    createdInDryRun: ctx.dryRun && !before.byId.has(tag.id),
  }))
}

import type { Context, Handler, InputOf } from '../../handler.ts'
import {
  deleteGroupRow,
  findGroupByName,
  findLabels,
  insertGroup,
  type Label,
  lockGroup,
  lockGroups,
  updateGroupRow,
} from '../../../storage/labels/labels.ts'
import { countIds, countLabelled } from '../../../storage/contacts/matches.ts'
import { fold } from '../../../storage/values/text.ts'
import { changeTarget } from '../bulk-jobs/change-target.ts'
import { contactRecords, type ContactsChange } from '../bulk-jobs/contact-records.ts'
import { notFound, Problem } from '../../kernel/problem.ts'
import {
  changeLabels,
  distinctIds,
  changeLabelsOptimistically,
  type LabelRefs,
  listLabels,
  loadLabelNames,
  requireFreeName,
  unknownLabelIds,
  unknownLabelName,
} from '../labels/labels.ts'
import { moveFilters } from '../saved-filters/follow-labels.ts'
import { listFiltersNaming } from '../saved-filters/naming.ts'
import { cacheLabels } from '../labels/label-cache.ts'

export const listGroups: Handler<'crm_list_groups'> = (ctx, input) =>
  listLabels(ctx, 'group', input, (row) => ({
    id: row.id,
    name: row.name,
    emoji: row.emoji ?? null,
    contacts_count: Number(row.contacts_count),
    created_at: row.created_at,
  }))

export const createGroup: Handler<'crm_create_group'> = async (ctx, input) => {
  const workspaceId = ctx.actor.workspace.id
  const created = await insertGroup(ctx.tx, workspaceId, input.name, input.emoji ?? null, ctx.now)
  if (created) {
    ctx.emit('group.created/1', { group: created })
    return { group: { ...created, id: ctx.dryRun ? null : created.id }, created: true }
  }
  const existing = await findGroupByName(ctx.tx, workspaceId, input.name)
  if (!existing) throw deletedMeanwhile()
  return { group: existing, created: false }
}

const deletedMeanwhile = (): Problem =>
  new Problem('conflict', 'The group with this name was deleted at the same time. Retry.', {
    reason: 'deleted_meanwhile',
  })

export const updateGroup: Handler<'crm_update_group'> = async (ctx, { group_id: id, name, emoji }) => {
  const before = await lockGroup(ctx.tx, ctx.actor.workspace.id, id, true)
  if (!before) throw notFound('group', id)
  const group = { id, name: name ?? before.name, emoji: emoji === undefined ? before.emoji : emoji }
  const changes = (['name', 'emoji'] as const).filter((field) => group[field] !== before[field])
  if (changes.length === 0) return { group, changes }
  if (changes.includes('name')) await requireFreeName(ctx, 'group', id, group.name)
  await updateGroupRow(ctx.tx, ctx.actor.workspace.id, group)
  const filters = changes.includes('name')
    ? await moveFilters(ctx, { kind: 'group', from: before, to: group })
    : []
  ctx.emit('group.updated/1', { group, previous: { name: before.name, emoji: before.emoji } })
  ctx.auditChange(before, group)
  return { group, changes, ...(filters.length > 0 ? { saved_filters: filters } : {}) }
}

export const deleteGroup: Handler<'crm_delete_group'> = async (ctx, { group_id: id }) => {
  const group = await lockGroup(ctx.tx, ctx.actor.workspace.id, id, true)
  if (!group) throw notFound('group', id)
  const filters = await listFiltersNaming(ctx.tx, ctx.actor.workspace.id, {
    input: { group_id: id },
    isDeletion: true,
  })
  await deleteGroupRow(ctx.tx, ctx.actor.workspace.id, id)
  ctx.emit('group.deleted/1', { group })
  ctx.auditChange(group, null)
  return { id, deleted: true, saved_filters: filters }
}

const addMembers: ContactsChange<InputOf<'crm_add_contacts_to_group'>, 'contact.groups_added/1'> = {
  operation: 'crm_add_contacts_to_group',
  records: contactRecords,
  apply: async (ctx, input, ids) => {
    const { output, changes } =
      changeLabelsOptimistically(ctx, 'group', 'add', [input.group_id], ids) ??
      (await changeLabels(ctx, 'group', 'add', [await requireGroup(ctx, input.group_id)], ids))
    for (const { labels, contactIds } of changes)
      ctx.emit('contact.groups_added/1', { contact_ids: contactIds, groups: labels })
    return output
  },
  preview: async (ctx, input, batches) => ({
    unchanged: await countMembers(ctx, input.group_id, batches),
  }),
  freeze: (ctx, input) => freezeGroup(ctx, input.group_id),
}

const removeMembers: ContactsChange<InputOf<'crm_remove_contacts_from_group'>, 'contact.groups_removed/1'> = {
  operation: 'crm_remove_contacts_from_group',
  records: contactRecords,
  apply: async (ctx, input, ids) => {
    const { output, changes } =
      changeLabelsOptimistically(ctx, 'group', 'remove', [input.group_id], ids) ??
      (await changeLabels(ctx, 'group', 'remove', [await requireGroup(ctx, input.group_id)], ids))
    for (const { labels, contactIds } of changes)
      ctx.emit('contact.groups_removed/1', { contact_ids: contactIds, groups: labels })
    return output
  },
  preview: async (ctx, input, batches) => ({
    unchanged: countIds(batches) - (await countMembers(ctx, input.group_id, batches)),
  }),
  freeze: (ctx, input) => freezeGroup(ctx, input.group_id),
}

const countMembers = async (ctx: Context, groupId: string, batches: readonly string[]): Promise<number> => {
  const { id } = await requireGroup(ctx, groupId)
  const request = { labelIds: [id], batches, atLeast: 1 }
  return await countLabelled(ctx.tx, ctx.actor.workspace.id, 'group', request)
}

const freezeGroup = async (ctx: Context, groupId: string) => ({
  group_id: (await requireGroup(ctx, groupId)).id,
})

export const addContactsToGroup: Handler<'crm_add_contacts_to_group'> = (ctx, input) =>
  changeTarget(ctx, addMembers, input)

export const removeContactsFromGroup: Handler<'crm_remove_contacts_from_group'> = (ctx, input) =>
  changeTarget(ctx, removeMembers, input)

/** Returns the group, locked against deletion. Throws 404. */
const requireGroup = async (ctx: Context, id: string): Promise<Label> => {
  const group = await lockGroup(ctx.tx, ctx.actor.workspace.id, id)
  cacheLabels(ctx, 'group', [id], group ? [group] : [])
  if (!group) throw notFound('group', id)
  return group
}

/** Returns the groups with these ids. Throws 400 `unknown_group`. */
export const resolveGroups = async (ctx: Context, ids: LabelRefs): Promise<Label[]> =>
  selectGroups(await findGroups(ctx, ids), ids)

/** Returns the groups with these ids that exist, locked against deletion. */
export const findGroups = async (ctx: Context, ids: LabelRefs): Promise<Label[]> =>
  ids.length === 0 ? [] : await lockGroups(ctx.tx, ctx.actor.workspace.id, distinctIds(ids))

/** Returns those of `groups` with these ids, in the order of `groups`. Throws 400 `unknown_group`. */
export const selectGroups = (groups: readonly Label[], given: LabelRefs): Label[] => {
  const ids = new Set(distinctIds(given))
  const selected = groups.filter((group) => ids.has(group.id))
  if (selected.length < ids.size) {
    const found = new Set(selected.map((group) => group.id))
    const missing = [...ids].filter((id) => !found.has(id))
    throw unknownLabelIds('group', 'group_ids', given, missing)
  }
  return selected
}

/** Groups by folded name, and the names that errors compare an unknown one with. */
export type GroupNameIndex = { byKey: ReadonlyMap<string, Label>; known: readonly string[] }

/** Finds groups by name, locked against deletion. */
export const findGroupsByName = async (ctx: Context, names: readonly string[]): Promise<GroupNameIndex> => {
  if (names.length === 0) return { byKey: new Map(), known: [] }
  const workspaceId = ctx.actor.workspace.id
  const keys = [...new Set(names.map(fold))]
  const found = await findLabels(ctx.tx, workspaceId, 'group', [], keys)
  const locked = await lockGroups(
    ctx.tx,
    workspaceId,
    found.map(({ id }) => id),
  )
  const byKey = new Map(locked.map((group) => [fold(group.name), group]))
  return { byKey, known: byKey.size < keys.length ? await loadLabelNames(ctx, 'group') : [] }
}

/** Returns the groups of these names that exist. Throws 400 `unknown_group` for others, unless they are created. */
export const selectGroupsByName = (
  { byKey, known }: GroupNameIndex,
  names: readonly string[],
  mayCreate: boolean,
): Label[] =>
  names.flatMap((name, i) => {
    const group = byKey.get(fold(name))
    if (!group && !mayCreate) throw unknownLabelName('group', ['group_names', i], name, known)
    return group ?? []
  })

/**
 * Creates the groups of these names that do not exist, in the order of their names, so that two writers cannot
 * deadlock. Of several spellings the first is used.
 */
export const createMissingGroups = async (
  ctx: Context<'group.created/1'>,
  index: GroupNameIndex,
  names: readonly string[],
): Promise<GroupNameIndex> => {
  const missing = new Map(
    names
      .map((name) => [fold(name), name] as const)
      .filter(([key]) => !index.byKey.has(key))
      .toReversed(),
  )
  const byKey = new Map(index.byKey)
  for (const [key, name] of [...missing].sort(([a], [b]) => (a < b ? -1 : 1)))
    byKey.set(key, await createOrLockGroup(ctx, name))
  return { ...index, byKey }
}

const createOrLockGroup = async (ctx: Context<'group.created/1'>, name: string): Promise<Label> => {
  const workspaceId = ctx.actor.workspace.id
  const created = await insertGroup(ctx.tx, workspaceId, name, null, ctx.now)
  if (created) {
    ctx.emit('group.created/1', { group: created })
    return { id: created.id, name: created.name }
  }
  const existing = await findGroupByName(ctx.tx, workspaceId, name)
  const locked = existing && (await lockGroup(ctx.tx, workspaceId, existing.id))
  if (!locked) throw deletedMeanwhile()
  return { id: locked.id, name: locked.name }
}

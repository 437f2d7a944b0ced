import {
  deleteGroupRow,
  findGroupByName,
  insertGroup,
  type Label,
  lockGroup,
  lockGroups,
} from '../../storage/labels.ts'
import type { Context } from '../core/context.ts'
import type { Handler } from '../core/handler.ts'
import { notFound, Problem } from '../core/problem.ts'
import { changeLabels, distinctIds, type LabelRefs, listLabels, unknownLabelIds } from '../labels/labels.ts'

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
  if (!existing)
    throw new Problem('conflict', 'The group with this name was deleted at the same time. Retry.', {
      reason: 'deleted_meanwhile',
    })
  return { group: existing, created: false }
}

export const deleteGroup: Handler<'crm_delete_group'> = async (ctx, { group_id: id }) => {
  const group = await lockGroup(ctx.tx, ctx.actor.workspace.id, id, true)
  if (!group) throw notFound('group', id)
  await deleteGroupRow(ctx.tx, ctx.actor.workspace.id, id)
  ctx.emit('group.deleted/1', { group })
  ctx.auditChange(group, null)
  return { id, deleted: true }
}

export const addContactsToGroup: Handler<'crm_add_contacts_to_group'> = async (ctx, input) => {
  const group = await requireGroup(ctx, input.group_id)
  const { output, changes } = await changeLabels(ctx, 'group', 'add', [group], input.contact_ids)
  for (const { labels, contactIds } of changes)
    ctx.emit('contact.groups_added/1', { contact_ids: contactIds, groups: labels })
  return output
}

export const removeContactsFromGroup: Handler<'crm_remove_contacts_from_group'> = async (ctx, input) => {
  const group = await requireGroup(ctx, input.group_id)
  const { output, changes } = await changeLabels(ctx, 'group', 'remove', [group], input.contact_ids)
  for (const { labels, contactIds } of changes)
    ctx.emit('contact.groups_removed/1', { contact_ids: contactIds, groups: labels })
  return output
}

/** Returns the group, locked against deletion. Throws 404. */
const requireGroup = async (ctx: Context, id: string): Promise<Label> => {
  const group = await lockGroup(ctx.tx, ctx.actor.workspace.id, id)
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

import {
  countLabels,
  deleteGroupRow,
  findGroupByName,
  insertGroup,
  type LabelKind,
  lockGroup,
  pageOfLabels,
} from '../../storage/labels.ts'
import type { Context } from '../core/context.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { pageOf } from '../core/paging.ts'
import { notFound, Problem } from '../core/problem.ts'

type ListInput = InputOf<'crm_list_tags'>

const listLabels = (ctx: Context, kind: LabelKind, input: ListInput) =>
  pageOf(
    ctx.cursors,
    input,
    (after, limit) =>
      pageOfLabels(
        ctx.tx,
        ctx.actor.workspace.id,
        kind,
        input.search,
        after && { nameKey: after[0]!, id: after[1]! },
        limit,
      ),
    () => countLabels(ctx.tx, ctx.actor.workspace.id, kind, input.search),
    (row) => [row.name_key, row.id],
    (row) => row,
  )

export const listTags: Handler<ListInput, OutputOf<'crm_list_tags'>> = async (ctx, input) => {
  const page = await listLabels(ctx, 'tag', input)
  return {
    ...page,
    data: page.data.map((row) => ({
      id: row.id,
      name: row.name,
      contacts_count: Number(row.contacts_count),
      created_at: row.created_at,
    })),
  }
}

export const listGroups: Handler<InputOf<'crm_list_groups'>, OutputOf<'crm_list_groups'>> = async (
  ctx,
  input,
) => {
  const page = await listLabels(ctx, 'group', input)
  return {
    ...page,
    data: page.data.map((row) => ({
      id: row.id,
      name: row.name,
      emoji: row.emoji ?? null,
      contacts_count: Number(row.contacts_count),
      created_at: row.created_at,
    })),
  }
}

export const createGroup: Handler<InputOf<'crm_create_group'>, OutputOf<'crm_create_group'>> = async (
  ctx,
  input,
) => {
  const workspaceId = ctx.actor.workspace.id
  const made = await insertGroup(ctx.tx, workspaceId, input.name, input.emoji ?? null, ctx.now)
  if (made) {
    ctx.emit('group.created/1', { group: made })
    return { group: { ...made, id: ctx.dryRun ? null : made.id }, created: true }
  }
  const there = await findGroupByName(ctx.tx, workspaceId, input.name)
  if (!there)
    throw new Problem('conflict', 'The group of this name was deleted at this moment. Retry.', {
      reason: 'deleted_meanwhile',
    })
  return { group: there, created: false }
}

export const deleteGroup: Handler<InputOf<'crm_delete_group'>, OutputOf<'crm_delete_group'>> = async (
  ctx,
  { group_id: id },
) => {
  const group = await lockGroup(ctx.tx, ctx.actor.workspace.id, id, true)
  if (!group) throw notFound('group', id)
  await deleteGroupRow(ctx.tx, ctx.actor.workspace.id, id)
  ctx.emit('group.deleted/1', { group })
  ctx.note(group, null)
  return { id, deleted: true }
}

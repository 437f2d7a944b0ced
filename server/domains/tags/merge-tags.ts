import type { Handler } from '../../handler.ts'
import type { Label } from '../../../storage/labels/labels.ts'
import { lockTagsForMerge, mergeTagRow } from '../../../storage/labels/merges.ts'
import { invalidField, notFound } from '../../kernel/problem.ts'
import { moveFilters } from '../saved-filters/follow-labels.ts'

export const mergeTags: Handler<'crm_merge_tags'> = async (ctx, { tag_id: id, other_tag_id: otherId }) => {
  const workspaceId = ctx.actor.workspace.id
  if (id === otherId)
    throw invalidField('other_tag_id', 'same_tag', 'is the tag that stays', {
      fix: 'Send the id of another tag.',
    })
  const locked = await lockTagsForMerge(ctx.tx, workspaceId, id, otherId)
  const [kept, other] = [id, otherId].map((each) => {
    const tag = locked.find((one) => one.id === each)
    if (!tag) throw notFound('tag', each)
    return tag
  }) as [Label, Label]
  const merged = await mergeTagRow(ctx.tx, workspaceId, otherId, id)
  const filters = await moveFilters(ctx, { kind: 'tag', from: other, to: kept })
  ctx.emit('tag.deleted/1', { tag: { ...other, merged_into: id } })
  ctx.auditChange(other, null)
  return { tag: kept, other_tag_id: otherId, ...merged, saved_filters: filters }
}

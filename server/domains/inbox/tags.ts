import type { Handler } from '../../handler.ts'
import { updateConversationTags, updateConversation } from '../../../storage/conversations/changes.ts'
import { toPointer, Problem } from '../../kernel/problem.ts'
import { createTags, findTags, listNewTagNames, selectTags } from '../tags/tags.ts'
import { lockVisibleConversation } from './access.ts'
import { showConversationSummary } from './summary.ts'

const requireTags = (add: readonly unknown[], remove: readonly unknown[]): void => {
  if (add.length + remove.length > 0) return
  throw new Problem('invalid_input', 'Send at least one tag in add or remove.', {
    errors: [
      {
        pointer: toPointer(['add']),
        code: 'missing',
        detail: 'and remove are both empty',
        fix: 'Name a tag to add or to remove.',
      },
    ],
  })
}

export const tagConversation: Handler<'inbox_tag_conversation'> = async (ctx, input) => {
  const { add = [], remove = [] } = input
  requireTags(add, remove)
  const conversation = await lockVisibleConversation(ctx, input.conversation_id)
  const all = [...add, ...remove]
  const existing = await findTags(ctx, all)
  const known = await createTags(ctx, existing, listNewTagNames(existing, add, 'add'), all)
  const [added, removed] = [selectTags(known, add), selectTags(known, remove)]
  const both = added.find((tag) => removed.some((r) => r.id === tag.id))
  if (both) {
    const at = remove.findIndex((given) => selectTags(known, [given])[0]?.id === both.id)
    throw new Problem('invalid_input', `The tag "${both.name}" is in both add and remove.`, {
      errors: [
        {
          pointer: toPointer(['remove', at]),
          code: 'contradiction',
          detail: 'is in add too',
          fix: 'Remove it from one of them.',
        },
      ],
    })
  }
  const changed =
    (await updateConversationTags(
      ctx.tx,
      ctx.actor.workspace.id,
      conversation.id,
      added.map((t) => t.id),
      removed.map((t) => t.id),
    )) > 0
  if (changed) await updateConversation(ctx.tx, ctx.actor.workspace.id, conversation.id, {}, ctx.now)
  const shown = await showConversationSummary(ctx, conversation)
  // A tag that a dry run creates has no id.
  return {
    conversation: {
      ...shown,
      tags: shown.tags.map((tag) =>
        ctx.dryRun && added.some((t) => t.id === tag.id) && !existing.byId.has(tag.id)
          ? { ...tag, id: null }
          : tag,
      ),
    },
    changed,
  }
}

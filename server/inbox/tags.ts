import { retagConversation, setConversation } from '../../storage/conversation-changes.ts'
import { chooseTags, findTags, makeTags, tagsToMake } from '../contacts/input.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { pointerOf, Problem } from '../core/problem.ts'
import { reachConversation } from './access.ts'
import { showRef } from './ref.ts'

const requireSome = (add: readonly unknown[], remove: readonly unknown[]): void => {
  if (add.length + remove.length > 0) return
  throw new Problem('invalid_input', 'Send at least one tag in add or remove.', {
    errors: [
      {
        pointer: pointerOf(['add']),
        code: 'missing',
        detail: 'and remove are both empty',
        fix: 'Name a tag to add or to remove.',
      },
    ],
  })
}

export const tagConversation: Handler<
  InputOf<'inbox_tag_conversation'>,
  OutputOf<'inbox_tag_conversation'>
> = async (ctx, input) => {
  const { add = [], remove = [] } = input
  requireSome(add, remove)
  const conversation = await reachConversation(ctx, input.conversation_id)
  const all = [...add, ...remove]
  const there = await findTags(ctx, all)
  const known = await makeTags(ctx, there, tagsToMake(there, add, 'add'), all)
  const [added, removed] = [chooseTags(known, add), chooseTags(known, remove)]
  const both = added.find((tag) => removed.some((r) => r.id === tag.id))
  if (both) {
    const at = remove.findIndex((given) => chooseTags(known, [given])[0]?.id === both.id)
    throw new Problem('invalid_input', `The tag "${both.name}" is both to be added and to be removed.`, {
      errors: [
        {
          pointer: pointerOf(['remove', at]),
          code: 'contradiction',
          detail: 'is in add too',
          fix: 'Leave it out of one of them.',
        },
      ],
    })
  }
  const changed =
    (await retagConversation(
      ctx.tx,
      ctx.actor.workspace.id,
      conversation.id,
      added.map((t) => t.id),
      removed.map((t) => t.id),
    )) > 0
  if (changed) await setConversation(ctx.tx, ctx.actor.workspace.id, conversation.id, {}, ctx.now)
  const shown = await showRef(ctx, conversation)
  // A tag that a rehearsal makes for itself has no id yet.
  return {
    conversation: {
      ...shown,
      tags: shown.tags.map((tag) =>
        ctx.dryRun && added.some((t) => t.id === tag.id) && !there.byId.has(tag.id)
          ? { ...tag, id: null }
          : tag,
      ),
    },
    changed,
  }
}

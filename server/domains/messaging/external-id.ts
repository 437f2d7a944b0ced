import type { Context } from '../../handler.ts'
import { findMessageByExternalId } from '../../../storage/messages/lists.ts'
import { Problem } from '../../kernel/problem.ts'
import { canSeeChannel } from '../../visibility/policy.ts'

/**
 * Returns the id of an inserted message; null stands for one whose external id another message has. Throws 409
 * `external_id_taken`, which names that message to those who may see it.
 */
export const requireInserted = async (
  { tx, actor }: Context,
  id: string | null | undefined,
  externalId: string | undefined,
): Promise<string> => {
  if (typeof id === 'string') return id
  const other =
    externalId === undefined ? undefined : await findMessageByExternalId(tx, actor.workspace.id, externalId)
  const shown = other && canSeeChannel(actor, other.channel_id) ? `Message ${other.id}` : 'Another message'
  const fix = 'Read it by its external_id, or send another one.'
  throw new Problem('conflict', `${shown} has the external id ${externalId}. Nothing was sent. ${fix}`, {
    reason: 'external_id_taken',
    errors: [
      {
        pointer: '#/external_id',
        code: 'external_id_taken',
        detail: `is that of ${shown === 'Another message' ? 'another message' : `message ${other!.id}`}`,
        fix,
      },
    ],
  })
}

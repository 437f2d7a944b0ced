import type { Context } from '../../handler.ts'
import { lockContactLimit, loadCounter } from '../../../storage/workspace/counters.ts'
import { Problem } from '../../kernel/problem.ts'

/**
 * Throws 403 `contact_limit` when the plan allows no further contact. Until the transaction ends, no other
 * call can add one.
 */
export const requireRoomForContact = async ({
  tx,
  actor: { workspace },
}: Pick<Context, 'tx' | 'actor'>): Promise<void> => {
  if (workspace.contactLimit === null) return
  await lockContactLimit(tx, workspace.id)
  if ((await loadCounter(tx, workspace.id, 'contacts')) >= workspace.contactLimit)
    throw contactLimitReached(workspace.contactLimit)
}

export const contactLimitReached = (limit: number): Problem =>
  new Problem('forbidden', `The plan allows ${limit} contacts, and the workspace already has that many.`, {
    reason: 'contact_limit',
    limit,
  })

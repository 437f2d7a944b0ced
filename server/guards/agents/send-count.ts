import type { Operation } from '../../../catalog/index.ts'
import { releaseSend, takeSend } from '../../../storage/agents/policy.ts'
import type { AttemptEnding } from '../../kernel/guard.ts'
import { isOutcomeUnknown } from '../../kernel/open-outcomes.ts'
import type { App } from '../../app.ts'
import type { Actor } from '../../kernel/context.ts'
import { Problem } from '../../kernel/problem.ts'

/**
 * Its messages are more than an hour may have, and go on after the hours: where these are bounded, a person sees how
 * many there are. They are counted as its job sends them.
 */
export const SENDS_MANY = 'messaging_send_bulk'

/** The count of one send against `sends_per_hour` of the policy of an agent's key. */
export type SendCount = {
  /** Counts the send, within the limit or beyond it. Returns false when the limit is reached. */
  take: (isLimited: boolean) => Promise<boolean>
  /** Takes the count back where the call sent nothing. Where nobody knows, the send counts. */
  keepIfSent: (ending: AttemptEnding) => Promise<void>
}

const mayBeSent = (error: unknown): boolean =>
  !(error instanceof Problem) || error.leavesOpen || error.status === 500 || isOutcomeUnknown(error)

export const createSendCount = ({ db }: App, { workspace, key }: Actor, op: Operation): SendCount => {
  const limit = key.policy?.bounds.sends_per_hour
  const isCounted = op.confirm === 'send' && op.name !== SENDS_MANY && limit !== undefined
  let takenAt: string | undefined
  const release = async (): Promise<void> => {
    if (takenAt !== undefined) await releaseSend(db, workspace.id, key.familyId, takenAt)
    takenAt = undefined
  }
  return {
    take: async (isLimited) => {
      if (!isCounted) return true
      takenAt = await takeSend(db, workspace.id, key.familyId, isLimited ? limit : null)
      return takenAt !== undefined
    },
    keepIfSent: async ({ result, error }) => {
      if (result ? result.status >= 400 : !mayBeSent(error)) await release()
    },
  }
}

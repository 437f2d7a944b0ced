import type { Operation } from '../../../catalog/index.ts'
import { Problem } from '../problem.ts'

/** Whether the operation's verb was given. */
export const isConfirmed = (op: Operation, given: string | undefined): boolean =>
  op.confirm !== undefined && given?.trim().toLowerCase() === op.confirm

/** Changes that cannot be undone, or that customers see, want the operation's verb. */
export const requireConfirm = (op: Operation, given: string | undefined): void => {
  if (op.confirm === undefined || isConfirmed(op, given)) return
  const detail =
    given === undefined
      ? `Send Api-Confirm: ${op.confirm}.`
      : `Api-Confirm must be "${op.confirm}", not "${given.slice(0, 40)}".`
  throw new Problem('confirm_required', detail, { confirm: op.confirm })
}

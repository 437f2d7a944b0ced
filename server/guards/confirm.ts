import type { Operation } from '../../catalog/index.ts'
import { Problem } from '../kernel/problem.ts'

export const normalizeConfirm = (given: string): string => given.trim().toLowerCase()

/** True when the operation's verb was sent. */
export const isConfirmed = (op: Operation, given: string | undefined): boolean =>
  op.confirm !== undefined && given !== undefined && normalizeConfirm(given) === op.confirm

/** Throws 428 when a change that cannot be undone, or that customers see, lacks the operation's verb. */
export const requireConfirm = (op: Operation, given: string | undefined): void => {
  if (op.confirm === undefined || isConfirmed(op, given)) return
  const detail =
    given === undefined
      ? `Send Api-Confirm: ${op.confirm}.`
      : `Api-Confirm must be "${op.confirm}", not "${given.slice(0, 40)}".`
  throw new Problem('confirm_required', detail, { confirm: op.confirm })
}

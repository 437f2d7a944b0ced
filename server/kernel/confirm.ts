import type { Operation } from '../../catalog/index.ts'

export const normalizeConfirm = (given: string): string => given.trim().toLowerCase()

/** True when the operation's verb was sent. */
export const isConfirmed = (op: Operation, given: string | undefined): boolean =>
  op.confirm !== undefined && given !== undefined && normalizeConfirm(given) === op.confirm

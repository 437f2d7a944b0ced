import { createHash } from 'node:crypto'
import { canonicalJson } from '../../kernel/cursors.ts'

/** Returns a digest of a call by filter, whether it is sent with a plan or not. */
export const digestTarget = (operation: string, input: Record<string, unknown>): Buffer => {
  const { plan_id: _planId, ...call } = input
  return createHash('sha256')
    .update(canonicalJson([operation, call]))
    .digest()
}

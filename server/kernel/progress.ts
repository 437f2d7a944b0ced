import type { CallContext } from './context.ts'
import { Problem } from './problem.ts'

/**
 * Tells whoever waits for a call how far it is, from 0 to 1. Throws when they have cancelled it: everything is rolled
 * back.
 */
export const reportProgress = ({ call: { watch } }: Pick<CallContext, 'call'>, share: number): void => {
  if (watch?.signal.aborted)
    throw new Problem(
      'upstream_unavailable',
      'The client cancelled the call before it was done. Nothing was changed.',
      { reason: 'call_cancelled' },
    )
  watch?.reached?.(share)
}

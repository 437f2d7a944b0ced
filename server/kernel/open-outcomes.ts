import type { ErasedExternalHandler } from './handler.ts'
import { Problem } from './problem.ts'

/**
 * Reasons of `upstream_unavailable` that say that a call did not reach the outside.
 */
const NOT_DONE_REASONS = new Set<unknown>(['throttled', 'unreachable'])

/**
 * Whether a call that failed with this problem may have done its work nevertheless. If so, the outcome must
 * be looked up before the call is made again.
 */
export const isOutcomeUnknown = (problem: Problem): boolean =>
  problem.code === 'timeout' ||
  (problem.code === 'upstream_unavailable' && !NOT_DONE_REASONS.has(problem.extras.reason))

/**
 * Marks a problem whose row of the audit trail is written with its stored response, or will be when the outcome of a
 * call is known.
 */
export const markAudited = (problem: Problem): void => {
  problem.isAudited = true
}

/** Seconds after which a repeat may know more. */
const RETRY_AFTER = { 'Retry-After': '5' }

export const timeoutProblem = (): Problem =>
  new Problem(
    'timeout',
    'The messaging provider did not answer in time. Retry with the same Idempotency-Key; it never runs twice.',
  )

/**
 * Returns the problem of a call whose outcome stays open: it has the reason `outcome_unknown`, unless it says
 * that the call was put off after an earlier one. Its audit row is written by whoever completes the call.
 */
export const answerOpen = (
  { code, message, extras, headers }: Problem,
  { openDetail = message }: Pick<ErasedExternalHandler, 'openDetail'>,
): Problem => {
  const reason = NOT_DONE_REASONS.has(extras.reason) ? extras.reason! : 'outcome_unknown'
  const open = new Problem(code, openDetail, { ...extras, reason }, { ...RETRY_AFTER, ...headers })
  open.leavesOpen = true
  markAudited(open)
  return open
}

/** The final answer of a call that nobody has confirmed for a day. */
export const notConfirmedProblem = (): Problem =>
  new Problem(
    'conflict',
    'The messaging provider has not confirmed the call within 24 hours, so it counts as failed. ' +
      'Make it again with a new Idempotency-Key if it is still wanted.',
    { reason: 'not_confirmed' },
  )

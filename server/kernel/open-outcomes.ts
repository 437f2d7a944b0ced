import { markAudited } from '../guards/audit/record.ts'
import { NOT_DONE_REASONS } from '../provider/port.ts'
import type { ExternalHandler } from './handler.ts'
import { Problem } from './problem.ts'

/** Seconds after which a repeat may know more. */
const RETRY_AFTER = { 'Retry-After': '5' }

export const timeoutProblem = (): Problem =>
  new Problem(
    'timeout',
    'The messaging provider did not answer in time. Retry with the same Idempotency-Key; it never runs twice.',
  )

/**
 * Returns the problem of a call whose outcome stays open: it has the reason `outcome_unknown`, unless it says
 * that the call was put off after an earlier one. A call that is never made again answers 504 whatever
 * happened. Its audit row is written by whoever completes the call.
 */
export const answerOpen = (
  { code, message, extras, headers }: Problem,
  { mayRepeat, openDetail = message }: ExternalHandler<unknown>,
): Problem => {
  const reason = NOT_DONE_REASONS.has(extras.reason) ? extras.reason! : 'outcome_unknown'
  const open = new Problem(
    mayRepeat ? code : 'timeout',
    openDetail,
    { ...extras, reason },
    { ...RETRY_AFTER, ...headers },
  )
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

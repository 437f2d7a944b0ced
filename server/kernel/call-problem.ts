import type { Operation } from '../../catalog/index.ts'
import type { Kernel } from './kernel.ts'
import { isDiskFullError, noteDiskFull } from './disk-full.ts'
import { Problem } from './problem.ts'
import { toDatabaseProblem } from './deadline.ts'
import { errorLogDetails } from './log-details.ts'
import { getHandler } from './write-call.ts'

type FailedCall = { operation: Operation | undefined; requestId: string }

/** For a connection that was lost may have been so after the change was made. */
const OUTCOME_UNKNOWN =
  ' Whether the change was made is not known: retry with the same Idempotency-Key, which is also in the ' +
  'header of this response. It never runs twice.'

/** True when the database refused for its full disk what is one transaction: nothing was changed. */
const isRolledBack = (app: Kernel, { operation }: FailedCall, error: unknown): boolean =>
  isDiskFullError(error) &&
  (error as { severity?: string }).severity === 'ERROR' &&
  operation !== undefined &&
  typeof getHandler(app, operation) === 'function'

/** Returns the problem of an error that a call threw; logs one that nobody expected. */
export const toProblem = (
  app: Kernel,
  call: FailedCall,
  error: unknown,
  { begun, dryRun }: { begun: boolean; dryRun: boolean },
): Problem => {
  if (error instanceof Problem) return error
  const known = toDatabaseProblem(error)
  if (!noteDiskFull(app, error))
    app.log[known ? 'warn' : 'error'](
      {
        request_id: call.requestId,
        operation: call.operation?.name,
        cause: errorLogDetails(error),
      },
      'Call failed',
    )
  const problem =
    known ?? new Problem('internal_error', 'The server failed unexpectedly; report the request_id.')
  const { code, message, extras, headers } = problem
  const isUnknown =
    begun &&
    !dryRun &&
    !isRolledBack(app, call, error) &&
    (code === 'upstream_unavailable' || code === 'internal_error')
  if (!isUnknown) return problem
  const open = new Problem(code, message + OUTCOME_UNKNOWN, extras, headers)
  open.leavesOpen = true
  return open
}

/** Returns the problem with the key under which a repeat tells what became of the change, if that is open. */
export const withOpenKey = (problem: Problem, { key }: { key?: string }): Problem => {
  const { code, message, extras, headers } = problem
  const isOpen = problem.leavesOpen || code === 'timeout' || extras.reason === 'still_running'
  return isOpen && key !== undefined
    ? new Problem(code, message, { ...extras, idempotency_key: key }, headers)
    : problem
}

import type { ErrorCode } from '../../catalog/errors.ts'
import { currentVersion, type Operation } from '../../catalog/index.ts'
import { type CallTrace, normalizeClientName } from '../audit/entry.ts'
import { recordFailure } from '../audit/record.ts'
import type { App } from './app.ts'
import type { Actor, Transport } from './context.ts'
import { createContext } from './create-context.ts'
import { dryRun } from './dry-run.ts'
import { execute } from './execute.ts'
import type { LocalHandler } from './handler.ts'
import { type FieldError, Problem } from './problem.ts'
import { type CallResponse, toProblemResult } from './respond.ts'
import { authenticate } from './steps/authenticate.ts'
import { isConfirmed, requireConfirm } from './steps/confirm.ts'
import { describeDatabaseError, toDatabaseProblem, withDeadline } from './steps/deadline.ts'
import { requireApiAccess, requireScope, resolveApiVersion } from './steps/entitle.ts'
import { parseIdempotencyKey } from './steps/idempotency.ts'
import { peekLimits, takeToken } from './steps/rate-limit.ts'
import { validate } from './steps/validate.ts'
import { type ExecutionResult, getSuccessStatus } from './write-call.ts'

/** One request, as every transport passes it in. */
export type CallRequest = {
  transport: Transport
  /** Undefined when the transport found no such route or operation. */
  operation: Operation | undefined
  /** The name of the route or operation that was requested, for the 404. */
  requestedName?: string
  /**
   * The raw input, with `dry_run`. A function when parsing it can fail; it is called at the validation step,
   * so that errors keep their order.
   */
  input: unknown
  requestId: string
  /** The whole `Authorization` header. */
  authorization: string | undefined
  apiVersion?: string | undefined
  idempotencyKey?: string | undefined
  confirm?: string | undefined
  client?: string | undefined
  /** Translates where an error points into the terms of the transport; JSON Pointers when absent. */
  locateError?: ((error: FieldError) => FieldError) | undefined
}

const READ_DEADLINE_MS = 15_000

/** Runs a call through every step, in this order (contract 2). Never throws. */
export const perform = async (app: App, call: CallRequest): Promise<CallResponse> => {
  const startedAt = performance.now()
  const headers: Record<string, string> = {
    'Content-Type': 'application/json; charset=utf-8',
    'Request-Id': call.requestId,
    'Api-Version': currentVersion,
  }
  const progress: Progress = { dryRun: false, limited: false, begun: false }
  const response = await respond(app, call, headers, progress)
  const operation = call.operation?.name ?? 'unknown'
  app.metrics.calls.inc({ operation, door: call.transport, code: response.problem?.code ?? 'ok' })
  app.metrics.duration.observe({ operation }, (performance.now() - startedAt) / 1000)
  return response
}

/**
 * How far a call came, for the audit trail: `limited` when the rate limit let it pass, `begun` when a change
 * was tried.
 */
type Progress = {
  actor?: Actor
  input?: Record<string, unknown>
  dryRun: boolean
  limited: boolean
  begun: boolean
}

const respond = async (
  app: App,
  call: CallRequest,
  headers: Record<string, string>,
  progress: Progress,
): Promise<CallResponse> => {
  try {
    const result = await runSteps(app, call, headers, progress)
    if (result.replayed) headers['Idempotent-Replayed'] = 'true'
    return result.status < 400
      ? { status: result.status, headers, body: result.body }
      : toErrorResponse(app, call, result.problem ?? parseStoredProblem(result.body), headers)
  } catch (error) {
    const problem = toProblem(app, call, error)
    const { actor, input, dryRun } = progress
    if (actor && call.operation)
      await recordFailure(
        app,
        { actor, op: call.operation, trace: toTrace(call), input, dryRun },
        problem,
        progress,
      )
    return toErrorResponse(app, call, problem, headers)
  }
}

const toTrace = ({ transport, client, requestId, operation, confirm }: CallRequest): CallTrace => ({
  door: transport,
  client: normalizeClientName(client),
  requestId,
  confirmed: operation !== undefined && isConfirmed(operation, confirm),
})

const parseInput = (input: CallRequest['input']): unknown =>
  typeof input === 'function' ? (input as () => unknown)() : input

const runSteps = async (
  app: App,
  call: CallRequest,
  headers: Record<string, string>,
  progress: Progress,
): Promise<ExecutionResult> => {
  const actor = await authenticate(app, call.authorization)
  progress.actor = actor
  const kind = call.operation && call.operation.scope !== 'mcp:read' ? 'write' : 'read'
  Object.assign(headers, peekLimits(app, actor, kind))
  requireApiAccess(actor)
  headers['Api-Version'] = resolveApiVersion(actor, call.apiVersion)
  const op = call.operation
  if (!op)
    throw new Problem(
      'not_found',
      `There is no ${call.requestedName ?? 'such operation'}. ${app.config.publicUrl}/docs lists them all.`,
    )
  requireScope(actor, op)
  Object.assign(headers, await takeToken(app, actor, kind))
  progress.limited = true
  const { input, dryRun: dryRunRequested } = validate(op, parseInput(call.input))
  if (op.scope === 'mcp:read') return await executeRead(app, actor, op, input)
  // Test keys change nothing.
  const isDryRun = dryRunRequested || actor.key.test
  const trace = toTrace(call)
  Object.assign(progress, { input, dryRun: isDryRun, begun: isDryRun })
  if (isDryRun) return await dryRun(app, { actor, op, input, trace })
  const key = parseIdempotencyKey(op, call.idempotencyKey)
  headers['Idempotency-Key'] = key
  requireConfirm(op, call.confirm)
  progress.begun = true
  return await execute(app, { actor, op, input, trace, key, fresh: call.idempotencyKey === undefined })
}

const executeRead = async (
  app: App,
  actor: Actor,
  op: Operation,
  input: Record<string, unknown>,
): Promise<ExecutionResult> => {
  const handler = app.handlers[op.name] as unknown as LocalHandler<unknown>
  const ctx = createContext(app, { tx: app.db, actor, op, input })
  const output = await withDeadline(READ_DEADLINE_MS, handler(ctx, input))
  return { status: getSuccessStatus(op), body: JSON.stringify(output) }
}

const parseStoredProblem = (body: string): Problem => {
  const { code, detail, extras } = JSON.parse(body) as {
    code: ErrorCode
    detail: string
    extras: Problem['extras']
  }
  return new Problem(code, detail, extras)
}

const toProblem = (app: App, call: CallRequest, error: unknown): Problem => {
  if (error instanceof Problem) return error
  const known = toDatabaseProblem(error)
  app.log[known ? 'warn' : 'error'](
    {
      request_id: call.requestId,
      operation: call.operation?.name,
      cause: describeDatabaseError(error),
    },
    'Call failed',
  )
  return (
    known ??
    new Problem(
      'internal_error',
      'The server failed unexpectedly; nothing was changed. Retry with the same ' +
        'Idempotency-Key, or report the request_id.',
    )
  )
}

const toErrorResponse = (
  app: App,
  { locateError, requestId }: CallRequest,
  problem: Problem,
  headers: Record<string, string>,
): CallResponse => {
  const { errors } = problem.extras
  const located =
    errors && locateError
      ? new Problem(
          problem.code,
          problem.message,
          { ...problem.extras, errors: errors.map(locateError) },
          problem.headers,
        )
      : problem
  return toProblemResult(located, {
    publicUrl: app.config.publicUrl,
    requestId,
    headers: { ...headers, ...problem.headers },
  })
}

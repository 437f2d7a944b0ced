import { type Call, type CallRequest, toTrace, type ExecutionResult } from './call.ts'
import type { ErrorCode } from '../../catalog/errors.ts'
import { currentVersion, type Operation } from '../../catalog/index.ts'
import { isClientGone } from '../../storage/client/client-presence.ts'
import { callChannel } from '../diagnostics-channels.ts'
import { requireApiAccess, requireOperation } from './access.ts'
import { authenticate } from './authenticate.ts'
import { toProblem, withOpenKey } from './call-problem.ts'
import type { Actor } from './context.ts'
import { createCallDeadline } from './deadline.ts'
import { dryRun } from './dry-run.ts'
import { execute } from './execute.ts'
import { type Admission, type AttemptEnding, type Incoming, listGuards, guardOutcome } from './guard.ts'
import { parseIdempotencyKey } from './idempotency.ts'
import type { Kernel } from './kernel.ts'
import { logCall } from './log-call.ts'
import { errorLogDetails } from './log-details.ts'
import { Problem } from './problem.ts'
import { read } from './read.ts'
import { CLIENT_GONE_STATUS, type CallResponse, getResultCode, toProblemResult } from './respond.ts'
import { validate } from './validate.ts'

const READ_DEADLINE_MS = 15_000
/** The response to a change follows within 30 seconds, of which one is for the audit row of a failure. */
const WRITE_DEADLINE_MS = 29_000
/** An operation that waits for something does so for as long at most. */
const MAX_WAIT_MS = 30_000

/** Runs a call from a door to its answer. Never throws. */
export const perform = (app: Kernel, call: CallRequest): Promise<CallResponse> =>
  callChannel.tracePromise(() => performCall(app, call), { call })

const performCall = async (app: Kernel, given: CallRequest): Promise<CallResponse> => {
  const startedAt = performance.now()
  const request = { ...given }
  const state: CallState = {
    request,
    headers: {
      'Content-Type': 'application/json; charset=utf-8',
      'Request-Id': request.requestId,
      'Api-Version': currentVersion,
    },
    progress: { limited: false, understood: false, begun: false },
  }
  const response = await respond(app, state)
  const operation = request.operation?.name ?? 'unknown'
  app.metrics.calls.inc({ operation, door: request.transport, code: getResultCode(response) })
  const ms = performance.now() - startedAt
  app.metrics.duration.observe({ operation }, ms / 1000)
  logCall(app, request, response, { actor: state.actor, dryRun: state.call?.dryRun ?? false, ms })
  return response
}

/** How far a call has come. */
type CallState = {
  readonly request: CallRequest
  readonly headers: Record<string, string>
  readonly progress: NonNullable<Call['progress']>
  actor?: Actor
  call?: Call
}

const respond = async (app: Kernel, state: CallState): Promise<CallResponse> => {
  const { headers } = state
  try {
    const result = await answer(app, state)
    Object.assign(headers, result.headers)
    if (result.replayed) headers['Idempotent-Replayed'] = 'true'
    if (result.status >= 400)
      return toErrorResponse(app, state, result.problem ?? parseStoredProblem(result.body))
    const { status, body, isPlanned = false, version } = result
    return { status, headers, body, isPlanned, version }
  } catch (error) {
    if (isClientGone(error)) return { status: CLIENT_GONE_STATUS, headers, body: '' }
    return toErrorResponse(app, state, withOpenKey(await settleProblem(app, state, error), state.call ?? {}))
  }
}

/** Returns the problem that an error is answered with, which the guards may replace. */
const settleProblem = async (app: Kernel, state: CallState, thrown: unknown): Promise<Problem> => {
  const { request, actor, progress } = state
  const isDryRun = state.call?.dryRun ?? false
  const toKnown = (error: unknown) =>
    toProblem(app, request, error, { begun: progress.begun, dryRun: isDryRun })
  const problem = toKnown(thrown)
  const op = request.operation
  if (!actor || !op) return problem
  const call = state.call ?? { actor, op, input: {}, trace: toTrace(request), progress }
  const guardAs = (problem: Problem, thrown: unknown) =>
    guardOutcome(app, call, { kind: 'failed', db: app.db, problem, thrown })
  try {
    await guardAs(problem, thrown)
    return problem
  } catch (error) {
    const replaced = toKnown(error)
    await guardAs(replaced, error)
    return replaced
  }
}

/** The main line: who calls, may they, what do they ask, and what is the answer. */
const answer = async (app: Kernel, state: CallState): Promise<ExecutionResult> => {
  const { request, headers, progress } = state
  const kind = request.operation && request.operation.scope !== 'mcp:read' ? 'write' : 'read'
  const inTime = createCallDeadline(getDeadline(kind, request.operation))
  const actor = await inTime(() => authenticate(app, request.authorization, request))
  state.actor = actor
  const admission: Admission = { request, actor, kind, headers }
  await inTime(async () => {
    for (const guard of app.guards) await guard.admit?.(app, admission)
  })
  const op = requireOperation(app, request)
  progress.limited = true
  if (request.readInput) Object.assign(request, await request.readInput(actor))
  const { input, dryRun: dryRunRequested } = validate(op, request.input)
  // Test keys change nothing.
  const isDryRun = kind === 'write' && (dryRunRequested || actor.key.test)
  const base: Call = {
    actor,
    op,
    input,
    trace: toTrace(request),
    dryRun: isDryRun,
    plan: request.plan,
    watch: request.watch,
    request,
    progress,
    ...(request.person?.said === 'yes' ? { consent: { by: 'client' } } : {}),
  }
  // A change is tried from its confirmation on (guards/confirm.ts).
  Object.assign(progress, { understood: true, begun: isDryRun })
  state.call = base
  if (kind === 'read' || isDryRun) return await inTime(() => attempt(app, { ...base, ...admission }))
  const key = parseIdempotencyKey(op, request.idempotencyKey)
  headers['Idempotency-Key'] = key
  state.call = { ...base, key, fresh: request.idempotencyKey === undefined }
  return await inTime(() => change(app, { ...state.call!, ...admission }))
}

/** Makes a change; once more where a guard has nothing to answer in its place by now (`instead`). */
const change = async (app: Kernel, call: Omit<Incoming, 'onEnd'>): Promise<ExecutionResult> => {
  for (;;) {
    const result = await attempt(app, call)
    const replaced = result.instead ? await result.instead() : result
    if (replaced) return replaced
  }
}

/** Answers a call, unless a guard does. */
const attempt = async (app: Kernel, given: Omit<Incoming, 'onEnd'>): Promise<ExecutionResult> => {
  const ends: ((ending: AttemptEnding) => unknown)[] = []
  const call: Incoming & { work?: Promise<unknown> } = { ...given, onEnd: (end) => ends.push(end) }
  const { op, request } = call
  const run = async (): Promise<ExecutionResult> => {
    for (const guard of listGuards(app, call)) {
      const answered = await guard.before?.(app, call)
      if (answered) return answered
    }
    if (op.scope === 'mcp:read')
      return await read(app, call, async () =>
        requireApiAccess(await authenticate(app, request.authorization, request), request.address),
      )
    if (call.dryRun) return await dryRun(app, call)
    const result = await execute(app, { ...call, key: call.key! })
    return result.instead || !app.settlers[op.name] ? result : await settle(app, call, result)
  }
  let ending: AttemptEnding = {}
  try {
    const result = await run()
    ending = { result }
    return result
  } catch (error) {
    ending = { error }
    throw error
  } finally {
    for (const end of ends.reverse()) await end({ ...ending, ...(call.work ? { work: call.work } : {}) })
  }
}

/** Completes the answer of a change that is done, whatever becomes of this. */
const settle = async (
  app: Kernel,
  { actor, op, input, trace }: Call,
  result: ExecutionResult,
): Promise<ExecutionResult> => {
  if (result.status >= 300) return result
  const settler = app.settlers[op.name]!
  try {
    return {
      ...result,
      body: JSON.stringify(await settler(app, actor, input as never, JSON.parse(result.body) as never)),
    }
  } catch (error) {
    app.log.error(
      { request_id: trace.requestId, operation: op.name, ...errorLogDetails(error) },
      'Cannot complete the answer of a change',
    )
    return result
  }
}

const getDeadline = (kind: 'read' | 'write', op: Operation | undefined): number =>
  kind === 'write' ? WRITE_DEADLINE_MS : READ_DEADLINE_MS + (op?.waits ? MAX_WAIT_MS : 0)

const parseStoredProblem = (body: string): Problem => {
  const { code, detail, extras } = JSON.parse(body) as {
    code: ErrorCode
    detail: string
    extras: Problem['extras']
  }
  return new Problem(code, detail, extras)
}

const toErrorResponse = (
  app: Kernel,
  { request: { locateError, requestId }, headers }: CallState,
  problem: Problem,
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

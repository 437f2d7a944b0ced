import { type ErrorCode } from '../../catalog/errors.ts'
import { currentVersion, type Operation } from '../../catalog/index.ts'
import type { App } from '../app.ts'
import { clientName } from '../audit/entry.ts'
import { tellProblem } from '../audit/record.ts'
import type { Actor, Door } from './context.ts'
import type { Handler } from './handler.ts'
import { type FieldError, Problem, problemDocument, type ProblemDocument } from './problem.ts'
import { authenticate } from './steps/authenticate.ts'
import { change, contextOf, type Outcome, rehearse, successStatus } from './execute.ts'
import { isConfirmed, requireConfirm } from './steps/confirm.ts'
import { databaseProblem, withDeadline } from './steps/deadline.ts'
import { chooseVersion, entitle, requireScope } from './steps/entitle.ts'
import { idempotencyKey } from './steps/idempotency.ts'
import { peekLimits, takeToken } from './steps/rate-limit.ts'
import { validate } from './steps/validate.ts'

/** One request, as every door hands it in. */
export type Call = {
  door: Door
  /** What is asked for; undefined when the door found no such route or operation. */
  operation: Operation | undefined
  /** What the door was asked for, for the 404. */
  asked?: string
  /**
   * The raw input, with `dry_run`. A function when reading it can fail; it is called where validation
   * stands in the order of checks.
   */
  input: unknown | (() => unknown)
  requestId: string
  /** The `Authorization` header, whole. */
  authorization: string | undefined
  apiVersion?: string | undefined
  idempotencyKey?: string | undefined
  confirm?: string | undefined
  client?: string | undefined
  /** Says how this door points at a field; JSON Pointers when absent. */
  locate?: ((error: FieldError) => FieldError) | undefined
}

/** What a door sends: a status, headers and JSON text. `problem` is the parsed body of a refusal. */
export type Answer = {
  status: number
  headers: Record<string, string>
  body: string
  problem?: ProblemDocument
}

const READ_DEADLINE_MS = 15_000

/** Every call takes these steps, in this order (contract 2). It never throws. */
export const perform = async (app: App, call: Call): Promise<Answer> => {
  const started = performance.now()
  const headers: Record<string, string> = {
    'Content-Type': 'application/json; charset=utf-8',
    'Request-Id': call.requestId,
    'Api-Version': currentVersion,
  }
  let answer: Answer
  const progress: Progress = { dryRun: false, limited: false, begun: false }
  try {
    const outcome = await steps(app, call, headers, progress)
    if (outcome.replayed) headers['Idempotent-Replayed'] = 'true'
    answer =
      outcome.status < 400
        ? { status: outcome.status, headers, body: outcome.body }
        : refusal(app, call, outcome.problem ?? storedProblem(outcome.body), headers)
  } catch (error) {
    const problem = asProblem(app, call, error)
    const { actor, input, dryRun } = progress
    if (actor && call.operation)
      await tellProblem(
        app,
        { actor, op: call.operation, trace: traceOf(call), input, dryRun },
        problem,
        progress,
      )
    answer = refusal(app, call, problem, headers)
  }
  const operation = call.operation?.name ?? 'unknown'
  app.metrics.calls.inc({ operation, door: call.door, code: answer.problem?.code ?? 'ok' })
  app.metrics.duration.observe({ operation }, (performance.now() - started) / 1000)
  return answer
}

/**
 * How far a call came, for the audit trail: `limited` when the rate limit let it pass, `begun` when a
 * change was tried.
 */
type Progress = {
  actor?: Actor
  input?: Record<string, unknown>
  dryRun: boolean
  limited: boolean
  begun: boolean
}

const traceOf = ({ door, client, requestId, operation, confirm }: Call) => ({
  door,
  client: clientName(client),
  requestId,
  confirmed: operation !== undefined && isConfirmed(operation, confirm),
})

const steps = async (
  app: App,
  call: Call,
  headers: Record<string, string>,
  progress: Progress,
): Promise<Outcome> => {
  const actor = await authenticate(app, call.authorization)
  progress.actor = actor
  const kind = call.operation && call.operation.scope !== 'mcp:read' ? 'write' : 'read'
  Object.assign(headers, peekLimits(app, actor, kind))
  entitle(actor)
  headers['Api-Version'] = chooseVersion(actor, call.apiVersion)
  const op = call.operation
  if (!op)
    throw new Problem(
      'not_found',
      `There is no ${call.asked ?? 'such operation'}. ${app.config.publicUrl}/docs lists what there is.`,
    )
  requireScope(actor, op)
  Object.assign(headers, await takeToken(app, actor, kind))
  progress.limited = true
  const { input, dryRun: asked } = validate(
    op,
    typeof call.input === 'function' ? (call.input as () => unknown)() : call.input,
  )
  if (op.scope === 'mcp:read') return await read(app, actor, op, input)
  const [dryRun, trace] = [asked || actor.key.test, traceOf(call)]
  Object.assign(progress, { input, dryRun, begun: dryRun })
  if (dryRun) return await rehearse(app, { actor, op, input, trace })
  const key = idempotencyKey(op, call.idempotencyKey)
  headers['Idempotency-Key'] = key
  requireConfirm(op, call.confirm)
  progress.begun = true
  return await change(app, { actor, op, input, trace, key, fresh: call.idempotencyKey === undefined })
}

const read = async (
  app: App,
  actor: Actor,
  op: Operation,
  input: Record<string, unknown>,
): Promise<Outcome> => {
  const handler = app.handlers[op.name] as unknown as Handler<unknown>
  const output = await withDeadline(
    READ_DEADLINE_MS,
    handler(contextOf(app, app.db, actor, op, input, false), input),
  )
  return { status: successStatus(op), body: JSON.stringify(output) }
}

/** A refusal that was kept for retries. */
const storedProblem = (body: string): Problem => {
  const { code, detail, extras } = JSON.parse(body) as {
    code: ErrorCode
    detail: string
    extras: Problem['extras']
  }
  return new Problem(code, detail, extras)
}

const asProblem = (app: App, call: Call, error: unknown): Problem => {
  if (error instanceof Problem) return error
  const known = databaseProblem(error)
  // The text of a database error can quote a row, phone numbers included: only its code and place are logged.
  const {
    code,
    table_name: table,
    constraint_name: constraint,
    routine,
    stack,
  } = error as Record<string, string | undefined>
  const cause = code ? { code, table, constraint, routine } : { stack }
  app.log[known ? 'warn' : 'error'](
    { request_id: call.requestId, operation: call.operation?.name, cause },
    'call failed',
  )
  return (
    known ??
    new Problem(
      'internal_error',
      'The server failed in a way it did not foresee; nothing was changed. Retry with the same Idempotency-Key, or report the request_id.',
    )
  )
}

const refusal = (app: App, call: Call, problem: Problem, headers: Record<string, string>): Answer => {
  const located =
    problem.extras.errors && call.locate
      ? new Problem(problem.code, problem.message, {
          ...problem.extras,
          errors: problem.extras.errors.map(call.locate),
        })
      : problem
  const document = problemDocument(located, app.config.publicUrl, call.requestId)
  return {
    status: problem.status,
    body: JSON.stringify(document),
    problem: document,
    headers: { ...headers, ...problem.headers, 'Content-Type': 'application/problem+json' },
  }
}

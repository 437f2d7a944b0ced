import type { ErrorCode } from '../../catalog/errors.ts'
import { currentVersion, type Operation } from '../../catalog/index.ts'
import {
  clientGoneError,
  type ClientPresence,
  isClientGone,
  readFor,
} from '../../storage/client/client-presence.ts'
import type { Db } from '../../storage/database.ts'
import { waitAtMost } from '../../storage/client/wait-at-most.ts'
import { normalizeClientName } from '../guards/audit/entry.ts'
import { recordFailure } from '../guards/audit/record.ts'
import { businessTime } from '../clock.ts'
import type { App } from './app.ts'
import { toProblem, withOpenKey } from './call-problem.ts'
import type { Actor, CallWatch, Transport, CallTrace } from './context.ts'
import { createContext } from './create-context.ts'
import { dryRun } from './dry-run.ts'
import { execute, refuse } from './execute.ts'
import type { LocalHandler } from './handler.ts'
import { logCall } from './log-call.ts'
import { errorLogDetails } from './log-details.ts'
import { type FieldError, Problem } from './problem.ts'
import { CLIENT_GONE_STATUS, type CallResponse, getResultCode, toProblemResult } from './respond.ts'
import { authenticate } from './authenticate.ts'
import { isConfirmed, requireConfirm } from '../guards/confirm.ts'
import { createCallDeadline } from './deadline.ts'
import { requireApiVersion } from './api-version.ts'
import { requireApiAccess, requireScope } from './entitle.ts'
import { type AgentCall, askAbout, askPerson } from '../guards/agents/approvals/ask.ts'
import { checkApprover } from '../guards/agents/approvals/check-approver.ts'
import { isHeavy, runHeavyRead, runInHeavyTurn } from '../guards/limits/heavy-reads.ts'
import { parseIdempotencyKey, toRunningKey } from './idempotency.ts'
import { mayRunUnasked, requireBounds, wouldAsk } from '../guards/agents/policy.ts'
import { readFromCurrent } from './replica-reads.ts'
import { createSendCount } from '../guards/agents/send-count.ts'
import { peekLimits, takeToken } from '../guards/limits/rate-limit.ts'
import { validate } from './validate.ts'
import { inTurnOf } from './turns.ts'
import { type ExecutionResult, getSuccessStatus } from './write-call.ts'
import { callChannel } from '../telemetry/channels.ts'
import { recordContactRead } from '../guards/audit/contact-reads.ts'
import { hasContactBudget, takeContacts } from '../visibility/contact-budget.ts'
import { listContactSubjects } from '../visibility/contact-subjects.ts'
import { parsePlan } from '../guards/snapshot/plan.ts'
import { takePhoneBudget } from '../visibility/phone-budget.ts'

/** What a body gives. */
export type CallInput = Pick<CallRequest, 'input'> &
  Partial<Pick<CallRequest, 'idempotencyKey' | 'confirm' | 'reason' | 'plan'>>

/** One request, as every transport passes it in. */
export type CallRequest = {
  transport: Transport
  /** Undefined when the transport found no such route or operation. */
  operation: Operation | undefined
  /** The name of the route or operation that was requested, for the 404. */
  requestedName?: string
  /** Finds the name that was probably meant instead. */
  findSimilarName?: () => string | undefined
  /** The raw input, with `dry_run`. */
  input: unknown
  /**
   * Reads the input where the door has not yet: at the validation step, so that errors keep their order and
   * nobody's body is read who may not send it. What it returns replaces those members of the call.
   */
  readInput?: ((actor: Actor) => Promise<CallInput>) | undefined
  requestId: string
  /** The whole `Authorization` header. */
  authorization: string | undefined
  apiVersion?: string | undefined
  idempotencyKey?: string | undefined
  confirm?: string | undefined
  /** The person behind the client said no there: the call never runs under this key. */
  declinedByClient?: boolean
  /** The input as the client sent it, where what it refers to is written out in `input` as a person was shown it. */
  asked?: Record<string, unknown>
  /** The person behind the client confirmed the call there; only where the policy of an agent's key takes that. */
  confirmedByClient?: boolean
  /** `show`: a dry run answers its plan. The token of a plan: the call does that, or is refused. */
  plan?: string | undefined
  /** Why an agent makes the call, for the person who decides on it. */
  reason?: string | undefined
  client?: string | undefined
  /** The client waits in a way that tells of progress and cancellation. */
  watch?: CallWatch | undefined
  /** Whether the client still waits: a read for one that is gone is given up. Always, when absent. */
  presence?: ClientPresence | undefined
  /** The client's address; undefined when the call came through no socket. */
  address: string | undefined
  /**
   * Writes the output of a read as the door shows it, as JSON text; or says how many rows of a list would fit,
   * which are then read again, so that the cursor continues after them. All of it as JSON when absent.
   */
  present?: ((output: unknown) => string | number) | undefined
  /** Translates where an error points into the terms of the transport; JSON Pointers when absent. */
  locateError?: ((error: FieldError) => FieldError) | undefined
}

const READ_DEADLINE_MS = 15_000
const AUDIT_DEADLINE_MS = 1_000
/** The response to a change follows within 30 seconds. */
const WRITE_DEADLINE_MS = 30_000 - AUDIT_DEADLINE_MS

/** An operation that waits for something does so for as long at most. */
const MAX_WAIT_MS = 30_000

/** Runs a call through every step, in the order of docs/design.md. Never throws. */
export const perform = (app: App, call: CallRequest): Promise<CallResponse> =>
  callChannel.tracePromise(() => performCall(app, call), { call })

const performCall = async (app: App, request: CallRequest): Promise<CallResponse> => {
  const call = { ...request }
  const startedAt = performance.now()
  const headers: Record<string, string> = {
    'Content-Type': 'application/json; charset=utf-8',
    'Request-Id': call.requestId,
    'Api-Version': currentVersion,
  }
  const progress: Progress = { dryRun: false, limited: false, begun: false }
  const response = await respond(app, call, headers, progress)
  const operation = call.operation?.name ?? 'unknown'
  app.metrics.calls.inc({ operation, door: call.transport, code: getResultCode(response) })
  const ms = performance.now() - startedAt
  app.metrics.duration.observe({ operation }, ms / 1000)
  logCall(app, call, response, { actor: progress.actor, dryRun: progress.dryRun, ms })
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
  /** The idempotency key of a change that has begun. */
  key?: string
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
    if (result.approvalId) headers['Approval-Id'] = result.approvalId
    if (result.status >= 400)
      return toErrorResponse(app, call, result.problem ?? parseStoredProblem(result.body), headers)
    return {
      status: result.status,
      headers,
      body: result.body,
      isPlanned: result.isPlanned === true,
      version: result.version,
    }
  } catch (thrown) {
    if (isClientGone(thrown)) return { status: CLIENT_GONE_STATUS, headers, body: '' }
    const error = await countRefusal(app, call, thrown, progress)
    const problem = toProblem(app, call, error, progress)
    const { actor, input, dryRun } = progress
    if (actor && call.operation) {
      const audited = { actor, op: call.operation, trace: toTrace(call), input, dryRun }
      await waitAtMost(AUDIT_DEADLINE_MS, recordFailure(app, audited, problem, progress))
    }
    return toErrorResponse(app, call, withOpenKey(problem, progress), headers)
  }
}

/**
 * A refusal may tell of the contact that the input names, so it counts as an answer does for an AI agent's key.
 * Returns the error to answer.
 */
const countRefusal = async (
  app: App,
  { operation }: CallRequest,
  error: unknown,
  { actor, input }: Progress,
): Promise<unknown> => {
  if (!operation || !input || !actor || !hasContactBudget(actor) || !(error instanceof Problem)) return error
  if (error.extras.reason === 'contact_budget') return error
  try {
    await takeContacts(app, app.db, actor, listContactSubjects(operation, input))
    return error
  } catch (refusal) {
    return refusal
  }
}

export const toTrace = ({ transport, client, requestId, operation, confirm }: CallRequest): CallTrace => ({
  door: transport,
  client: normalizeClientName(client),
  requestId,
  confirmed: operation !== undefined && isConfirmed(operation, confirm),
})

const runSteps = async (
  app: App,
  call: CallRequest,
  headers: Record<string, string>,
  progress: Progress,
): Promise<ExecutionResult> => {
  const kind = call.operation && call.operation.scope !== 'mcp:read' ? 'write' : 'read'
  const inTime = createCallDeadline(getDeadline(kind, call.operation))
  const actor = await inTime(() => authenticate(app, call.authorization, call))
  progress.actor = actor
  // Terminals show times as the workspace has them, whose clock a sandbox may have moved.
  if (call.transport === 'cli') {
    headers['Workspace-Time-Zone'] = actor.workspace.timezone
    headers['Workspace-Time'] = businessTime(app, actor.workspace.id)
  }
  Object.assign(headers, peekLimits(app, actor, kind))
  requireApiAccess(actor, call.address)
  requireApiVersion(call.apiVersion)
  const op = call.operation
  if (!op) throw unknownOperationProblem(app, call)
  requireScope(actor, op)
  Object.assign(headers, await inTime(() => takeToken(app, actor, kind)))
  progress.limited = true
  if (call.readInput) Object.assign(call, await call.readInput(actor))
  const { input, dryRun: dryRunRequested } = validate(op, call.input)
  if (op.scope === 'mcp:read') {
    progress.input = actor.key.agent ? input : undefined
    return await inTime(() => executeRead(app, actor, op, input, call))
  }
  // Test keys change nothing.
  const isDryRun = dryRunRequested || actor.key.test
  const trace = toTrace(call)
  Object.assign(progress, { input, dryRun: isDryRun, begun: isDryRun })
  const expensive = isHeavy(op, input)
  const inTurn = <T>(work: () => Promise<T>) => inTime(() => runInHeavyTurn(app, actor, expensive, work))
  if (isApproval(op)) await inTime(() => checkApprover(app, actor, op, input))
  if (isDryRun) {
    if (actor.key.agent && (await inTime(() => wouldAsk(app, actor, op, input))))
      headers['Approval'] = 'required'
    const { watch, plan } = call
    const result = await inTurn(() => dryRun(app, { actor, op, input, trace, watch, plan }))
    if (result.askedFor) headers['Approval'] = 'required'
    return result
  }
  const plan = parsePlan(call.plan)
  const key = parseIdempotencyKey(op, call.idempotencyKey)
  headers['Idempotency-Key'] = key
  if (call.declinedByClient) {
    const asked = call.asked ? validate(op, call.asked).input : input
    return await inTime(() => refuse(app, { actor, op, input, trace, key }, asked))
  }
  if (!actor.key.agent) requireConfirm(op, call.confirm)
  Object.assign(progress, { begun: true, key })
  await inTime(() => takePhoneBudget(app, actor, op, input))
  const given = call.idempotencyKey !== undefined
  const asking = !mayRunUnasked(actor, call.confirmedByClient === true) && {
    mayAsk: true,
    requireStillAllowed: (tx: Db) => requireBounds(app, tx, actor, op, input),
  }
  const count = createSendCount(app, actor, op)
  const run = async (): Promise<ExecutionResult> => {
    const agentCall = toAgentCall(call, { actor, op, input, trace, key, given, plan })
    const asked = actor.key.agent ? await inTurn(() => askPerson(app, agentCall, count)) : undefined
    if (asked) return asked
    const executed = { actor, op, input, trace, key, plan, fresh: !given, watch: call.watch }
    const result = await inTurn(() => count.keepIfSent(() => execute(app, { ...executed, ...asking })))
    // The same call under its key may have run meanwhile: then it is answered again.
    if (result.askedFor) return (await inTurn(() => askAbout(app, agentCall, result))) ?? (await run())
    return app.settlers[op.name] ? await settle(app, { actor, op, input, trace }, result) : result
  }
  // A repeat finds what the first has become: it must not become a request of its own while that is under way.
  return actor.key.agent && given
    ? await inTime(() => inTurnOf(app.agentTurns, toRunningKey(actor, key), run))
    : await run()
}

/** Completes the answer of a change that is done, whatever becomes of this. */
const settle = async (
  app: App,
  {
    actor,
    op,
    input,
    trace,
  }: { actor: Actor; op: Operation; input: Record<string, unknown>; trace: CallTrace },
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

const isApproval = ({ scope }: Operation): boolean => scope === 'approvals:write'

const toAgentCall = (
  { reason, asked, confirmedByClient = false }: CallRequest,
  call: Omit<AgentCall, 'reason' | 'isConfirmed' | 'asked'>,
): AgentCall => ({
  ...call,
  reason,
  asked: asked && validate(call.op, asked).input,
  isConfirmed: confirmedByClient,
})

const getDeadline = (kind: 'read' | 'write', op: Operation | undefined): number =>
  kind === 'write' ? WRITE_DEADLINE_MS : READ_DEADLINE_MS + (op?.waits ? MAX_WAIT_MS : 0)

const executeRead = async (
  app: App,
  actor: Actor,
  op: Operation,
  input: Record<string, unknown>,
  call: CallRequest,
): Promise<ExecutionResult> => {
  const handler = app.handlers[op.name] as unknown as LocalHandler<unknown>
  const { presence } = call
  const run = (db: Db) =>
    readFor(presence, () => handler(createContext(app, { tx: db, actor, op, input, presence }), input))
  const output = await readFromCurrent(app, op, ({ db, heavy }) =>
    isHeavy(op, input) ? runHeavyRead(app, actor, run, { heavy, reader: presence }) : run(db),
  )
  if (presence?.isGone()) throw clientGoneError()
  // Whose key was paused or has ended while it waited learns nothing more.
  if (op.waits) requireApiAccess(await authenticate(app, call.authorization, call), call.address)
  const body = (call.present ?? JSON.stringify)(output)
  if (typeof body === 'number') return await executeRead(app, actor, op, { ...input, limit: body }, call)
  if (hasContactBudget(actor)) {
    const contacts = await takeContacts(app, app.db, actor, listContactSubjects(op, input, output))
    if (contacts.size > 0) recordContactRead(app, { actor, op, trace: toTrace(call) }, contacts)
  }
  const version = op.versioned?.by && (output as { version?: string }).version
  return { status: getSuccessStatus(op), body, version }
}

const parseStoredProblem = (body: string): Problem => {
  const { code, detail, extras } = JSON.parse(body) as {
    code: ErrorCode
    detail: string
    extras: Problem['extras']
  }
  return new Problem(code, detail, extras)
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

const unknownOperationProblem = (app: App, { requestedName, findSimilarName }: CallRequest): Problem => {
  const similar = findSimilarName?.()
  return new Problem(
    'not_found',
    `There is no ${requestedName ?? 'such operation'}. ${similar ? `Did you mean ${similar}? ` : ''}` +
      `${app.config.publicUrl}/docs lists them all.`,
  )
}

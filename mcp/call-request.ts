import {
  CLIENT_INFO_META_KEY,
  type Implementation,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { Operation } from '../catalog/operation.ts'
import { redactApiKeys } from '../catalog/redact.ts'
import type { App } from '../server/app.ts'
import type { Actor } from '../server/kernel/context.ts'
import { createRequestId } from '../server/ids.ts'
import { logRefusal } from '../server/kernel/log-call.ts'
import { mergeGiven } from '../server/kernel/merge-given.ts'
import { getPresence } from '../server/http/address.ts'
import { perform } from '../server/kernel/perform.ts'
import { type FieldError, invalidField, Problem, type ProblemDocument } from '../server/kernel/problem.ts'
import { CLIENT_GONE_STATUS, type CallResponse, toProblemResult } from '../server/kernel/respond.ts'
import { locateKeyError, unquoteIdempotencyKey } from '../server/kernel/idempotency.ts'
import { invalidParams } from './content.ts'
import type { GuideSource } from './guide-tools.ts'
import type { RunRead } from './record-resources.ts'
import type { TextResource } from './resources.ts'
import { toTextResult } from './result.ts'
import type { ToolSelection } from './toolsets.ts'
import type { View } from './view.ts'

/**
 * Shared by all requests, for each of which the SDK creates a new server. What is a function is computed by the
 * first request that needs it.
 */
export type McpCatalog = GuideSource & {
  app: App
  toolsets: readonly string[]
  resources: () => readonly TextResource[]
}

/** Who calls, and from where. */
export type Caller = ToolSelection & { actor: Actor; address: string | undefined }

/** Of the client's name and version, in the audit trail. */
export const MAX_CLIENT_LENGTH = 120

/** Turns a problem that `work` throws into its response. */
export const withProblems = async <T>(app: App, work: () => Promise<T>): Promise<T | CallResponse> => {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const requestId = createRequestId()
    logRefusal(app.log, requestId, error)
    return toProblemResult(error, { publicUrl: app.config.publicUrl, requestId })
  }
}

/** Returns the response of a call; throws where its client has gone: the SDK answers nobody then. */
export const requireClient = (response: CallResponse): CallResponse => {
  if (response.status !== CLIENT_GONE_STATUS) return response
  throw new ProtocolError(ProtocolErrorCode.InternalError, 'The client is gone.')
}

/**
 * Converts a tool call into a call of its operation. A change always has an Idempotency-Key, so that no retry
 * by the SDK runs it twice. Throws 400 when the header and the argument give different ones.
 */
export const toCallRequest = (
  op: Operation,
  args: Record<string, unknown>,
  {
    view,
    request,
    client,
  }: { view?: View | undefined; request: Request | undefined; client: string | undefined },
) => {
  const input = view?.input ?? args
  const { idempotency_key: given, ...rest } = input
  const { reason, plan } = rest
  // Not fields of the operation, unless it has them: why an agent makes the call, and what it must do.
  const besides = Object.entries({ reason, plan })
    .filter(([name, text]) => op.dryRun && text !== undefined && !(name in op.input.shape))
    .map(([name]) => name)
  if (besides.includes('reason') && typeof reason !== 'string')
    throw invalidField('reason', 'invalid_type', 'must be a text', {
      fix: 'Say in a sentence why the call is made, or leave it out.',
    })
  if (besides.includes('plan') && typeof plan !== 'string')
    throw invalidField('plan', 'invalid_type', 'must be a text', {
      fix: 'Send show with a dry run, or the token of its plan with the change.',
    })
  const fields = Object.fromEntries(Object.entries(rest).filter(([name]) => !besides.includes(name)))
  const key = mergeGiven(
    { at: { header: 'Idempotency-Key' }, value: request?.headers.get('idempotency-key') ?? undefined },
    { at: { pointer: '#/idempotency_key' }, value: typeof given === 'string' ? given : undefined },
    unquoteIdempotencyKey,
  )
  return {
    transport: 'mcp' as const,
    operation: op,
    // A key that is not a string, or a key for a read, stays in the input, where validation rejects it.
    input: op.dryRun && (given === undefined || typeof given === 'string') ? fields : input,
    requestId: createRequestId(),
    locateError: (error: FieldError) => locateKeyError(error, request?.headers.get('idempotency-key')),
    authorization: request?.headers.get('authorization') ?? undefined,
    presence: request && getPresence(request),
    apiVersion: request?.headers.get('api-version') ?? undefined,
    ...(typeof reason === 'string' ? { reason } : {}),
    ...(besides.includes('plan') ? { plan: plan as string } : {}),
    ...(view ? { present: view.present } : {}),
    ...(op.dryRun ? { idempotencyKey: key ?? `mcp-${crypto.randomUUID()}` } : {}),
    ...(client ? { client } : {}),
  }
}

/**
 * Returns the name and version that the client reports: in each request of 2026-07-28; older clients report
 * them only in `initialize`, so their User-Agent is used.
 */
export const getClientName = (
  server: Server,
  context: ServerContext,
  request: Request | undefined,
): string | undefined => {
  const envelope = context.mcpReq.envelope as Record<string, unknown> | undefined
  const info = (envelope?.[CLIENT_INFO_META_KEY] ?? server.getClientVersion()) as Implementation | undefined
  const name = info ? `${info.name}/${info.version}` : (request?.headers.get('user-agent') ?? undefined)
  return name?.slice(0, MAX_CLIENT_LENGTH)
}

/** Of errors that a server defines itself (JSON-RPC 2.0, section 5.1). */
const LIMIT_REACHED = -32_000

/** What a caller may read is used up for now: `data` says which limit, and until when. */
const limitReached = ({ reason, title, detail }: ProblemDocument, data: unknown): ProtocolError =>
  new ProtocolError(
    LIMIT_REACHED,
    redactApiKeys(`${String(reason ?? 'rate_limited')}: ${detail ?? title}`),
    data,
  )

/**
 * Returns what runs reads for resources and completions: through every step of a call, with the answer as a tool
 * gives it. Throws -32602 when the call is refused, -32000 at a limit, -32603 when it cannot be answered now.
 */
export const createRunRead =
  (
    { app, byName }: McpCatalog,
    { address }: Caller,
    requestInfo: Request | undefined,
    client: string | undefined,
  ): RunRead =>
  async (name, input) => {
    const op = byName.get(name)!
    const call = toCallRequest(op, input, { request: requestInfo, client })
    const response = requireClient(
      await withProblems(app, async () => await perform(app, { ...call, address })),
    )
    const { problem } = response
    const text = toTextResult(op, response, undefined).content[0]!.text
    if (!problem) return text
    const data = JSON.parse(text) as { fix?: string }
    if (problem.status === 429) throw limitReached(problem, data)
    // Clients show a person, and a model, the message alone.
    const said = [problem.detail ?? problem.title, data.fix].filter((each) => each).join(' ')
    if (problem.status < 500) throw invalidParams(said, data)
    throw new ProtocolError(
      ProtocolErrorCode.InternalError,
      redactApiKeys(problem.detail ?? problem.title),
      data,
    )
  }

import {
  type AuthInfo,
  CLIENT_INFO_META_KEY,
  createMcpHandler,
  type Implementation,
  type InputRequiredResult,
  type McpHttpHandler,
  type McpRequestContext,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { FastResponse } from 'srvx/node'
import type { Operation, Scope } from '../catalog/operation.ts'
import { redactApiKeys } from '../catalog/redact.ts'
import { isObject } from '../catalog/values.ts'
import type { App } from '../server/core/app.ts'
import type { Actor } from '../server/core/context.ts'
import { createRequestId } from '../server/ids.ts'
import { mergeGiven } from '../server/core/merge-given.ts'
import { getDecision } from '../server/core/steps/policy.ts'
import { perform } from '../server/core/perform.ts'
import { Problem } from '../server/core/problem.ts'
import { type CallResponse, toProblemResult } from '../server/core/respond.ts'
import { lazy } from '../server/lazy.ts'
import { unquoteIdempotencyKey } from '../server/core/steps/idempotency.ts'
import { DEFAULT_MAX_BODY_BYTES, tryParseJson, withBody } from '../server/http/body.ts'
import {
  authenticateRequest,
  createOriginCheck,
  problemResponse,
  refuseMissingScope,
} from './authenticate.ts'
import { createOldSessions } from './old-sessions.ts'
import { asksClient, confirmCall } from './confirm.ts'
import { type GuideSource, listTools, resolveCall, toGuideResult } from './guide-tools.ts'
import { createOperationIndex } from './operation-search.ts'
import { invalidParams, serveContent } from './content.ts'
import { runWatched } from './progress.ts'
import type { RunRead } from './record-resources.ts'
import { serverInfo } from './identity.ts'
import { compactInstructions, listInstructions } from './instructions.ts'
import { createResources, type TextResource } from './resources.ts'
import { readDirectCall, writeDirectResult } from './direct-call.ts'
import { toTextResult, toToolResult } from './result.ts'
import { createTool } from './tools.ts'
import { readView, type View } from './view.ts'
import { isCallable, listToolsetNames, type ToolSelection } from './toolsets.ts'

/**
 * Shared by all requests, for each of which the SDK creates a new server. What is a function is computed by the
 * first request that needs it.
 */
type McpCatalog = GuideSource & {
  app: App
  toolsets: readonly string[]
  resources: () => readonly TextResource[]
}

/**
 * For conformance tests. `extend` adds to the server of each request, or replaces what it does; `asks`: whether a
 * tool of theirs may ask the person.
 */
export type McpOptions = { extend?: (server: Server) => void; asks?: (tool: string) => boolean }

/**
 * Returns the handler of `/mcp`: stateless streamable HTTP, for protocol 2026-07-28 and the 2025 revisions at
 * the same URL, with the same API keys as REST. Query: `toolsets` (names separated by commas, or `all`) and
 * `readonly`, which the header `X-MCP-Readonly` sets too: reads only, at any value but `false`; `mode=compact`.
 */
export const createMcpEndpoint = (
  app: App,
  { extend, asks }: McpOptions = {},
): ((request: Request) => Promise<Response>) => {
  const catalog: McpCatalog = {
    app,
    toolsets: listToolsetNames(app.operations),
    operations: app.operations,
    byName: new Map(app.operations.map((op) => [op.name, op])),
    index: lazy(() => createOperationIndex(app.operations)),
    tools: lazy(() => new Map(app.operations.map((op) => [op.name, createTool(op)]))),
    resources: lazy(() => createResources(app.operations)),
  }
  const createExtended = (context: McpRequestContext): Server => {
    const server = createServer(catalog, context)
    extend?.(server)
    return server
  }
  const handler = createMcpHandler(createExtended, {
    onerror: (error) => app.log.debug({ error: error.message }, 'Rejected an MCP message'),
  })
  // Room for the JSON-RPC message around the arguments.
  const maxBytes = Math.max(DEFAULT_MAX_BODY_BYTES, ...app.operations.map((op) => op.maxBytes ?? 0)) + 65_536
  const checkOrigin = createOriginCheck(app)
  const sessions = createOldSessions(app.confirmSealer)
  return async (request) => {
    const requestId = createRequestId()
    const refused = checkOrigin(request, requestId)
    if (refused) return refused
    try {
      requirePost(request)
      return await withBody(app, request, { maxBytes }, async (body) => {
        const authInfo = await authenticateRequest(app, request, { requestId, toolsets: catalog.toolsets })
        if (authInfo instanceof Response) return authInfo
        const message = tryParseJson(await body.text(authInfo.clientId))
        if (!message.ok) return notJsonRpc(message.error.detail)
        if (message.value === null || typeof message.value !== 'object') return notJsonRpc()
        if (namesPrototype(message.value)) return notJsonRpc('No field is named __proto__.')
        const { clientId: keyId } = authInfo
        if (sessions.answer(keyId, message.value)) return new Response(null, { status: 202 })
        const tool = findCalledTool(catalog, message.value)
        const mayAsk = tool ? tool.confirm !== undefined : asks?.(readToolName(message.value) ?? '') === true
        return (
          refuseMissingScope(app, requestId, authInfo, tool) ??
          (await callDirectly(catalog, request, authInfo, message.value)) ??
          (mayAsk
            ? sessions.serve(keyId, request, message.value, (call) =>
                callModern(handler.fetch, request, authInfo, call),
              )
            : undefined) ??
          sessions.begin(
            keyId,
            message.value,
            forbidStoring(await handler.fetch(request, { authInfo, parsedBody: message.value })),
          )
        )
      })
    } catch (error) {
      if (error instanceof Problem) return problemResponse(app, requestId, error)
      throw error
    }
  }
}

const readToolName = (message: object): string | undefined => {
  const params: unknown = 'params' in message ? message.params : undefined
  return isObject(params) && typeof params['name'] === 'string' ? params['name'] : undefined
}

/** Makes a tool call in the newer revision on behalf of a request of an older one. Returns its response. */
const callModern = async (
  fetch: McpHttpHandler['fetch'],
  request: Request,
  authInfo: AuthInfo,
  call: object,
): Promise<{ result?: unknown; error?: unknown }> => {
  const headers = new Headers(request.headers)
  headers.delete('content-length')
  headers.set('MCP-Protocol-Version', '2026-07-28')
  headers.set('Mcp-Method', 'tools/call')
  headers.set('Mcp-Name', readToolName(call) ?? '')
  const modern = new Request(request.url, { method: 'POST', headers, body: JSON.stringify(call) })
  const response = await fetch(modern, { authInfo, parsedBody: call })
  return (await response.json()) as { result?: unknown; error?: unknown }
}

/** This endpoint is stateless: it has no stream to GET and no session to DELETE. */
const requirePost = ({ method }: Request): void => {
  if (method !== 'POST')
    throw new Problem('method_not_allowed', 'MCP messages are sent by POST.', {}, { Allow: 'POST' })
}

/** The SDK lets caches keep its streams. */
const forbidStoring = (response: Response): Response => {
  if (response.headers.has('cache-control')) response.headers.set('Cache-Control', 'no-store, no-transform')
  return response
}

const notJsonRpc = (message = 'The body is not a JSON-RPC message.'): Response =>
  Response.json(
    {
      jsonrpc: '2.0',
      id: null,
      error: { code: ProtocolErrorCode.ParseError, message: redactApiKeys(message) },
    },
    { status: 400 },
  )

/** The operation that a tool call names; undefined for any other message. */
const findCalledTool = ({ byName }: McpCatalog, message: object): Operation | undefined => {
  if (!('method' in message) || message.method !== 'tools/call' || !('params' in message)) return undefined
  if (!isObject(message.params)) return undefined
  const { name, arguments: input } = message.params
  // The tools of compact mode name the operation in their input.
  const isWrapped = (name === 'run_read_operation' || name === 'run_write_operation') && isObject(input)
  return byName.get(String(isWrapped ? input['operation'] : name))
}

/** Whether a call has an argument `__proto__`: the SDK would drop it, and the call would run without it. */
const namesPrototype = (message: object): boolean => {
  const params: unknown = 'params' in message ? message.params : undefined
  const input = isObject(params) ? params['arguments'] : undefined
  return isObject(input) && Object.hasOwn(input, '__proto__')
}

const cachedForAnHour = { ttlMs: 3_600_000, cacheScope: 'public' } as const
const options = {
  capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
  // The tools depend on the key's scopes, which may change, so this list is private and short-lived.
  cacheHints: {
    'tools/list': { ttlMs: 300_000, cacheScope: 'private' },
    'resources/list': cachedForAnHour,
    'resources/read': cachedForAnHour,
    'prompts/list': cachedForAnHour,
    'server/discover': cachedForAnHour,
  },
} as const

const createServer = (catalog: McpCatalog, { authInfo, requestInfo }: McpRequestContext): Server => {
  const { compact } = authInfo!.extra as Caller
  const instructions = compact ? compactInstructions : listInstructions
  const server = new Server(serverInfo, { ...options, instructions })
  serveTools(server, catalog, authInfo, requestInfo)
  const caller = authInfo!.extra as Caller
  const scopes = authInfo!.scopes as Scope[]
  serveContent(server, {
    resources: catalog.resources,
    mayRun: (name) => scopes.includes('mcp:read') && isCallable(catalog.byName.get(name)!, caller),
    run: (context) =>
      createRunRead(catalog, caller, requestInfo, getClientName(server, context, requestInfo)),
  })
  return server
}

/** Who calls, and from where. */
type Caller = ToolSelection & { actor: Actor; address: string | undefined }

/** Of the client's name and version, in the audit trail. */
const MAX_CLIENT_LENGTH = 120

const serveTools = (
  server: Server,
  catalog: McpCatalog,
  authInfo: AuthInfo | undefined,
  requestInfo: Request | undefined,
): void => {
  const selection = authInfo?.extra as Caller
  const { agent } = selection.actor.key
  const decide = agent ? (op: Operation) => getDecision(selection.actor, op).decision : undefined
  const guided = { selection, scopes: (authInfo?.scopes ?? []) as Scope[], decide }
  server.setRequestHandler('tools/list', () => ({ tools: listTools(catalog, guided) }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const resolved = resolveCall(catalog, guided, params.name, params.arguments ?? {})
    if (resolved && 'answer' in resolved) return toGuideResult(resolved.answer)
    const op = resolved?.operation
    if (!op || !isCallable(op, selection)) throw invalidParams(formatUnknownTool(params.name, op, selection))
    const { input } = resolved
    const { app } = catalog
    const { address, actor } = selection
    let ask: InputRequiredResult | undefined
    let view: View | undefined
    const response = await withProblems(app, async () => {
      const client = getClientName(server, context, requestInfo)
      view = readView(op, input)
      const call = { ...toCallRequest(op, input, view, requestInfo, client), address }
      const confirmation = await confirmCall(app, op, call, actor, context)
      if ('call' in confirmation) {
        const { call: confirmed } = confirmation
        return await runWatched(context, op, input, () => perform(app, confirmed))
      }
      if ('refused' in confirmation) return confirmation.refused
      ask = confirmation.ask
      return undefined
    })
    return response ? toToolResult(op, response, view) : ask!
  })
}

/**
 * Answers a plain tool call (direct-call.ts); undefined when the SDK has to. It asks for confirmations, and
 * refuses tools that are not served here.
 */
const callDirectly = async (
  catalog: McpCatalog,
  request: Request,
  { extra, scopes }: AuthInfo,
  message: object,
): Promise<Response | undefined> => {
  const call = readDirectCall(request, message)
  if (!call) return undefined
  const { app } = catalog
  const { address, actor, ...selection } = extra as Caller
  const resolved = resolveCall(catalog, { selection, scopes: scopes as Scope[] }, call.name, call.input)
  if (!resolved || 'answer' in resolved) return undefined
  const { operation: op, input } = resolved
  if (asksClient(actor, op) || (op.itemwise && call.watched) || !isCallable(op, selection)) return undefined
  const client = (call.client ?? request.headers.get('user-agent') ?? undefined)?.slice(0, MAX_CLIENT_LENGTH)
  let view: View | undefined
  const response = await withProblems(app, async () => {
    view = readView(op, input)
    return await perform(app, { ...toCallRequest(op, input, view, request, client), address })
  })
  const result = toTextResult(op, response, view)
  const structured = response.problem ? undefined : result.content[0]!.text
  return new FastResponse(writeDirectResult(call, result, structured, serverInfo), {
    headers: { 'Content-Type': 'application/json' },
  })
}

/** Turns a problem that `work` throws into its response. */
const withProblems = async <T>(app: App, work: () => Promise<T>): Promise<T | CallResponse> => {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return toProblemResult(error, { publicUrl: app.config.publicUrl, requestId: createRequestId() })
  }
}

/**
 * Returns what runs reads for resources and completions: through every step of a call, with the answer as a tool
 * gives it. Throws -32602 when the call is refused, -32603 when it cannot be answered now.
 */
const createRunRead =
  (
    { app, byName }: McpCatalog,
    { address }: Caller,
    requestInfo: Request | undefined,
    client: string | undefined,
  ): RunRead =>
  async (name, input) => {
    const op = byName.get(name)!
    const call = toCallRequest(op, input, undefined, requestInfo, client)
    const response = await withProblems(app, async () => await perform(app, { ...call, address }))
    const { problem } = response
    const text = toTextResult(op, response, undefined).content[0]!.text
    if (!problem) return text
    if (problem.status < 500 && problem.status !== 429)
      throw invalidParams(problem.detail ?? problem.title, JSON.parse(text))
    throw new ProtocolError(
      ProtocolErrorCode.InternalError,
      redactApiKeys(problem.detail ?? problem.title),
      JSON.parse(text),
    )
  }

/**
 * Converts a tool call into a call of its operation. A change always has an Idempotency-Key, so that no retry
 * by the SDK runs it twice. Throws 400 when the header and the argument give different ones.
 */
const toCallRequest = (
  op: Operation,
  args: Record<string, unknown> = {},
  view: View | undefined,
  request: Request | undefined,
  client: string | undefined,
) => {
  const input = view?.input ?? args
  const { idempotency_key: given, ...rest } = input
  const { reason, ...others } = rest
  // A field of the operation, or why an agent makes the call.
  const fields = typeof reason === 'string' && !('reason' in op.input.shape) ? others : rest
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
    authorization: request?.headers.get('authorization') ?? undefined,
    apiVersion: request?.headers.get('api-version') ?? undefined,
    ...(typeof reason === 'string' ? { reason } : {}),
    ...(view ? { present: view.present } : {}),
    ...(op.dryRun ? { idempotencyKey: key ?? `mcp-${crypto.randomUUID()}` } : {}),
    ...(client ? { client } : {}),
  }
}

/**
 * Returns the name and version that the client reports: in each request of 2026-07-28; older clients report
 * them only in `initialize`, so their User-Agent is used.
 */
const getClientName = (
  server: Server,
  context: ServerContext,
  request: Request | undefined,
): string | undefined => {
  const envelope = context.mcpReq.envelope as Record<string, unknown> | undefined
  const info = (envelope?.[CLIENT_INFO_META_KEY] ?? server.getClientVersion()) as Implementation | undefined
  const name = info ? `${info.name}/${info.version}` : (request?.headers.get('user-agent') ?? undefined)
  return name?.slice(0, MAX_CLIENT_LENGTH)
}

const formatUnknownTool = (name: string, op: Operation | undefined, { readonly }: ToolSelection): string => {
  if (!op)
    return (
      `Unknown tool: ${name}. Call find_tools with what you want to do; every tool that it finds runs by its ` +
      'name, also when it is not in the list.'
    )
  return readonly && op.scope !== 'mcp:read'
    ? `${name} changes data, and reads only are served here (readonly in the URL or X-MCP-Readonly).`
    : `${name} is not in the toolsets selected by this URL. \`?toolsets=all\` serves every tool.`
}

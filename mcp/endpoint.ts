import {
  type AuthInfo,
  createMcpHandler,
  type McpHttpHandler,
  type McpRequestContext,
  ProtocolErrorCode,
  Server,
} from '@modelcontextprotocol/server'
import type { Operation, Scope } from '../catalog/operation.ts'
import { redactApiKeys } from '../catalog/redact.ts'
import { isObject } from '../catalog/values.ts'
import { readEvents } from '../client/event-stream.ts'
import type { App } from '../server/app.ts'
import { createRequestId } from '../server/ids.ts'
import { Problem } from '../server/kernel/problem.ts'
import { lazy } from '../server/lazy.ts'
import { DEFAULT_MAX_BODY_BYTES, tryParseJson, withBody } from '../server/http/body.ts'
import {
  authenticateRequest,
  createOriginCheck,
  problemResponse,
  refuseMissingScope,
} from './authenticate.ts'
import { refuseWrongParams } from './check-params.ts'
import { type Caller, createRunRead, getClientName, type McpCatalog } from './call-request.ts'
import { createOldSessions } from './old-sessions.ts'
import { createOperationIndex } from './operation-search.ts'
import { serveContent } from './content.ts'
import { serverInfo } from './identity.ts'
import { compactInstructions, listInstructions } from './instructions.ts'
import { createResources } from './resources.ts'
import { callDirectly, serveTools } from './serve-tools.ts'
import { createTool } from './tools.ts'
import { isCallable, listToolsetNames } from './toolsets.ts'

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
        if (sessions.take(keyId, request, message.value)) return new Response(null, { status: 202 })
        const tool = findCalledTool(catalog, message.value)
        const { agent } = (authInfo.extra as Caller).actor.key
        const mayAsk = tool
          ? tool.confirm !== undefined || (agent && tool.dryRun)
          : asks?.(readToolName(message.value) ?? '') === true
        return (
          refuseWrongParams(request, message.value) ??
          refuseMissingScope(app, requestId, authInfo, tool) ??
          (await sessions.follow(keyId, request, message.value, (cancelled) =>
            callDirectly(catalog, request, authInfo, message.value as object, cancelled),
          )) ??
          (mayAsk
            ? sessions.serve(keyId, request, message.value, (call, notify) =>
                callModern(handler.fetch, request, authInfo, { call, notify }),
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

/**
 * Makes a tool call in the newer revision on behalf of a request of an older one. Returns its response. `notify`: is
 * given what comes before it.
 */
const callModern = async (
  fetch: McpHttpHandler['fetch'],
  request: Request,
  authInfo: AuthInfo,
  { call, notify }: { call: object; notify: (message: object) => void },
): Promise<{ result?: unknown; error?: unknown }> => {
  const headers = new Headers(request.headers)
  headers.delete('content-length')
  headers.set('MCP-Protocol-Version', '2026-07-28')
  headers.set('Mcp-Method', 'tools/call')
  headers.set('Mcp-Name', readToolName(call) ?? '')
  const modern = new Request(request.url, { method: 'POST', headers, body: JSON.stringify(call) })
  const response = await fetch(modern, { authInfo, parsedBody: call })
  // A call that tells how far it is answers on a stream.
  if (!response.body || !response.headers.get('content-type')?.startsWith('text/event-stream'))
    return (await response.json()) as { result?: unknown; error?: unknown }
  let reply: object | undefined
  for await (const { data } of readEvents(response.body)) {
    const message = JSON.parse(data) as object
    if ('method' in message) notify(message)
    else reply = message
  }
  if (!reply) throw new Error('The stream of a call ended without its response.')
  return reply
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
  // The revision 2025-03-26 has batches.
  if (Array.isArray(message)) return message.some((one) => isObject(one) && namesPrototype(one))
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

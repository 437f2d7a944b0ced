import {
  type AuthInfo,
  CLIENT_INFO_META_KEY,
  createMcpHandler,
  type Implementation,
  type McpRequestContext,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { currentVersion } from '../catalog/index.ts'
import type { Operation } from '../catalog/operation.ts'
import type { App } from '../server/core/app.ts'
import { createRequestId } from '../server/ids.ts'
import { perform } from '../server/core/perform.ts'
import { authenticateRequest, createOriginCheck } from './authenticate.ts'
import { confirmCall } from './confirm.ts'
import { getPrompt, prompts } from './prompts.ts'
import { instructions, createResources, type TextResource } from './resources.ts'
import { toToolResult } from './result.ts'
import { type Tool, createTool } from './tools.ts'
import { isCallable, listOperations, type ToolSelection } from './toolsets.ts'

/** What does not change between requests, worked out once: the SDK asks for a new server on every one. */
type Surface = {
  app: App
  operations: ReadonlyMap<string, Operation>
  tools: ReadonlyMap<string, Tool>
  resources: readonly TextResource[]
}

/**
 * The MCP door: streamable HTTP, stateless, for protocol 2026-07-28 and the 2025 revisions at the same
 * address. Takes the API key of REST. Query: `toolsets` (names separated by commas, or `all`) and
 * `readonly=true`.
 */
export const createMcpEndpoint = (app: App): ((request: Request) => Promise<Response>) => {
  const surface: Surface = {
    app,
    operations: new Map(app.operations.map((op) => [op.name, op])),
    tools: new Map(app.operations.map((op) => [op.name, createTool(op)])),
    resources: createResources(app.operations),
  }
  const largest = Math.max(1_048_576, ...app.operations.map((op) => op.maxBytes ?? 0))
  const handler = createMcpHandler((context) => createServer(surface, context), {
    // The message around the arguments of the largest call.
    maxRequestBodySize: largest + 65_536,
    onerror: (error) => app.log.debug({ error: error.message }, 'mcp message refused'),
  })
  const refuseForeign = createOriginCheck(app)
  return async (request) => {
    const requestId = createRequestId()
    const admitted = refuseForeign(request, requestId) ?? (await authenticateRequest(app, request, requestId))
    return admitted instanceof Response ? admitted : handler.fetch(request, { authInfo: admitted })
  }
}

const serverInfo = { name: 'wcrm', title: 'wcrm', version: currentVersion }
const hour = { ttlMs: 3_600_000, cacheScope: 'public' } as const
const options = {
  capabilities: { tools: {}, resources: {}, prompts: {} },
  instructions,
  // A key's tools follow its scopes, which may change, so that list is private and short-lived.
  cacheHints: {
    'tools/list': { ttlMs: 300_000, cacheScope: 'private' },
    'resources/list': hour,
    'resources/read': hour,
    'prompts/list': hour,
    'server/discover': hour,
  },
} as const

const createServer = (surface: Surface, { authInfo, requestInfo }: McpRequestContext): Server => {
  const server = new Server(serverInfo, options)
  serveTools(server, surface, authInfo, requestInfo)
  serveTexts(server, surface)
  return server
}

const serveTools = (
  server: Server,
  surface: Surface,
  authInfo: AuthInfo | undefined,
  requestInfo: Request | undefined,
): void => {
  const selection = authInfo?.extra as ToolSelection & { test: boolean }
  server.setRequestHandler('tools/list', () => ({
    tools: listOperations(surface.app.operations, (authInfo?.scopes ?? []) as never, selection).map((op) =>
      surface.tools.get(op.name)!,
    ),
  }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const op = surface.operations.get(params.name)
    if (!op || !isCallable(op, selection))
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, unknownTool(params.name, op, selection))
    const call = toCallRequest(op, params.arguments, requestInfo, getClientName(server, context, requestInfo))
    const settled = await confirmCall(
      surface.app,
      op,
      call,
      { keyId: authInfo!.clientId, test: selection.test },
      context,
    )
    if ('ask' in settled) return settled.ask
    return toToolResult(op, 'refused' in settled ? settled.refused : await perform(surface.app, settled.call))
  })
}

const serveTexts = (server: Server, surface: Surface): void => {
  server.setRequestHandler('resources/list', () => ({
    resources: surface.resources.map(({ uri, name, title, description, mimeType }) => ({
      uri,
      name,
      title,
      description,
      mimeType,
    })),
  }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }))
  server.setRequestHandler('resources/read', ({ params }) => {
    const found = surface.resources.find(({ uri }) => uri === params.uri)
    if (!found) throw new ResourceNotFoundError(params.uri)
    return { contents: [{ uri: found.uri, mimeType: found.mimeType, text: found.text }] }
  })
  server.setRequestHandler('prompts/list', () => ({ prompts }))
  server.setRequestHandler('prompts/get', ({ params }) => {
    const found = getPrompt(params.name, params.arguments)
    if (!found)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `Unknown prompt, or its argument is missing: ${params.name}. prompts/list shows both.`,
      )
    return found
  })
}

/**
 * A tool call as a call of its operation; a change always has an Idempotency-Key, so that no retry below us
 * runs it twice.
 */
const toCallRequest = (
  op: Operation,
  input: Record<string, unknown> = {},
  request: Request | undefined,
  client: string | undefined,
) => {
  const { idempotency_key: given, ...fields } = input
  const key = typeof given === 'string' ? given : `mcp-${crypto.randomUUID()}`
  return {
    transport: 'mcp' as const,
    operation: op,
    // A key that is not text, or one for a read, stays in the input and is refused there with its place.
    input: op.dryRun && (given === undefined || typeof given === 'string') ? fields : input,
    requestId: createRequestId(),
    authorization: request?.headers.get('authorization') ?? undefined,
    apiVersion: request?.headers.get('api-version') ?? undefined,
    ...(op.dryRun ? { idempotencyKey: key } : {}),
    ...(client ? { client } : {}),
  }
}

/**
 * What the client calls itself: in each request of 2026-07-28; older clients say it only at the start, so
 * their User-Agent stands in.
 */
const getClientName = (
  server: Server,
  context: ServerContext,
  request: Request | undefined,
): string | undefined => {
  const envelope = context.mcpReq.envelope as Record<string, unknown> | undefined
  const info = (envelope?.[CLIENT_INFO_META_KEY] ?? server.getClientVersion()) as Implementation | undefined
  const name = info ? `${info.name}/${info.version}` : (request?.headers.get('user-agent') ?? undefined)
  return name?.slice(0, 120)
}

const unknownTool = (name: string, op: Operation | undefined, { readonly }: ToolSelection): string => {
  if (!op) return `Unknown tool: ${name}. The resource wcrm://operations lists every tool.`
  return readonly && op.scope !== 'mcp:read'
    ? `${name} changes data, and this address serves reads only (readonly=true).`
    : `${name} is not among the toolsets asked for at this address. \`?toolsets=all\` serves every tool.`
}

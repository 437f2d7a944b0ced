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

/** Computed once and shared by all requests: the SDK creates a new server for each of them. */
type McpCatalog = {
  app: App
  operations: ReadonlyMap<string, Operation>
  tools: ReadonlyMap<string, Tool>
  resources: readonly TextResource[]
}

/**
 * Returns the handler of `/mcp`: stateless streamable HTTP, for protocol 2026-07-28 and the 2025 revisions at
 * the same URL, with the same API keys as REST. Query: `toolsets` (names separated by commas, or `all`) and
 * `readonly=true`.
 */
export const createMcpEndpoint = (app: App): ((request: Request) => Promise<Response>) => {
  const catalog: McpCatalog = {
    app,
    operations: new Map(app.operations.map((op) => [op.name, op])),
    tools: new Map(app.operations.map((op) => [op.name, createTool(op)])),
    resources: createResources(app.operations),
  }
  const maxBodyBytes = Math.max(1_048_576, ...app.operations.map((op) => op.maxBytes ?? 0))
  const handler = createMcpHandler((context) => createServer(catalog, context), {
    // Room for the JSON-RPC message around the arguments.
    maxRequestBodySize: maxBodyBytes + 65_536,
    onerror: (error) => app.log.debug({ error: error.message }, 'Rejected an MCP message'),
  })
  const checkOrigin = createOriginCheck(app)
  return async (request) => {
    const requestId = createRequestId()
    const authenticated =
      checkOrigin(request, requestId) ?? (await authenticateRequest(app, request, requestId))
    return authenticated instanceof Response
      ? authenticated
      : handler.fetch(request, { authInfo: authenticated })
  }
}

const serverInfo = { name: 'wcrm', title: 'wcrm', version: currentVersion }
const cachedForAnHour = { ttlMs: 3_600_000, cacheScope: 'public' } as const
const options = {
  capabilities: { tools: {}, resources: {}, prompts: {} },
  instructions,
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
  const server = new Server(serverInfo, options)
  serveTools(server, catalog, authInfo, requestInfo)
  serveResourcesAndPrompts(server, catalog)
  return server
}

const serveTools = (
  server: Server,
  catalog: McpCatalog,
  authInfo: AuthInfo | undefined,
  requestInfo: Request | undefined,
): void => {
  const selection = authInfo?.extra as ToolSelection & { test: boolean }
  server.setRequestHandler('tools/list', () => ({
    tools: listOperations(catalog.app.operations, (authInfo?.scopes ?? []) as never, selection).map((op) =>
      catalog.tools.get(op.name)!,
    ),
  }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const op = catalog.operations.get(params.name)
    if (!op || !isCallable(op, selection))
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, formatUnknownTool(params.name, op, selection))
    const call = toCallRequest(op, params.arguments, requestInfo, getClientName(server, context, requestInfo))
    const confirmation = await confirmCall(
      catalog.app,
      op,
      call,
      { keyId: authInfo!.clientId, test: selection.test },
      context,
    )
    if ('ask' in confirmation) return confirmation.ask
    return toToolResult(
      op,
      'refused' in confirmation ? confirmation.refused : await perform(catalog.app, confirmation.call),
    )
  })
}

const serveResourcesAndPrompts = (server: Server, catalog: McpCatalog): void => {
  server.setRequestHandler('resources/list', () => ({
    resources: catalog.resources.map(({ uri, name, title, description, mimeType }) => ({
      uri,
      name,
      title,
      description,
      mimeType,
    })),
  }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }))
  server.setRequestHandler('resources/read', ({ params }) => {
    const found = catalog.resources.find(({ uri }) => uri === params.uri)
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
 * Converts a tool call into a call of its operation. A change always has an Idempotency-Key, so that no retry
 * by the SDK runs it twice.
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
    // A key that is not a string, or a key for a read, stays in the input, where validation rejects it.
    input: op.dryRun && (given === undefined || typeof given === 'string') ? fields : input,
    requestId: createRequestId(),
    authorization: request?.headers.get('authorization') ?? undefined,
    apiVersion: request?.headers.get('api-version') ?? undefined,
    ...(op.dryRun ? { idempotencyKey: key } : {}),
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
  return name?.slice(0, 120)
}

const formatUnknownTool = (name: string, op: Operation | undefined, { readonly }: ToolSelection): string => {
  if (!op) return `Unknown tool: ${name}. The resource wcrm://operations lists every tool.`
  return readonly && op.scope !== 'mcp:read'
    ? `${name} changes data, and this URL serves reads only (readonly=true).`
    : `${name} is not in the toolsets selected by this URL. \`?toolsets=all\` serves every tool.`
}

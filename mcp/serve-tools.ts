import { getDecision } from '../server/agent-policy.ts'
import type { CallRequest } from '../server/kernel/call.ts'
import {
  type AuthInfo,
  type InputRequiredResult,
  type Server,
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  JSONRPC_VERSION,
  PROTOCOL_VERSION_META_KEY,
  SERVER_INFO_META_KEY,
  SUPPORTED_PROTOCOL_VERSIONS,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { FastResponse } from 'srvx/node'
import type { Operation, Scope } from '../catalog/operation.ts'
import { perform } from '../server/kernel/perform.ts'
import { CLIENT_GONE_STATUS, type CallResponse } from '../server/kernel/respond.ts'
import {
  type Caller,
  getClientName,
  MAX_CLIENT_LENGTH,
  type McpCatalog,
  requireClient,
  toCallRequest,
  withProblems,
} from './call-request.ts'
import { callOrOpenPage, opensPages } from './approval-page.ts'
import { mayAskClient, confirmCall } from './confirm.ts'
import { invalidParams } from './content.ts'
import { listTools, resolveCall, toGuideResult } from './guide-tools.ts'
import { serverInfo } from './identity.ts'
import { toTextResult, toToolResult } from './result.ts'
import { isCallable, type ToolSelection } from './toolsets.ts'
import { readView, type View } from './view.ts'
import { isObject } from '../catalog/values.ts'
import type { CallWatch } from '../server/kernel/context.ts'

/** Answers requests for tools and their calls. */
export const serveTools = (
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
    const { app } = catalog
    const resolved = resolveCall(catalog, guided, params.name, params.arguments ?? {})
    if (resolved && 'answer' in resolved) return toGuideResult(resolved.answer, app.config.publicUrl)
    const op = resolved?.operation
    if (!op || !isCallable(op, selection)) throw invalidParams(formatUnknownTool(params.name, op, selection))
    const { input } = resolved
    const { address, actor } = selection
    let ask: InputRequiredResult | undefined
    let view: View | undefined
    const response = await withProblems(app, async () => {
      const client = getClientName(server, context, requestInfo)
      view = readView(op, input)
      const call = { ...toCallRequest(op, input, { view, request: requestInfo, client }), address }
      const confirmation = await confirmCall(app, { op, call, actor }, context)
      if ('call' in confirmation) {
        const { call: confirmed } = confirmation
        const run = () =>
          runWatched(context, op.itemwise && input[op.itemwise], (watch) =>
            perform(app, { ...confirmed, watch }),
          )
        const outcome = await callOrOpenPage(app, { call: confirmed, actor, context }, run)
        if (!('ask' in outcome)) return outcome
        ask = outcome.ask
        return undefined
      }
      if ('refused' in confirmation) return confirmation.refused
      ask = confirmation.ask
      return undefined
    })
    return response ? toToolResult(op, requireClient(response), view) : ask!
  })
}

/**
 * Answers a plain tool call (`readDirectCall`); undefined when the SDK has to. It asks for confirmations, and
 * refuses tools that are not served here.
 */
export const callDirectly = async (
  catalog: McpCatalog,
  request: Request,
  { extra, scopes }: AuthInfo,
  message: object,
  cancelled: AbortSignal | undefined,
): Promise<Response | undefined> => {
  const call = readDirectCall(request, message)
  if (!call) return undefined
  const { app } = catalog
  const { address, actor, ...selection } = extra as Caller
  const resolved = resolveCall(catalog, { selection, scopes: scopes as Scope[] }, call.name, call.input)
  if (!resolved || 'answer' in resolved) return undefined
  const { operation: op, input } = resolved
  if (mayAskClient(actor, op) || (op.itemwise && call.watched) || !isCallable(op, selection)) return undefined
  // The client may be asked to open the page of an approval.
  if (call.opensPages && actor.key.agent && op.dryRun) return undefined
  const client = (call.client ?? request.headers.get('user-agent') ?? undefined)?.slice(0, MAX_CLIENT_LENGTH)
  let view: View | undefined
  const response = await withProblems(app, async () => {
    view = readView(op, input)
    // Since 2026-07-28 a call is cancelled by closing its request.
    const watch = op.itemwise && call.modern ? { signal: request.signal } : undefined
    const { presence, ...rest } = toCallRequest(op, input, { view, request, client })
    return await perform(app, {
      ...rest,
      address,
      watch,
      presence: cancelled ? withCancellation(cancelled, presence) : presence,
    })
  })
  // Nobody waits for an answer.
  if (response.status === CLIENT_GONE_STATUS) return new Response(null, { status: 202 })
  const result = toTextResult(op, response, view)
  const structured = response.problem ? undefined : result.content[0]!.text
  return new FastResponse(writeDirectResult(call, result, structured), {
    headers: { 'Content-Type': 'application/json' },
  })
}

/** A client whose call is cancelled does not wait for it any more. */
const withCancellation = (
  cancelled: AbortSignal,
  presence: CallRequest['presence'],
): CallRequest['presence'] => ({
  isGone: () => cancelled.aborted || presence?.isGone() === true,
  onGone: (listener) => {
    cancelled.addEventListener('abort', listener)
    const stop = presence?.onGone(listener)
    return () => {
      cancelled.removeEventListener('abort', listener)
      stop?.()
    }
  },
  admit: () => presence?.admit(),
})

const formatUnknownTool = (
  name: string,
  op: Operation | undefined,
  { readonly, compact }: ToolSelection,
): string => {
  if (!op && compact)
    return (
      `Unknown tool: ${name}. Call search_operations with what you want to do, then run_read_operation or ` +
      'run_write_operation with the name of what it finds.'
    )
  if (!op)
    return (
      `Unknown tool: ${name}. Call find_tools with what you want to do; every tool that it finds runs by its ` +
      'name, also when it is not in the list.'
    )
  return readonly && op.scope !== 'mcp:read'
    ? `${name} changes data, and reads only are served here (readonly in the URL or X-MCP-Readonly).`
    : `${name} is not in the toolsets selected by this URL. \`?toolsets=all\` serves every tool.`
}

/*
 * Nearly all messages are plain tool calls. The SDK makes a server, a transport and a stream for each message,
 * which takes longer than a read of a contact; these calls are answered without it. Whatever is not exactly a
 * well-formed call goes to the SDK, which knows every rule and every refusal of both protocol eras.
 */

/** The revision whose requests say who calls in `_meta`. */
const MODERN_VERSION = '2026-07-28'

type DirectCall = {
  id: string | number
  name: string
  input: Record<string, unknown>
  /** Name and version that the client reports in the request. */
  client: string | undefined
  modern: boolean
  /** The client asks for progress reports, which take a stream. */
  watched: boolean
  /** The client can open a page for its person; in the older revisions, it may be able to. */
  opensPages: boolean
}

const hasOnly = (object: object, names: readonly string[]): boolean =>
  Object.keys(object).every((name) => names.includes(name))

const isId = (id: unknown): id is string | number => typeof id === 'string' || Number.isSafeInteger(id)

/** Whether the client takes both types of response, as it must. */
const acceptsBoth = (accept: string | null): boolean =>
  accept !== null && accept.includes('application/json') && accept.includes('text/event-stream')

const readEra = (
  headers: Headers,
  meta: Record<string, unknown>,
  name: string,
): DirectCall['modern'] | undefined => {
  const version = headers.get('mcp-protocol-version')
  if (!(PROTOCOL_VERSION_META_KEY in meta))
    return version === null || SUPPORTED_PROTOCOL_VERSIONS.includes(version) ? false : undefined
  const isConsistent =
    version === MODERN_VERSION &&
    meta[PROTOCOL_VERSION_META_KEY] === version &&
    headers.get('mcp-method') === 'tools/call' &&
    headers.get('mcp-name') === name &&
    isObject(meta[CLIENT_CAPABILITIES_META_KEY])
  return isConsistent ? true : undefined
}

/** Returns what the client calls itself: undefined when it does not say, null when that is malformed. */
const readClient = (meta: Record<string, unknown>): string | undefined | null => {
  const info = meta[CLIENT_INFO_META_KEY]
  if (info === undefined) return undefined
  return isObject(info) && typeof info['name'] === 'string' && typeof info['version'] === 'string'
    ? `${info['name']}/${info['version']}`
    : null
}

/** Returns the tool call that a message is; undefined when it is anything else or anything unusual. */
const readDirectCall = ({ headers }: Request, message: object): DirectCall | undefined => {
  if (!isObject(message) || !hasOnly(message, ['jsonrpc', 'id', 'method', 'params'])) return undefined
  const { jsonrpc, id, method, params } = message
  if (jsonrpc !== JSONRPC_VERSION || method !== 'tools/call' || !isId(id)) return undefined
  if (!isObject(params) || !hasOnly(params, ['name', 'arguments', '_meta'])) return undefined
  const { name, arguments: input = {}, _meta: meta = {} } = params
  if (typeof name !== 'string' || !isObject(input) || !isObject(meta)) return undefined
  if (!acceptsBoth(headers.get('accept'))) return undefined
  const modern = readEra(headers, meta, name)
  const client = readClient(meta)
  if (modern === undefined || client === null) return undefined
  const watched = 'progressToken' in meta
  return {
    id,
    name,
    input,
    client,
    modern,
    watched,
    opensPages: modern ? opensPages(meta[CLIENT_CAPABILITIES_META_KEY]) : headers.has('mcp-session-id'),
  }
}

/**
 * Returns the response to a call. `structured`: the JSON text of `structuredContent`, which is not parsed only
 * to be written again.
 */
const writeDirectResult = (
  { id, modern }: DirectCall,
  result: { content: object[]; isError?: boolean; _meta: Record<string, unknown> },
  structured: string | undefined,
): string => {
  const { _meta, ...rest } = result
  const head = JSON.stringify({
    _meta: modern ? { ..._meta, [SERVER_INFO_META_KEY]: serverInfo } : _meta,
    ...rest,
  })
  const tail = [
    structured === undefined ? '' : `,"structuredContent":${structured}`,
    modern ? ',"resultType":"complete"' : '',
  ].join('')
  return `{"result":${head.slice(0, -1)}${tail}},"jsonrpc":"${JSONRPC_VERSION}","id":${JSON.stringify(id)}}`
}

/** The progress of a call with many items, in quarters. */
const steps = [
  'received',
  'read and checked',
  'checked, with their tags and groups',
  'saved, not yet committed',
]

/**
 * Runs a call, unless the client has cancelled it meanwhile. Reports the progress of a call with many items where the
 * client asks for it. All items are one transaction: its steps are reported, and a cancellation between two of them
 * rolls all of it back.
 */
const runWatched = async (
  { mcpReq: { signal, _meta, notify } }: ServerContext,
  items: unknown,
  run: (watch: CallWatch) => Promise<CallResponse>,
): Promise<CallResponse> => {
  signal.throwIfAborted()
  const progressToken = _meta?.progressToken
  if (progressToken === undefined || !Array.isArray(items)) return await run({ signal })
  const total = items.length
  let reported = -1
  let sent = Promise.resolve()
  const report = (progress: number, message: string): void => {
    // A retry of the transaction begins again; progress never goes back.
    if (progress <= reported) return
    reported = progress
    const params = { progressToken, progress, total, message }
    sent = sent.then(() => notify({ method: 'notifications/progress', params }))
  }
  const reached = (share: number): void =>
    report(Math.floor(share * total), `${total} rows ${steps[Math.floor(share * steps.length)]}`)
  const response = await run({ signal, reached })
  if (!response.problem) report(total, 'All rows are done')
  await sent
  return response
}

import type { AuthInfo, InputRequiredResult, Server } from '@modelcontextprotocol/server'
import { FastResponse } from 'srvx/node'
import type { Operation, Scope } from '../catalog/operation.ts'
import { type CallRequest, perform } from '../server/core/perform.ts'
import { CLIENT_GONE_STATUS } from '../server/core/respond.ts'
import { getDecision } from '../server/core/steps/policy.ts'
import {
  type Caller,
  getClientName,
  MAX_CLIENT_LENGTH,
  type McpCatalog,
  requireClient,
  toCallRequest,
  withProblems,
} from './call-request.ts'
import { callOrOpenPage } from './approval-page.ts'
import { mayAskClient, confirmCall } from './confirm.ts'
import { invalidParams } from './content.ts'
import { readDirectCall, writeDirectResult } from './direct-call.ts'
import { listTools, resolveCall, toGuideResult } from './guide-tools.ts'
import { serverInfo } from './identity.ts'
import { runWatched } from './progress.ts'
import { toTextResult, toToolResult } from './result.ts'
import { isCallable, type ToolSelection } from './toolsets.ts'
import { readView, type View } from './view.ts'

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
      const call = { ...toCallRequest(op, input, view, requestInfo, client), address }
      const confirmation = await confirmCall(app, op, call, actor, context)
      if ('call' in confirmation) {
        const { call: confirmed } = confirmation
        const run = () => runWatched(context, op, input, (watch) => perform(app, { ...confirmed, watch }))
        const outcome = await callOrOpenPage(app, confirmed, actor, context, run)
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
 * Answers a plain tool call (direct-call.ts); undefined when the SDK has to. It asks for confirmations, and
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
    const { presence, ...rest } = toCallRequest(op, input, view, request, client)
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
  return new FastResponse(writeDirectResult(call, result, structured, serverInfo), {
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

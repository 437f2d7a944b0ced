import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'

/** A protocol revision: requests that stand alone, or those of clients that begin with `initialize`. */
export type Era = '2026-07-28' | '2025-11-25'
export type Mode = 'default' | 'compact'

export type AgentOptions = {
  url: string
  key: string
  era?: Era
  mode?: Mode
  /** What the person asked for; an agent knows the ids in it. */
  task: string
  /** Runs after each call of a tool: time passes, and a person decides on what waits for approval. */
  afterCall?: () => Promise<void>
}

/** Calls of tools, how many of them failed, and the tokens (o200k) of all answers. */
export type Cost = { calls: number; errors: number; tokens: number }

/** A scripted agent: it calls tools as a model does, and may use only what it has read. */
export type Agent = {
  /** Returns the structured answer; throws when the call fails. */
  call: (tool: string, input?: Record<string, unknown>) => Promise<any>
  /** The same for a call that may fail: `problem` is what it answered then. */
  attempt: (tool: string, input?: Record<string, unknown>) => Promise<{ body?: any; problem?: any }>
  /** Searches for tools by what they do, if the list does not show them. */
  learn: (query: string, ...tools: string[]) => Promise<void>
  /**
   * Calls a tool that a person may have to approve, and waits until it ran: `ran` is its answer, `approved` the id
   * of the approval. Throws when it was declined or failed.
   */
  act: (tool: string, input: Record<string, unknown>) => Promise<{ ran?: any; approved?: string }>
  /** The person's words. */
  readonly task: string
  readonly cost: Readonly<Cost>
  /** The tokens of a conversation before its first call. */
  readonly listed: { tools: number; tokens: number }
}

type Tool = { name: string; inputSchema: { properties?: Record<string, unknown> } }
type ToolResult = {
  content?: { text: string }[]
  structuredContent?: any
  isError?: boolean
}

const prefix = 'io.modelcontextprotocol'

/** Sends one JSON-RPC message; returns its result, or throws its error. */
const createTransport = ({ url, key, era = '2026-07-28', mode = 'default' }: AgentOptions) => {
  let id = 0
  const clientInfo = { name: 'scripted-agent', version: '1' }
  const capabilities = {}
  const modern = era === '2026-07-28'
  const send = async (method: string, params: Record<string, unknown> = {}): Promise<any> => {
    const name = params['name']
    const response = await fetch(`${url}/mcp${mode === 'compact' ? '?mode=compact' : ''}`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${key}`,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'User-Agent': 'scripted-agent/1',
        ...(method === 'initialize' ? {} : { 'MCP-Protocol-Version': era }),
        ...(modern ? { 'Mcp-Method': method } : {}),
        ...(modern && typeof name === 'string' ? { 'Mcp-Name': name } : {}),
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: ++id,
        method,
        params: modern
          ? {
              ...params,
              _meta: {
                [`${prefix}/protocolVersion`]: era,
                [`${prefix}/clientInfo`]: clientInfo,
                [`${prefix}/clientCapabilities`]: capabilities,
              },
            }
          : params,
      }),
    })
    const text = await response.text()
    const reply = JSON.parse(text.startsWith('{') ? text : /^data: (\{.*)$/m.exec(text)![1]!) as any
    if (reply.result === undefined) throw new Error(`${method}: ${JSON.stringify(reply.error ?? reply)}`)
    return reply.result
  }
  return {
    send,
    open: async (): Promise<{ instructions: string }> =>
      modern
        ? await send('server/discover')
        : await send('initialize', { protocolVersion: era, capabilities, clientInfo }),
  }
}

/** What the agent has read so far. */
type Memory = {
  readonly tools: ReadonlyMap<string, Tool>
  /** All text, in which ids and names of fields are looked up. */
  text: string
  /** Operations that a search has shown: whether they read or write. */
  readonly found: Map<string, 'read' | 'write'>
}

const remember = (memory: Memory, text: string, body: any): void => {
  memory.text += `\n${text}`
  for (const row of Array.isArray(body?.data) ? body.data : [])
    if (row.kind === 'read' || row.kind === 'write') memory.found.set(row.name, row.kind)
}

/** Throws when an input has a field or an id that the agent cannot have read. */
const requireKnown = ({ tools, text }: Memory, name: string, input: Record<string, unknown>): void => {
  if (!text.includes(name)) throw new Error(`the agent has not read of a tool ${name}`)
  const fields = tools.get(name)?.inputSchema.properties
  for (const [field, value] of Object.entries(input)) {
    if (fields ? !(field in fields) : !text.includes(field))
      throw new Error(`${name}: the agent has not read of a field ${field}`)
    if (!/_ids?$/.test(field)) continue
    for (const id of [value].flat())
      if (!text.includes(`"${String(id)}"`) && !text.includes(` ${String(id)} `))
        throw new Error(`${name}: the agent has not read the id ${String(id)} of ${field}`)
  }
}

/** Returns the call that runs an operation; in compact mode one tool runs those that read, another the rest. */
const toToolCall = ({ tools, found }: Memory, name: string, input: Record<string, unknown>) => {
  const kind = found.get(name)
  return tools.has(name) || kind === undefined || !tools.has(`run_${kind}_operation`)
    ? { name, arguments: input }
    : { name: `run_${kind}_operation`, arguments: { operation: name, input } }
}

/** The tools that search all operations, in the default list and in compact mode. */
const searchTools = ['find_tools', 'search_operations']

/** Connects an agent: it reads the instructions and the list of tools. */
export const connectAgent = async (options: AgentOptions): Promise<Agent> => {
  const { send, open } = createTransport(options)
  const cost: Cost = { calls: 0, errors: 0, tokens: 0 }
  const { instructions } = await open()
  const { tools } = (await send('tools/list')) as { tools: Tool[] }
  const memory: Memory = {
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    text: `${options.task} \n${instructions}\n${JSON.stringify(tools)}`,
    found: new Map(),
  }

  const attempt: Agent['attempt'] = async (name, input = {}) => {
    requireKnown(memory, name, input)
    const result = (await send('tools/call', toToolCall(memory, name, input))) as ToolResult
    const text = result.content?.map((part) => part.text).join('\n') ?? ''
    const body = result.structuredContent ?? JSON.parse(text)
    cost.calls += 1
    cost.tokens += countTokens(text)
    remember(memory, text, body)
    await options.afterCall?.()
    if (!result.isError) return { body }
    cost.errors += 1
    return { problem: body }
  }

  const call: Agent['call'] = async (name, input) => {
    const { body, problem } = await attempt(name, input)
    if (problem) throw new Error(`${name} ${JSON.stringify(input)}: ${JSON.stringify(problem)}`)
    return body
  }

  const learn: Agent['learn'] = async (query, ...names) => {
    const search = searchTools.find((name) => memory.tools.has(name))
    const isKnown = (name: string): boolean => memory.tools.has(name) || memory.found.has(name)
    if (names.every(isKnown)) return
    if (search === undefined) throw new Error(`there is no tool to find ${names.join(', ')} with`)
    await call(search, { query, limit: Math.min(20, names.length + 5) })
    const missing = names.filter((name) => !isKnown(name))
    if (missing.length > 0) throw new Error(`"${query}" did not find ${missing.join(', ')}`)
  }

  const act: Agent['act'] = async (name, input) => {
    const body = await call(name, input)
    if (body.approval === undefined) return { ran: body }
    const asked = body.approval as { id: string }
    const { status, outcome } = await call('approvals_get', { approval_id: asked.id, wait_seconds: 30 })
    if (status !== 'done') throw new Error(`${name}: ${status} ${JSON.stringify(outcome)}`)
    return { approved: asked.id }
  }

  const listed = {
    tools: tools.length,
    tokens: countTokens(JSON.stringify(tools)) + countTokens(instructions),
  }
  return { attempt, call, learn, act, task: options.task, cost, listed }
}

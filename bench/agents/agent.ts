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
  /** Calls a tool that a person may have to approve, and returns the answer of the call once it has run. */
  act: (tool: string, input: Record<string, unknown>) => Promise<any>
  /** The person's words. */
  readonly task: string
  readonly cost: Readonly<Cost>
  /** What each conversation pays before its first call. */
  readonly listed: { tools: number; tokens: number }
}

type Tool = { name: string; inputSchema: { properties?: Record<string, unknown> } }
type ToolResult = {
  content?: { text: string }[]
  structuredContent?: any
  isError?: boolean
  inputRequests?: unknown
  requestState?: string
}

/** `resultType` of an answer that asks the person behind the client first. */
const ASKS = 'input_required'

const prefix = 'io.modelcontextprotocol'

/** Sends one JSON-RPC message; returns its result, or throws its error. */
const createTransport = ({ url, key, era = '2026-07-28', mode = 'default' }: AgentOptions) => {
  let id = 0
  const clientInfo = { name: 'scripted-agent', version: '1' }
  const capabilities = { elicitation: { form: {} } }
  const modern = era === '2026-07-28'
  const send = async (method: string, params: Record<string, unknown> = {}): Promise<any> => {
    const name = params['name']
    const response = await fetch(`${url}/mcp${mode === 'compact' ? '?mode=compact' : '?toolsets=all'}`, {
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

/** Throws when an input has a field or an id that the agent cannot have read. */
const requireKnown = (
  read: string,
  tool: Tool | undefined,
  name: string,
  input: Record<string, unknown>,
): void => {
  if (!read.includes(name)) throw new Error(`nothing that the agent has read names the tool ${name}`)
  for (const [field, value] of Object.entries(input)) {
    const isKnown = tool ? field in (tool.inputSchema.properties ?? {}) : read.includes(field)
    if (!isKnown) throw new Error(`${name}: nothing that the agent has read names the field ${field}`)
    if (!/_ids?$/.test(field)) continue
    for (const id of [value].flat())
      if (!read.includes(`"${String(id)}"`) && !read.includes(` ${String(id)} `))
        throw new Error(`${name}: the agent has not read the id ${String(id)} of ${field}`)
  }
}

/** Connects an agent: it reads the instructions and the list of tools. */
export const connectAgent = async (options: AgentOptions): Promise<Agent> => {
  const { send, open } = createTransport(options)
  const cost: Cost = { calls: 0, errors: 0, tokens: 0 }
  const { instructions } = await open()
  const { tools } = (await send('tools/list')) as { tools: Tool[] }
  const listed = {
    tools: tools.length,
    tokens: countTokens(JSON.stringify(tools)) + countTokens(instructions),
  }
  let read = `${options.task} \n${instructions}\n${JSON.stringify(tools)}`

  /** In compact mode every operation is run by one of two tools. */
  const toToolCall = (name: string, input: Record<string, unknown>) => ({ name, arguments: input })

  const request = async (name: string, input: Record<string, unknown>): Promise<ToolResult> => {
    const params = toToolCall(name, input)
    const result = (await send('tools/call', params)) as ToolResult & { resultType?: string }
    if (result.resultType !== ASKS) return result
    // The person behind the client reads the question, and agrees.
    const [question, asked] = Object.entries(result.inputRequests as Record<string, any>)[0]!
    const [field, { enum: choices }] = Object.entries(asked.params.requestedSchema.properties)[0] as [
      string,
      any,
    ]
    return await send('tools/call', {
      ...params,
      inputResponses: { [question]: { action: 'accept', content: { [field]: choices[0] } } },
      requestState: result.requestState,
    })
  }

  const attempt: Agent['attempt'] = async (name, input = {}) => {
    requireKnown(
      read,
      tools.find((tool) => tool.name === name),
      name,
      input,
    )
    const result = await request(name, input)
    const text =
      result.content?.map((part) => part.text).join('\n') ?? JSON.stringify(result.structuredContent)
    cost.calls += 1
    cost.tokens += countTokens(text)
    read += `\n${text}`
    await options.afterCall?.()
    if (!result.isError) return { body: result.structuredContent ?? JSON.parse(text) }
    cost.errors += 1
    return { problem: JSON.parse(text) }
  }

  const call: Agent['call'] = async (name, input) => {
    const { body, problem } = await attempt(name, input)
    if (problem) throw new Error(`${name} ${JSON.stringify(input)}: ${JSON.stringify(problem)}`)
    return body
  }

  return { attempt, call, act: call, task: options.task, cost, listed }
}

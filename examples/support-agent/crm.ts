import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { parseObject, read, readText } from './json.ts'
import type { Tool } from './model.ts'

/** What a tool answered: `text` is for the model, `body` the same as JSON, an error's with its `code`. */
export type Answer = { ok: boolean; text: string; body: unknown }

/** The tools beyond these are not for this agent; the server refuses to call them at this address. */
const TOOLSETS = 'workspace,conversations,quick-messages,approvals,events'

/** Reasons after which the same call, with the same key, tells what became of it. */
const UNSETTLED = new Set<unknown>(['still_running', 'outcome_unknown', 'in_progress'])

/** Whether a call may succeed, or tell more, when it is made again a little later. */
const isPassing = (problem: unknown): boolean => {
  const status = Number(read(problem, 'status'))
  return (
    UNSETTLED.has(read(problem, 'reason')) ||
    status === 429 ||
    (status >= 500 && read(problem, 'code') !== 'upstream_error')
  )
}

/** Connects to a server's MCP endpoint. Each call is a request of its own, so the server may be started anew. */
export const connect = async (settings: { url: string; apiKey: string }) => {
  const client = new Client(
    { name: 'support-agent', version: '1.0.0' },
    { versionNegotiation: { mode: 'auto' } },
  )
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`/mcp?toolsets=${TOOLSETS}`, settings.url), {
      requestInit: { headers: { Authorization: `Bearer ${settings.apiKey}` } },
    }),
  )

  /** Calls a tool. Throws when it is not known, or not final, what became of the call: make it again. */
  const call = async (name: string, args: Record<string, unknown>): Promise<Answer> => {
    const { content, isError } = await client.callTool({ name, arguments: args })
    const [first] = content
    const text = first?.type === 'text' ? first.text : ''
    const body = parseObject(text)
    if (body === undefined || (isError && isPassing(body))) throw new Error(`${name}: ${text.slice(0, 300)}`)
    return { ok: !isError, text, body }
  }

  return {
    call,
    /** The same for a call that must succeed. */
    must: async (name: string, args: Record<string, unknown>): Promise<unknown> => {
      const { ok, text, body } = await call(name, args)
      if (!ok) throw new Error(`${name}: ${readText(body, 'detail') ?? text}`)
      return body
    },
    /** How the server tells agents to work. */
    instructions: client.getInstructions() ?? '',
    /** Returns tools as a model takes them, and which of them change something. */
    listTools: async (names: readonly string[]): Promise<{ tools: Tool[]; changes: Set<string> }> => {
      const listed = (await client.listTools()).tools.filter(({ name }) => names.includes(name))
      return {
        tools: listed.map(({ name, description = '', inputSchema }) => ({
          type: 'function',
          function: { name, description, parameters: withoutHostArguments(inputSchema) },
        })),
        changes: new Set(
          listed.filter(({ annotations }) => !annotations?.readOnlyHint).map(({ name }) => name),
        ),
      }
    },
  }
}

/** The agent sets these itself, whatever the model says. */
export const HOST_ARGUMENTS = ['dry_run', 'idempotency_key']

const withoutHostArguments = (schema: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
  ...schema,
  properties: Object.fromEntries(
    Object.entries(schema['properties'] ?? {}).filter(([name]) => !HOST_ARGUMENTS.includes(name)),
  ),
})

export type Crm = Awaited<ReturnType<typeof connect>>

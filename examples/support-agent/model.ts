import { read, readList, readText } from './json.ts'

/** A call that the model asks for; `arguments` is JSON that it wrote. */
export type ToolCall = { id: string; type: 'function'; function: { name: string; arguments: string } }

export type ModelTurn = { role: 'assistant'; content: string | null; tool_calls?: readonly ToolCall[] }

/** A turn of the talk with a model, as chat endpoints take it. */
export type Turn =
  | { role: 'system' | 'user'; content: string }
  | ModelTurn
  | { role: 'tool'; tool_call_id: string; content: string }

/** A tool, as chat endpoints take it; `parameters` is JSON Schema. */
export type Tool = {
  type: 'function'
  function: { name: string; description: string; parameters: Readonly<Record<string, unknown>> }
}

/** What decides: it reads the turns so far, and says or calls something. Throws when it cannot be reached. */
export type Model = (turns: readonly Turn[], tools: readonly Tool[]) => Promise<ModelTurn>

/** How long a model may think about one turn. */
const PATIENCE_MS = 120_000

const toCall = (call: unknown, index: number): ToolCall => ({
  id: readText(call, 'id') ?? `call_${index}`,
  type: 'function',
  function: {
    name: readText(call, 'function', 'name') ?? '',
    arguments: readText(call, 'function', 'arguments') ?? '',
  },
})

/** A model behind a chat endpoint with tool calls: `url` is what comes before `/chat/completions`. */
export const createHttpModel =
  (settings: { url: string; key: string | undefined; name: string }): Model =>
  async (turns, tools) => {
    const response = await fetch(`${settings.url.replace(/\/$/, '')}/chat/completions`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        ...(settings.key === undefined ? {} : { Authorization: `Bearer ${settings.key}` }),
      },
      body: JSON.stringify({ model: settings.name, messages: turns, tools }),
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`the model answered ${response.status}: ${text.slice(0, 300)}`)
    const message = read(JSON.parse(text), 'choices', 0, 'message')
    if (message === undefined) throw new Error(`the model answered no message: ${text.slice(0, 300)}`)
    const calls = readList(message, 'tool_calls').map(toCall)
    return {
      role: 'assistant',
      content: readText(message, 'content') ?? null,
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    }
  }

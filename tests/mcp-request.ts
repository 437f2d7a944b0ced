/** The revision of the protocol whose requests identify the client. */
const MODERN = '2026-07-28'

type ToolRequest = {
  /** Undefined for a caller without a key. */
  key?: string | undefined
  client?: { name: string; version: string }
  capabilities?: Record<string, unknown>
  headers?: Record<string, string>
  /** Further parameters of the call. */
  params?: Record<string, unknown>
}

/** Returns the HTTP request of a tool call in protocol 2026-07-28. */
export const createToolRequest = (
  name: string,
  input: Record<string, unknown> = {},
  { key, client = { name: 'tests', version: '1' }, capabilities = {}, headers, params }: ToolRequest = {},
): { method: 'POST'; headers: Record<string, string>; body: string } => ({
  method: 'POST',
  headers: {
    ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': MODERN,
    'Mcp-Method': 'tools/call',
    'Mcp-Name': name,
    ...headers,
  },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name,
      arguments: input,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': MODERN,
        'io.modelcontextprotocol/clientInfo': client,
        'io.modelcontextprotocol/clientCapabilities': capabilities,
      },
      ...params,
    },
  }),
})

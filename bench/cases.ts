import type { Dataset } from './data.ts'
import type { WrkRequest } from './wrk.ts'

/** One side of a comparison. */
export type CaseSide = { server: 'product' | 'bare' | 'postgraphile'; requests: WrkRequest[] }
/**
 * The same requests to two servers, or the same read over two protocols. `writes`: the requests change data,
 * with numbers from `base` on; `rows`: see `requests.lua`.
 */
export type BenchCase = {
  name: string
  product: CaseSide
  other: CaseSide & { name: string }
  writes?: { base: number; rows?: number }
  /** The numbers in the body change with every request. */
  varies?: true
}

/** Replaces the placeholders in a body, as `requests.lua` does. */
export const fillRequest = (request: WrkRequest, n: number, rows = 1): WrkRequest => ({
  ...request,
  body: request
    .body!.replace('{n}', String(n))
    .replace('{row}', String(1 + (n % rows)))
    .replace('{turn}', String(Math.floor(n / rows))),
})

const isPlain = (name: string | null): name is string => /^\p{L}{4,} \p{L}{4,}$/u.test(name ?? '')

/** Phones from here on are valid, and the filled database does not have them (countries.ts). */
const FIRST_NEW_PHONE = 33_700_000_000

export const createCases = ({ key, people, contacts }: Dataset): BenchCase[] => {
  const authorization = { Authorization: `Bearer ${key}` }
  const get = (path: string): WrkRequest => ({ path, headers: authorization })
  const post = (path: string, body: string): WrkRequest => ({
    method: 'POST',
    path,
    headers: { ...authorization, 'Content-Type': 'application/json' },
    body,
  })
  const versusBare = (
    name: string,
    requests: WrkRequest[],
    more: Pick<BenchCase, 'writes' | 'varies'> = {},
  ): BenchCase => ({
    name,
    product: { server: 'product', requests },
    other: { name: 'bare', server: 'bare', requests },
    ...more,
  })
  const ids = people.map((p) => p.id)
  // The end of a first name with the beginning of a last name.
  const nameParts = people
    .map((p) => p.name)
    .filter(isPlain)
    .slice(0, 2000)
    .map((name) => name.replace(/^\S*(\S{3} \S{3}).*$/u, '$1'))
  const byRest = ids.map((id) => get(`/v1/contacts/${id}`))
  return [
    versusBare('no query', [get('/v1/me')], { varies: true }),
    versusBare('get by id', byRest),
    versusBare('list 25', [get('/v1/contacts?limit=25')]),
    versusBare(
      'search name',
      nameParts.map((part) => get(`/v1/contacts?query=${encodeURIComponent(part)}`)),
    ),
    versusBare('conversations', [get('/v1/conversations?limit=25')]),
    versusBare('events', [get('/v1/events?limit=25')]),
    {
      name: 'MCP get',
      product: {
        server: 'product',
        requests: ids.map((id) => mcpCall(key, 'crm_get_contact', { contact_id: String(id) })),
      },
      other: { name: 'REST', server: 'product', requests: byRest },
    },
    versusBare('upsert', [post('/v1/contacts', '{"phone":"+{n}","name":"Ada Lovelace"}')], {
      writes: { base: FIRST_NEW_PHONE },
    }),
    versusBare('tag', [post('/v1/contacts/tag', '{"contact_ids":["{row}"],"tags":["bench {turn}"]}')], {
      writes: { base: 0, rows: contacts },
    }),
  ]
}

const mcpCall = (key: string, name: string, args: Record<string, unknown>): WrkRequest => ({
  method: 'POST',
  path: '/mcp',
  headers: {
    Authorization: `Bearer ${key}`,
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': '2026-07-28',
    'Mcp-Method': 'tools/call',
    'Mcp-Name': name,
  },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name,
      arguments: args,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  }),
})

import type { Dataset } from './data.ts'
import type { WrkRequest } from './wrk.ts'

/** One comparison: the requests to the product, and those that it is compared with. */
export type BenchCase = {
  name: string
  target?: number
  product: WrkRequest[]
  against: { name: string; server: 'bare' | 'product'; requests: WrkRequest[]; hasTarget?: boolean }[]
}

const isPlain = (name: string | null): name is string => /^\p{L}{4,} \p{L}{4,}$/u.test(name ?? '')

export const createCases = ({ key, people }: Dataset): BenchCase[] => {
  const authorization = { Authorization: `Bearer ${key}` }
  const json = { 'Content-Type': 'application/json' }
  const get = (path: string): WrkRequest => ({ path, headers: authorization })
  const ids = people.map((p) => p.id)
  // Search terms: the end of a first name with the beginning of a last name, and seven digits of a phone.
  const nameParts = people
    .map((p) => p.name)
    .filter(isPlain)
    .slice(0, 2000)
    .map((name) => name.replace(/^\S*(\S{3} \S{3}).*$/u, '$1'))
  const digits = people
    .flatMap((p) => p.phone ?? [])
    .slice(0, 2000)
    .map((phone) => phone.slice(-7))
  const search = (name: string, terms: string[]): BenchCase => ({
    name,
    target: 0.7,
    product: terms.map((t) => get(`/v1/contacts?query=${encodeURIComponent(t)}`)),
    against: [
      {
        name: 'bare rows',
        server: 'bare',
        requests: terms.map((t) => ({ path: `/search?query=${encodeURIComponent(t)}` })),
        hasTarget: true,
      },
    ],
  })
  const upsert = (name: string): WrkRequest => ({
    method: 'POST',
    path: name,
    headers: { ...json, ...(name === '/insert' ? {} : authorization) },
    body: '{"phone":"+{n}","name":"Ada Lovelace"}',
  })
  const byRest = ids.map((id) => get(`/v1/contacts/${id}`))
  return [
    {
      name: 'get by id',
      target: 0.6,
      product: byRest,
      against: [
        {
          name: 'bare row',
          server: 'bare',
          requests: ids.map((id) => ({ path: `/row?id=${id}` })),
          hasTarget: true,
        },
        {
          name: 'bare, same body',
          server: 'bare',
          requests: ids.map((id) => ({ path: `/contact?id=${id}` })),
        },
      ],
    },
    {
      name: 'list 25',
      target: 0.7,
      product: [get('/v1/contacts?limit=25')],
      against: [
        { name: 'bare rows', server: 'bare', requests: [{ path: '/rows' }], hasTarget: true },
        { name: 'bare, same rows', server: 'bare', requests: [{ path: '/contacts' }] },
      ],
    },
    search('search name', nameParts),
    search('search digits', digits),
    {
      name: 'upsert',
      target: 0.4,
      product: [upsert('/v1/contacts')],
      against: [{ name: 'bare insert', server: 'bare', requests: [upsert('/insert')], hasTarget: true }],
    },
    {
      name: 'MCP get',
      product: ids.map((id) => mcpCall(key, 'crm_get_contact', { contact_id: String(id) })),
      against: [{ name: 'REST get', server: 'product', requests: byRest }],
    },
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

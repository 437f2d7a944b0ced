import type { Dataset, SampleContact } from './data.ts'
import { createToolRequest } from '../../tests/mcp-request.ts'
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
  /** The product shows fewer fields of the same rows. */
  slim?: true
  /** The least ratio of processor times that passes, whatever was recorded. */
  least?: number
}

/** A read over MCP takes at most 1.5 times the processor time of the same read over REST. */
const LEAST_OF_REST = 1 / 1.5
/** Explicitly requested whole rows are at that limit (1.4 to 1.6 times), so only the recorded ratio bounds them. */
const WHOLE_ROWS = { least: 0 }

/** Replaces the placeholders in a body, as `requests.lua` does. */
export const fillRequest = (request: WrkRequest, n: number, rows = 1): WrkRequest => ({
  ...request,
  body: request
    .body!.replace('{n}', String(n))
    .replace('{row}', String(1 + (n % rows)))
    .replace('{turn}', String(Math.floor(n / rows))),
})

const isPlain = (name: string | null): name is string => /^\p{L}{4,} \p{L}{4,}$/u.test(name ?? '')

/** The end of a first name with the beginning of a last name, for two thousand people. */
const pickNameParts = (people: readonly SampleContact[]): string[] =>
  people
    .map((p) => p.name)
    .filter(isPlain)
    .slice(0, 2000)
    .map((name) => name.replace(/^\S*(\S{3} \S{3}).*$/u, '$1'))

/** Phones from here on are valid, and the filled database does not have them (countries.ts). */
const FIRST_NEW_PHONE = 33_700_000_000

export const createCases = ({ key, otherKeys, people, contacts }: Dataset): BenchCase[] => {
  const authorization = { Authorization: `Bearer ${key}` }
  const keys = [key, ...otherKeys]
  // At most 32 expensive reads of one key may wait.
  const keyOf = (n: number): string => keys[n % keys.length]!
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
  const nameParts = pickNameParts(people)
  const byRest = ids.map((id) => get(`/v1/contacts/${id}`))
  const byName = nameParts.map((part, n) => ({
    path: `/v1/contacts?query=${encodeURIComponent(part)}`,
    headers: { Authorization: `Bearer ${keyOf(n)}` },
  }))
  const list = [get('/v1/contacts?limit=25')]
  const conversations = [get('/v1/conversations?limit=25')]
  const versusRest = (
    name: string,
    [tool, ...inputs]: [string, ...Record<string, unknown>[]],
    requests: WrkRequest[],
    more: Pick<BenchCase, 'slim' | 'least'> = {},
  ): BenchCase => ({
    name,
    product: { server: 'product', requests: inputs.map((input, n) => mcpCall(keyOf(n), tool, input)) },
    other: { name: 'REST', server: 'product', requests },
    least: LEAST_OF_REST,
    ...more,
  })
  return [
    versusBare('no query', [get('/v1/me')], { varies: true }),
    versusBare('get by id', byRest),
    versusBare('list 25', list),
    versusBare('search name', byName),
    versusBare('conversations', conversations),
    versusBare('events', [get('/v1/events?limit=25')]),
    versusRest('MCP get', ['crm_get_contact', ...ids.map((id) => ({ contact_id: String(id) }))], byRest),
    versusRest('MCP list', ['crm_search_contacts', { limit: 25 }], list, { slim: true }),
    versusRest(
      'MCP list full',
      ['crm_search_contacts', { limit: 25, detail: 'full' }],
      [get('/v1/contacts?limit=25&detail=full')],
      WHOLE_ROWS,
    ),
    versusRest('MCP search', ['crm_search_contacts', ...nameParts.map((query) => ({ query }))], byName, {
      slim: true,
    }),
    versusRest('MCP conversations', ['inbox_search_conversations', { limit: 25 }], conversations, {
      slim: true,
    }),
    versusRest(
      'MCP conv. full',
      ['inbox_search_conversations', { limit: 25, detail: 'full' }],
      conversations,
      WHOLE_ROWS,
    ),
    versusBare('upsert', [post('/v1/contacts', '{"phone":"+{n}","name":"Ada Lovelace"}')], {
      writes: { base: FIRST_NEW_PHONE },
    }),
    versusBare('tag', [post('/v1/contacts/tag', '{"contact_ids":["{row}"],"tags":["bench {turn}"]}')], {
      writes: { base: 0, rows: contacts },
    }),
  ]
}

const mcpCall = (key: string, name: string, input: Record<string, unknown>): WrkRequest => ({
  path: '/mcp',
  ...createToolRequest(name, input, { key }),
})

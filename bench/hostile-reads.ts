type HostileRequest = { method: 'GET' | 'POST'; path: string; body?: object }
/** The most expensive reads of one kind that a key may send; `requests`: the nth of them. */
export type HostileCase = { name: string; requests: (n: number) => HostileRequest }

const search = (name: string, filter: object | ((n: number) => object), more: object = {}): HostileCase => ({
  name,
  requests: (n) => ({
    method: 'POST',
    path: '/v1/contacts/search',
    body: { filter: typeof filter === 'function' ? filter(n) : filter, ...more },
  }),
})
const times = <T>(count: number, create: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => create(n))
const attribute = (key: string, condition: object, quantifier = 'some') => ({
  attributes: { [quantifier]: { attributeName: { eq: key }, ...condition } },
})

/** Different expressions near the limit of complexity. */
const nestedRegexes = (n: number): object => ({
  or: times(6, (i) => attribute('city', { stringValue: { regex: `^(?:(?:[^${i}]x?)+y${n}){1,20}z$` } })),
})
const everything = {
  not: {
    or: [
      ...times(15, (n) => ({ name: { contains: String.fromCharCode(97 + n) } })),
      ...times(15, (n) => attribute('city', { stringValue: { contains: String.fromCharCode(97 + n) } })),
    ],
  },
}
const relations = {
  and: times(12, (n) => ({
    conversations: { none: { unreadCount: { gt: 1000 + n } } },
    broadcasts: { none: { message_status: { eq: n % 2 === 0 ? 'failed' : 'pending' } } },
    tags: { none: { name: { eq: `nobody ${n}` } } },
    groups: { none: { name: { contains: `nobody ${n}` } } },
  })),
}
const rareRegex = attribute('city', { stringValue: { regex: '[xq].*[xq].*[xq].*[0-9]' } })

const day = (daysAgo: number): string =>
  new Date(Date.now() - daysAgo * 86_400_000).toISOString().slice(0, 10)
const get = (name: string, path: string): HostileCase => ({ name, requests: () => ({ method: 'GET', path }) })

export const hostileCases: readonly HostileCase[] = [
  search('nested regular expressions', nestedRegexes),
  {
    name: 'check of new expressions',
    requests: (n) => ({
      method: 'POST',
      path: '/v1/contacts/filter-check',
      body: { filter: nestedRegexes(n) },
    }),
  },
  search('regular expression, no match', rareRegex, { sort: { field: 'name', direction: 'asc' } }),
  search('back-reference', { name: { regex: '(\\w+)(\\w+).*\\2\\1$' } }),
  get('contains two letters', '/v1/contacts?query=xq'),
  get('conversations, two letters', '/v1/conversations?query=xq'),
  search('not of everything', everything, { sort: { field: 'name', direction: 'desc' }, limit: 50 }),
  search('48 relations', relations, { detail: 'full', limit: 50 }),
  search('48 relations, no match', { and: [relations, { name: { eq: 'nobody' } }, rareRegex] }),
  {
    name: 'count of 48 relations',
    requests: () => ({ method: 'POST', path: '/v1/contacts/count', body: { filter: relations } }),
  },
  {
    name: 'count of not of everything',
    requests: () => ({ method: 'POST', path: '/v1/contacts/count', body: { filter: everything } }),
  },
  get('summary of 186 days', `/v1/reports/summary?from=${day(185)}&to=${day(0)}`),
  get('staff report of 186 days', `/v1/reports/staff?from=${day(185)}&to=${day(0)}`),
]

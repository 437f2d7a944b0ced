import type { Dataset } from './data.ts'

/** A filter in several variants, as bodies of `POST /v1/contacts/search`. */
export type FilterCase = { name: string; bodies: readonly object[] }
type PostJson = (path: string, body: object) => Promise<{ response: Record<string, unknown> }>

const variants = (name: string, filters: readonly object[]): FilterCase => ({
  name,
  bodies: filters.map((filter) => ({ filter })),
})
const value = (key: string, condition: object) => ({
  attributes: { some: { attributeName: { eq: key }, ...condition } },
})
const tagged = (name: string) => ({ tags: { some: { name: { eq: name } } } })

const CITIES = ['Berlin', 'Łódź', 'Chicago', 'Nîmes']

/** Returns the filters that have targets, some that are slow on purpose, and others that people ask for. */
export const createFilterCases = async (postJson: PostJson, dataset: Dataset): Promise<FilterCase[]> => {
  const { response } = await postJson('/v1/saved-filters', {
    name: 'Pro',
    filter: value('plan', { stringValue: { eq: 'pro' } }),
  })
  const { id } = response['saved_filter'] as { id: string }
  return [...attributeCases(dataset, id), ...textAndListCases(dataset), ...slowCases, ...otherCases(dataset)]
}

const attributeCases = ({ broadcastId }: Dataset, savedFilterId: string): FilterCase[] => [
  variants(
    'attribute equality',
    CITIES.map((city) => value('city', { stringValue: { eq: city } })),
  ),
  variants(
    'attribute number range',
    [
      [1, 3],
      [10, 20],
      [40, 1000],
    ].map((between) => value('orders', { numberValue: { between } })),
  ),
  variants(
    'tag and not tag',
    [
      ['VIP', 'newsletter'],
      ['customer', 'lead'],
      ['press', 'customer'],
    ].map(([has, lacks]) => ({ tags: { some: { name: { eq: has } }, none: { name: { eq: lacks } } } })),
  ),
  variants(
    'new and text contains',
    ['ada', 'müll', 'son', 'zz'].map((text) => ({ createdAt: { gte: '-7d' }, name: { contains: text } })),
  ),
  variants('broadcast not responded', [
    { broadcasts: { some: { id: { eq: broadcastId }, message_status: { eq: 'not_responded' } } } },
    { broadcasts: { some: { id: { eq: broadcastId }, message_status: { eq: 'read' } } } },
  ]),
  variants(
    'nested and, or, not',
    CITIES.map((city) => ({
      and: [
        { or: [value('city', { stringValue: { eq: city } }), tagged('VIP')] },
        { not: { or: [{ dnd: { eq: true } }, tagged('churn risk')] } },
        { or: [{ starred: { eq: true } }, value('orders', { numberValue: { gte: 5 } })] },
      ],
    })),
  ),
  variants(
    'saved filter in a filter',
    CITIES.map((city) => ({
      savedFilter: { eq: savedFilterId },
      ...value('city', { stringValue: { eq: city } }),
    })),
  ),
]

const textAndListCases = ({ people, broadcastId }: Dataset): FilterCase[] => {
  const phones = people.flatMap((p) => p.phone ?? [])
  return [
    variants(
      'regex',
      ['^Ada.*son$', 'Müller', '^Zo', 'ovelace$'].map((regex) => ({ name: { regex } })),
    ),
    variants(
      'list of 500',
      [0, 1, 2].map((n) => ({ phoneNumber: { in: phones.slice(n * 500, n * 500 + 500) } })),
    ),
    variants(
      'conversation state',
      [
        { state: { eq: 'open' } },
        { state: { eq: 'open' }, unreadCount: { gte: 3 } },
        { state: { eq: 'closed' } },
      ].map((some) => ({ conversations: { some } })),
    ),
    variants(
      'email suffix',
      ['@example.com', 'rossi@example.com', 'ski@example.org', '@nowhere.test'].map((end) => ({
        email: { endsWith: end },
      })),
    ),
    variants(
      'combined',
      CITIES.map((city) => ({
        createdAt: { gte: '-90d' },
        ...tagged('customer'),
        or: [value('city', { stringValue: { eq: city } }), { email: { contains: 'smith' } }],
        conversations: { some: { state: { eq: 'open' } } },
        not: { broadcasts: { some: { id: { eq: broadcastId }, message_status: { eq: 'responded' } } } },
      })),
    ),
  ]
}

const slowCases: readonly FilterCase[] = [
  variants(
    'hard: regex that is absent',
    ['^[xyz]+[0-9]$', 'qqq+$'].map((regex) => ({ name: { regex } })),
  ),
  variants(
    'hard: short text, absent',
    ['§', '~|'].map((text) => ({ name: { contains: text } })),
  ),
  variants(
    'hard: short text in a value',
    ['§', 'ß'].map((text) => value('city', { stringValue: { contains: text } })),
  ),
  variants('hard: two that exclude', [
    {
      and: [value('plan', { stringValue: { eq: 'pro' } }), value('plan', { stringValue: { eq: 'free' } })],
    },
    { and: [tagged('newsletter'), { tags: { none: { name: { in: ['newsletter'] } } } }] },
  ]),
  variants('hard: the far end', [
    { createdAt: { lt: '-700d' }, ...tagged('newsletter') },
    { and: [value('newsletter', { booleanValue: { eq: true } }), { createdAt: { lte: '-720d' } }] },
  ]),
]

const otherCases = ({ broadcastId }: Dataset): FilterCase[] => [
  variants('other: two rare tags', [{ and: [tagged('VIP-klient'), tagged('legal')] }]),
  variants('other: tag, city and plan', [
    {
      and: [
        tagged('VIP'),
        value('city', { stringValue: { eq: 'Berlin' } }),
        value('plan', { stringValue: { eq: 'pro' } }),
      ],
    },
  ]),
  variants('other: without a value', [{ attributes: { none: { attributeName: { eq: 'email' } } } }]),
  variants('other: yes, and no such tag', [
    {
      ...value('newsletter', { booleanValue: { eq: true } }),
      tags: { none: { name: { eq: 'newsletter' } } },
    },
  ]),
  variants('other: text and tag', [{ and: [{ email: { contains: 'smith' } }, tagged('VIP')] }]),
  variants('other: cities and unread', [
    {
      ...value('city', { stringValue: { in: CITIES } }),
      conversations: { some: { state: { eq: 'open' }, unreadCount: { gte: 3 } } },
    },
  ]),
  variants('other: inactive customers', [{ lastActivityAt: { lt: '-300d' }, ...tagged('customer') }]),
  variants('other: orders and city', [
    {
      and: [value('orders', { numberValue: { gte: 40 } }), value('city', { stringValue: { eq: 'Berlin' } })],
    },
  ]),
  variants('other: two letters, do not disturb', [{ name: { startsWith: 'zo' }, dnd: { eq: true } }]),
  variants('other: not in a broadcast', [{ broadcasts: { none: { id: { eq: broadcastId } } } }]),
]

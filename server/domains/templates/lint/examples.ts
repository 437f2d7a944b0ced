import type { Draft, RuleExample } from './rule.ts'

const card = {
  header_format: 'IMAGE',
  media_handle: '4::aW1hZ2U',
  body: { text: 'Warm and light.' },
  buttons: [{ type: 'QUICK_REPLY', text: 'Tell me more' }],
}
const more = { ...card, body: { text: 'Dark and strong.' } }

/** The drafts that examples start from; each passes every rule. */
export const exampleDrafts = {
  plain: {
    name: 'order_update',
    language: 'en_US',
    category: 'UTILITY',
    body: { text: 'Your order is on its way.' },
  },
  code: {
    name: 'login_code',
    language: 'en_US',
    category: 'AUTHENTICATION',
    body: { add_security_recommendation: true },
    buttons: [{ type: 'OTP', otp_type: 'COPY_CODE' }],
  },
  offer: {
    name: 'spring_offer',
    language: 'en_US',
    category: 'MARKETING',
    body: { text: 'Everything for less until Sunday.' },
    limited_time_offer: { text: 'Spring offer', has_expiration: true },
    buttons: [
      { type: 'COPY_CODE', coupon_code: 'SPRING25' },
      { type: 'URL', text: 'Shop', url: 'https://shop.example' },
    ],
  },
  carousel: {
    name: 'new_coffees',
    language: 'en_US',
    category: 'MARKETING',
    body: { text: 'Our new coffees are here.' },
    carousel: { cards: [card, more] },
  },
} as const

/** Splits a path such as `carousel.cards[1].body`. */
export const parsePath = (path: string): (string | number)[] =>
  path
    .split(/[.[\]]+/)
    .filter(Boolean)
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step))

type Node = Record<string | number, unknown>

const setPath = (draft: Node, path: string, value: unknown): void => {
  const steps = parsePath(path)
  let node = draft
  for (const [i, step] of steps.slice(0, -1).entries())
    node = (node[step] ??= typeof steps[i + 1] === 'number' ? [] : {}) as Node
  if (value === null) delete node[steps.at(-1)!]
  else node[steps.at(-1)!] = value
}

/** Builds the draft of an example. */
export const buildExample = ({ base = 'plain', set = {} }: RuleExample): Draft => {
  const draft = structuredClone(exampleDrafts[base]) as unknown as Node
  for (const [path, value] of Object.entries(set)) setPath(draft, path, structuredClone(value))
  return draft as Draft
}

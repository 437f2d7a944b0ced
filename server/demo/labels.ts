import type { NewField } from '../../storage/contacts/custom-fields.ts'

/** The tags, groups and custom fields that demo contacts carry. */

/** The most frequent first. */
export const demoTagNames: readonly string[] = (
  'newsletter, customer, lead, returning, VIP, spring campaign, webshop, invoice, wholesale, churn risk, ' +
  'beta tester, referral, trade fair, support plan, premium, refund, birthday club, partner, press, ' +
  'student, complaint, demo booked, trial, on hold, reseller, summer sale, winter sale, survey 2026, ' +
  'feedback given, Großkunde, prospección, à rappeler, VIP-klient, お得意様, وفيّ, do not call, ' +
  'blocked order, warranty, legal, ambassador'
).split(', ')

export const demoGroups = [
  { name: 'Newsletter readers', emoji: '📰', share: 0.4 },
  { name: 'Key accounts', emoji: '⭐', share: 0.02 },
  { name: 'Berlin meetup', emoji: '🐻', share: 0.005 },
  { name: 'Café regulars ☕', emoji: null, share: 0.08 },
  { name: 'Überfällige Rechnungen', emoji: '💶', share: 0.03 },
  { name: 'Beta', emoji: '🧪', share: 0.1 },
] as const

const options = (...labels: string[]) =>
  labels.map((label) => ({ label, value: label.toLowerCase().replaceAll(' ', '_') }))

const field = (
  key: string,
  label: string,
  type: NewField['type'],
  more: Partial<NewField> = {},
): NewField => ({ key, label, type, options: null, visibility: 'visible_to_all', ...more })

/** `share`: of the contacts that have a value. */
export type DemoField = { field: NewField; share: number }

/** The fields of which every contact has a value. */
export const commonFields: readonly DemoField[] = [
  field('city', 'City', 'text'),
  field('plan', 'Plan', 'select', { options: options('Free', 'Basic', 'Pro', 'Enterprise') }),
  field('orders', 'Orders', 'int'),
  field('newsletter', 'Newsletter', 'checkbox'),
  field('customer_since', 'Customer since', 'date'),
].map((each) => ({ field: each, share: 1 }))

/** One of each type, except the built-in `email`. */
export const demoFields: readonly DemoField[] = [
  ...commonFields,
  ...[
    field('notes', 'Notes', 'textarea'),
    field('interests', 'Interests', 'multiselect', {
      options: options('Coffee', 'Tea', 'Bakery', 'Gift boxes', 'Workshops'),
    }),
    field('contact_by', 'Contact by', 'radio', { options: options('Chat', 'Phone', 'Email') }),
    field('next_visit', 'Next visit', 'datetime'),
    field('satisfaction', 'Satisfaction', 'number'),
    field('website', 'Website', 'url'),
    field('second_phone', 'Second phone', 'phone'),
    field('discount', 'Discount in percent', 'float'),
    field('wholesale', 'Buys wholesale', 'boolean'),
    field('lifetime_value', 'Lifetime value', 'decimal', { visibility: 'manager_only' }),
  ].map((each) => ({ field: each, share: 0.35 })),
]

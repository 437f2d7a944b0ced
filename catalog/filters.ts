import { z } from 'zod'
import { EXPENSIVE_READ, IdInput, Timestamp } from './fields.ts'
import { defineOperation } from './operation.ts'

const since = '2026-10-01'

/**
 * Bounds of a contact filter (docs/filters.md). Lengths in characters (code points), size in bytes of UTF-8
 * as compact JSON.
 */
export const filterLimits = {
  depth: 8,
  conditions: 60,
  list: 500,
  string: 500,
  regex: 200,
  /** Complexity of one regular expression, about the states of its automaton, and of all in a filter. */
  regexCost: 700,
  regexTotalCost: 2000,
  regexBackReferences: 2,
  bytes: 16_384,
} as const

/**
 * A filter as it is sent. Its grammar is checked by `server/domains/filters/`, which knows the workspace's custom
 * fields and saved filters.
 */
export const Filter = z
  .record(z.string(), z.unknown())
  .describe(
    'Contact filter: `{field: {operator: value}}`; `and`, `or` take lists, `not` one; all keys ' +
      'must hold. ' +
      'Text `name`, `phoneNumber`, `email`, `chatappUserId`, `webVisitorId`: `eq ne in notIn ' +
      'contains notContains startsWith endsWith regex isNull`. ' +
      '`externalId`: `eq ne in notIn isNull`. `id`: `eq ne in notIn`. ' +
      '`createdAt`, `updatedAt`, `lastActivityAt`, `lastInboundAt` (the customer wrote), `lastOutboundAt` ' +
      '(was written to): ' +
      '`eq ne gt gte lt lte between isNull`; ISO instants, dates, or `now`, `today`, ' +
      '`yesterday`, `-7d`, `+3d` (`m h d w mo y`), `start_of_month`, `end_of_week`. `dnd`, ' +
      '`starred`, `awaitingReply`, `neverAnswered` (wrote, and no person answered): `eq ne isNull`. ' +
      '`country` (ISO 3166 code): `eq ne in notIn isNull`. ' +
      '`tags`, `groups`: `some none every` of `{id, name}`. `attributes`: `some none` of ' +
      '`{attributeName: {eq: key}, stringValue | numberValue | booleanValue | dateValue: …}`. ' +
      '`conversations`: `some none` of `{state, channelId, assignedStaffId, assignedTeamId, ' +
      'createdAt, lastActivityAt, unreadCount}`. ' +
      '`consents`: `some none` of `{purpose, channel, state}`. ' +
      '`broadcasts`: `some none` of `{id, message_status, sentAt}`. `savedFilter: {eq: id}`. ' +
      'At most 8 deep, 60 conditions, 500 items a list, 16 KB.',
  )
  .meta({
    id: 'ContactFilter',
    examples: [{ createdAt: { gte: '-7d' }, tags: { some: { name: { eq: 'VIP' } } } }],
  })

export const SavedFilterIdInput = IdInput.describe(
  'A saved filter; when `filter` is sent too, both must match.',
)

const ResolvedDate = z.object({
  path: z.string().describe('Position in the request, as a JSON Pointer.'),
  input: z.string().describe('The value as sent.'),
  value: Timestamp.describe('The instant it means.'),
})
const Warning = z.object({
  path: z.string().describe('Position in the request, as a JSON Pointer.'),
  message: z.string().describe('Why it may not mean what it looks like.'),
})
export const ResolvedDates = z
  .array(ResolvedDate)
  .describe('Relative dates, and dates without a zone, with their instants.')
export const Warnings = z.array(Warning).describe('Conditions that look like a mistake.')

const example = { createdAt: { gte: '-7d' }, name: { contains: 'ada' } }
const resolved = [{ path: '#/filter/createdAt/gte', input: '-7d', value: '2026-09-24T09:30:00.000Z' }]

export const checkFilter = defineOperation({
  name: 'crm_check_filter',
  cli: 'contacts check-filter',
  routes: ['POST /v1/contacts/filter-check'],
  since,
  stability: 'stable',
  summary: 'Check a contact filter and explain it in words',
  description:
    'Runs no search. A filter that breaks a rule is refused with the reason and the position; one that ' +
    "only looks like a mistake returns `warnings`. Regular expressions are PostgreSQL's, advanced " +
    'syntax, at most 200 characters. Each has a complexity, roughly its length with counted ' +
    'repetitions written out, more for repeated parts that contain `^`, `$`, `\\y` or look-around: at ' +
    'most 700, and 2000 in one filter with its saved filters, with at most 2 back-references each. ' +
    `Others are refused with the reason \`regex_too_complex\`. It is ${EXPENSIVE_READ}`,
  heavy: true,
  words:
    'validate a filter, explain a filter, filter syntax, test a segment, is my filter right, ' +
    'conditions, query language',
  scope: 'mcp:read',
  input: z.object({ filter: Filter }),
  output: z.object({
    valid: z.boolean().describe('Always true; an invalid filter is refused.'),
    filter: Filter.describe('The filter with absolute dates, as it would be saved.'),
    resolved_dates: ResolvedDates,
    warnings: Warnings,
    conditions: z.int().describe('Count of conditions; at most 60.'),
    depth: z.int().describe('Nesting depth; at most 8.'),
    explanation: z.string().describe('What it means, in one sentence.'),
  }),
  errors: ['forbidden', 'not_found', 'service_unconfigured'],
  examples: [
    {
      title: 'Two conditions',
      input: { filter: example },
      output: {
        valid: true,
        filter: { createdAt: { gte: '2026-09-24T09:30:00.000Z' }, name: { contains: 'ada' } },
        resolved_dates: resolved,
        warnings: [],
        conditions: 2,
        depth: 1,
        explanation:
          'Contacts that were created on or after 24 September 2026, 09:30 (UTC) and whose name ' +
          'contains "ada".',
      },
    },
  ],
})

export const countContacts = defineOperation({
  name: 'crm_count_contacts',
  cli: 'contacts count',
  routes: ['POST /v1/contacts/count'],
  since,
  stability: 'stable',
  summary: 'Count the contacts that match a filter',
  description:
    'Counts all contacts when no filter is sent. Exact if it can be counted within a second, otherwise ' +
    `an estimate with \`approximate: true\`. With a filter it is ${EXPENSIVE_READ}`,
  heavy: ['filter', 'saved_filter_id'],
  words:
    'how many contacts, customers or leads, number with tag, count, total, size of a segment, audience ' +
    'size, how many people',
  scope: 'mcp:read',
  input: z.object({ filter: Filter.optional(), saved_filter_id: SavedFilterIdInput.optional() }),
  output: z.object({
    count: z.int().describe('Count of matching contacts.'),
    approximate: z.boolean().describe('True: `count` is an estimate.'),
    resolved_dates: ResolvedDates,
    warnings: Warnings,
  }),
  errors: ['forbidden', 'not_found', 'service_unconfigured'],
  examples: [
    {
      title: 'New this week',
      input: { filter: example },
      output: { count: 12, approximate: false, resolved_dates: resolved, warnings: [] },
    },
  ],
})

import { z } from 'zod'
import { Cursor, EXPENSIVE_READ, IdOrName, Limit, NextCursor, Total } from '../fields.ts'
import { Filter, ResolvedDates, SavedFilterIdInput, Warnings } from '../filters.ts'
import { defineOperation } from '../operation.ts'
import {
  compactContact,
  CONTACT_DETAIL,
  contact,
  ContactExternalId,
  ContactId,
  ContactView,
  since,
} from './schemas.ts'

const { email: _email, tags: _tags, groups: _groups, metadata: _metadata, ...summary } = contact

const list = {
  data: z.array(ContactView).describe('The rows of this page.'),
  total: Total,
  approximate: z.boolean().nullable().describe('True: `total` is an estimate; null where `total` is.'),
  resolved_dates: ResolvedDates,
  warnings: Warnings,
  next_cursor: NextCursor,
}

export const searchContacts = defineOperation({
  name: 'crm_search_contacts',
  cli: 'contacts search',
  since,
  stability: 'stable',
  routes: [
    {
      route: 'GET /v1/contacts',
      fields: [
        'query',
        'external_id',
        'group_ids',
        'tag_ids',
        'starred',
        'dnd',
        'not_in_any_group',
        'detail',
        'limit',
        'cursor',
      ],
    },
    {
      route: 'POST /v1/contacts/search',
      fields: ['filter', 'saved_filter_id', 'sort', 'detail', 'limit', 'cursor'],
    },
  ],
  summary: 'List or search contacts',
  forModels:
    'Contacts are the customers. Newest first unless `sort` says otherwise; all conditions must ' +
    'hold. `filter` takes conditions on any field, with and, or, not; the resource ' +
    'wcrm://guides/filters has examples. `total` comes with the first page. If phones are hidden ' +
    'from you, searching by digits is refused.',
  description:
    'Newest first unless `sort` says otherwise. All conditions must match. The first page has `total`; ' +
    '`approximate` marks an estimate. With hidden phone numbers, digits in `query`, comparing or ' +
    'sorting by phone, and digits and patterns in comparisons of `name` are refused with the reason ' +
    '`phone_hidden`; numbers in names are masked. With `query`, `filter`, `saved_filter_id`, tags or ' +
    `groups it is ${EXPENSIVE_READ}`,
  heavy: ['query', 'filter', 'saved_filter_id', 'tag_ids', 'group_ids', 'not_in_any_group'],
  slim: ['id', 'name', 'phone', 'dnd', 'starred', 'created_at', 'last_activity_at'],
  words:
    'find customers, list contacts, look up a customer by phone number, email or name, search leads, ' +
    'people, clients, inactive customers, customers in a city, with a tag, with a value, not active ' +
    'for days, members of a group, who is in a group, customers of a tag',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'name' },
    { path: 'phone' },
    { path: 'email' },
    { path: 'external_id', title: 'external id' },
    { path: 'tags' },
    { path: 'groups' },
    { path: 'last_activity_at', title: 'last activity' },
    { path: 'dnd', words: { true: 'yes', false: '' } },
    { path: 'starred', words: { true: 'yes', false: '' } },
    { path: 'created_at', title: 'created' },
  ],
  input: z.object({
    query: z
      .string()
      .trim()
      .min(1)
      .max(100)
      .optional()
      .describe('Name, phone or username contains this, ignoring case; `%` and `_` are literal.'),
    external_id: ContactExternalId.optional(),
    group_ids: z
      .array(IdOrName(100))
      .max(50)
      .optional()
      .describe('In any of these groups, at most 50 ids or names; digits are an id.'),
    tag_ids: z
      .array(IdOrName(100))
      .max(50)
      .optional()
      .describe('With any of these tags, at most 50 ids or names; digits are an id.'),
    starred: z.boolean().optional().describe('True: only starred contacts; false: only others.'),
    dnd: z.boolean().optional().describe('True: only do-not-disturb contacts; false: only others.'),
    not_in_any_group: z
      .boolean()
      .optional()
      .describe('True: only contacts in no group; false: only contacts in at least one.'),
    filter: Filter.optional(),
    saved_filter_id: SavedFilterIdInput.optional(),
    sort: z
      .strictObject({
        field: z.enum(['createdAt', 'updatedAt', 'name', 'phoneNumber', 'id']).describe('What to sort by.'),
        direction: z.enum(['asc', 'desc']).default('desc').describe('Direction; `desc` when absent.'),
      })
      .optional()
      .describe(
        'Order; `createdAt` descending when absent. Contacts without a name or phone sort as empty text.',
      ),
    detail: z
      .enum(['ids', 'compact', 'summary', 'full'])
      .default('summary')
      .describe(
        `${CONTACT_DETAIL}\`summary\`: all but email, tags, groups and metadata, which \`full\` adds.`,
      ),
    limit: Limit,
    cursor: Cursor,
  }),
  output: z.object(list),
  errors: ['forbidden', 'not_found', 'service_unconfigured'],
  examples: [
    {
      title: 'Find by name',
      input: { query: 'ada', limit: 1 },
      output: {
        data: [summary],
        total: 1,
        approximate: false,
        resolved_dates: [],
        warnings: [],
        next_cursor: null,
      },
    },
    {
      title: 'New this week, by name',
      input: { filter: { createdAt: { gte: '-7d' } }, sort: { field: 'name', direction: 'asc' as const } },
      output: {
        data: [summary],
        total: 1,
        approximate: false,
        resolved_dates: [{ path: '#/filter/createdAt/gte', input: '-7d', value: '2026-09-24T09:30:00.000Z' }],
        warnings: [],
        next_cursor: null,
      },
    },
  ],
})

export const getContact = defineOperation({
  name: 'crm_get_contact',
  cli: 'contacts get',
  routes: [
    { route: 'GET /v1/contacts/{contact_id}', fields: ['contact_id', 'detail'] },
    { route: 'GET /v1/contacts/by-external-id/{external_id}', fields: ['external_id', 'detail'] },
  ],
  since,
  stability: 'stable',
  summary: 'Read one contact in full',
  description: 'The id of a merged contact returns the contact that it was merged into.',
  slim: [
    'id',
    'name',
    'phone',
    'email',
    'dnd',
    'starred',
    'tags.name',
    'groups.name',
    'attributes.key',
    'attributes.display',
    'last_activity_at',
    'version',
  ],
  words: 'view a customer, contact details, profile, card, one contact, information about a customer',
  scope: 'mcp:read',
  versioned: { kind: 'contact', by: 'contact_id' },
  alternatives: [{ needs: ['contact_id'] }, { needs: ['external_id'] }],
  input: z.object({
    contact_id: ContactId.optional(),
    external_id: ContactExternalId.optional(),
    detail: z.enum(['ids', 'compact', 'full']).optional().describe(`${CONTACT_DETAIL}\`full\` when absent.`),
  }),
  output: z.object(ContactView.shape),
  errors: ['not_found'],
  examples: [
    { title: 'Read a contact', input: { contact_id: '42' }, output: contact },
    { title: 'By its id in your system', input: { external_id: 'C-1042' }, output: contact },
    {
      title: 'Its custom fields by key',
      input: { contact_id: '42', detail: 'compact' as const },
      output: compactContact,
    },
  ],
})

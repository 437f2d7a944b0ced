import { z } from 'zod'
import { marks } from './marks.ts'
import {
  deletedNamed,
  EXPENSIVE_READ,
  Id,
  idOf,
  listWithTotal,
  page,
  Search,
  Timestamp,
  Version,
  VisibleName,
} from './fields.ts'
import { Filter, ResolvedDates, Warnings } from './filters.ts'
import { defineOperation } from './operation.ts'

const since = '2026-10-01'

/** Maximum size of a stored filter: bytes of compact JSON in UTF-8. */
export const MAX_STORED_FILTER_BYTES = 32_768

const SavedFilter = z
  .object({
    id: idOf('saved_filter').nullable().describe('Saved filter id; null when a dry run would create it.'),
    kind: z
      .enum(['contact', 'conversation'])
      .describe('What it filters; contact operations take only `contact`.'),
    name: z.string().describe('Name.'),
    description: z.string().nullable().describe('Purpose of the filter.'),
    owner_staff_id: Id.nullable().describe('Staff member who saved it; only they may change it.'),
    // Registered itself: a copy would no longer be the schema that documents refer to.
    filter: Filter.describe('The filter, with absolute dates.').register(marks, { phone: 'filter' }),
    updated_at: Timestamp.nullable().describe('When it was last changed; null in a dry run.'),
    version: Version,
  })
  .meta({ id: 'SavedFilter' })

const saved = {
  id: '1',
  kind: 'contact' as const,
  name: 'New leads',
  description: null,
  owner_staff_id: '1',
  filter: { createdAt: { gte: '2026-09-24T09:30:00.000Z' } },
  updated_at: '2026-10-01T09:30:00.000Z',
  version: '1',
}

const MASKED =
  'Staff from whom phone numbers are hidden see digits that may be a phone masked in the filters of others. ' +
  'Conditions on custom fields that agents may not see, or that no longer exist, are shown to them as ' +
  '`{"attributeName": {"eq": "****"}}`, and so are the ids of channels that the reader may not see.'

const SavedFilterId = idOf('saved_filter').describe('Saved filter id.')
const Name = VisibleName(255)
const Description = z.string().max(1000)
const Count = z.boolean().optional().describe('With `dry_run` only: also count the contacts that match.')

/** Output fields of a create and an update, beside the saved filter. */
const findings = {
  resolved_dates: ResolvedDates,
  warnings: Warnings,
  count: z
    .int()
    .nullable()
    .optional()
    .describe('Count of matching contacts; present when requested, null when counting failed.'),
  approximate: z.boolean().optional().describe('True: `count` is an estimate.'),
  count_error: z
    .object({ code: z.string().describe('Error code.'), message: z.string().describe('What is wrong.') })
    .optional()
    .describe('Why there is no count.'),
}

export const listSavedFilters = defineOperation({
  name: 'crm_list_saved_filters',
  cli: 'saved-filters list',
  routes: ['GET /v1/saved-filters'],
  since,
  stability: 'stable',
  summary: 'List saved filters by name',
  description: `Visible to the whole team. ${MASKED}`,
  slim: ['id', 'name', 'kind', 'description'],
  words: 'saved filters, saved segments, smart lists, dynamic lists, views, audiences',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'name' },
    { path: 'kind' },
    { path: 'filter', wrap: true },
    { path: 'description', wrap: true },
    { path: 'owner_staff_id', title: 'owner' },
    { path: 'updated_at', title: 'updated' },
  ],
  names: { fields: { saved_filter_id: 'saved-filter' }, by: ['name'], beside: 'kind' },
  input: z.object({ search: Search('Name'), ...page }),
  output: z.object(listWithTotal(SavedFilter)),
  errors: [],
  examples: [
    { title: 'All saved filters', input: {}, output: { data: [saved], total: 1, next_cursor: null } },
  ],
})

export const getSavedFilter = defineOperation({
  name: 'crm_get_saved_filter',
  cli: 'saved-filters get',
  routes: ['GET /v1/saved-filters/{saved_filter_id}'],
  since,
  stability: 'stable',
  summary: 'Read one saved filter',
  description: MASKED,
  words: 'conditions of a saved filter, segment, smart list',
  scope: 'mcp:read',
  versioned: { kind: 'saved_filter', by: 'saved_filter_id' },
  input: z.object({ saved_filter_id: SavedFilterId }),
  output: z.object(SavedFilter.shape),
  errors: ['not_found'],
  examples: [{ title: 'Read a saved filter', input: { saved_filter_id: '1' }, output: saved }],
})

export const createSavedFilter = defineOperation({
  name: 'crm_create_saved_filter',
  cli: 'saved-filters create',
  since,
  stability: 'stable',
  routes: [{ route: 'POST /v1/saved-filters', query: ['count'], status: 201 }],
  summary: 'Save a contact filter for the whole team',
  description:
    'Checked like a contact filter. Relative dates are stored as absolute dates. It is ' +
    `${EXPENSIVE_READ}`,
  heavy: true,
  words:
    'save a filter, save a segment, smart list, dynamic list, audience, view, share a segment with ' +
    'colleagues',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: false,
  versioned: { kind: 'saved_filter', at: 'saved_filter' },
  emits: [],
  input: z.object({
    name: Name.describe('Name, 1 to 255 characters.'),
    description: Description.optional().describe('Purpose, at most 1000 characters.'),
    filter: Filter,
    count: Count,
  }),
  output: z.object({ saved_filter: SavedFilter.describe('The saved filter.'), ...findings }),
  errors: ['forbidden', 'not_found', 'service_unconfigured'],
  examples: [
    {
      title: 'Leads of the last week',
      input: { name: 'New leads', filter: { createdAt: { gte: '-7d' } } },
      output: {
        saved_filter: saved,
        resolved_dates: [{ path: '#/filter/createdAt/gte', input: '-7d', value: '2026-09-24T09:30:00.000Z' }],
        warnings: [],
      },
    },
  ],
})

export const updateSavedFilter = defineOperation({
  name: 'crm_update_saved_filter',
  cli: 'saved-filters update',
  since,
  stability: 'stable',
  routes: [{ route: 'PATCH /v1/saved-filters/{saved_filter_id}', query: ['count'] }],
  summary: 'Change a saved filter',
  description:
    'Only for the staff member who saved it. Omitted fields do not change. With `filter` or `count` it ' +
    `is ${EXPENSIVE_READ}`,
  heavy: ['filter', 'count'],
  words: 'edit a saved filter, segment, smart list, audience',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  versioned: { kind: 'saved_filter', by: 'saved_filter_id', at: 'saved_filter' },
  // Whom the broadcasts of others reach, also by another that takes over its name.
  asks: { filter: true, name: true },
  emits: [],
  input: z.object({
    saved_filter_id: SavedFilterId,
    name: Name.optional().describe('Name, 1 to 255 characters.'),
    description: Description.nullable()
      .optional()
      .describe('Purpose, at most 1000 characters; null clears it.'),
    filter: Filter.optional(),
    count: Count,
  }),
  output: z.object({
    saved_filter: SavedFilter.describe('The saved filter.'),
    changes: z.array(z.string()).describe('Fields whose value differs; empty when nothing changes.'),
    ...findings,
  }),
  errors: ['not_found', 'forbidden', 'conflict', 'precondition_failed', 'service_unconfigured'],
  examples: [
    {
      title: 'Rename a filter',
      input: { saved_filter_id: '1', name: 'Fresh leads' },
      output: {
        saved_filter: { ...saved, name: 'Fresh leads' },
        changes: ['name'],
        resolved_dates: [],
        warnings: [],
      },
    },
  ],
})

export const deleteSavedFilter = defineOperation({
  name: 'crm_delete_saved_filter',
  cli: 'saved-filters delete',
  routes: ['DELETE /v1/saved-filters/{saved_filter_id}'],
  since,
  stability: 'stable',
  summary: 'Delete a saved filter',
  description:
    'Only for the staff member who saved it. Filters that refer to it are then refused with the reason ' +
    '`saved_filter_not_found`.',
  words: 'remove a saved filter, segment, smart list, audience',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'delete',
  repeatable: true,
  versioned: { kind: 'saved_filter', by: 'saved_filter_id' },
  emits: [],
  input: z.object({ saved_filter_id: SavedFilterId }),
  output: z.object(deletedNamed),
  errors: ['not_found', 'forbidden', 'conflict', 'confirm_required', 'precondition_failed'],
  examples: [
    {
      title: 'Delete a saved filter',
      input: { saved_filter_id: '1' },
      output: { id: '1', deleted: true, saved_filters: [] },
    },
  ],
})

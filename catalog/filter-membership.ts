import { z } from 'zod'
import { mark } from './marks.ts'
import { Cursor, EXPENSIVE_READ, IdInput, idOf, Limit, NextCursor, Timestamp } from './fields.ts'
import { defineOperation } from './operation.ts'

const since = '2026-10-01'

const Recorded = z.object({
  recorded_at: Timestamp.describe('When the members were recorded.'),
  members: z.int().describe('How many there were.'),
})

export const trackSavedFilter = defineOperation({
  name: 'crm_track_saved_filter',
  cli: 'saved-filters track',
  routes: ['PUT /v1/saved-filters/{saved_filter_id}/tracking'],
  since,
  stability: 'beta',
  summary: 'Start or stop recording the members of a saved filter each day',
  description:
    "Members are recorded within a minute, then each day soon after midnight in the workspace's time " +
    'zone, and when the filter changes; records are kept for 35 days. `reports_filter_membership` ' +
    'compares them. At most 10 filters of a workspace are tracked. For the staff member who saved the ' +
    'filter, and for owners, admins and managers, if they may see all channels and everything that the ' +
    'filter tests.',
  words: 'track a segment, record members of a filter each day, monitor audience changes',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: true,
  emits: [],
  input: z.object({
    saved_filter_id: idOf('saved_filter').describe('Saved filter id.'),
    tracked: z.boolean().describe('False: recording has stopped; existing records are kept for 35 days.'),
  }),
  output: z.object({
    saved_filter_id: idOf('saved_filter').describe('Saved filter id.'),
    tracked: z.boolean().describe('Whether it is tracked.'),
    tracked_since: Timestamp.nullable().describe('Since when; null when it is not tracked.'),
  }),
  errors: ['not_found', 'forbidden', 'conflict', 'service_unconfigured'],
  examples: [
    {
      title: 'Begin',
      input: { saved_filter_id: '1', tracked: true },
      output: { saved_filter_id: '1', tracked: true, tracked_since: '2026-10-01T09:30:00.000Z' },
    },
  ],
})

export const filterMembership = defineOperation({
  name: 'reports_filter_membership',
  cli: 'reports membership',
  routes: ['GET /v1/reports/filter-membership'],
  since,
  stability: 'beta',
  summary: 'List contacts that entered or left a saved filter since a date',
  description:
    'Compares two records of its members (`crm_track_saved_filter`): the last one up to `since` and ' +
    'the newest one. Contacts that entered and left in between are not listed. Without a record up to ' +
    '`since`, or if the filter was different then, it compares with the first one after that, and ' +
    '`complete` is false. Deleted and merged contacts have left; erased ones are in no record. Refused ' +
    'to staff who may not see what the filter tests, or who are limited to some channels if it tests ' +
    `activity on channels. It is ${EXPENSIVE_READ}`,
  heavy: true,
  words:
    'who entered or left a segment, new members of a saved filter, churn, changes of an audience, ' +
    'churned, growth over time',
  scope: 'mcp:read',
  input: z.object({
    saved_filter_id: mark(IdInput, { idOf: 'saved_filter' }).describe('A saved filter that is tracked.'),
    since: z
      .string()
      .min(1)
      .max(40)
      .describe(
        'An instant, a day, or a relative date such as `-7d` or `start_of_month`, in the time zone of the workspace.',
      ),
    limit: Limit,
    cursor: Cursor,
  }),
  output: z.object({
    saved_filter_id: idOf('saved_filter').describe('Saved filter id.'),
    since: Timestamp.describe('The instant that `since` means.'),
    complete: z
      .boolean()
      .describe('False: there is no record from before `since`; `from` is the first after it.'),
    from: Recorded.describe('The earlier record.'),
    to: Recorded.describe('The newest record.'),
    entered: z.int().describe('How many entered.'),
    left: z.int().describe('How many left.'),
    data: z
      .array(
        z.object({
          contact_id: idOf('contact').describe('Contact id.'),
          change: z.enum(['entered', 'left']).describe('What happened.'),
          contact: z
            .enum(['exists', 'merged', 'deleted'])
            .describe('Whether the contact exists, or was merged or deleted.'),
          merged_into_id: idOf('contact').nullable().describe('The contact that it was merged into.'),
        }),
      )
      .describe('Those of this page, by id.'),
    next_cursor: NextCursor,
  }),
  errors: ['not_found', 'forbidden', 'conflict', 'service_unconfigured'],
  examples: [
    {
      title: 'Within a week',
      input: { saved_filter_id: '1', since: '-7d' },
      output: {
        saved_filter_id: '1',
        since: '2026-09-24T09:30:00.000Z',
        complete: true,
        from: { recorded_at: '2026-09-24T00:00:21.000Z', members: 40 },
        to: { recorded_at: '2026-10-01T00:00:12.000Z', members: 41 },
        entered: 2,
        left: 1,
        data: [
          { contact_id: '1', change: 'entered', contact: 'exists', merged_into_id: null },
          { contact_id: '2', change: 'entered', contact: 'exists', merged_into_id: null },
          { contact_id: '7', change: 'left', contact: 'deleted', merged_into_id: null },
        ],
        next_cursor: null,
      },
    },
  ],
})

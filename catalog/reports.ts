import { z } from 'zod'
import { Cursor, Id, Limit, NextCursor, Timestamp } from './fields.ts'
import { defineOperation } from './operation.ts'

const since = '2026-10-01'

export const presets = [
  'today',
  'yesterday',
  'last_7_days',
  'last_14_days',
  'last_30_days',
  'this_month',
  'last_month',
  'this_week',
  'last_week',
] as const

const Day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/, 'must be a day, YYYY-MM-DD')
const span = {
  preset: z
    .enum(presets)
    .optional()
    .describe('Up to today; `last_7_days` when absent. Weeks begin on Monday.'),
  from: Day.optional().describe('First day, YYYY-MM-DD; with `to`. Both override `preset`.'),
  to: Day.optional().describe('Last day, inclusive, today at the latest; at most 186 days in all.'),
  timezone: z.string().min(1).max(64).optional().describe("IANA name; the workspace's when absent."),
}

const Range = z.object({
  from: z.string().describe('First local day.'),
  to: z.string().describe('Last local day, inclusive.'),
  days: z.int().describe('Days.'),
  timezone: z.string().describe('IANA time zone.'),
  started_at: Timestamp.describe('First instant.'),
  ended_at: Timestamp.describe('End, exclusive.'),
  preset: z.string().nullable().describe('Requested preset.'),
})

const Unavailable = z
  .array(
    z.object({
      metric: z.string().describe('Path of the metric.'),
      reason: z.string().describe('Why it is null.'),
    }),
  )
  .describe('Null figures; null is never zero.')
const Notes = z.array(z.string()).describe('What a reader needs to know.')
const n = (what: string) => z.int().nullable().describe(what)
const x = (what: string) => z.number().nullable().describe(what)

const range = {
  from: '2026-10-01',
  to: '2026-10-07',
  days: 7,
  timezone: 'Europe/Berlin',
  started_at: '2026-09-30T22:00:00.000Z',
  ended_at: '2026-10-07T22:00:00.000Z',
  preset: 'last_7_days',
}

export const workspaceSummary = defineOperation({
  name: 'reports_workspace_summary',
  cli: 'reports summary',
  routes: ['GET /v1/reports/summary'],
  since,
  stability: 'stable',
  summary: 'Sum up messages, conversations and contacts of some days',
  description: 'Of all channels. `notes` say how it was counted; a null figure is in `unavailable`.',
  scope: 'mcp:read',
  input: z.object(span),
  output: z.object({
    range: Range.describe('What is summed up.'),
    workspace: z
      .object({
        company_id: Id.nullable().describe('Workspace.'),
        name: z.string().nullable().describe('Name.'),
        timezone: z.string().nullable().describe('Time zone.'),
        contacts_total: n('All contacts, whenever made.'),
      })
      .describe('The workspace.'),
    messages: z
      .object({
        sent: n('Sent, delivered or read.'),
        delivered: n('Delivered or read.'),
        read: n('Read.'),
        failed: n('Failed; not among the sent.'),
        delivery_rate: x('`delivered` of `sent`, 0 to 1.'),
      })
      .describe('Messages to customers written then, as they stand now; without broadcasts.'),
    conversations: z
      .object({
        closes: n('Closes, each time.'),
        distinct_conversations: n('Conversations closed.'),
        reopened: n('Opened again, each time.'),
        median_close_seconds: x('Median from opening to closing.'),
        waiting_now: n('Customers who wait for an answer, now.'),
        unassigned_now: n('Open conversations of no staff member and no team, now.'),
        oldest_wait_buckets_now: z
          .record(z.string(), z.int())
          .nullable()
          .describe('The waiting by how long: `under_1h`, `1h_to_4h`, `4h_to_24h`, `over_24h`.'),
      })
      .describe('Conversations.'),
    contacts: z
      .object({
        new: n('Made, and not deleted.'),
        new_is_lower_bound: z.boolean().describe('The count was cut short at 100,000.'),
      })
      .describe('Contacts.'),
    broadcasts: z
      .object({
        started: n('Started.'),
        sent: n('Recipients sent to.'),
        delivered: n('Delivered or read.'),
        read: n('Read.'),
        failed: n('Failed.'),
        opted_out: n('Asked for no more.'),
      })
      .describe('Broadcasts started then, as they stand now.'),
    sla: z
      .object({
        running: z.boolean().nullable().describe('A policy is in force.'),
        breaches: n('Clocks that ran out in these days, unmet.'),
        config_problems: n('Policies in force without a target, an existing channel, or hours.'),
      })
      .describe('Service levels.'),
    agents: z
      .object({
        sessions: n('Sessions of AI agents.'),
        handoffs: n('Handed to people.'),
        resolution_rate: x('Resolved without people, 0 to 1.'),
      })
      .describe('AI agents.'),
    chatbots: z.object({ sessions: z.null().describe('Always null: not kept.') }).describe('Chatbots.'),
    notes: Notes,
    unavailable: Unavailable,
  }),
  errors: [],
  examples: [
    {
      title: 'The last seven days',
      input: { preset: 'last_7_days' },
      output: {
        range,
        workspace: { company_id: '1', name: 'Demo Coffee', timezone: 'Europe/Berlin', contacts_total: 200 },
        messages: { sent: 240, delivered: 231, read: 190, failed: 4, delivery_rate: 0.9625 },
        conversations: {
          closes: 31,
          distinct_conversations: 29,
          reopened: 6,
          median_close_seconds: 5400,
          waiting_now: 7,
          unassigned_now: 4,
          oldest_wait_buckets_now: { under_1h: 5, '1h_to_4h': 1, '4h_to_24h': 1, over_24h: 0 },
        },
        contacts: { new: 12, new_is_lower_bound: false },
        broadcasts: { started: 1, sent: 300, delivered: 290, read: 214, failed: 4, opted_out: 2 },
        sla: { running: true, breaches: 3, config_problems: 0 },
        agents: { sessions: null, handoffs: null, resolution_rate: null },
        chatbots: { sessions: null },
        notes: [
          '2026-10-07 is not over.',
          'broadcasts counts those that were started in these days with all their recipients, as they stand now.',
        ],
        unavailable: [
          ...['sessions', 'handoffs', 'resolution_rate'].map((figure) => ({
            metric: `agents.${figure}`,
            reason: "No API key of this workspace is marked as an AI agent's.",
          })),
          { metric: 'chatbots.sessions', reason: 'No chatbot analytics are kept.' },
        ],
      },
    },
  ],
})

const StaffRow = z.object({
  staff_id: Id.nullable().describe('Staff member; null: nobody, or the system.'),
  name: z.string().nullable().describe('Name.'),
  conversations: n(
    'Conversations answered, closed or assigned; each counts once, here and in the next five.',
  ),
  handled: n('Answered or closed.'),
  closed: n('Closed.'),
  replied: n('Answered.'),
  untouched: n('Assigned in these days, neither answered nor closed.'),
  messages_sent: n('Messages sent that did not fail.'),
  reopened: n('Opened again after this member had closed them.'),
  avg_first_response_seconds: x('Average wait for the first response.'),
  avg_time_to_close_seconds: x('Average from opening to closing.'),
  sla_breaches: z
    .object({
      first_response: n('First responses that were late.'),
      next_response: n('Later responses that were late.'),
      resolution: n('Closed late.'),
      total: n('All.'),
    })
    .nullable()
    .describe('Clocks that this member stopped late; null when the source cannot say.'),
  sla_compliance_rate: x('Clocks stopped in time, of all that this member stopped, 0 to 1.'),
  reason_coverage: x('Closes with a reason, 0 to 1; of live closes only.'),
})

export const staffReport = defineOperation({
  name: 'reports_staff',
  cli: 'reports staff',
  routes: ['GET /v1/reports/staff'],
  since,
  stability: 'beta',
  summary: 'Report what each staff member did in some days, and what they have now',
  description:
    'From the shortest stored report that covers the days in the time zone, else counted live. Reports are made each night for yesterday, 7 and 30 days. Agents need report permission.',
  scope: 'mcp:read',
  input: z.object({ ...span, limit: Limit, cursor: Cursor }),
  output: z.object({
    range: Range.describe('The requested range.'),
    source: z.enum(['generated_report', 'live_closes']).describe('Where the rows come from.'),
    report: z
      .object({
        id: Id.describe('Report id.'),
        name: z.string().nullable().describe('Name.'),
        from: z.string().describe('First day.'),
        to: z.string().describe('Last day.'),
        generated_at: Timestamp.nullable().describe('When it was created.'),
        timezone: z.string().nullable().describe('Time zone.'),
        covers_more_than_asked: z.boolean().describe('It covers more days than requested.'),
      })
      .nullable()
      .describe('The stored report.'),
    data: z.array(StaffRow).describe('The rows of this page, most conversations first.'),
    population: z
      .object({
        total: n('Rows in all.'),
        capped: z.boolean().describe('There are more than were counted.'),
        note: z.string().nullable().describe('Why.'),
      })
      .describe('Whom the rows are of.'),
    workload_now: z
      .array(
        z.object({
          staff_id: Id.nullable().describe('Staff member; null: nobody.'),
          name: z.string().nullable().describe('Name.'),
          waiting: n('Customers waiting.'),
          assigned_open: n('Open conversations.'),
          window_expired: n('Of these, whose reply window has run out.'),
          oldest_wait_seconds: x('Longest wait.'),
        }),
      )
      .describe('What everybody has now.'),
    notes: Notes,
    next_cursor: NextCursor,
    unavailable: Unavailable,
  }),
  errors: ['forbidden'],
  examples: [
    {
      title: 'The last seven days',
      input: {},
      output: {
        range,
        source: 'live_closes',
        report: null,
        data: [
          {
            staff_id: '5',
            name: 'Grace',
            conversations: 20,
            handled: 18,
            closed: 15,
            replied: 17,
            untouched: 2,
            messages_sent: 74,
            reopened: 1,
            avg_first_response_seconds: 640,
            avg_time_to_close_seconds: 7200,
            sla_breaches: { first_response: 1, next_response: 0, resolution: 0, total: 1 },
            sla_compliance_rate: 0.97,
            reason_coverage: 0.8,
          },
        ],
        population: { total: 1, capped: false, note: null },
        workload_now: [
          {
            staff_id: '5',
            name: 'Grace',
            waiting: 2,
            assigned_open: 6,
            window_expired: 1,
            oldest_wait_seconds: 1800,
          },
        ],
        notes: [],
        next_cursor: null,
        unavailable: [],
      },
    },
  ],
})

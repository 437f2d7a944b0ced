import { z } from 'zod'
import { Cursor, EXPENSIVE_READ, Id, Limit, NextCursor, Timestamp } from './fields.ts'
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
  to: Day.optional().describe('Last day, inclusive, today at the latest; at most 186 days.'),
  timezone: z.string().min(1).max(64).optional().describe("IANA name; the workspace's when absent."),
}

const more = {
  compare: z
    .boolean()
    .optional()
    .describe(
      'True: `previous` has the same metrics for as many days before; the report takes twice as long.',
    ),
  medians: z
    .boolean()
    .optional()
    .describe('True: medians in addition to averages, of first responses and of closes.'),
}
const medianField = (what: string) =>
  z.number().nullable().optional().describe(`${what} Only with \`medians\`; null without one.`)

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
const Notes = z.array(z.string()).describe('Notes on how the figures were counted.')
const countField = (what: string) => z.int().nullable().describe(what)
const numberField = (what: string) => z.number().nullable().describe(what)

const range = {
  from: '2026-10-01',
  to: '2026-10-07',
  days: 7,
  timezone: 'Europe/Berlin',
  started_at: '2026-09-30T22:00:00.000Z',
  ended_at: '2026-10-07T22:00:00.000Z',
  preset: 'last_7_days',
}

const MessagesFigures = z
  .object({
    sent: countField('Sent, delivered or read.'),
    delivered: countField('Delivered or read.'),
    read: countField('Read.'),
    failed: countField('Failed; not counted in `sent`.'),
    delivery_rate: numberField('`delivered` divided by `sent`, 0 to 1.'),
  })
  .describe('Messages to customers created in the range, with their current status; without broadcasts.')

const ContactsFigures = z
  .object({
    new: countField('Created and not deleted.'),
    new_is_lower_bound: z.boolean().describe('True: the count stopped at 100,000.'),
  })
  .describe('Contacts.')

const BroadcastsFigures = z
  .object({
    started: countField('Started.'),
    sent: countField('Recipients sent to.'),
    delivered: countField('Delivered or read.'),
    read: countField('Read.'),
    failed: countField('Failed.'),
    opted_out: countField('Opted out.'),
  })
  .describe('Broadcasts started in the range, with their current status.')

const pastConversations = {
  closes: countField('Closes; a conversation can count several times.'),
  distinct_conversations: countField('Distinct conversations closed.'),
  reopened: countField('Reopens; a conversation can count several times.'),
  median_close_seconds: numberField('Median from opening to closing.'),
  median_first_response_seconds: medianField('Median wait for the first response.'),
}

export const workspaceSummary = defineOperation({
  name: 'reports_workspace_summary',
  cli: 'reports summary',
  routes: ['GET /v1/reports/summary'],
  since,
  stability: 'stable',
  summary: 'Summarize messages, conversations and contacts over a range of days',
  forModels:
    'Messages, conversations, contacts, broadcasts and service levels. `notes` explain the counting, ' +
    '`unavailable` each null metric.',
  description:
    'Covers the channels that the owner of the key may see; contacts are always of the whole ' +
    'workspace. `notes` explain the counting and any limit, `unavailable` each null metric. It is ' +
    `${EXPENSIVE_READ}`,
  heavy: true,
  words:
    'report, statistics, KPIs, dashboard, figures, metrics, analytics, weekly or monthly summary, how ' +
    'many messages were sent, volume, new customers, delivery rate',
  scope: 'mcp:read',
  input: z.object({ ...span, ...more }),
  output: z.object({
    range: Range.describe('The range of the report.'),
    workspace: z
      .object({
        company_id: Id.nullable().describe('Workspace.'),
        name: z.string().nullable().describe('Name.'),
        timezone: z.string().nullable().describe('Time zone.'),
        contacts_total: countField('All contacts.'),
      })
      .describe('The workspace.'),
    messages: MessagesFigures,
    conversations: z
      .object({
        ...pastConversations,
        waiting_now: countField('Customers who wait for a reply, now.'),
        unassigned_now: countField('Open conversations without a staff member or team, now.'),
        oldest_wait_buckets_now: z
          .record(z.string(), z.int())
          .nullable()
          .describe(
            'Waiting conversations by waiting time: `under_1h`, `1h_to_4h`, `4h_to_24h`, `over_24h`.',
          ),
      })
      .describe('Conversations.'),
    contacts: ContactsFigures,
    broadcasts: BroadcastsFigures,
    sla: z
      .object({
        running: z.boolean().nullable().describe('True: a policy is active.'),
        breaches: countField('Clocks that ran out in the range.'),
        config_problems: countField('Active policies without a target, an existing channel or hours.'),
      })
      .describe('Service levels.'),
    agents: z
      .object({
        sessions: countField('Sessions of AI agents begun in the range.'),
        handoffs: countField('Of these, handed over to people.'),
        resolution_rate: numberField('Of these, the share closed without people, 0 to 1.'),
      })
      .describe(
        'AI agents: a session is an episode of a conversation in which a key marked as theirs acted.',
      ),
    previous: z
      .object({
        range: Range.describe('As many days, just before.'),
        messages: MessagesFigures,
        conversations: z.object(pastConversations).describe('Conversations, without the figures of now.'),
        contacts: ContactsFigures,
        broadcasts: BroadcastsFigures,
        sla: z
          .object({ breaches: countField('Clocks that ran out in the range.') })
          .describe('Service levels.'),
      })
      .optional()
      .describe('The same for as many days before; only with `compare`.'),
    chatbots: z.object({ sessions: z.null().describe('Always null: not recorded.') }).describe('Chatbots.'),
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
          'broadcasts counts those that were started in these days with all their recipients, ' +
            'as they stand now.',
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
  staff_id: Id.nullable().describe('Staff member; null: nobody or the system, or the row `Phone app`.'),
  name: z.string().nullable().describe('Name.'),
  conversations: countField(
    'Conversations answered, closed or assigned; each counts once, as in `handled`, `replied`, `untouched`.',
  ),
  handled: countField('Answered or closed.'),
  closed: countField('Closes; a conversation can count several times.'),
  replied: countField('Answered.'),
  untouched: countField('Assigned in the range, neither answered nor closed.'),
  messages_sent: countField('Messages sent that did not fail.'),
  reopened: countField('Reopens after this member had closed; a conversation can count several times.'),
  avg_first_response_seconds: numberField('Average wait for the first response.'),
  avg_time_to_close_seconds: numberField('Average from opening to closing.'),
  sla_breaches: z
    .object({
      first_response: countField('First responses.'),
      next_response: countField('Later responses.'),
      resolution: countField('Closes.'),
      total: countField('All.'),
    })
    .nullable()
    .describe(
      'Clocks that ran out in the range and that this member stopped late, or that run in conversations ' +
        'assigned to them.',
    ),
  sla_compliance_rate: numberField(
    'Share of clocks that this member stopped in time, of these and `sla_breaches`, 0 to 1.',
  ),
  reason_coverage: numberField('Share of closes with a reason, 0 to 1; for live closes only.'),
  // At the end: lines for programs keep the places of the columns before.
  median_first_response_seconds: medianField('Median wait for the first response.'),
  median_time_to_close_seconds: medianField('Median from opening to closing.'),
})

export const staffReport = defineOperation({
  name: 'reports_staff',
  cli: 'reports staff',
  routes: ['GET /v1/reports/staff'],
  since,
  stability: 'beta',
  summary: 'Report what each staff member did in a range of days, and their current load',
  description:
    'Uses a stored report of exactly these days in the time zone, otherwise computed live. Reports are ' +
    'stored each night for yesterday, 7 and 30 days. Agents need the report permission. For staff ' +
    'limited to some channels, metrics cover those, computed live, with `notes`. It is ' +
    `${EXPENSIVE_READ}`,
  heavy: true,
  words:
    'agent performance, workload, response time, who answered most, productivity, statistics of each ' +
    'colleague, first reply time, leaderboard',
  scope: 'mcp:read',
  input: z.object({ ...span, ...more, limit: Limit, cursor: Cursor }),
  output: z.object({
    range: Range.describe('The requested range.'),
    source: z.enum(['generated_report', 'live_closes']).describe('Source of the rows.'),
    report: z
      .object({
        id: Id.describe('Report id.'),
        name: z.string().nullable().describe('Name.'),
        from: z.string().describe('First day.'),
        to: z.string().describe('Last day.'),
        generated_at: Timestamp.nullable().describe('When it was created.'),
        timezone: z.string().nullable().describe('Time zone.'),
        covers_more_than_asked: z.boolean().describe('Always false: it covers exactly the days requested.'),
      })
      .nullable()
      .describe('The stored report.'),
    data: z.array(StaffRow).describe('The rows of this page, most conversations first.'),
    previous: z
      .object({
        range: Range.describe('As many days, just before.'),
        data: z.array(StaffRow).describe('The rows of the same members, if they were active.'),
      })
      .optional()
      .describe('The same for as many days before; only with `compare`.'),
    population: z
      .object({
        total: countField('Count of all rows.'),
        capped: z.boolean().describe('True: there are more than were counted.'),
        note: z.string().nullable().describe('What the rows cover.'),
      })
      .describe('The staff members in the report.'),
    workload_now: z
      .array(
        z.object({
          staff_id: Id.nullable().describe('Staff member; null: nobody.'),
          name: z.string().nullable().describe('Name.'),
          waiting: countField('Customers waiting.'),
          assigned_open: countField('Open conversations.'),
          window_expired: countField('Of these, those whose reply window has expired.'),
          oldest_wait_seconds: numberField('Longest wait.'),
        }),
      )
      .describe('Current load of all staff members.'),
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

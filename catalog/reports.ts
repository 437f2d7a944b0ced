import { z } from 'zod'
import { Cursor, Id, Limit, NextCursor, Timestamp } from './fields.ts'
import { operation } from './operation.ts'

const since = '2026-10-01'

export const presets = ['today', 'yesterday', 'last_7_days', 'last_14_days', 'last_30_days', 'this_month', 'last_month', 'this_week', 'last_week'] as const

const Day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/, 'must be a day, YYYY-MM-DD')
const span = {
  preset: z.enum(presets).optional().describe('Days counted in the time zone; `last_7_days` when absent. Weeks begin on Monday.'),
  from: Day.optional().describe('First day, YYYY-MM-DD; with `to`, instead of `preset`.'),
  to: Day.optional().describe('Last day, inclusive; at most 186 days in all.'),
  timezone: z.string().min(1).max(64).optional().describe('IANA name; the workspace\'s when absent.'),
}

export const Range = z.object({
  from: z.string().describe('First local day.'),
  to: z.string().describe('Last local day, inclusive.'),
  days: z.int().describe('Days.'),
  timezone: z.string().describe('IANA time zone.'),
  started_at: Timestamp.describe('First instant.'),
  ended_at: Timestamp.describe('End, exclusive.'),
  preset: z.string().nullable().describe('Preset asked for.'),
})

const Unavailable = z.array(z.object({ metric: z.string().describe('Path of the metric.'), reason: z.string().describe('Why it is null.') })).describe('Metrics that cannot be answered; they are null, which is never zero.')
const Notes = z.array(z.string()).describe('What a reader needs to know.')
const n = (what: string) => z.int().nullable().describe(what)
const x = (what: string) => z.number().nullable().describe(what)

const range = {
  from: '2026-10-01', to: '2026-10-07', days: 7, timezone: 'Europe/Berlin', started_at: '2026-09-30T22:00:00.000Z', ended_at: '2026-10-07T22:00:00.000Z', preset: 'last_7_days',
}

export const workspaceSummary = operation({
  name: 'reports_workspace_summary', cli: 'reports summary', routes: ['GET /v1/reports/summary'], since, stability: 'stable',
  summary: 'Sum up messages, conversations, contacts and broadcasts of some days',
  scope: 'mcp:read',
  input: z.object(span),
  output: z.object({
    range: Range.describe('What is summed up.'),
    workspace: z.object({
      company_id: Id.nullable().describe('Workspace.'), name: z.string().nullable().describe('Name.'), timezone: z.string().nullable().describe('Time zone.'), contacts_total: n('All contacts ever.'),
    }).describe('The workspace.'),
    messages: z.object({ sent: n('Sent.'), delivered: n('Delivered.'), read: n('Read.'), failed: n('Failed.'), delivery_rate: x('Delivered of those sent, 0 to 1.') }).describe('Messages to customers.'),
    conversations: z.object({
      closes: n('Closed, each time.'), distinct_conversations: n('Different conversations closed.'), reopened: n('Opened again.'), median_close_seconds: x('Median from opening to closing.'),
      waiting_now: n('Customers who wait for an answer, now.'), unassigned_now: n('Open conversations of nobody, now.'),
      oldest_wait_buckets_now: z.record(z.string(), z.int()).nullable().describe('Waiting customers by how long they wait, now.'),
    }).describe('Conversations.'),
    contacts: z.object({ new: n('Made.'), new_is_lower_bound: z.boolean().describe('The count is a minimum: counting was cut short.') }).describe('Contacts.'),
    broadcasts: z.object({ started: n('Started.'), sent: n('Sent.'), delivered: n('Delivered.'), read: n('Read.'), failed: n('Failed.'), opted_out: n('Asked for no more.') }).describe('Broadcasts.'),
    sla: z.object({ running: z.boolean().nullable().describe('A policy is in force.'), breaches: n('Clocks that ran out.'), config_problems: n('Policies that cannot work.') }).describe('Service levels.'),
    agents: z.object({ sessions: n('Sessions of AI agents.'), handoffs: n('Handed to people.'), resolution_rate: x('Resolved without people, 0 to 1.') }).describe('AI agents.'),
    chatbots: z.object({ sessions: z.null().describe('Always null: no chatbot analytics are kept.') }).describe('Chatbots.'),
    notes: Notes, unavailable: Unavailable,
  }),
  errors: [],
  examples: [{
    title: 'The last seven days', input: { preset: 'last_7_days' },
    output: {
      range, workspace: { company_id: '1', name: 'Demo Coffee', timezone: 'Europe/Berlin', contacts_total: 200 }, messages: { sent: 240, delivered: 231, read: 190, failed: 4, delivery_rate: 0.9625 },
      conversations: { closes: 31, distinct_conversations: 29, reopened: 6, median_close_seconds: 5400, waiting_now: 7, unassigned_now: 4, oldest_wait_buckets_now: { under_1h: 5, '1h_to_4h': 1, '4h_to_24h': 1, over_24h: 0 } },
      contacts: { new: 12, new_is_lower_bound: false }, broadcasts: { started: 1, sent: 300, delivered: 290, read: 214, failed: 4, opted_out: 2 },
      sla: { running: true, breaches: 3, config_problems: 0 }, agents: { sessions: null, handoffs: null, resolution_rate: null }, chatbots: { sessions: null },
      notes: ['delivery_rate counts what was sent in the range, whenever it was delivered.'],
      unavailable: [{ metric: 'agents.sessions', reason: 'No AI agent works in this workspace.' }, { metric: 'chatbots.sessions', reason: 'No chatbot analytics are kept.' }],
    },
  }],
})

const StaffRow = z.object({
  staff_id: Id.nullable().describe('Staff member; null: unassigned or the system.'), name: z.string().nullable().describe('Name.'),
  conversations: n('Conversations assigned or answered.'), handled: n('Conversations answered or closed.'), closed: n('Closed.'), replied: n('Conversations answered.'), untouched: n('Assigned, neither answered nor closed.'),
  messages_sent: n('Messages sent.'), reopened: n('Opened again after this member closed them.'),
  avg_first_response_seconds: x('Average first response.'), avg_time_to_close_seconds: x('Average from opening to closing.'),
  sla_breaches: z.object({ first_response: n('First responses that were late.'), next_response: n('Later responses that were late.'), resolution: n('Closed late.'), total: n('All.') }).nullable().describe('Null when the source cannot say.'),
  sla_compliance_rate: x('Clocks that were met, 0 to 1.'), reason_coverage: x('Closes with a reason, 0 to 1; of live closes only.'),
})

export const staffReport = operation({
  name: 'reports_staff', cli: 'reports staff', routes: ['GET /v1/reports/staff'], since, stability: 'beta',
  summary: 'Report what each staff member did in some days, and what they have now',
  description: 'From a stored report when one covers the range, else from closes as they are. Wants report permission of the key\'s owner.',
  scope: 'mcp:read',
  input: z.object({ ...span, limit: Limit, cursor: Cursor }),
  output: z.object({
    range: Range.describe('What was asked for.'),
    source: z.enum(['generated_report', 'live_closes']).describe('Where the rows come from.'),
    report: z.object({
      id: Id.describe('Report id.'), name: z.string().nullable().describe('Name.'), from: z.string().describe('First day.'), to: z.string().describe('Last day.'), generated_at: Timestamp.nullable().describe('When it was made.'),
      timezone: z.string().nullable().describe('Time zone.'), covers_more_than_asked: z.boolean().describe('Its days are more than were asked for.'),
    }).nullable().describe('The stored report.'),
    data: z.array(StaffRow).describe('The rows of this page, most conversations first.'),
    population: z.object({ total: n('Rows in all.'), capped: z.boolean().describe('There are more than were counted.'), note: z.string().nullable().describe('Why.') }).describe('Whom the rows are of.'),
    workload_now: z.array(z.object({
      staff_id: Id.nullable().describe('Staff member; null: nobody.'), name: z.string().nullable().describe('Name.'), waiting: n('Customers waiting.'), assigned_open: n('Open conversations.'),
      window_expired: n('Of these, with a closed reply window.'), oldest_wait_seconds: x('Longest wait.'),
    })).describe('What everybody has now.'),
    notes: Notes, next_cursor: NextCursor, unavailable: Unavailable,
  }),
  errors: ['forbidden'],
  examples: [{
    title: 'The last seven days', input: {},
    output: {
      range, source: 'live_closes', report: null,
      data: [{
        staff_id: '5', name: 'Grace', conversations: 20, handled: 18, closed: 15, replied: 17, untouched: 2, messages_sent: 74, reopened: 1, avg_first_response_seconds: 640, avg_time_to_close_seconds: 7200,
        sla_breaches: { first_response: 1, next_response: 0, resolution: 0, total: 1 }, sla_compliance_rate: 0.97, reason_coverage: 0.8,
      }],
      population: { total: 1, capped: false, note: null },
      workload_now: [{ staff_id: '5', name: 'Grace', waiting: 2, assigned_open: 6, window_expired: 1, oldest_wait_seconds: 1800 }],
      notes: [], next_cursor: null, unavailable: [],
    },
  }],
})

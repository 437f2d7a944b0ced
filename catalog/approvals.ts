import { z } from 'zod'
import { ContactName, Id, idOf, list, page, Timestamp } from './fields.ts'
import { defineOperation } from './operation.ts'
import { untrusted } from './text.ts'

const since = '2026-10-01'

const approvalStatuses = [
  'pending',
  'approved',
  'done',
  'failed',
  'declined',
  'expired',
  'cancelled',
] as const
export type ApprovalStatus = (typeof approvalStatuses)[number]

/**
 * Why a person is asked: the decision for the verb or the operation, the bounds that are not met, saved filters that
 * name what is renamed, or several records that would be changed without an undo.
 */
const askReasons = [
  'verb',
  'operation',
  'window_open',
  'assigned',
  'templates',
  'sends_per_hour',
  'hours',
  'saved_filters',
  'many',
] as const
export type AskReason = (typeof askReasons)[number]

const Person = z.object({
  id: Id.describe('Staff id.'),
  name: z.string().nullable().describe('Name; null if the staff member was deleted.'),
})

const ApprovalUrl = z
  .string()
  .nullable()
  .describe('Page on which a person signs in with a login code and decides; null if the server has none.')

export const Approval = z
  .object({
    id: idOf('approval').describe('Approval id.'),
    status: z
      .enum(approvalStatuses)
      .describe(
        '`pending`: not decided. `approved`: about to run, or running. `done`: it ran. `failed`: approved, ' +
          'but refused or failed when it ran; `outcome` has the reason. `declined`, `expired`, `cancelled`: ' +
          'it never runs.',
      ),
    operation: z.string().describe('The operation that the agent called.'),
    asked_by: z
      .object({
        staff: Person.describe('Staff member of the key.'),
        key: z
          .object({
            id: Id.describe('Key id.'),
            name: z.string().nullable().describe('Name of the key.'),
          })
          .describe('Key of the agent.'),
      })
      .describe('Who asks.'),
    reason: untrusted(z.string().nullable().describe('Why, in the words of the agent.')),
    asked_for: z
      .array(z.enum(askReasons))
      .describe(
        'Why approval is needed: the policy of the key, or the bound that is not met. `many`: it changes several ' +
          'records at once, and there is no undo. `saved_filters`: they have the name it gives, or an option it ' +
          'removes.',
      ),
    contact: z
      .object({ id: idOf('contact').describe('Contact id.'), name: ContactName })
      .nullable()
      .describe('The customer; null if there is none or several.'),
    requested_at: Timestamp.describe('When the agent called.'),
    expires_at: Timestamp.describe('Until when it can be decided.'),
    decided_by: Person.nullable().describe('Who decided.'),
    decided_at: Timestamp.nullable().describe('When.'),
    note: z.string().nullable().describe('What the person tells the agent.'),
    outcome: z
      .object({
        status: z.int().describe('HTTP status of its answer.'),
        code: z.string().nullable().describe('Error code; null when it succeeded.'),
        reason: z.string().nullable().describe('Reason of the error.'),
        detail: untrusted(z.string().nullable().describe('What went wrong.'), { phone: 'text' }),
        broadcast_id: Id.optional().describe('The broadcast that an approved `messaging_send_bulk` began.'),
      })
      .nullable()
      .describe('How it ended when it ran.'),
    ended_at: Timestamp.nullable().describe('When it ended.'),
  })
  .meta({ id: 'Approval' })

const ApprovalDetail = Approval.extend({
  approval_url: ApprovalUrl,
  summary: untrusted(
    z
      .array(z.string())
      .describe(
        'What is to be approved, a line each: customer, channel, window, and the full text or template as ' +
          'it would be sent. Invisible and bidirectional characters are shown as `\\u{…}`.',
      ),
  ),
  summary_version: z
    .string()
    .nullable()
    .describe(
      'Version of what the summary says the call acts on, for `approvals_approve`. Null once it is decided, for ' +
        'agents, and where the call was asked for before versions were kept.',
    ),
  input: untrusted(
    z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('The call as the agent made it; null if it contains data hidden from the reader.'),
    { holds: { kind: 'input', by: 'operation' } },
  ),
  edited_text: z.string().nullable().describe('The text in place of the one in the call.'),
  preview: untrusted(
    z
      .record(z.string(), z.unknown())
      .nullable()
      .describe(
        'Result of the dry run, for people; null for the asking agent, if it is long, or if it contains ' +
          'data hidden from the reader.',
      ),
    { holds: { kind: 'answer', by: 'operation' } },
  ),
}).meta({ id: 'ApprovalDetail' })

/** The answer 202 of a call that a person has to approve. */
export const AskedAnswer = z.object({
  approval: Approval.describe('The request; nothing was changed.'),
  approval_url: ApprovalUrl,
  next: z.string().describe('What to do now.'),
})

/** The demo workspace has this one, which waits, and one before it that was declined. */
const approval: z.input<typeof Approval> = {
  id: '2',
  status: 'pending',
  operation: 'messaging_send_reply',
  asked_by: { staff: { id: '7', name: 'Samuel Okafor' }, key: { id: '3', name: 'assistant' } },
  reason: 'The customer asks where the order is.',
  asked_for: ['verb'],
  contact: { id: '199', name: 'Ada Lovelace' },
  requested_at: '2026-10-01T09:30:00.000Z',
  expires_at: '2026-10-02T09:30:00.000Z',
  decided_by: null,
  decided_at: null,
  note: null,
  outcome: null,
  ended_at: null,
}
const decided = { decided_by: { id: '1', name: 'Olivia Owner' }, decided_at: '2026-10-01T09:32:00.000Z' }
const note = 'We do not promise a day.'
const declined = {
  ...approval,
  ...decided,
  status: 'declined' as const,
  note,
  ended_at: decided.decided_at,
}
const detail: z.input<typeof ApprovalDetail> = {
  ...declined,
  id: '1',
  approval_url: 'https://crm.example.com/approvals/1',
  summary: [
    'Send a reply in a conversation',
    'Customer: Ada Lovelace, 15550100042, contact 199',
    'Channel: Orders, chatapp, conversation 381',
    'Reply window: open until 2026-10-02 10:00 Europe/Berlin',
    'Last message of the customer: Is my order on its way?',
    'Type: TEXT',
    'Text: It is, it arrives today.',
    'Recipients: 1',
    'Dry run: no errors',
    'Reason of the agent: The customer asks where the order is.',
  ],
  summary_version: null,
  input: { conversation_id: '381', text: 'It is, it arrives today.' },
  edited_text: null,
  preview: { conversation_id: '381' },
}

const ApprovalId = idOf('approval').describe('Approval id.')
const Note = z.string().trim().min(1).max(1000).optional().describe('What to tell the agent.')

export const listApprovals = defineOperation({
  name: 'approvals_list',
  cli: 'approvals list',
  routes: ['GET /v1/approvals'],
  since,
  stability: 'beta',
  summary: 'List approval requests of AI agents, newest first',
  description:
    "An agent's key sees its own; owners, admins and managers see all, other staff those of their own " +
    'keys. Requests on channels that the reader may not see are left out.',
  slim: [
    'id',
    'status',
    'operation',
    'reason',
    'contact',
    'requested_at',
    'expires_at',
    'note',
    'outcome.code',
  ],
  view: [
    { path: 'id' },
    { path: 'status' },
    { path: 'operation', whole: true },
    { path: 'contact.name', title: 'customer' },
    { path: 'requested_at', title: 'asked' },
    { path: 'asked_by.key.name', title: 'by', else: 'asked_by.staff.name' },
    { path: 'reason', wrap: true },
    { path: 'expires_at', title: 'expires' },
    { path: 'decided_by.name', title: 'decided' },
  ],
  words:
    'pending approvals, requests of AI agents, what waits for my decision, calls that a person ' +
    'approves, what bots or agents ask permission for, what became of them',
  scope: 'mcp:read',
  input: z.object({
    status: z.enum(approvalStatuses).optional().describe('Only with this status.'),
    ...page,
  }),
  output: z.object(list(Approval)),
  errors: [],
  examples: [
    { title: 'What waits', input: { status: 'pending' }, output: { data: [approval], next_cursor: null } },
  ],
})

export const getApproval = defineOperation({
  name: 'approvals_get',
  cli: 'approvals get',
  routes: ['GET /v1/approvals/{approval_id}'],
  since,
  stability: 'beta',
  summary: 'Show an approval request, and wait for the decision',
  description: 'With `wait_seconds` it returns as soon as the call has ended, or after that time.',
  words:
    'status of my request, has it been approved, wait for an approval, decision, has my manager said ' +
    'yes',
  scope: 'mcp:read',
  waits: true,
  input: z.object({
    approval_id: ApprovalId,
    wait_seconds: z
      .int()
      .min(0)
      .max(30)
      .default(0)
      .describe('Seconds to wait for the outcome: 0 to 30, 0 when absent.'),
  }),
  output: ApprovalDetail,
  errors: ['not_found'],
  examples: [{ title: 'Wait for it', input: { approval_id: '1', wait_seconds: 30 }, output: detail }],
})

const change = {
  since,
  stability: 'beta',
  scope: 'approvals:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  emits: ['approval.decided/1'],
  output: z.object({ approval: Approval.describe('The request.') }),
} as const

export const approveApproval = defineOperation({
  ...change,
  name: 'approvals_approve',
  cli: 'approvals approve',
  routes: ['POST /v1/approvals/{approval_id}/approve'],
  summary: 'Approve a call of an AI agent, so that it runs once',
  description:
    "Needs a person's key: of an owner, admin or manager, or of the staff member of the asking key; " +
    'the approver must be able to make the call. It must still act on what the approver was shown, by ' +
    '`summary_version` of `approvals_get`, or, without one, on what it was requested for: after a merge, an ' +
    'opt-out, or a changed number, webhook endpoint or template it is refused (409 `subject_changed`, with ' +
    '`changed`). `text` replaces the text of a reply, ' +
    'note or caption. The call then runs as the agent, under the policy and reply window at that moment; ' +
    '`approvals_get` shows the outcome.',
  words: 'approve a request, allow, say yes, accept, authorize, confirm, let the agent or bot go ahead',
  effect: 'replaces_and_sends',
  input: z.object({
    approval_id: ApprovalId,
    text: z.string().min(1).max(4096).optional().describe('The text to send instead of the requested one.'),
    summary_version: z
      .string()
      .min(1)
      .max(2000)
      .optional()
      .describe('`summary_version` of `approvals_get`: approves only what the approver was shown.'),
    note: Note,
  }),
  errors: ['not_found', 'forbidden', 'conflict', 'window_closed', 'service_unconfigured', 'upstream_error'],
  examples: [
    {
      title: 'As it is',
      input: { approval_id: approval.id },
      output: { approval: { ...approval, ...decided, status: 'approved' } },
    },
  ],
})

export const declineApproval = defineOperation({
  ...change,
  name: 'approvals_decline',
  cli: 'approvals decline',
  routes: ['POST /v1/approvals/{approval_id}/decline'],
  summary: 'Decline a call of an AI agent, so that it never runs',
  description: 'For the same people as approving. The same call of the agent is refused for 24 hours.',
  words: 'reject a request of an agent, refuse, deny, say no',
  effect: 'replaces',
  input: z.object({ approval_id: ApprovalId, note: Note }),
  errors: ['not_found', 'forbidden', 'conflict'],
  examples: [
    {
      title: 'With a note',
      input: { approval_id: approval.id, note },
      output: { approval: declined },
    },
  ],
})

export const cancelApproval = defineOperation({
  ...change,
  name: 'approvals_cancel',
  cli: 'approvals cancel',
  routes: ['POST /v1/approvals/{approval_id}/cancel'],
  summary: 'Withdraw an approval request',
  description:
    'An agent can withdraw its own requests, with any scopes; a person those that they may decide.',
  words: 'withdraw my own request, take back an approval request',
  ownByAgents: true,
  effect: 'replaces',
  input: z.object({ approval_id: ApprovalId }),
  errors: ['not_found', 'forbidden', 'conflict'],
  examples: [
    {
      title: 'Withdraw',
      input: { approval_id: approval.id },
      output: { approval: { ...approval, ...decided, status: 'cancelled' } },
    },
  ],
})

import { z } from 'zod'
import { mark } from './marks.ts'
import { ActorView } from './actor.ts'
import { EXPENSIVE_READ, Id, Instant, list, page, Timestamp } from './fields.ts'
import { defineOperation } from './operation.ts'
import { untrusted } from './text.ts'

const doors = ['rest', 'ops', 'mcp', 'cli'] as const
const outcomes = ['done', 'refused', 'failed'] as const

const AuditRow = z
  .object({
    id: Id.describe('Row id; newer rows have higher ids.'),
    at: Timestamp.describe('When the call ended.'),
    actor: z
      .object({
        staff_id: Id.nullable().describe('Staff member.'),
        name: z.string().nullable().describe('Name, as it is now.'),
        ...ActorView.shape,
      })
      .describe('Who made the call: the staff member who owns the key, the key, and who approved it.'),
    key_id: Id.nullable().describe('The API key of the call.'),
    door: z.enum(doors).describe('Interface of the call: REST, `/v1/ops`, MCP or the command line.'),
    client: untrusted(z.string().nullable().describe('Name and version that the client reports.')),
    operation: z
      .string()
      .describe(
        'Operation; `sandbox.say` and the like for sandbox controls; `mcp` if the MCP endpoint refused the ' +
          'request before an operation was named.',
      ),
    target: z
      .object({
        type: z.string().describe('Type of the record.'),
        id: mark(z.string(), { idOf: 'type' }).describe('Its id.'),
      })
      .nullable()
      .describe('The record that was changed or created; null when there is none or more than one.'),
    outcome: z
      .enum(outcomes)
      .describe(
        '`done`; `refused`: permission or confirmation was missing; `failed`: it failed during execution.',
      ),
    code: z.string().nullable().describe('Error code of a refusal or failure.'),
    dry_run: z.boolean().describe('A dry run: nothing was changed.'),
    confirmed: z.boolean().describe('The confirm verb was given.'),
    changes: untrusted(
      z
        .record(z.string(), z.unknown())
        .nullable()
        .describe(
          '`input` as sent, `before` and `after` of updated fields, and `result`. Secrets, header values and ' +
            'message texts are left out; phones are masked; long texts and lists are truncated. Null for other ' +
            'reads, and if the input was not read.',
        ),
      { holds: { kind: 'changes', by: 'operation' } },
    ),
    request_id: z.string().describe('`Request-Id` of the answer.'),
  })
  .meta({ id: 'AuditRow' })

export const listAudit = defineOperation({
  name: 'audit_list',
  cli: 'audit list',
  routes: ['GET /v1/audit'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'List the audit trail: who did what through which interface, newest first',
  description:
    'Changes, dry runs, and calls that lacked permission or confirmation, kept for 400 days ' +
    'unless the server is configured otherwise. Reads of contacts by AI agents are one row for each key, ' +
    'operation and hour, with `reads: {calls, contacts, hour}` in `changes`. Other successful reads, invalid ' +
    'input and replayed responses are not recorded. For owners, admins and managers who may see all ' +
    'channels, with a key that sees phone numbers. With a filter other than times it is ' +
    EXPENSIVE_READ,
  heavy: ['staff_id', 'key_id', 'agent', 'operation', 'door', 'outcome', 'target_id'],
  slim: ['id', 'at', 'actor.name', 'door', 'operation', 'target', 'outcome', 'code', 'dry_run'],
  words:
    'audit log, who changed, deleted or did something, activity of a user, history of changes, trail, ' +
    'accountability, security log, who closed, sent or edited, when and by whom, who deleted this ' +
    'yesterday',
  scope: 'mcp:read',
  view: [
    { path: 'at' },
    { path: 'actor.name', title: 'who' },
    { path: 'operation', whole: true },
    { path: 'outcome' },
    { path: 'dry_run', words: { true: 'yes', false: '' } },
    { path: 'code' },
    { path: 'target.id', title: 'target' },
    { path: 'door' },
    { path: 'confirmed', words: { true: 'yes', false: '' } },
    { path: 'client' },
    { path: 'key_id', title: 'key' },
    { path: 'id' },
  ],
  input: z.object({
    staff_id: Id.optional().describe('Only by this staff member.'),
    key_id: z
      .string()
      .regex(/^[1-9]\d{0,18}$/, 'must be 1 to 19 digits, not starting with 0')
      .optional()
      .describe('Only with this key.'),
    agent: z.boolean().optional().describe('True: only by AI agents; false: only by others.'),
    operation: z.string().min(1).max(100).optional().describe('Only this operation.'),
    door: z.enum(doors).optional().describe('Only through this door.'),
    outcome: z.enum(outcomes).optional().describe('Only with this outcome.'),
    target_id: z.string().min(1).max(64).optional().describe('Only about the record with this id.'),
    from: Instant.optional().describe('At this time or later.'),
    to: Instant.optional().describe('Before this time.'),
    ...page,
  }),
  output: z.object(list(AuditRow)),
  errors: ['forbidden'],
  examples: [
    {
      title: 'Refused calls',
      input: { outcome: 'refused' },
      output: {
        data: [
          {
            id: '501',
            at: '2026-10-01T09:30:00.000Z',
            actor: {
              staff_id: '5',
              name: 'Grace',
              staff: { id: '5', name: 'Grace' },
              key: { id: '9', name: 'Mara' },
              agent: true,
              approved_by: null,
            },
            key_id: '9',
            door: 'mcp',
            client: 'assistant/1.2',
            operation: 'crm_delete_group',
            target: { type: 'group', id: '3' },
            outcome: 'refused',
            code: 'confirm_required',
            dry_run: false,
            confirmed: false,
            changes: null,
            request_id: 'req_01JABCDEFGHJKMNPQRSTVWXYZ0',
          },
        ],
        next_cursor: null,
      },
    },
  ],
})

import { z } from 'zod'
import { Id, list, page, Timestamp } from './fields.ts'
import { operation } from './operation.ts'

export const doors = ['rest', 'ops', 'mcp', 'cli'] as const
export const outcomes = ['done', 'refused', 'failed'] as const

export const AuditRow = z.object({
  id: Id.describe('Row id.'),
  at: Timestamp.describe('When.'),
  actor: z.object({ staff_id: Id.nullable().describe('Staff member.'), name: z.string().nullable().describe('Name.') }).describe('Who.'),
  key_id: Id.nullable().describe('Key.'),
  door: z.enum(doors).describe('Through which door; `mcp` and `cli` say so themselves.'),
  client: z.string().nullable().describe('What the client calls itself.'),
  operation: z.string().describe('Operation.'),
  target: z.object({ type: z.string().describe('What kind of record.'), id: z.string().describe('Its id.') }).nullable().describe('The record it was about, where it is one.'),
  outcome: z.enum(outcomes).describe('`done`, `refused` (permission or confirmation) or `failed`.'),
  code: z.string().nullable().describe('Error code of a refusal or failure.'),
  dry_run: z.boolean().describe('A rehearsal.'),
  confirmed: z.boolean().describe('The confirm verb was given.'),
  changes: z.record(z.string(), z.unknown()).nullable().describe('What was asked for and what came of it, secrets and hidden data left out.'),
  request_id: z.string().describe('`Request-Id` of the answer.'),
}).meta({ id: 'AuditRow' })

export const listAudit = operation({
  name: 'audit_list', cli: 'audit list', routes: ['GET /v1/audit'], since: '2026-10-01', stability: 'stable',
  summary: 'List who did what through which door, newest first',
  description: 'Changes, rehearsals, and refusals of permission or confirmation, kept for 400 days. For owners, admins and managers.',
  scope: 'mcp:read',
  input: z.object({
    staff_id: Id.optional().describe('Only by this staff member.'),
    key_id: z.string().regex(/^[1-9]\d{0,18}$/, 'must be 1 to 19 digits, not starting with 0').optional().describe('Only with this key.'),
    operation: z.string().min(1).max(100).optional().describe('Only this operation.'),
    door: z.enum(doors).optional().describe('Only through this door.'),
    outcome: z.enum(outcomes).optional().describe('Only with this outcome.'),
    target_id: z.string().min(1).max(64).optional().describe('Only about the record with this id.'),
    from: z.iso.datetime({ offset: true }).optional().describe('At this time or later.'),
    to: z.iso.datetime({ offset: true }).optional().describe('Before this time.'),
    ...page,
  }),
  output: z.object(list(AuditRow)),
  errors: ['forbidden'],
  examples: [{
    title: 'Refusals', input: { outcome: 'refused' },
    output: {
      data: [{
        id: '501', at: '2026-10-01T09:30:00.000Z', actor: { staff_id: '5', name: 'Grace' }, key_id: '9', door: 'mcp', client: 'assistant/1.2', operation: 'crm_delete_group', target: { type: 'group', id: '3' },
        outcome: 'refused', code: 'confirm_required', dry_run: false, confirmed: false, changes: null, request_id: 'req_01JABCDEFGHJKMNPQRSTVWXYZ0',
      }],
      next_cursor: null,
    },
  }],
})

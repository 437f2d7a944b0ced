import type { Handler, OutputOf } from '../../handler.ts'
import { type AuditRow, listAuditRows } from '../../../storage/access/audit.ts'
import { Problem } from '../../kernel/problem.ts'
import { requireAllChannels } from '../../visibility/channels.ts'
import { withPhonesFix } from '../../visibility/phones.ts'
import { hasHiddenPhones, isManager } from '../../visibility/policy.ts'

const toView = (row: AuditRow): OutputOf<'audit_list'>['data'][number] => ({
  id: row.id,
  at: row.at,
  actor: {
    staff_id: row.staff_id,
    name: row.staff_name,
    staff: { id: row.staff_id, name: row.staff_name },
    key: { id: row.key_id, name: row.key_name },
    agent: row.agent ?? false,
    approved_by:
      (row.approved_by ?? null) === null ? null : { id: row.approved_by!, name: row.approver_name },
  },
  key_id: row.key_id,
  door: row.door,
  client: row.client,
  operation: row.operation,
  target: row.target_id === null ? null : { type: row.target_type!, id: row.target_id },
  outcome: row.outcome,
  code: row.code,
  dry_run: row.dry_run,
  confirmed: row.confirmed,
  changes: row.changes,
  request_id: row.request_id,
})

export const listAudit: Handler<'audit_list'> = async (ctx, { cursor, limit, ...filter }) => {
  if (!isManager(ctx.actor))
    throw new Problem('forbidden', 'Only owners, admins and managers may read the audit trail.', {
      reason: 'audit_not_allowed',
    })
  if (hasHiddenPhones(ctx.actor))
    throw new Problem(
      'forbidden',
      withPhonesFix(
        ctx.actor,
        'The audit trail quotes what others sent, phone numbers too, which are hidden from you.',
      ),
      { reason: 'phone_hidden' },
    )
  requireAllChannels(ctx.actor, 'The audit trail holds changes')
  const position = ctx.cursors.open(cursor)
  const rows = await listAuditRows(
    ctx.tx,
    ctx.actor.workspace.id,
    filter,
    position ? String(position[0]) : undefined,
    limit + 1,
  )
  const last = rows.length > limit ? rows[limit - 1]! : undefined
  return { data: rows.slice(0, limit).map(toView), next_cursor: last ? ctx.cursors.seal([last.id]) : null }
}

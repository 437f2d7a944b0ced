import { getDecision } from '../../../agent-policy.ts'
import type { WriteCall } from '../../../kernel/call.ts'
import { requireScope } from '../../../kernel/access.ts'
import { findOperation, type Operation } from '../../../../catalog/index.ts'
import { type ApprovalRow, findApproval } from '../../../../storage/agents/approvals.ts'
import { findLiveKeyById } from '../../../../storage/access/keys.ts'
import { businessTime } from '../../../clock.ts'
import type { App } from '../../../app.ts'
import type { Actor } from '../../../kernel/context.ts'
import { rehearse } from '../../../kernel/dry-run.ts'
import { invalidField, Problem } from '../../../kernel/problem.ts'
import { toActor } from '../../../kernel/authenticate.ts'
import type { Guard } from '../../../kernel/guard.ts'
import { validate } from '../../../kernel/validate.ts'
import { isManager } from '../../../visibility/policy.ts'
import { requireSameSubjects } from './call-subjects.ts'
import { requireSameTemplate } from './freeze.ts'
import { keyEndedProblem, toApprovedCall, toRunInput } from './stored-call.ts'
import { canSeeApproval, getStatus } from '../../../visibility/approvals.ts'

/**
 * Throws 403 `not_approver` unless this key decides on a request: of a person, who is an owner, admin or manager
 * or the staff member of the asking key.
 */
export const requireApprover = (actor: Actor, row: ApprovalRow): void => {
  const { key, staff } = actor
  const detail = key.agent
    ? "An AI agent's key decides on nothing. Ask a person."
    : key.id === row.key_id
      ? 'The key that asks does not decide. Use a key of a person.'
      : !isManager(actor) && staff.id !== row.staff_id
        ? 'Owners, admins and managers decide on this, and the staff member of the key that asks.'
        : undefined
  if (detail !== undefined) throw new Problem('forbidden', detail, { reason: 'not_approver' })
}

/** Returns the fields that an approver's text replaces; null without one. Throws 400. */
export const toEdits = (
  op: Operation,
  row: ApprovalRow,
  text: string | undefined,
): Record<string, unknown> | null => {
  if (text === undefined) return null
  const field = ['text', 'caption'].find((name) => typeof row.input[name] === 'string')
  if (field === undefined)
    throw invalidField('text', 'not_allowed', `cannot be given: ${op.name} has no text here`, {
      fix: 'Leave it out, or decline with a note that says what to change.',
    })
  return { [field]: text }
}

/** Returns who asks. Throws 403 while the key is paused or has ended: the call would end at once, and never run. */
const requireActiveAsker = async (app: App, { workspace_id, key_id }: ApprovalRow): Promise<Actor> => {
  const key = await findLiveKeyById(app.db, workspace_id, key_id, app.now())
  if (!key) throw keyEndedProblem()
  if (key.paused_at === null) return toActor(key)
  throw new Problem(
    'forbidden',
    `The key that asks is paused, so the call would not run. On the server: wcrm admin keys resume ${key_id}.`,
    { reason: 'key_paused' },
  )
}

/** Throws 403 where the policy of who asks has come to deny the call, which would end at once too. */
const requireUndeniedAsker = (asker: Actor, op: Operation): void => {
  if (getDecision(asker, op).decision !== 'deny') return
  throw new Problem(
    'forbidden',
    `The policy of the key that asks denies ${op.name} by now, so the call would not run. Decline it, or change the ` +
      `policy on the server: wcrm admin keys policy ${asker.key.id}.`,
    { reason: 'denied_by_policy' },
  )
}

/** Throws 409 `plan_changed` where the call would not do what it was planned to; the present plan is the asker's. */
const requireSamePlan = async (app: App, call: WriteCall): Promise<void> => {
  if (call.plan === undefined) return
  try {
    await rehearse(app, call)
  } catch (error) {
    if (!(error instanceof Problem) || error.extras.reason !== 'plan_changed') throw error
    throw new Problem(
      'conflict',
      'What the call would do has changed since it was planned. Decline it, and let the agent plan and ask anew.',
      { reason: 'plan_changed' },
    )
  }
}

/**
 * Checks, before an approval is written, that the approver could make the call: it is rehearsed with their rights,
 * and with their text. Throws what the call would, such as 409 `window_closed`; then it stays to be decided.
 */
const checkApprover = async (
  app: App,
  actor: Actor,
  op: Operation,
  input: Record<string, unknown>,
): Promise<void> => {
  if (op.name !== 'approvals_approve') return
  const workspaceId = actor.workspace.id
  const row = await findApproval(app.db, workspaceId, String(input['approval_id']))
  // What comes of these is the handler's to say.
  if (!row || !canSeeApproval(actor, row)) return
  requireApprover(actor, row)
  if (getStatus(row, businessTime(app, workspaceId)) !== 'pending') return
  const target = findOperation(row.operation)
  if (!target) return
  const asker = await requireActiveAsker(app, row)
  requireUndeniedAsker(asker, target)
  requireScope(actor, target)
  await requireSameSubjects(app, asker, row, input['summary_version'] as string | undefined)
  const edits = toEdits(target, row, input['text'] as string | undefined)
  const asked = toRunInput(app, row)
  const rehearsed = { ...asked, ...edits }
  if (edits) validate(target, rehearsed)
  // The plan is that of who asks: the approver's rights are those to change what a filter matches now.
  const { output } = await rehearse(app, {
    actor,
    op: target,
    input: rehearsed,
    trace: { door: row.door, client: row.client, requestId: row.request_id, confirmed: true },
  })
  requireSameTemplate(target, row.preview, output)
  if (!edits) await requireSamePlan(app, toApprovedCall(row, asker, target, asked))
}

export const approvers: Guard<App> = {
  only: { changes: true },
  before: async (app, { actor, op, input }) => {
    if (op.scope === 'approvals:write') await checkApprover(app, actor, op, input)
  },
}

import { watchEvents } from '../../../domains/events/watch.ts'
import type { Context, Handler, OutputOf } from '../../../handler.ts'
import { showHidden } from '../../../../catalog/text.ts'
import { findOperation } from '../../../../catalog/index.ts'
import {
  type ApprovalRow,
  decideApproval,
  findApproval,
  listApprovalRows,
  lockApproval,
} from '../../../../storage/agents/approvals.ts'
import { notFound, Problem } from '../../../kernel/problem.ts'
import { showRecord } from '../../../visibility/records.ts'
import { requireApprover, toEdits } from './check-approver.ts'
import { toApprovalUrl } from './page-url.ts'
import {
  canSeeApproval,
  getStatus,
  getVisibleParts,
  showApproval,
  toEventApproval,
  toReader,
} from '../../../visibility/approvals.ts'
import { findKeptId } from '../../snapshot/plan.ts'
import { RUN_SECONDS } from './stored-call.ts'

export const listApprovals: Handler<'approvals_list'> = async (
  { tx, actor, cursors, now },
  { status, cursor, limit },
) => {
  const after = cursors.open(cursor)
  const rows = await listApprovalRows(tx, actor.workspace.id, toReader(actor), {
    status: status ?? null,
    now,
    before: after === null ? null : String(after[0]),
    limit: limit + 1,
  })
  const page = rows.slice(0, limit)
  return {
    data: page.map((row) => showApproval(actor, row, now)),
    next_cursor: rows.length > limit ? cursors.seal([page.at(-1)!.id]) : null,
  }
}

/** Throws 404 for one that the reader may not see. */
const requireVisible = (ctx: Context, row: ApprovalRow | undefined, id: string): ApprovalRow => {
  if (!row || !canSeeApproval(ctx.actor, row)) throw notFound('approval', id)
  return row
}

const isOver = (row: ApprovalRow, now: string): boolean =>
  !['pending', 'approved'].includes(getStatus(row, now))

export const getApproval: Handler<'approvals_get'> = async (
  ctx,
  { approval_id: id, wait_seconds: seconds },
) => {
  const read = async () => requireVisible(ctx, await findApproval(ctx.tx, ctx.actor.workspace.id, id), id)
  const endAt = performance.now() + seconds * 1000
  const news = seconds > 0 ? watchEvents(ctx.services, ctx.actor.workspace.id, ctx.call.presence) : undefined
  try {
    let row = await read()
    while (news && !isOver(row, ctx.now) && performance.now() < endAt) {
      const goesOn = await news.wait(endAt - performance.now())
      row = await read()
      if (!goesOn) break
    }
    return await showDetail(ctx, row)
  } finally {
    news?.close()
  }
}

const showDetail = async (ctx: Context, row: ApprovalRow): Promise<OutputOf<'approvals_get'>> => {
  const { actor } = ctx
  const operation = findOperation(row.operation)
  const visible = getVisibleParts(actor, row)
  const input = visible.input ? showRecord(actor, ['input', row.operation], row.input) : null
  const preview = visible.preview ? showRecord(actor, ['answer', row.operation], row.preview) : null
  // Before the summary: what changes while it is read was not shown.
  const version =
    actor.key.agent || getStatus(row, ctx.now) !== 'pending'
      ? null
      : await ctx.services.readRequestVersion(ctx.tx, row)
  const summary =
    operation && input
      ? await ctx.services.summarizeCall(ctx.tx, actor, {
          op: operation,
          input,
          output: preview,
          planId: findKeptId(ctx.services, row, row.plan),
        })
      : [row.operation]
  const edited = Object.values(row.edited ?? {}).map(String)[0] ?? null
  const { id, status, ...shown } = showApproval(actor, row, ctx.now)
  return {
    id,
    status,
    summary: [
      ...summary,
      ...(input === null ? ['The call may hold fields or phone numbers that you may not see.'] : []),
      ...(row.secrets === null ? [] : ['custom_headers: given, not shown']),
      ...(edited === null ? [] : [quote('Edited text', edited)]),
      ...(row.reason === null ? [] : [quote('Reason of the agent', row.reason)]),
    ],
    summary_version: version,
    ...shown,
    approval_url: toApprovalUrl(ctx.services.config.publicUrl, row.id),
    input,
    edited_text: edited,
    // The agent has seen what its dry runs answer; people decide by it.
    preview: actor.key.agent ? null : preview,
  }
}

/** No line of a text can pose as another line of the summary. */
const quote = (label: string, text: string): string =>
  `${label}: ${showHidden(text).replaceAll('\n', '\n> ')}`

type DecideOptions = {
  id: string
  status: 'approved' | 'declined' | 'cancelled'
  note?: string | undefined
  text?: string | undefined
  summaryVersion?: string | undefined
}

const decide = async (
  ctx: Context<'approval.decided/1'>,
  { id, status, note, text, summaryVersion }: DecideOptions,
): Promise<OutputOf<'approvals_approve'>> => {
  const { actor, now } = ctx
  const workspaceId = actor.workspace.id
  const row = requireVisible(ctx, await lockApproval(ctx.tx, workspaceId, id), id)
  if (!(status === 'cancelled' && actor.key.agent)) requireApprover(actor, row)
  requirePending(row, now)
  const operation = findOperation(row.operation)
  const edited = operation ? toEdits(operation, row, text) : null
  await decideApproval(ctx.tx, workspaceId, row.id, {
    status,
    now,
    staffId: actor.staff.id,
    keyId: actor.key.id,
    note: note ?? null,
    edited,
    summaryVersion,
    runSeconds: RUN_SECONDS,
  })
  ctx.emit('approval.decided/1', {
    approval: toEventApproval(row, status),
    decided_by: { staff_id: actor.staff.id, name: actor.staff.name },
  })
  if (status === 'approved') ctx.pending.wakes = ['approvals']
  ctx.auditChange({ status: row.status }, { status, ...(edited ? { edited: true } : {}) })
  const decided: ApprovalRow = {
    ...row,
    status,
    decided_at: now,
    decided_by: actor.staff.id,
    decided_by_name: actor.staff.name,
    note: note ?? null,
    ended_at: status === 'approved' ? null : now,
  }
  return { approval: showApproval(actor, decided, now) }
}

/** Throws 409 for a request that was decided or has expired. */
const requirePending = (row: ApprovalRow, now: string): void => {
  const status = getStatus(row, now)
  if (status === 'pending') return
  if (status === 'expired')
    throw new Problem('conflict', `The call expired at ${row.expires_at}. The agent may ask again.`, {
      reason: 'expired',
    })
  const by = row.decided_by_name === null ? '' : ` by ${row.decided_by_name}`
  throw new Problem('conflict', `The call is ${status}${by}. approvals_get shows it.`, {
    reason: 'already_decided',
    status_now: status,
  })
}

export const approveApproval: Handler<'approvals_approve'> = (
  ctx,
  { approval_id: id, text, note, summary_version: summaryVersion },
) => decide(ctx, { id, status: 'approved', text, note, summaryVersion })

export const declineApproval: Handler<'approvals_decline'> = (ctx, { approval_id: id, note }) =>
  decide(ctx, { id, status: 'declined', note })

export const cancelApproval: Handler<'approvals_cancel'> = (ctx, { approval_id: id }) =>
  decide(ctx, { id, status: 'cancelled' })

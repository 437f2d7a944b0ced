import type { Context, Handler, OutputOf } from '../../handler.ts'
import { deleteContactRows, lockContact, readContact } from '../../../storage/contacts/contacts.ts'
import {
  cancelApprovalRows,
  countContactRows,
  countConversationRows,
  eraseContactLinks,
  lockWaitingApprovals,
} from '../../../storage/privacy/erasure-start.ts'
import {
  type ErasureCounts,
  type ErasureRow,
  findErasure,
  findErasureOfContact,
  insertErasure,
  listErasurePage,
  lockErasures,
} from '../../../storage/privacy/erasures.ts'
import type { ErasureSubject } from '../../../storage/tables/erasures.ts'
import { toEventApproval } from '../../visibility/approvals.ts'
import type { Actor } from '../../kernel/context.ts'
import { notFound, Problem } from '../../kernel/problem.ts'
import { showContactName } from '../../visibility/phones.ts'
import { hasHiddenPhones, isManager, listVisibleChannels } from '../../visibility/policy.ts'
import { isCallAbout, toPatterns } from './scans.ts'
import { createScrubber } from './scrub.ts'
import { addCounts, erasureVersions } from './steps.ts'
import { findSubject } from './subject.ts'

/** Throws 403. */
const requireManager = (actor: Actor): void => {
  if (!isManager(actor))
    throw new Problem('forbidden', 'Only managers, admins and owners may erase a person and read receipts.', {
      reason: 'manager_only',
    })
}

const showErasure = (actor: Actor, row: ErasureRow): OutputOf<'crm_get_erasure'> => ({
  id: row.id,
  contact_id: row.contact_id,
  state: row.state,
  tables: showTables(actor, row.counts),
  created_by: { id: row.staff_id, name: row.staff_name },
  created_at: row.created_at,
  finished_at: row.finished_at,
})

/** Counts tell of what is on hidden channels, and whether a hidden phone was found. */
const showTables = (actor: Actor, counts: ErasureCounts): OutputOf<'crm_get_erasure'>['tables'] =>
  Object.entries(listVisibleChannels(actor) !== null || hasHiddenPhones(actor) ? {} : counts)
    .map(([table, { deleted = 0, cleared = 0, pseudonymised = 0 }]) => ({
      table,
      deleted,
      cleared,
      pseudonymised,
    }))
    .toSorted((a, b) => (a.table < b.table ? -1 : 1))

/** Ends calls of agents about the person that wait. */
const cancelApprovals = async (
  ctx: Context<'approval.decided/1'>,
  subject: ErasureSubject,
): Promise<void> => {
  const workspaceId = ctx.actor.workspace.id
  const scrubber = createScrubber(subject)
  // Those that are being stored were rehearsed while there was the contact.
  await lockErasures(ctx.tx, workspaceId)
  const waiting = await lockWaitingApprovals(ctx.tx, workspaceId, toPatterns(subject))
  const ids = waiting.filter((row) => isCallAbout(row, scrubber, subject)).map(({ id }) => id)
  const cancelled = ids.length > 0 ? await cancelApprovalRows(ctx.tx, workspaceId, ids, ctx.now) : []
  for (const row of cancelled)
    ctx.emit('approval.decided/1', {
      approval: toEventApproval(row, 'cancelled'),
      decided_by: { staff_id: ctx.actor.staff.id, name: ctx.actor.staff.name },
    })
}

type EraseContext = Parameters<Handler<'crm_erase_contact'>>[0]

/** Erases what others see of a locked contact at once. Returns what became of it. */
const eraseNow = async (ctx: EraseContext, id: string, subject: ErasureSubject): Promise<ErasureCounts> => {
  const workspaceId = ctx.actor.workspace.id
  const own = await countContactRows(ctx.tx, workspaceId, id)
  await cancelApprovals(ctx, subject)
  const links = await eraseContactLinks(ctx.tx, workspaceId, subject, ctx.now)
  await deleteContactRows(ctx.tx, workspaceId, [id])
  return addCounts(own, links)
}

const findEarlier = async (ctx: EraseContext, id: string): Promise<OutputOf<'crm_erase_contact'>> => {
  const earlier = await findErasureOfContact(ctx.tx, ctx.actor.workspace.id, id)
  if (!earlier) throw notFound('contact', id)
  return { erasure: showErasure(ctx.actor, earlier) }
}

export const eraseContact: Handler<'crm_erase_contact'> = async (ctx, { contact_id: id }) => {
  requireManager(ctx.actor)
  const workspaceId = ctx.actor.workspace.id
  if (!(await lockContact(ctx.tx, workspaceId, id))) return await findEarlier(ctx, id)
  const { contact } = (await readContact(ctx.tx, workspaceId, id, 'none'))!
  const subject = await findSubject(ctx.tx, workspaceId, id)
  const ahead = ctx.dryRun ? await countConversationRows(ctx.tx, workspaceId, subject.conversationIds) : {}
  const counts = await eraseNow(ctx, id, subject)
  const { staff } = ctx.actor
  ctx.pending.wakes = ['erasures']
  const erasureId = await insertErasure(ctx.tx, {
    workspace_id: workspaceId,
    contact_id: id,
    staff_id: staff.id,
    created_at: ctx.now,
    counts,
    subject,
    needs_version: erasureVersions.at(-1)!,
  })
  ctx.emit('contact.deleted/1', { contact: { id } })
  ctx.emit('contact.erased/1', { contact: { id } })
  const erasure = showErasure(ctx.actor, (await findErasure(ctx.tx, workspaceId, erasureId))!)
  if (!ctx.dryRun) return { erasure }
  return {
    erasure: {
      ...erasure,
      id: null,
      tables: showTables(ctx.actor, addCounts(counts, ahead)),
    },
    sample: { contact_id: id, name: showContactName(ctx.actor, contact.name) },
  }
}

export const listErasures: Handler<'crm_list_erasures'> = async (ctx, input) => {
  requireManager(ctx.actor)
  const { contact_id: contactId, state, cursor, limit } = input
  const position = ctx.cursors.open(cursor)
  const rows = await listErasurePage(ctx.tx, ctx.actor.workspace.id, {
    contactId,
    state,
    before: position && String(position[0]),
    limit: limit + 1,
  })
  const shown = rows.slice(0, limit)
  return {
    data: shown.map((row) => showErasure(ctx.actor, row)),
    next_cursor: rows.length > limit ? ctx.cursors.seal([shown.at(-1)!.id]) : null,
  }
}

export const getErasure: Handler<'crm_get_erasure'> = async (ctx, { erasure_id: id }) => {
  requireManager(ctx.actor)
  const row = await findErasure(ctx.tx, ctx.actor.workspace.id, id)
  if (!row) throw notFound('erasure', id)
  return showErasure(ctx.actor, row)
}

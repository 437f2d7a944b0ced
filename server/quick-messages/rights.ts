import type { z } from 'zod'
import { editableTypes, type QuickMessage as Shown } from '../../catalog/quick-messages.ts'
import { lockQuickMessage, type QuickMessage, type Viewer } from '../../storage/quick-messages.ts'
import type { Actor, Context } from '../core/context.ts'
import { notFound, Problem } from '../core/problem.ts'

const leads = ({ staff: { role } }: Actor): boolean => role !== 'agent'

/**
 * Owners, admins and managers see every team's saved replies (contract 7); private ones are their owner's
 * alone, whatever the role of others.
 */
export const viewerOf = (actor: Actor): Viewer => ({ id: actor.staff.id, all: leads(actor) })

const isOwner = (actor: Actor, { owner_staff_id: owner }: QuickMessage): boolean => owner === actor.staff.id
const mayChange = (actor: Actor, row: QuickMessage): boolean =>
  isOwner(actor, row) || (row.visibility !== 'private' && leads(actor))
const isEditable = ({ type }: QuickMessage): boolean => (editableTypes as readonly string[]).includes(type)

export const showQuickMessage = (actor: Actor, row: QuickMessage): z.input<typeof Shown> => ({
  id: row.id,
  code: row.code,
  title: row.title,
  type: row.type,
  text: row.text,
  media_url: row.media_url,
  template_name: row.template_name,
  visibility: row.visibility,
  team_id: row.team_id,
  favorite: row.favorite,
  can_edit: mayChange(actor, row) && isEditable(row),
  updated_at: row.updated_at,
})

/**
 * A saved reply that the actor may change or delete, locked. Throws 404 when they do not see it, 403
 * `not_owner` when they only see it.
 */
export const reachQuickMessage = async (ctx: Context, id: string): Promise<QuickMessage> => {
  const row = await lockQuickMessage(ctx.tx, ctx.actor.workspace.id, viewerOf(ctx.actor), id)
  if (!row) throw notFound('quick message', id)
  if (!mayChange(ctx.actor, row))
    throw notOwner(
      'Only the staff member who saved this reply, or a manager, may change it. Save one of your own instead.',
      row,
    )
  return row
}

/** Others than its owner would lose sight of a reply that they make private. */
export const requireOwnerForPrivate = (actor: Actor, row: QuickMessage): void => {
  if (!isOwner(actor, row))
    throw notOwner('Only the staff member who saved this reply may make it private.', row)
}

const notOwner = (detail: string, row: QuickMessage): Problem =>
  new Problem('forbidden', detail, { reason: 'not_owner', owner_staff_id: row.owner_staff_id })

/** Replies of other types are made elsewhere, of parts that are not shown here. */
export const requireEditable = (row: QuickMessage): void => {
  if (isEditable(row)) return
  throw new Problem(
    'conflict',
    `A quick message of type ${row.type} cannot be edited here; ${editableTypes.join(', ')} can.`,
    { reason: 'not_editable', type: row.type },
  )
}

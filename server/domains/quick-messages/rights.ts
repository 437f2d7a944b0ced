import type { Context } from '../../handler.ts'
import type { z } from 'zod'
import { editableTypes, type QuickMessage as QuickMessageSchema } from '../../../catalog/quick-messages.ts'
import {
  lockQuickMessage,
  type QuickMessageRow,
  type QuickMessageViewer,
} from '../../../storage/messages/quick-messages.ts'
import type { Actor } from '../../kernel/context.ts'
import { notFound, Problem } from '../../kernel/problem.ts'
import { isManager } from '../../visibility/policy.ts'

/**
 * Owners, admins and managers see the quick messages of all teams. A private one is visible only to the staff
 * member who owns it.
 */
export const toViewer = (actor: Actor): QuickMessageViewer => ({ id: actor.staff.id, all: isManager(actor) })

const isOwner = (actor: Actor, { owner_staff_id: owner }: QuickMessageRow): boolean =>
  owner === actor.staff.id
const canChange = (actor: Actor, row: QuickMessageRow): boolean =>
  isOwner(actor, row) || (row.visibility !== 'private' && isManager(actor))
const isEditable = ({ type }: QuickMessageRow): boolean => (editableTypes as readonly string[]).includes(type)

export const showQuickMessage = (actor: Actor, row: QuickMessageRow): z.input<typeof QuickMessageSchema> => ({
  id: row.id,
  code: row.code,
  title: row.title,
  type: row.type,
  text: row.text,
  media_url: row.media_url,
  template_name: row.template_name,
  ...(row.interactive ? { interactive: row.interactive } : {}),
  visibility: row.visibility,
  team_id: row.team_id,
  favorite: row.favorite,
  can_edit: canChange(actor, row) && isEditable(row),
  updated_at: row.updated_at,
  version: String(row.version),
})

/**
 * Returns a quick message that the actor may change or delete, locked. Throws 404 when the actor may not see
 * it, and 403 `not_owner` when they may only see it.
 */
export const lockChangeableQuickMessage = async (ctx: Context, id: string): Promise<QuickMessageRow> => {
  const row = await lockQuickMessage(ctx.tx, ctx.actor.workspace.id, toViewer(ctx.actor), id)
  if (!row) throw notFound('quick message', id)
  if (!canChange(ctx.actor, row))
    throw notOwnerProblem(
      'Only the owner of this quick message or a manager may change it. Create one of your own instead.',
      row,
    )
  return row
}

/**
 * Throws 403 `not_owner`: anyone but the owner would lose access to a quick message by making it private.
 */
export const requireOwnerForPrivate = (actor: Actor, row: QuickMessageRow): void => {
  if (!isOwner(actor, row))
    throw notOwnerProblem('Only the owner of this quick message may make it private.', row)
}

const notOwnerProblem = (detail: string, row: QuickMessageRow): Problem =>
  new Problem('forbidden', detail, { reason: 'not_owner', owner_staff_id: row.owner_staff_id })

/**
 * Throws 409 `not_editable` for types that are created elsewhere, whose parts this API does not show.
 */
export const requireEditable = (row: QuickMessageRow): void => {
  if (isEditable(row)) return
  throw new Problem(
    'conflict',
    `A quick message of type ${row.type} cannot be edited here; ${editableTypes.join(', ')} can.`,
    { reason: 'not_editable', type: row.type },
  )
}

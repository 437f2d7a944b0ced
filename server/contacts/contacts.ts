import { deleteContactRow, lockContact, readContact } from '../../storage/contacts.ts'
import { listFields } from '../../storage/custom-fields.ts'
import type { Context } from '../core/context.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { notFound } from '../core/problem.ts'
import { givableFields, noteUse, readValues } from './input.ts'
import { changeContact } from './upsert.ts'
import { withTimeline } from './timeline.ts'
import { showContact } from './view.ts'

const show = async (ctx: Context, id: string) => {
  const read = await withTimeline(ctx, (timeline) =>
    readContact(ctx.tx, ctx.actor.workspace.id, id, timeline),
  )
  if (!read) throw notFound('contact', id)
  return showContact(ctx.actor, read.contact, read.fields, 'full')
}

export const getContact: Handler<InputOf<'crm_get_contact'>, OutputOf<'crm_get_contact'>> = (ctx, input) =>
  show(ctx, input.contact_id)

export const updateContact: Handler<InputOf<'crm_update_contact'>, OutputOf<'crm_update_contact'>> = async (
  ctx,
  input,
) => {
  const { contact_id: id, name, dnd, starred } = input
  if (!(await lockContact(ctx.tx, ctx.actor.workspace.id, id))) throw notFound('contact', id)
  const asksFields = input.attributes !== undefined || input.email !== undefined
  const values = asksFields
    ? readValues(givableFields(ctx, await listFields(ctx.tx, ctx.actor.workspace.id)), input)
    : new Map()
  await changeContact(ctx, id, { name, dnd, starred, values })
  await noteUse(ctx, values)
  return await show(ctx, id)
}

export const deleteContact: Handler<InputOf<'crm_delete_contact'>, OutputOf<'crm_delete_contact'>> = async (
  ctx,
  { contact_id: id },
) => {
  if (!(await lockContact(ctx.tx, ctx.actor.workspace.id, id))) throw notFound('contact', id)
  await deleteContactRow(ctx.tx, ctx.actor.workspace.id, id)
  ctx.emit('contact.deleted/1', { contact: { id } })
  return { id, deleted: true }
}

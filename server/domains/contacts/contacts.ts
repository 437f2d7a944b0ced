import type { Context, Handler } from '../../handler.ts'
import {
  type ContactWithFields,
  deleteContactRows,
  lockContact,
  readContact,
  readContactByExternalId,
} from '../../../storage/contacts/contacts.ts'
import { findMergedInto } from '../../../storage/contacts/merges.ts'
import { listFields } from '../../../storage/contacts/custom-fields.ts'
import { liftProviderOptOuts } from '../consent/record.ts'
import { invalidField, notFound, Problem } from '../../kernel/problem.ts'
import { toChangeContext } from '../../change-context.ts'
import { refuseNumberInName, toContactName } from '../../visibility/phones.ts'
import { editContact } from './edit.ts'
import { requireFreeExternalId } from './identity.ts'
import { fieldsVisibleTo, markFirstUse, parseValues, type ValueChanges } from './input.ts'
import { refuseHiddenMetadata } from './metadata.ts'
import { withTimeline } from './timeline.ts'
import { showContact, showContactView } from './view.ts'

const findWithFields = (ctx: Context, id: string): Promise<ContactWithFields | undefined> =>
  withTimeline(ctx, (timeline) => readContact(ctx.tx, ctx.actor.workspace.id, id, timeline))

/** Throws 404. */
const readWithFields = async (ctx: Context, id: string): Promise<ContactWithFields> => {
  const read = await findWithFields(ctx, id)
  if (!read) throw notFound('contact', id)
  return read
}

/** Reads a contact, or the one that it became by a merge. Throws 404. */
const readWithMerged = async (ctx: Context, id: string): Promise<ContactWithFields> => {
  const read = await findWithFields(ctx, id)
  if (read) return read
  const mergedInto = await findMergedInto(ctx.tx, ctx.actor.workspace.id, id)
  return await readWithFields(ctx, mergedInto ?? id)
}

/** Throws 404. */
const readByExternalId = async (ctx: Context, externalId: string): Promise<ContactWithFields> => {
  const read = await withTimeline(ctx, (timeline) =>
    readContactByExternalId(ctx.tx, ctx.actor.workspace.id, externalId, timeline),
  )
  if (!read) throw new Problem('not_found', `No contact with the external id ${externalId}.`)
  return read
}

export const getContact: Handler<'crm_get_contact'> = async (ctx, input) => {
  const { contact_id: id, external_id: externalId, detail = 'full' } = input
  const { contact, fields } =
    id === undefined ? await readByExternalId(ctx, externalId!) : await readWithMerged(ctx, id)
  return showContactView(ctx.actor, contact, fields, detail)
}

export const updateContact: Handler<'crm_update_contact'> = async (ctx, input) => {
  const { contact_id: id, name, external_id: externalId, dnd, starred, metadata } = input
  refuseHiddenMetadata(ctx.actor, metadata)
  refuseNumberInName(ctx.actor, name)
  if (name !== undefined && toContactName(name) === undefined)
    throw invalidField('name', 'not_a_name', 'is a phone number', {
      fix: 'Send a name, or null when there is none.',
    })
  if (!(await lockContact(ctx.tx, ctx.actor.workspace.id, id))) throw notFound('contact', id)
  const hasValues = input.attributes !== undefined || input.email !== undefined
  const values: ValueChanges = hasValues
    ? parseValues(fieldsVisibleTo(ctx, await listFields(ctx.tx, ctx.actor.workspace.id)), input)
    : new Map()
  if (typeof externalId === 'string') await requireFreeExternalId(ctx, externalId, id)
  await editContact(ctx, id, { name, externalId, metadata, dnd, starred, values })
  if (dnd === false) await liftProviderOptOuts(toChangeContext(ctx), [id], ctx.actor.staff.id)
  await markFirstUse(ctx, values)
  const { contact, fields } = await readWithFields(ctx, id)
  return showContact(ctx.actor, contact, fields, 'full')
}

export const deleteContact: Handler<'crm_delete_contact'> = async (ctx, { contact_id: id }) => {
  if (!(await lockContact(ctx.tx, ctx.actor.workspace.id, id))) throw notFound('contact', id)
  await deleteContactRows(ctx.tx, ctx.actor.workspace.id, [id])
  ctx.emit('contact.deleted/1', { contact: { id } })
  return { id, deleted: true }
}

import { recordUndone, type BulkOutput, listMissing, toBulkOutput } from '../bulk-jobs/output.ts'
import type { Context, Handler, InputOf } from '../../handler.ts'
import { countWithFields, lockContacts } from '../../../storage/contacts/matches.ts'
import type { StoredValue } from '../../../storage/contacts/values.ts'
import {
  type ContactUpdate,
  type ExistingContact,
  readExistingContacts,
  updateContactRows,
} from '../../../storage/contacts/updates.ts'
import { type FieldRow, listFields } from '../../../storage/contacts/custom-fields.ts'
import { changeTarget } from '../bulk-jobs/change-target.ts'
import { contactRecords, type ContactsChange } from '../bulk-jobs/contact-records.ts'
import { liftProviderOptOuts } from '../consent/record.ts'
import { invalidField } from '../../kernel/problem.ts'
import { toChangeContext } from '../../change-context.ts'
import { distinctIds, type LabelRefs } from '../labels/labels.ts'
import { hasHiddenPhones } from '../../visibility/policy.ts'
import { type ContactEdit, emitEdit } from './edit.ts'
import { fieldsVisibleTo, markFirstUse, parseValues, type ValueChanges } from './input.ts'

type Input = InputOf<'crm_update_contacts'>
type EditContext = Context<'contact.updated/1' | 'consent.changed/1'>

/** Checks what the contacts get. Throws 400. */
const readEdit = async (ctx: Context, input: Input): Promise<ContactEdit> => {
  const { attributes, dnd, starred } = input
  const isEmpty = Object.keys(attributes ?? {}).length === 0
  if (isEmpty && dnd === undefined && starred === undefined)
    throw invalidField('attributes', 'required', 'is missing', {
      fix: 'Send attributes, dnd or starred: what the contacts are to have.',
    })
  const values: ValueChanges = isEmpty
    ? new Map()
    : parseValues(fieldsVisibleTo(ctx, await listFields(ctx.tx, ctx.actor.workspace.id)), { attributes })
  return { dnd, starred, values }
}

/** What a contact has of the fields that an edit names; values by the ids of their fields. */
type FieldState = { dnd?: boolean; starred?: boolean; values: Record<string, StoredValue | null> }

/** What a job changed of one contact. */
export type Undone = { contact_id: string; before: FieldState; after: FieldState }

const recordUndo = (ctx: Context, contact: ExistingContact, edit: ContactEdit): void => {
  const { dnd, starred, values } = edit
  const before: FieldState = { values: {} }
  const after: FieldState = { values: {} }
  if (dnd !== undefined && dnd !== contact.dnd) [before.dnd, after.dnd] = [contact.dnd, dnd]
  if (starred !== undefined && starred !== contact.starred)
    [before.starred, after.starred] = [contact.starred, starred]
  for (const [{ id, type }, value] of values) {
    const had = contact.attrs[id] ?? null
    // A hidden phone counts as changed whatever it was, and so does taking that back.
    if (isSame(had, value) && !(type === 'phone' && hasHiddenPhones(ctx.actor))) continue
    before.values[id] = had
    after.values[id] = value
  }
  recordUndone(ctx, { contact_id: contact.id, before, after })
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

/** Gives each of these contacts that exists what `toEdit` returns for it. Returns their ids. */
const editContacts = async (
  ctx: EditContext,
  ids: readonly string[],
  toEdit: (contact: ExistingContact) => ContactEdit,
): Promise<string[]> => {
  const { tx, now } = ctx
  const workspaceId = ctx.actor.workspace.id
  const found = await lockContacts(tx, workspaceId, ids)
  const byId = new Map((await readExistingContacts(tx, workspaceId, found)).map((one) => [one.id, one]))
  const updates: ContactUpdate[] = []
  for (const contact of found.map((id) => byId.get(id)!)) {
    const edit = toEdit(contact)
    const changes = emitEdit(ctx, contact, edit)
    if (!changes) continue
    recordUndo(ctx, contact, edit)
    updates.push({ contact, changes })
  }
  await updateContactRows(tx, workspaceId, updates, now)
  return found
}

const apply = async (ctx: EditContext, input: Input, ids: LabelRefs) => {
  const edit = await readEdit(ctx, input)
  const requested = distinctIds(ids)
  const found = await editContacts(ctx, requested, () => edit)
  if (edit.dnd === false) await liftProviderOptOuts(toChangeContext(ctx), found, ctx.actor.staff.id)
  if (found.length > 0) await markFirstUse(ctx, edit.values)
  return toBulkOutput(ctx, requested, listMissing(requested, found))
}

const change: ContactsChange<Input, 'contact.updated/1' | 'consent.changed/1'> = {
  operation: 'crm_update_contacts',
  records: contactRecords,
  apply,
  preview: async (ctx, input, batches) => {
    const { dnd, starred, values } = await readEdit(ctx, input)
    // As a change of one contact: what is there is not told.
    const isHidden = hasHiddenPhones(ctx.actor) && [...values.keys()].some(({ type }) => type === 'phone')
    const wanted = { dnd, starred, values: new Map([...values].map(([{ id }, value]) => [id, value])) }
    const count = () => countWithFields(ctx.tx, ctx.actor.workspace.id, wanted, batches)
    return { unchanged: isHidden ? 0 : await count() }
  },
  freeze: async (ctx, input) => {
    await readEdit(ctx, input)
    const { attributes, dnd, starred } = input
    return {
      ...(attributes === undefined ? {} : { attributes }),
      ...(dnd === undefined ? {} : { dnd }),
      ...(starred === undefined ? {} : { starred }),
    }
  },
}

export const updateContacts: Handler<'crm_update_contacts'> = (ctx, input) => changeTarget(ctx, change, input)

/** What is still as the job left it gets what it was before. */
const toRestored = (
  contact: ExistingContact,
  { before, after }: Undone,
  fields: ReadonlyMap<string, FieldRow>,
): ContactEdit => {
  const values: ValueChanges = new Map()
  for (const [id, value] of Object.entries(before.values)) {
    const field = fields.get(id)
    if (field && isSame(contact.attrs[id] ?? null, after.values[id])) values.set(field, value)
  }
  return {
    dnd: contact.dnd === after.dnd ? before.dnd : undefined,
    starred: contact.starred === after.starred ? before.starred : undefined,
    values,
  }
}

/** Takes back what a job changed of contacts. */
export const restoreContacts = async (
  ctx: EditContext,
  { contacts }: { contacts: readonly Undone[] },
): Promise<BulkOutput<never>> => {
  const workspaceId = ctx.actor.workspace.id
  const requested = contacts.map(({ contact_id: id }) => id)
  const fields = new Map((await listFields(ctx.tx, workspaceId)).map((field) => [field.id, field]))
  const undoneById = new Map(contacts.map((undone) => [undone.contact_id, undone]))
  const found = await editContacts(ctx, requested, (contact) =>
    toRestored(contact, undoneById.get(contact.id)!, fields),
  )
  return toBulkOutput(ctx, requested, listMissing(requested, found))
}

import { countWithFields, lockContacts } from '../../storage/contact-matches.ts'
import type { StoredValue } from '../../storage/contact-values.ts'
import { type ContactRow, readContact } from '../../storage/contacts.ts'
import { type FieldRow, listFields } from '../../storage/custom-fields.ts'
import { changeTarget } from '../bulk-jobs/change-target.ts'
import { type BulkOutput, listMissing, toBulkOutput } from '../bulk-jobs/output.ts'
import { contactRecords, type ContactsChange } from '../bulk-jobs/contact-records.ts'
import { liftProviderOptOut } from '../consent/record.ts'
import type { Context } from '../core/context.ts'
import type { Handler, InputOf } from '../core/handler.ts'
import { invalidField } from '../core/problem.ts'
import { toConversationContext } from '../inbox/conversation-context.ts'
import { distinctIds, type LabelRefs } from '../labels/labels.ts'
import { hasHiddenPhones } from '../visibility/policy.ts'
import { type ContactEdit, writeEdit } from './edit.ts'
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

const recordUndo = (ctx: Context, contact: ContactRow, edit: ContactEdit): void => {
  const { dnd, starred, values } = edit
  const before: FieldState = { values: {} }
  const after: FieldState = { values: {} }
  if (dnd !== undefined && dnd !== contact.dnd) [before.dnd, after.dnd] = [contact.dnd, dnd]
  if (starred !== undefined && starred !== contact.starred)
    [before.starred, after.starred] = [contact.starred, starred]
  for (const [{ id }, value] of values) {
    const had = contact.attrs[id] ?? null
    if (isSame(had, value)) continue
    before.values[id] = had
    after.values[id] = value
  }
  ctx.recordUndo({ contact_id: contact.id, before, after })
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

const apply = async (ctx: EditContext, input: Input, ids: LabelRefs) => {
  const edit = await readEdit(ctx, input)
  const requested = distinctIds(ids)
  const found = await lockContacts(ctx.tx, ctx.actor.workspace.id, requested)
  for (const id of found) {
    const { contact } = (await readContact(ctx.tx, ctx.actor.workspace.id, id, 'none'))!
    if (await writeEdit(ctx, contact, edit)) recordUndo(ctx, contact, edit)
    if (edit.dnd === false) await liftProviderOptOut(toConversationContext(ctx), id, ctx.actor.staff.id)
  }
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
  contact: ContactRow,
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
  const found = new Set(await lockContacts(ctx.tx, workspaceId, requested))
  const fields = new Map((await listFields(ctx.tx, workspaceId)).map((field) => [field.id, field]))
  for (const undone of contacts) {
    if (!found.has(undone.contact_id)) continue
    const { contact } = (await readContact(ctx.tx, workspaceId, undone.contact_id, 'none'))!
    const edit = toRestored(contact, undone, fields)
    if (await writeEdit(ctx, contact, edit)) recordUndo(ctx, contact, edit)
  }
  return toBulkOutput(ctx, requested, listMissing(requested, [...found]))
}

import type { ContactChanges, ContactRow, NewContact, ReadContact } from '../../storage/contacts.ts'
import {
  contactInsert,
  lockContactByPhone,
  lockContactLimit,
  newContactRow,
  readContact,
  touchContacts,
  updateContactRow,
} from '../../storage/contacts.ts'
import { readCounter } from '../../storage/counters.ts'
import { listFields } from '../../storage/custom-fields.ts'
import { type Label, linkLabels } from '../../storage/labels.ts'
import type { Context } from '../core/context.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { Problem } from '../core/problem.ts'
import {
  applyValues,
  givableFields,
  noteUse,
  readPhone,
  readValues,
  resolveGroups,
  resolveTags,
  typesOf,
  type ValueChanges,
} from './input.ts'
import { timelineOf } from './timeline.ts'
import { eventContact, showContact } from './view.ts'

type Output = OutputOf<'crm_upsert_contact'>
type Wanted = {
  phone: string
  name: string | undefined
  values: ValueChanges
  tags: (Label & { rehearsed?: true })[]
  groups: Label[]
}

/**
 * Creates the contact, or updates the one with this phone. At first it is taken to be new: the statement
 * that creates it finds out by itself.
 */
export const upsertContact: Handler<InputOf<'crm_upsert_contact'>, Output> = async (ctx, input) => {
  const workspaceId = ctx.actor.workspace.id
  const phone = readPhone(input.phone)
  const asksFields = input.attributes !== undefined || input.email !== undefined
  const fields = asksFields ? await listFields(ctx.tx, workspaceId) : []
  const values = asksFields ? readValues(givableFields(ctx, fields), input) : new Map()
  const wanted: Wanted = {
    phone,
    name: input.name,
    values,
    groups: await resolveGroups(ctx, input.group_ids),
    tags: await resolveTags(ctx, input.tags ?? [], true),
  }
  if (values.size > 0) await noteUse(ctx, values)
  const limited = ctx.actor.workspace.contactLimit !== null
  const known =
    ctx.attempt > 1 || limited ? await lockContactByPhone(ctx.tx, workspaceId, wanted.phone) : undefined
  if (known === undefined)
    return answer(ctx, wanted, 'created', { contact: await createContact(ctx, wanted), fields })
  const action = await updateKnown(ctx, known, wanted)
  return answer(ctx, wanted, action, (await readContact(ctx.tx, workspaceId, known, timelineOf(ctx.actor)))!)
}

/** What a rehearsal would make has no id. */
const answer = (
  ctx: Context,
  wanted: Wanted,
  action: Output['action'],
  { contact, fields }: ReadContact,
): Output => {
  const shown = showContact(ctx.actor, contact, fields, 'full')
  const id = ctx.dryRun && action === 'created' ? null : contact.id
  const rehearsed = new Set(wanted.tags.filter((t) => t.rehearsed).map((t) => t.id))
  return {
    id,
    action,
    contact: { ...shown, id, tags: shown.tags!.map((t) => (rehearsed.has(t.id) ? { ...t, id: null } : t)) },
  }
}

const createContact = async (ctx: Context, wanted: Wanted): Promise<ContactRow> => {
  const { workspace } = ctx.actor
  if (workspace.contactLimit !== null) {
    await lockContactLimit(ctx.tx, workspace.id)
    if ((await readCounter(ctx.tx, workspace.id, 'contacts')) >= workspace.contactLimit) {
      throw limitReached(workspace.contactLimit)
    }
  }
  const { attrs, changed } = applyValues({}, wanted.values)
  const contact: NewContact = {
    phone: wanted.phone,
    name: wanted.name ?? null,
    email: emailChange(wanted.values) ?? null,
    attrs,
    types: typesOf(changed),
    tagIds: wanted.tags.map((t) => t.id),
    groupIds: wanted.groups.map((g) => g.id),
  }
  const id = await ctx.newContactId()
  ctx.finish(contactInsert(workspace.id, id, contact, ctx.now))
  const row = newContactRow(id, contact, wanted.tags, wanted.groups, ctx.now)
  ctx.emit('contact.created/1', { contact: eventContact(row) })
  noteAdded(ctx, id, wanted.tags, wanted.groups)
  return row
}

/** Notes the events of the tags and groups that a contact gained. */
export const noteAdded = (
  ctx: Context,
  contactId: string,
  tags: readonly Label[],
  groups: readonly Label[],
): void => {
  if (tags.length > 0)
    ctx.emit('contact.tags_added/1', {
      contact_ids: [contactId],
      tags: tags.map(({ id, name }) => ({ id, name })),
    })
  if (groups.length > 0) ctx.emit('contact.groups_added/1', { contact_ids: [contactId], groups: [...groups] })
}

export const limitReached = (limit: number): Problem =>
  new Problem('forbidden', `The plan allows ${limit} contacts, and there are that many.`, {
    reason: 'contact_limit',
    limit,
  })

/** The new email address when the values hold one: the column follows the custom field. */
export const emailChange = (values: ValueChanges): string | null | undefined => {
  for (const [field, value] of values) if (field.key === 'email') return value as string | null
  return undefined
}

const updateKnown = async (ctx: Context, id: string, wanted: Wanted): Promise<'updated' | 'unchanged'> => {
  const changed = await changeContact(ctx, id, { name: wanted.name, values: wanted.values })
  const tags = await link(ctx, 'tag', wanted.tags, id)
  const groups = await link(ctx, 'group', wanted.groups, id)
  noteAdded(ctx, id, tags, groups)
  const labelled = tags.length + groups.length > 0
  if (!changed && labelled) await touchContacts(ctx.tx, ctx.actor.workspace.id, [id], ctx.now)
  return changed || labelled ? 'updated' : 'unchanged'
}

/** Answers those that the contact did not have. */
const link = async (ctx: Context, kind: 'tag' | 'group', labels: Label[], id: string): Promise<Label[]> => {
  if (labels.length === 0) return []
  const pairs = await linkLabels(
    ctx.tx,
    ctx.actor.workspace.id,
    kind,
    labels.map((l) => l.id),
    [id],
  )
  return labels.filter((l) => pairs.some((p) => p.label === l.id))
}

export type Edit = {
  name?: string | null | undefined
  dnd?: boolean | undefined
  starred?: boolean | undefined
  values: ValueChanges
}

/** Writes what differs on a locked contact, and notes the event. False when nothing does. */
export const changeContact = async (ctx: Context, id: string, edit: Edit): Promise<boolean> => {
  const workspaceId = ctx.actor.workspace.id
  const { contact } = (await readContact(ctx.tx, workspaceId, id, 'none'))!
  const { changes, names } = changesOf(contact, edit)
  if (names.length === 0) return false
  await updateContactRow(ctx.tx, workspaceId, contact, changes, ctx.now)
  const { values: _values, email: _email, ...columns } = changes
  ctx.note(
    { ...contact, ...valuesOf(contact.attrs, edit.values) },
    { ...columns, ...valuesOf(changes.values?.attrs ?? contact.attrs, edit.values) },
  )
  ctx.emit('contact.updated/1', {
    contact: eventContact({ ...contact, ...columns, updated_at: ctx.now }),
    changes: names,
  })
  return true
}

/** The values of the fields that an edit names, by the keys of the fields. */
const valuesOf = (attrs: ContactRow['attrs'], named: ValueChanges): Record<string, unknown> =>
  Object.fromEntries(
    [...named.keys()].map((field) => [
      field.key === 'email' ? 'email' : `attributes.${field.key}`,
      attrs[field.id] ?? null,
    ]),
  )

/** What differs, and its names as events carry them. */
export const changesOf = (
  contact: Pick<ContactRow, 'name' | 'dnd' | 'starred' | 'attrs'>,
  edit: Edit,
): { changes: ContactChanges; names: string[] } => {
  const changes: ContactChanges = {}
  if (edit.name !== undefined && edit.name !== contact.name) changes.name = edit.name
  if (edit.dnd !== undefined && edit.dnd !== contact.dnd) changes.dnd = edit.dnd
  if (edit.starred !== undefined && edit.starred !== contact.starred) changes.starred = edit.starred
  const { attrs, changed } = applyValues(contact.attrs, edit.values)
  const names = [
    ...Object.keys(changes),
    ...changed.map(({ key }) => (key === 'email' ? 'email' : `attributes.${key}`)),
  ]
  if (changed.some(({ key }) => key === 'email')) changes.email = emailChange(edit.values) ?? null
  if (changed.length > 0) changes.values = { attrs, changed: typesOf(changed) }
  return { changes, names }
}

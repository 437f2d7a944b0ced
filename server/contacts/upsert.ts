import type { ContactChanges, ReadContact } from '../../storage/contacts.ts'
import { insertContact, lockContactByPhone, lockContactLimit, readContact, touchContacts, updateContactRow } from '../../storage/contacts.ts'
import { readCounter } from '../../storage/counters.ts'
import { listFields } from '../../storage/custom-fields.ts'
import { type Label, linkLabels } from '../../storage/labels.ts'
import type { Context } from '../context.ts'
import type { Handler, InputOf, OutputOf } from '../operations.ts'
import { invalidField, Problem } from '../problem.ts'
import { applyValues, noteUse, readValues, resolveGroups, resolveTags, type ValueChanges } from './input.ts'
import { parsePhone } from './phone.ts'
import { eventContact, showContact } from './view.ts'

type Output = OutputOf<'crm_upsert_contact'>
type Wanted = { phone: string; name: string | undefined; values: ValueChanges; tags: (Label & { rehearsed?: true })[]; groups: Label[] }

/** Creates the contact, or updates the one with this phone. The create is tried first: it is one statement, and finds out by itself. */
export const upsertContact: Handler<InputOf<'crm_upsert_contact'>, Output> = async (ctx, input) => {
  const phone = parsePhone(input.phone)
  if ('fault' in phone) throw invalidField('phone', 'invalid_phone', phone.fault, { fix: phone.fix })
  const asksFields = input.attributes !== undefined || input.email !== undefined
  const values = asksFields ? readValues(ctx, await listFields(ctx.tx, ctx.actor.workspace.id), input) : new Map()
  const wanted: Wanted = {
    phone: phone.digits, name: input.name, values,
    groups: await resolveGroups(ctx, input.group_ids), tags: await resolveTags(ctx, input.tags ?? [], true),
  }
  const created = await createContact(ctx, wanted)
  const { id, action } = created ? { id: created.contact.id, action: 'created' as const } : await updateByPhone(ctx, wanted)
  if (values.size > 0) await noteUse(ctx, values)
  const read = created ?? (await readContact(ctx.tx, ctx.actor.workspace.id, id))!
  const contact = showContact(ctx.actor, read.contact, read.fields, 'full')
  if (action === 'created') ctx.emit('contact.created/1', { contact: eventContact(read.contact) })
  const shownId = ctx.dryRun && action === 'created' ? null : id
  const rehearsed = new Set(wanted.tags.filter((t) => t.rehearsed).map((t) => t.id))
  const tags = contact.tags!.map((t) => (rehearsed.has(t.id) ? { ...t, id: null } : t))
  return { id: shownId, action, contact: { ...contact, id: shownId, tags } }
}

const createContact = async (ctx: Context, wanted: Wanted): Promise<ReadContact | undefined> => {
  const { workspace } = ctx.actor
  if (workspace.contactLimit !== null) {
    // The limit speaks only to a contact that is not there yet.
    if (await lockContactByPhone(ctx.tx, workspace.id, wanted.phone)) return undefined
    await lockContactLimit(ctx.tx, workspace.id)
    if (await readCounter(ctx.tx, workspace.id, 'contacts') >= workspace.contactLimit) {
      throw new Problem('forbidden', `The plan allows ${workspace.contactLimit} contacts, and there are that many.`, { reason: 'contact_limit', limit: workspace.contactLimit })
    }
  }
  const email = emailChange(wanted.values)
  const created = await insertContact(ctx.tx, workspace.id, {
    phone: wanted.phone, name: wanted.name ?? null, email: email ?? null, attrs: applyValues({}, wanted.values).attrs,
    tagIds: wanted.tags.map((t) => t.id), groupIds: wanted.groups.map((g) => g.id),
  }, ctx.now)
  if (created === undefined) return undefined
  const { id } = created.contact
  if (wanted.tags.length > 0) ctx.emit('contact.tags_added/1', { contact_ids: [id], tags: wanted.tags })
  if (wanted.groups.length > 0) ctx.emit('contact.groups_added/1', { contact_ids: [id], groups: wanted.groups })
  return created
}

/** The new email address when the values hold one: the column follows the custom field. */
export const emailChange = (values: ValueChanges): string | null | undefined => {
  for (const [field, value] of values) if (field.key === 'email') return value as string | null
  return undefined
}

const updateByPhone = async (ctx: Context, wanted: Wanted): Promise<{ id: string; action: 'updated' | 'unchanged' }> => {
  const workspaceId = ctx.actor.workspace.id
  const id = await lockContactByPhone(ctx.tx, workspaceId, wanted.phone)
  if (id === undefined) throw new Problem('conflict', 'The contact with this phone number was deleted at this moment. Retry.', { reason: 'deleted_meanwhile' })
  const changed = await changeContact(ctx, id, { name: wanted.name, values: wanted.values })
  const tagged = await link(ctx, 'tag', wanted.tags, id)
  const grouped = await link(ctx, 'group', wanted.groups, id)
  if (!changed && (tagged || grouped)) await touchContacts(ctx.tx, workspaceId, [id], ctx.now)
  return { id, action: changed || tagged || grouped ? 'updated' : 'unchanged' }
}

const link = async (ctx: Context, kind: 'tag' | 'group', labels: Label[], id: string): Promise<boolean> => {
  if (labels.length === 0) return false
  const pairs = await linkLabels(ctx.tx, ctx.actor.workspace.id, kind, labels.map((l) => l.id), [id])
  const added = labels.filter((l) => pairs.some((p) => p.label === l.id))
  if (added.length === 0) return false
  if (kind === 'tag') ctx.emit('contact.tags_added/1', { contact_ids: [id], tags: added })
  else ctx.emit('contact.groups_added/1', { contact_ids: [id], groups: added })
  return true
}

export type Edit = { name?: string | null | undefined; dnd?: boolean | undefined; starred?: boolean | undefined; values: ValueChanges }

/** Writes what differs on a locked contact, and notes the event. False when nothing does. */
export const changeContact = async (ctx: Context, id: string, edit: Edit): Promise<boolean> => {
  const workspaceId = ctx.actor.workspace.id
  const { contact } = (await readContact(ctx.tx, workspaceId, id))!
  const changes: ContactChanges = {}
  if (edit.name !== undefined && edit.name !== contact.name) changes.name = edit.name
  if (edit.dnd !== undefined && edit.dnd !== contact.dnd) changes.dnd = edit.dnd
  if (edit.starred !== undefined && edit.starred !== contact.starred) changes.starred = edit.starred
  const { attrs, changed } = applyValues(contact.attrs, edit.values)
  const names = [...Object.keys(changes), ...changed.map((key) => (key === 'email' ? 'email' : `attributes.${key}`))]
  if (changed.includes('email')) changes.email = emailChange(edit.values) ?? null
  if (changed.length > 0) changes.attrs = attrs
  if (names.length === 0) return false
  await updateContactRow(ctx.tx, workspaceId, contact, changes, ctx.now)
  const { attrs: _attrs, email: _email, ...columns } = changes
  ctx.emit('contact.updated/1', { contact: eventContact({ ...contact, ...columns, updated_at: ctx.now }), changes: names })
  return true
}

import type { Context } from '../../handler.ts'
import {
  type ContactChanges,
  type ContactRow,
  readContact,
  updateContactRow,
} from '../../../storage/contacts/contacts.ts'
import type { Label } from '../../../storage/labels/labels.ts'
import { applyValues, toFieldTypes, type ValueChanges } from './input.ts'
import { auditMetadata, changeMetadata, type MetadataChanges } from './metadata.ts'
import { eventContact } from './view.ts'
import { hasHiddenPhones } from '../../visibility/policy.ts'

/** The changes of one contact; absent properties do not change. */
export type ContactEdit = {
  name?: string | null | undefined
  externalId?: string | null | undefined
  dnd?: boolean | undefined
  starred?: boolean | undefined
  metadata?: MetadataChanges | undefined
  values: ValueChanges
}

/** Writes what differs on a locked contact, and emits the event. Returns false when nothing differs. */
export const editContact = async (
  ctx: Context<'contact.updated/1'>,
  id: string,
  edit: ContactEdit,
): Promise<boolean> => {
  const { contact } = (await readContact(ctx.tx, ctx.actor.workspace.id, id, 'none'))!
  const changes = emitEdit(ctx, contact, edit)
  if (!changes) return false
  await updateContactRow(ctx.tx, ctx.actor.workspace.id, contact, changes, ctx.now)
  const { values: _values, email: _email, metadata: _metadata, ...columns } = changes
  ctx.auditChange(
    {
      ...contact,
      ...auditValues(contact.attrs, edit.values),
      ...auditMetadata(contact.metadata, edit.metadata),
    },
    {
      ...columns,
      ...auditValues(changes.values?.attrs ?? contact.attrs, edit.values),
      ...auditMetadata(changes.metadata ?? contact.metadata, edit.metadata),
    },
  )
  return true
}

type EventContact = Parameters<typeof eventContact>[0]

/** Returns what differs on a locked contact, for it to be written, and emits the event; undefined when nothing does. */
export const emitEdit = (
  ctx: Context<'contact.updated/1'>,
  contact: Parameters<typeof diffContact>[0] & EventContact,
  edit: ContactEdit,
): ContactChanges | undefined => {
  const { changes, names } = diffContact(contact, edit, hasHiddenPhones(ctx.actor))
  if (names.length === 0) return undefined
  const { values: _values, email: _email, metadata: _metadata, ...columns } = changes
  ctx.emit('contact.updated/1', {
    contact: eventContact({ ...contact, ...columns, updated_at: ctx.now }),
    changes: names,
  })
  return changes
}

const isEmail = ({ key }: { key: string }): boolean => key === 'email'

/** Returns the name of a custom field's value in events and in the audit trail. */
export const toChangeName = (key: string): string => (key === 'email' ? key : `attributes.${key}`)
const valueName = ({ key }: { key: string }): string => toChangeName(key)

/** Returns the values of the fields that an edit names, by their names. */
const auditValues = (attrs: ContactRow['attrs'], edited: ValueChanges): Record<string, unknown> =>
  Object.fromEntries([...edited.keys()].map((field) => [valueName(field), attrs[field.id] ?? null]))

/** Returns what differs, and the names of it as events carry them. */
export const diffContact = (
  contact: Pick<ContactRow, 'name' | 'external_id' | 'dnd' | 'starred' | 'attrs' | 'metadata'>,
  edit: ContactEdit,
  hidePhones = false,
): { changes: ContactChanges; names: string[] } => {
  const changes: ContactChanges = {}
  if (edit.name !== undefined && edit.name !== contact.name) changes.name = edit.name
  if (edit.externalId !== undefined && edit.externalId !== contact.external_id)
    changes.external_id = edit.externalId
  if (edit.dnd !== undefined && edit.dnd !== contact.dnd) changes.dnd = edit.dnd
  if (edit.starred !== undefined && edit.starred !== contact.starred) changes.starred = edit.starred
  const metadata = changeMetadata(contact.metadata, edit.metadata)
  if (metadata) changes.metadata = metadata
  const { attrs, changed } = applyValues(contact.attrs, edit.values, hidePhones)
  const names = [...Object.keys(changes), ...changed.map(valueName)]
  if (changed.some(isEmail)) changes.email = findEmailChange(edit.values) ?? null
  if (changed.length > 0) changes.values = { attrs, changed: toFieldTypes(changed) }
  return { changes, names }
}

/**
 * Returns the new email address, null when it is cleared, and undefined when the values hold none. The
 * column `email` follows the custom field of that key.
 */
export const findEmailChange = (values: ValueChanges): string | null | undefined => {
  for (const [field, value] of values) if (isEmail(field)) return value as string | null
  return undefined
}

/** Emits the events of the tags and groups that one contact gained. */
export const emitLabelsAdded = (
  ctx: Context<'contact.tags_added/1' | 'contact.groups_added/1'>,
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

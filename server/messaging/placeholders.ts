import type { ContactRow } from '../../storage/contacts.ts'
import type { ShownField } from '../../storage/known.ts'
import { showValue } from '../contacts/attributes.ts'
import { type Actor, phonesHidden, seesManagerFields } from '../context.ts'
import { invalidField, Problem } from '../problem.ts'

const PLACEHOLDER = /\{\{\s*([^{}]+?)\s*\}\}/g

/** What a placeholder stands for; null: the contact has no such value. `hidden`: it would tell a phone number to staff who may not see any. */
type Value = { text: string | null; hidden?: boolean }

const valuesOf = (actor: Actor, contact: ContactRow, fields: readonly ShownField[]): Map<string, Value> => {
  const hidden = phonesHidden(actor)
  const shown = fields.filter((field) => field.visibility !== 'manager_only' || seesManagerFields(actor))
  return new Map<string, Value>([
    ...shown.map((field): [string, Value] => {
      const stored = contact.attrs[field.id]
      return [`contact.${field.key}`, { text: stored === undefined ? null : showValue(field, stored, false).display, hidden: hidden && field.type === 'phone' }]
    }),
    ['contact.name', { text: contact.name }],
    ['contact.phone', { text: contact.phone, hidden }],
    ['staff.name', { text: actor.staff.name }],
  ])
}

/**
 * The text of a saved reply with its placeholders filled. It refuses what would reach the customer as a broken sentence: placeholders that nobody knows (400),
 * and values that the contact does not have (409). Manager-only fields are unknown to agents.
 */
export const fillPlaceholders = (text: string, actor: Actor, contact: ContactRow, fields: readonly ShownField[]): string => {
  const values = valuesOf(actor, contact, fields)
  const asked = [...new Set([...text.matchAll(PLACEHOLDER)].map((match) => match[1]!))]
  const unknown = asked.filter((name) => !values.has(name))
  if (unknown.length > 0) {
    throw invalidField('quick_message_id', 'unknown_placeholder', `names a saved reply with ${braced(unknown)}, which stands for nothing`, {
      fix: 'Correct the saved reply, or send the text yourself.', allowed: [...values.keys()],
    })
  }
  const hidden = asked.filter((name) => values.get(name)!.hidden)
  if (hidden.length > 0) throw new Problem('forbidden', `The saved reply holds ${braced(hidden)}, and phone numbers are hidden from you.`, { reason: 'phone_hidden' })
  const empty = asked.filter((name) => (values.get(name)!.text ?? '') === '')
  if (empty.length > 0) {
    throw new Problem('conflict', `The contact has no value for ${braced(empty)}. Give it one, or send the text yourself.`, { reason: 'placeholder_empty', placeholders: empty })
  }
  return text.replaceAll(PLACEHOLDER, (_, name: string) => values.get(name)!.text!)
}

const braced = (names: readonly string[]): string => names.map((name) => `{{${name}}}`).join(', ')

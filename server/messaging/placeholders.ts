import type { ContactRow } from '../../storage/contacts.ts'
import type { ShownField } from '../../storage/names-cache.ts'
import { showValue } from '../contacts/attributes.ts'
import { type Actor, phonesHidden, seesManagerFields } from '../core/context.ts'
import { nearest } from '../nearest.ts'
import { invalidField, Problem } from '../core/problem.ts'

const PLACEHOLDER = /\{\{\s*([^{}]+?)\s*\}\}/g

/**
 * What a placeholder stands for; null: the contact has no such value. `hidden`: it would tell a phone
 * number to staff who may not see any.
 */
type Value = { text: string | null; hidden?: boolean }
type Person = Pick<ContactRow, 'name' | 'phone' | 'attrs'>

const NOBODY: Person = { name: null, phone: null, attrs: {} }

const valuesOf = (actor: Actor, contact: Person, fields: readonly ShownField[]): Map<string, Value> => {
  const hidden = phonesHidden(actor)
  const shown = fields.filter((field) => field.visibility !== 'manager_only' || seesManagerFields(actor))
  return new Map<string, Value>([
    ...shown.map((field): [string, Value] => {
      const stored = contact.attrs[field.id]
      return [
        `contact.${field.key}`,
        {
          text: stored === undefined ? null : showValue(field, stored, false).display,
          hidden: hidden && field.type === 'phone',
        },
      ]
    }),
    ['contact.name', { text: contact.name }],
    ['contact.phone', { text: contact.phone, hidden }],
    ['staff.name', { text: actor.staff.name }],
  ])
}

const askedIn = (text: string): string[] => [
  ...new Set([...text.matchAll(PLACEHOLDER)].map((match) => match[1]!)),
]

/**
 * Refuses a text to be saved whose placeholders could never be filled: unknown ones, and braces that are
 * none. `field` is where the text stands. Whoever saves it may leave to others what is hidden from
 * themselves, but not name fields that they do not see.
 */
export const checkPlaceholders = (
  field: string,
  text: string,
  actor: Actor,
  fields: readonly ShownField[],
): void => {
  const known = [...valuesOf(actor, NOBODY, fields).keys()]
  const unknown = askedIn(text).filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    const meant = nearest(unknown[0]!, known)
    throw invalidField(field, 'unknown_placeholder', `holds ${braced(unknown)}, which stands for nothing`, {
      fix:
        meant === undefined
          ? 'Use placeholders that are allowed, or write the words themselves.'
          : `Did you mean {{${meant}}}?`,
      allowed: known.map((name) => `{{${name}}}`),
    })
  }
  if (/\{\{|\}\}/.test(text.replaceAll(PLACEHOLDER, ''))) {
    throw invalidField(
      field,
      'placeholder_form',
      'holds {{ or }} that belong to no placeholder and would be sent as they stand',
      {
        fix: 'Write a placeholder as {{contact.name}}, or leave the braces out.',
        allowed: known.map((name) => `{{${name}}}`),
      },
    )
  }
}

/**
 * The text of a saved reply with its placeholders filled. It refuses what would reach the customer as a
 * broken sentence: placeholders that nobody knows (400), and values that the contact does not have (409).
 * Manager-only fields are unknown to agents.
 */
export const fillPlaceholders = (
  text: string,
  actor: Actor,
  contact: ContactRow,
  fields: readonly ShownField[],
): string => {
  const values = valuesOf(actor, contact, fields)
  const asked = askedIn(text)
  const unknown = asked.filter((name) => !values.has(name))
  if (unknown.length > 0) {
    throw invalidField(
      'quick_message_id',
      'unknown_placeholder',
      `names a saved reply with ${braced(unknown)}, which stands for nothing`,
      {
        fix: 'Correct the saved reply, or send the text yourself.',
        allowed: [...values.keys()],
      },
    )
  }
  const hidden = asked.filter((name) => values.get(name)!.hidden)
  if (hidden.length > 0)
    throw new Problem(
      'forbidden',
      `The saved reply holds ${braced(hidden)}, and phone numbers are hidden from you.`,
      { reason: 'phone_hidden' },
    )
  const empty = asked.filter((name) => (values.get(name)!.text ?? '') === '')
  if (empty.length > 0) {
    throw new Problem(
      'conflict',
      `The contact has no value for ${braced(empty)}. Give it one, or send the text yourself.`,
      { reason: 'placeholder_empty', placeholders: empty },
    )
  }
  return text.replaceAll(PLACEHOLDER, (_, name: string) => values.get(name)!.text!)
}

const braced = (names: readonly string[]): string => names.map((name) => `{{${name}}}`).join(', ')

import type { ContactRow } from '../../../storage/contacts/contacts.ts'
import type { CachedField } from '../../../storage/workspace/names-cache.ts'
import { showValue } from '../contacts/attributes.ts'
import type { Actor } from '../../kernel/context.ts'
import { findNearestName } from '../../nearest-name.ts'
import { invalidField, Problem } from '../../kernel/problem.ts'
import { isNameHidden } from '../../visibility/phones.ts'
import { canSeeField, hasHiddenPhones } from '../../visibility/policy.ts'

/** The name is trimmed by whoever reads it: spaces that several parts may take make the time grow with their cube. */
const PLACEHOLDER = /\{\{([^{}]+)\}\}/g

/**
 * The value of a placeholder; `text` is null when the contact has none. `hidden`: it would show a phone
 * number to a staff member who may not see any.
 */
type PlaceholderValue = { text: string | null; hidden?: boolean }
type PlaceholderContact = Pick<ContactRow, 'name' | 'phone' | 'attrs'>

const EMPTY_CONTACT: PlaceholderContact = { name: null, phone: null, attrs: {} }

const placeholderValues = (
  actor: Actor,
  contact: PlaceholderContact,
  fields: readonly CachedField[],
): Map<string, PlaceholderValue> => {
  const hidden = hasHiddenPhones(actor)
  const visible = fields.filter((field) => canSeeField(actor, field))
  return new Map<string, PlaceholderValue>([
    ...visible.map((field): [string, PlaceholderValue] => {
      const stored = contact.attrs[field.id]
      return [
        `contact.${field.key}`,
        {
          text: stored === undefined ? null : showValue(field, stored, false).display,
          hidden: hidden && field.type === 'phone',
        },
      ]
    }),
    ['contact.name', { text: contact.name, hidden: isNameHidden(actor, contact.name) }],
    ['contact.phone', { text: contact.phone, hidden }],
    ['staff.name', { text: actor.staff.name }],
  ])
}

const findPlaceholders = (text: string): string[] => [
  ...new Set([...text.matchAll(PLACEHOLDER)].map((match) => match[1]!.trim())),
]

/**
 * Throws 400 when a text to be saved has placeholders that could never be filled: unknown ones, and braces
 * that form none. `field`: the input field that holds the text. A text may use phone numbers that are
 * hidden from its author, but not fields that the author cannot see.
 */
export const checkPlaceholders = (
  field: string,
  text: string,
  actor: Actor,
  fields: readonly CachedField[],
): void => {
  const known = [...placeholderValues(actor, EMPTY_CONTACT, fields).keys()]
  const unknown = findPlaceholders(text).filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    const suggestion = findNearestName(unknown[0]!, known)
    throw invalidField(
      field,
      'unknown_placeholder',
      `contains ${formatPlaceholders(unknown)}, which is unknown`,
      {
        fix:
          suggestion === undefined
            ? 'Use one of the allowed placeholders, or write plain text.'
            : `Did you mean {{${suggestion}}}?`,
        allowed: known.map((name) => `{{${name}}}`),
      },
    )
  }
  if (/\{\{|\}\}/.test(text.replaceAll(PLACEHOLDER, ''))) {
    throw invalidField(
      field,
      'placeholder_form',
      'contains {{ or }} outside of a placeholder, which would be sent unchanged',
      {
        fix: 'Write a placeholder as {{contact.name}}, or remove the braces.',
        allowed: known.map((name) => `{{${name}}}`),
      },
    )
  }
}

/**
 * Returns the text of a quick message with its placeholders filled. Throws when the customer would read a
 * broken sentence: 400 for unknown placeholders, 409 for values that the contact does not have; and 403 for
 * phone numbers that are hidden from the actor. Manager-only fields are unknown to agents.
 */
export const fillPlaceholders = (
  text: string,
  actor: Actor,
  contact: ContactRow,
  fields: readonly CachedField[],
): string => {
  const values = placeholderValues(actor, contact, fields)
  const names = findPlaceholders(text)
  const unknown = names.filter((name) => !values.has(name))
  if (unknown.length > 0) {
    throw invalidField(
      'quick_message_id',
      'unknown_placeholder',
      `names a quick message with ${formatPlaceholders(unknown)}, which is unknown`,
      {
        fix: 'Correct the quick message, or send the text yourself.',
        allowed: [...values.keys()],
      },
    )
  }
  const hidden = names.filter((name) => values.get(name)!.hidden)
  if (hidden.length > 0)
    throw new Problem(
      'forbidden',
      `The quick message contains ${formatPlaceholders(hidden)}, and phone numbers are hidden from you.`,
      { reason: 'phone_hidden' },
    )
  const empty = names.filter((name) => (values.get(name)!.text ?? '') === '')
  if (empty.length > 0) {
    throw new Problem(
      'conflict',
      `The contact has no value for ${formatPlaceholders(empty)}. Set it, or send the text yourself.`,
      { reason: 'placeholder_empty', placeholders: empty },
    )
  }
  return text.replaceAll(PLACEHOLDER, (_, name: string) => values.get(name.trim())!.text!)
}

const formatPlaceholders = (names: readonly string[]): string => names.map((name) => `{{${name}}}`).join(', ')

import type { Context } from '../../handler.ts'
import { type FieldRow, markFieldsUsed } from '../../../storage/contacts/custom-fields.ts'
import type { FieldTypes, Attrs, StoredValue } from '../../../storage/contacts/values.ts'
import { findNearestName } from '../../nearest-name.ts'
import { type FieldError, invalidField, toPointer, Problem } from '../../kernel/problem.ts'
import { parseValue } from './attributes.ts'
import type { PhoneLine } from './phone-lines.ts'
import { parsePhoneLine } from './phone.ts'
import { canSeeField } from '../../visibility/policy.ts'

/** Returns the phone line that identifies a contact, in whichever spelling. Throws 400 `invalid_phone`. */
export const requirePhone = (text: string): PhoneLine => {
  const line = parsePhoneLine(text)
  if ('error' in line) throw invalidField('phone', 'invalid_phone', line.error, { fix: line.fix })
  return line
}

/** Returns the phone line; undefined where the external id alone identifies the contact. Throws 400. */
export const requireIdentity = (given: {
  phone: string | undefined
  externalId: string | null | undefined
}): PhoneLine | undefined => {
  if (given.phone !== undefined) return requirePhone(given.phone)
  if (typeof given.externalId === 'string') return undefined
  throw invalidField('phone', 'required', 'or external_id is required', {
    fix: 'Send phone, external_id or both.',
  })
}

/** Custom field values to set on a contact, as they are stored; null clears the field. */
export type ValueChanges = Map<FieldRow, StoredValue | null>

const MAX_ERRORS = 50

type ValuesInput = { attributes?: Record<string, unknown> | undefined; email?: string | null | undefined }

/** Returns the fields that the actor may set, by key. Agents can neither see nor set manager-only fields. */
export const fieldsVisibleTo = (
  { actor }: Pick<Context, 'actor'>,
  fields: readonly FieldRow[],
): ReadonlyMap<string, FieldRow> =>
  new Map(fields.filter((f) => canSeeField(actor, f)).map((f) => [f.key, f]))

/**
 * Checks `attributes` and `email` together, since `email` is the custom field of that key. Throws 400 with
 * an error for each wrong value, at most 50.
 */
export const parseValues = (fields: ReadonlyMap<string, FieldRow>, input: ValuesInput): ValueChanges => {
  const changes: ValueChanges = new Map()
  const errors: FieldError[] = []
  const parseOne = (key: string, raw: unknown, pointer: string) => {
    const field = fields.get(key)
    if (!field) return void errors.push(unknownAttribute(key, pointer, [...fields.keys()]))
    if (field.read_only)
      return void errors.push({ pointer, code: 'read_only', detail: 'is read-only', fix: 'Leave it out.' })
    const parsed = parseValue(field, raw)
    if ('error' in parsed) {
      const { error: detail, ...fix } = parsed
      errors.push({ pointer, code: 'invalid_value', detail, ...fix })
    } else changes.set(field, 'clear' in parsed ? null : parsed.value)
  }
  for (const [key, raw] of Object.entries(input.attributes ?? {})) {
    if (errors.length === MAX_ERRORS) break
    parseOne(key, raw, toPointer(['attributes', key]))
  }
  if (input.email !== undefined) parseOne('email', input.email, '#/email')
  const [first] = errors
  if (first === undefined) return changes
  throw new Problem(
    'invalid_input',
    errors.length === 1
      ? `${first.pointer!.slice(2)} ${first.detail}.`
      : `${errors.length} fields are wrong.`,
    { errors: errors.slice(0, MAX_ERRORS) },
  )
}

const unknownAttribute = (key: string, pointer: string, valid: string[]): FieldError => {
  const near = findNearestName(key, valid)
  return {
    pointer,
    code: 'unknown_attribute',
    detail: 'is not a custom field',
    allowed: valid,
    fix: near ? `Did you mean ${near}?` : 'Use one of the listed keys, or create the field first.',
  }
}

/**
 * Returns the attributes after the changes, and the fields whose value differs. `hidePhones`: a phone counts as
 * different always, so that nobody finds out a hidden one by guessing.
 */
export const applyValues = (
  attrs: Attrs,
  changes: ValueChanges,
  hidePhones = false,
): { attrs: Attrs; changed: FieldRow[] } => {
  const next: Attrs = { ...attrs }
  const changed: FieldRow[] = []
  for (const [field, value] of changes) {
    const isHidden = hidePhones && field.type === 'phone'
    if (!isHidden && JSON.stringify(next[field.id] ?? null) === JSON.stringify(value)) continue
    if (value === null) delete next[field.id]
    else next[field.id] = value
    changed.push(field)
  }
  return { attrs: next, changed }
}

export const toFieldTypes = (fields: readonly FieldRow[]): FieldTypes =>
  new Map(fields.map((field) => [field.id, field.type]))

/** Marks the fields that get their first value as used. */
export const markFirstUse = async (
  ctx: Context,
  changes: Iterable<readonly [FieldRow, StoredValue | null]>,
): Promise<void> => {
  const unused = new Set<string>()
  for (const [field, value] of changes) if (value !== null && !field.used) unused.add(field.id)
  if (unused.size > 0) await markFieldsUsed(ctx.tx, ctx.actor.workspace.id, [...unused])
}

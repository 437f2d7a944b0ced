import type { z } from 'zod'
import { EmailAddress } from '../../../catalog/fields.ts'
import type { Attribute } from '../../../catalog/contacts/schemas.ts'
import type { CustomFieldType } from '../../../catalog/custom-fields.ts'
import type { Attrs, StoredValue } from '../../../storage/contacts/values.ts'
import type { CachedField } from '../../../storage/workspace/names-cache.ts'
import type { Actor } from '../../kernel/context.ts'
import { maskPhone } from '../../visibility/numbers.ts'
import { canSeeField, hasHiddenPhones } from '../../visibility/policy.ts'
import { parsePhone } from './phone.ts'

/** The rules of custom field values: which input each type accepts, what is stored, and how it is shown. */
const MAX_SHOWN_ATTRIBUTES = 100
const MAX_SHOWN_CHARACTERS = 2000
const MAX_TEXT_LENGTH = 10_000

/** What an input value means for its field; `clear` removes the stored value. */
export type ParsedValue =
  | { value: StoredValue }
  | { clear: true }
  | { error: string; fix: string; allowed?: string[] }

type Field = Pick<CachedField, 'type' | 'options'>

const invalid = (error: string, fix: string, allowed?: string[]): ParsedValue => ({
  error,
  fix,
  ...(allowed ? { allowed } : {}),
})

/** Returns the stored form of a value. Null, blank text and an empty array clear the field. */
export const parseValue = (field: Field, raw: unknown): ParsedValue => {
  if (raw === null || raw === '' || (Array.isArray(raw) && raw.length === 0)) return { clear: true }
  if (typeof raw === 'string' && raw.trim() === '') return { clear: true }
  return PARSERS[field.type](raw, field)
}

const scalarText = (raw: unknown): string | undefined =>
  typeof raw === 'string'
    ? raw
    : typeof raw === 'number' || typeof raw === 'boolean'
      ? String(raw)
      : undefined

const parseText = (raw: unknown): ParsedValue => {
  const text = scalarText(raw)
  if (text === undefined) return invalid('must be text', 'Send a string.')
  if (text.length > MAX_TEXT_LENGTH)
    return invalid(`must have at most ${MAX_TEXT_LENGTH} characters`, 'Shorten it.')
  return { value: text }
}

/** Returns the value of the option that the input names, by value or else by label. */
const findOption = (field: Field, raw: unknown): string | undefined => {
  const text = scalarText(raw)?.trim()
  const options = field.options ?? []
  return options.find((o) => o.value === text)?.value ?? options.find((o) => o.label === text)?.value
}

const parseOption = (raw: unknown, field: Field): ParsedValue => {
  const value = findOption(field, raw)
  return value === undefined ? notAnOption(field) : { value }
}

const notAnOption = (field: Field): ParsedValue => {
  const allowed = (field.options ?? []).map((o) => o.value)
  return invalid(
    "must be one of the field's options",
    `Send one of: ${allowed.slice(0, 20).join(', ')}.`,
    allowed,
  )
}

const parseOptions = (raw: unknown, field: Field): ParsedValue => {
  const items: unknown[] = Array.isArray(raw)
    ? raw
    : typeof raw === 'string'
      ? raw.split(',').filter((item) => item.trim() !== '')
      : [raw]
  const values = new Set<string>()
  for (const item of items) {
    const value = findOption(field, item)
    if (value === undefined) return notAnOption(field)
    values.add(value)
  }
  return values.size === 0 ? { clear: true } : { value: [...values] }
}

const TRUE_WORDS = new Set(['true', 'yes', 'y', '1', 'on'])
const FALSE_WORDS = new Set(['false', 'no', 'n', '0', 'off'])

const parseBoolean = (raw: unknown): ParsedValue => {
  const text = scalarText(raw)?.trim().toLowerCase() ?? ''
  return TRUE_WORDS.has(text)
    ? { value: true }
    : FALSE_WORDS.has(text)
      ? { value: false }
      : invalid('must be true or false', 'Send true or false.')
}

/** Longer texts are no numbers, whatever they hold: the largest one has 309 digits. */
const MAX_NUMBER_LENGTH = 400
const NUMBER = /^\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\s*$/i

const parseNumber = (raw: unknown): ParsedValue => {
  const number =
    typeof raw === 'number'
      ? raw
      : typeof raw === 'string' && raw.length <= MAX_NUMBER_LENGTH && NUMBER.test(raw)
        ? Number(raw)
        : Number.NaN
  return Number.isFinite(number)
    ? { value: number === 0 ? 0 : number }
    : invalid('must be a number', 'Send a number, such as 12.5.')
}

const parseInteger = (raw: unknown): ParsedValue => {
  const parsed = parseNumber(raw)
  if ('value' in parsed && Number.isSafeInteger(parsed.value)) return parsed
  return invalid('must be an integer between -9007199254740991 and 9007199254740991', 'Send a whole number.')
}

/** Up to 20 digits before the point and 8 after it, stored as text: binary numbers would round them. */
const parseDecimal = (raw: unknown): ParsedValue => {
  const text = (
    typeof raw === 'number' && Number.isFinite(raw) ? toPlainDecimal(raw) : typeof raw === 'string' ? raw : ''
  ).trim()
  const match = /^([+-]?)0*(\d{1,20})(?:\.(\d{0,8}?)0*)?$/.exec(text)
  if (!match)
    return invalid(
      'must be a decimal number with at most 20 digits before and 8 after the point',
      'Send it as text, such as "12.50".',
    )
  const [, sign, integer, fraction = ''] = match
  const digits = `${integer}.${fraction.padEnd(8, '0')}`
  return { value: sign === '-' && /[1-9]/.test(digits) ? `-${digits}` : digits }
}

/** Writes a number without an exponent, with all its digits: what does not fit is refused, never rounded. */
const toPlainDecimal = (number: number): string => {
  const [mantissa, exponent] = String(number).split('e')
  if (exponent === undefined) return mantissa!
  const shift = Number(exponent)
  const [, sign, integer, fraction = ''] = /^(-?)(\d)(?:\.(\d+))?$/.exec(mantissa!)!
  return shift < 0
    ? `${sign}0.${'0'.repeat(-shift - 1)}${integer}${fraction}`
    : `${sign}${integer}${fraction.padEnd(shift, '0')}`
}

const FOUR_DIGIT_YEAR = /^\d{4}-/

const parseDate = (raw: unknown): ParsedValue => {
  try {
    if (typeof raw === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(raw.trim()))
      return { value: Temporal.PlainDate.from(raw.trim(), { overflow: 'reject' }).toString() }
  } catch {
    /* reported below */
  }
  return invalid('must be a date', 'Send YYYY-MM-DD.')
}

/** A time without a zone is UTC, the zone in which times are shown. */
const parseDateTime = (raw: unknown): ParsedValue => {
  const text = typeof raw === 'string' ? raw.trim().replace(/^(\d{4}-\d{2}-\d{2}) /, '$1T') : ''
  try {
    const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/i.test(text) ? text : `${text}Z`
    if (/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/.test(text)) {
      const iso = new Date(Temporal.Instant.from(zoned).epochMilliseconds).toISOString()
      if (FOUR_DIGIT_YEAR.test(iso)) return { value: iso }
    }
  } catch {
    /* reported below */
  }
  return invalid('must be a date and time', 'Send ISO 8601 with a zone, such as 2026-10-01T09:30:00Z.')
}

const parseEmail = (raw: unknown): ParsedValue => {
  const text = typeof raw === 'string' ? raw.trim() : ''
  return EmailAddress.safeParse(text).success
    ? { value: text }
    : invalid(
        'must be an email address of at most 255 characters',
        'Send one address, such as ada@example.com.',
      )
}

const parseUrl = (raw: unknown): ParsedValue => {
  const text = typeof raw === 'string' ? raw.trim() : ''
  const isValid = text.length <= 2000 && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
  return isValid
    ? { value: text }
    : invalid(
        'must be an http or https URL of at most 2000 characters',
        'Send a whole URL, such as https://example.com/.',
      )
}

const parsePhoneValue = (raw: unknown): ParsedValue => {
  const parsed = parsePhone(scalarText(raw)?.slice(0, 64) ?? '')
  return 'digits' in parsed ? { value: parsed.digits } : invalid(parsed.error, parsed.fix)
}

const PARSERS: Record<CustomFieldType, (raw: unknown, field: Field) => ParsedValue> = {
  text: parseText,
  textarea: parseText,
  select: parseOption,
  radio: parseOption,
  multiselect: parseOptions,
  checkbox: parseBoolean,
  boolean: parseBoolean,
  date: parseDate,
  datetime: parseDateTime,
  number: parseNumber,
  float: parseNumber,
  int: parseInteger,
  decimal: parseDecimal,
  email: parseEmail,
  url: parseUrl,
  phone: parsePhoneValue,
}

/** Truncates by code points, so that no surrogate pair is split. */
const truncate = (text: string): string =>
  text.length <= MAX_SHOWN_CHARACTERS
    ? text
    : Array.from(text.slice(0, MAX_SHOWN_CHARACTERS * 2))
        .slice(0, MAX_SHOWN_CHARACTERS)
        .join('')

const markTruncated = (whole: string, shown: string): { truncated?: true } =>
  shown.length < whole.length ? { truncated: true } : {}

type ShownValue = Pick<z.input<typeof Attribute>, 'value' | 'display' | 'typed_value' | 'truncated'>

/**
 * Returns the three forms of a stored value. A value that does not fit its field's type any more is shown as
 * text with a null `typed_value`.
 */
export const showValue = (field: Field, stored: StoredValue, hidePhones: boolean): ShownValue => {
  const toLabel = (value: string): string => field.options?.find((o) => o.value === value)?.label ?? value
  switch (field.type) {
    case 'checkbox':
    case 'boolean': {
      if (typeof stored !== 'boolean') return showAsText(stored)
      const text = stored ? 'Yes' : 'No'
      return { value: text, display: text, typed_value: stored }
    }
    case 'number':
    case 'int':
    case 'float':
      return typeof stored === 'number'
        ? { value: stored, display: String(stored), typed_value: stored }
        : showAsText(stored)
    case 'decimal':
      return typeof stored === 'string'
        ? { value: stored, display: stored, typed_value: Number(stored) }
        : showAsText(stored)
    case 'datetime': {
      if (typeof stored !== 'string') return showAsText(stored)
      const text = stored.slice(0, 19).replace('T', ' ')
      return { value: text, display: text, typed_value: stored }
    }
    case 'multiselect':
      return Array.isArray(stored)
        ? { value: stored.join(','), display: stored.map(toLabel).join(', '), typed_value: stored }
        : showAsText(stored)
    case 'select':
    case 'radio':
      return typeof stored === 'string'
        ? { value: stored, display: toLabel(stored), typed_value: stored }
        : showAsText(stored)
    case 'phone': {
      const whole = String(stored)
      const text = hidePhones ? maskPhone(whole) : whole
      return { value: text, display: text, typed_value: text }
    }
    default: {
      if (typeof stored !== 'string') return showAsText(stored)
      const text = truncate(stored)
      return { value: text, display: text, typed_value: text, ...markTruncated(stored, text) }
    }
  }
}

const showAsText = (stored: StoredValue): ShownValue => {
  const whole = String(stored)
  const text = truncate(whole)
  return { value: text, display: text, typed_value: null, ...markTruncated(whole, text) }
}

/** Returns the values that an actor may see, in the order in which the fields were created; at most 100. */
export const showAttributes = (
  actor: Actor,
  attrs: Attrs,
  fields: readonly CachedField[],
): z.input<typeof Attribute>[] => {
  const shown: z.input<typeof Attribute>[] = []
  for (const field of fields) {
    const stored = attrs[field.id]
    if (stored === undefined || !canSeeField(actor, field)) continue
    shown.push({
      key: field.key,
      label: field.label,
      type: field.type,
      ...showValue(field, stored, hasHiddenPhones(actor)),
    })
    if (shown.length === MAX_SHOWN_ATTRIBUTES) break
  }
  return shown
}

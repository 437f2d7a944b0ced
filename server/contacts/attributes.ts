import { z } from 'zod'
import type { Attribute } from '../../catalog/contacts.ts'
import type { CustomFieldType } from '../../catalog/custom-fields.ts'
import type { Attrs, StoredValue } from '../../storage/contacts.ts'
import type { ShownField } from '../../storage/names-cache.ts'
import { maskPhone, parsePhone } from './phone.ts'

/**
 * The rules of custom field values: what each type takes, what is stored, and how it is shown (spec
 * "Attribute").
 */
const MOST_SHOWN = 100
const CLIPPED_AT = 2000
const LONGEST_TEXT = 10_000

export type Parsed =
  | { value: StoredValue }
  | { clear: true }
  | { fault: string; fix: string; allowed?: string[] }

type Field = Pick<ShownField, 'type' | 'options'>

const fault = (what: string, fix: string, allowed?: string[]): Parsed => ({
  fault: what,
  fix,
  ...(allowed ? { allowed } : {}),
})

/** The stored form of a value, or what is wrong with it. Null, an empty string and an empty array clear. */
export const parseValue = (field: Field, raw: unknown): Parsed => {
  if (raw === null || raw === '' || (Array.isArray(raw) && raw.length === 0)) return { clear: true }
  if (typeof raw === 'string' && raw.trim() === '') return { clear: true }
  return parsers[field.type](raw, field)
}

const scalarText = (raw: unknown): string | undefined =>
  typeof raw === 'string'
    ? raw
    : typeof raw === 'number' || typeof raw === 'boolean'
      ? String(raw)
      : undefined

const parseText = (raw: unknown): Parsed => {
  const text = scalarText(raw)
  if (text === undefined) return fault('must be text', 'Send a string.')
  if (text.length > LONGEST_TEXT) return fault(`must have at most ${LONGEST_TEXT} characters`, 'Send less.')
  return { value: text }
}

const optionOf = (field: Field, raw: unknown): string | undefined => {
  const text = scalarText(raw)?.trim()
  const options = field.options ?? []
  return options.find((o) => o.value === text)?.value ?? options.find((o) => o.label === text)?.value
}

const parseOption = (raw: unknown, field: Field): Parsed => {
  const value = optionOf(field, raw)
  return value === undefined ? notAnOption(field) : { value }
}

const notAnOption = (field: Field): Parsed => {
  const allowed = (field.options ?? []).map((o) => o.value)
  return fault(
    "must be one of the field's options",
    `Send one of: ${allowed.slice(0, 20).join(', ')}.`,
    allowed,
  )
}

const parseMany = (raw: unknown, field: Field): Parsed => {
  const items: unknown[] = Array.isArray(raw)
    ? raw
    : typeof raw === 'string'
      ? raw.split(',').filter((item) => item.trim() !== '')
      : [raw]
  const values = items.map((item) => optionOf(field, item))
  if (values.some((value) => value === undefined)) return notAnOption(field)
  const distinct = [...new Set(values as string[])]
  return distinct.length === 0 ? { clear: true } : { value: distinct }
}

const YES = new Set(['true', 'yes', 'y', '1', 'on'])
const NO = new Set(['false', 'no', 'n', '0', 'off'])

const parseBoolean = (raw: unknown): Parsed => {
  const text = scalarText(raw)?.trim().toLowerCase() ?? ''
  return YES.has(text)
    ? { value: true }
    : NO.has(text)
      ? { value: false }
      : fault('must be true or false', 'Send true or false.')
}

const parseNumber = (raw: unknown): Parsed => {
  const number =
    typeof raw === 'number'
      ? raw
      : typeof raw === 'string' && /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(raw)
        ? Number(raw)
        : Number.NaN
  return Number.isFinite(number)
    ? { value: number === 0 ? 0 : number }
    : fault('must be a number', 'Send a number, such as 12.5.')
}

const parseInteger = (raw: unknown): Parsed => {
  const parsed = parseNumber(raw)
  if ('value' in parsed && Number.isSafeInteger(parsed.value)) return parsed
  return fault('must be an integer between -9007199254740991 and 9007199254740991', 'Send a whole number.')
}

/** Twenty digits before the point and eight after it, kept as text: binary numbers would round them. */
const parseDecimal = (raw: unknown): Parsed => {
  const text = (
    typeof raw === 'number' && Number.isFinite(raw) ? plainDecimal(raw) : typeof raw === 'string' ? raw : ''
  ).trim()
  const match = /^([+-]?)0*(\d{1,20})(?:\.(\d{0,8}?)0*)?$/.exec(text)
  if (!match)
    return fault(
      'must be a decimal number with at most 20 digits before and 8 after the point',
      'Send it as text, such as "12.50".',
    )
  const [, sign, whole, part = ''] = match
  const digits = `${whole}.${part.padEnd(8, '0')}`
  return { value: sign === '-' && /[1-9]/.test(digits) ? `-${digits}` : digits }
}

/**
 * A number without an exponent, with every digit that JSON gave it: what does not fit is refused, never
 * rounded.
 */
const plainDecimal = (number: number): string => {
  const [mantissa, exponent] = String(number).split('e')
  if (exponent === undefined) return mantissa!
  const shift = Number(exponent)
  const [, sign, whole, part = ''] = /^(-?)(\d)(?:\.(\d+))?$/.exec(mantissa!)!
  return shift < 0
    ? `${sign}0.${'0'.repeat(-shift - 1)}${whole}${part}`
    : `${sign}${whole}${part.padEnd(shift, '0')}`
}

const YEAR = /^\d{4}-/

const parseDate = (raw: unknown): Parsed => {
  try {
    if (typeof raw === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(raw.trim()))
      return { value: Temporal.PlainDate.from(raw.trim(), { overflow: 'reject' }).toString() }
  } catch {
    /* said below */
  }
  return fault('must be a date', 'Send YYYY-MM-DD.')
}

/** A time without a zone is UTC, as it is shown. */
const parseDateTime = (raw: unknown): Parsed => {
  const text = typeof raw === 'string' ? raw.trim().replace(/^(\d{4}-\d{2}-\d{2}) /, '$1T') : ''
  try {
    const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/i.test(text) ? text : `${text}Z`
    if (/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/.test(text)) {
      const iso = new Date(Temporal.Instant.from(zoned).epochMilliseconds).toISOString()
      if (YEAR.test(iso)) return { value: iso }
    }
  } catch {
    /* said below */
  }
  return fault('must be a date and time', 'Send ISO 8601 with a zone, such as 2026-10-01T09:30:00Z.')
}

const EmailAddress = z.email().max(255)

const parseEmail = (raw: unknown): Parsed => {
  const text = typeof raw === 'string' ? raw.trim() : ''
  return EmailAddress.safeParse(text).success
    ? { value: text }
    : fault(
        'must be an email address of at most 255 characters',
        'Send one address, such as ada@example.com.',
      )
}

const parseUrl = (raw: unknown): Parsed => {
  const text = typeof raw === 'string' ? raw.trim() : ''
  const ok = text.length <= 2000 && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
  return ok
    ? { value: text }
    : fault(
        'must be an http or https URL of at most 2000 characters',
        'Send a whole URL, such as https://example.com/.',
      )
}

const parsePhoneValue = (raw: unknown): Parsed => {
  const parsed = parsePhone(scalarText(raw)?.slice(0, 64) ?? '')
  return 'digits' in parsed ? { value: parsed.digits } : fault(parsed.fault, parsed.fix)
}

const parsers: Record<CustomFieldType, (raw: unknown, field: Field) => Parsed> = {
  text: parseText,
  textarea: parseText,
  select: parseOption,
  radio: parseOption,
  multiselect: parseMany,
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

/** Clips by code points, so that no character is cut in two. */
const clip = (text: string): string =>
  text.length <= CLIPPED_AT
    ? text
    : Array.from(text.slice(0, CLIPPED_AT * 2))
        .slice(0, CLIPPED_AT)
        .join('')

type Shown = Pick<z.input<typeof Attribute>, 'value' | 'display' | 'typed_value'>

/**
 * The three forms of a stored value. A value that no longer fits its field's type is shown as text with a
 * null `typed_value`.
 */
export const showValue = (field: Field, stored: StoredValue, hidePhones: boolean): Shown => {
  const labelOf = (value: string): string => field.options?.find((o) => o.value === value)?.label ?? value
  switch (field.type) {
    case 'checkbox':
    case 'boolean': {
      if (typeof stored !== 'boolean') return unreadable(stored)
      const text = stored ? 'Yes' : 'No'
      return { value: text, display: text, typed_value: stored }
    }
    case 'number':
    case 'int':
    case 'float':
      return typeof stored === 'number'
        ? { value: stored, display: String(stored), typed_value: stored }
        : unreadable(stored)
    case 'decimal':
      return typeof stored === 'string'
        ? { value: stored, display: stored, typed_value: Number(stored) }
        : unreadable(stored)
    case 'datetime': {
      if (typeof stored !== 'string') return unreadable(stored)
      const text = stored.slice(0, 19).replace('T', ' ')
      return { value: text, display: text, typed_value: stored }
    }
    case 'multiselect':
      return Array.isArray(stored)
        ? { value: stored.join(','), display: stored.map(labelOf).join(', '), typed_value: stored }
        : unreadable(stored)
    case 'select':
    case 'radio':
      return typeof stored === 'string'
        ? { value: stored, display: labelOf(stored), typed_value: stored }
        : unreadable(stored)
    case 'phone': {
      if (typeof stored !== 'string') return unreadable(stored)
      const text = hidePhones ? maskPhone(stored) : stored
      return { value: text, display: text, typed_value: text }
    }
    default: {
      if (typeof stored !== 'string') return unreadable(stored)
      const text = clip(stored)
      return { value: text, display: text, typed_value: text }
    }
  }
}

const unreadable = (stored: StoredValue): Shown => {
  const text = clip(String(stored))
  return { value: text, display: text, typed_value: null }
}

/** The values that a staff member may see, in the order in which the fields were made. */
export const showAttributes = (
  attrs: Attrs,
  fields: readonly ShownField[],
  seen: { managerOnly: boolean; hidePhones: boolean },
): z.input<typeof Attribute>[] => {
  const shown: z.input<typeof Attribute>[] = []
  for (const field of fields) {
    const stored = attrs[field.id]
    if (stored === undefined || (field.visibility === 'manager_only' && !seen.managerOnly)) continue
    shown.push({
      key: field.key,
      label: field.label,
      type: field.type,
      ...showValue(field, stored, seen.hidePhones),
    })
    if (shown.length === MOST_SHOWN) break
  }
  return shown
}

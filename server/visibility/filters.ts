import { maskDigits, maskNumbers } from './numbers.ts'

type Mask = (text: string) => string

/** Masks a phone but for its last digits, however short it is. */
const maskWhole: Mask = (text) => maskNumbers(text, 1)
/** Masks parts of phones completely: their last digits may be in the middle of the number. */
const maskPart: Mask = (text) => maskDigits(text)

type FieldMask = { whole: Mask; part: Mask }

const maskText: Mask = (text) => maskNumbers(text)

const text: FieldMask = { whole: maskText, part: maskText }
const phone: FieldMask = { whole: maskWhole, part: maskPart }

/** How digits in what a field is compared with are masked. Custom fields may hold phones, but mostly do not. */
const FIELD_MASKS: Readonly<Record<string, FieldMask>> = {
  phoneNumber: phone,
  chatappUserId: phone,
  name: text,
  email: text,
  webVisitorId: text,
  stringValue: { whole: maskText, part: maskPart },
  numberValue: text,
}
const PARTIAL_OPERATORS = new Set(['contains', 'notContains', 'startsWith', 'endsWith', 'regex'])

/** Returns a filter as staff from whom phone numbers are hidden may see it. `masks`: those of its field. */
export const maskFilter = <T>(value: T, masks?: FieldMask, mask = masks?.whole): T => {
  if (typeof value === 'string') return (mask ? mask(value) : value) as T
  if (typeof value === 'number') return maskNumber(value, mask) as T
  if (Array.isArray(value)) return value.map((item) => maskFilter(item, masks, mask)) as T
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) =>
      Object.hasOwn(FIELD_MASKS, key)
        ? [key, maskFilter(member, FIELD_MASKS[key])]
        : [key, maskFilter(member, masks, PARTIAL_OPERATORS.has(key) ? masks?.part : mask)],
    ),
  ) as T
}

const maskNumber = (value: number, mask: Mask | undefined): number | string => {
  const whole = String(value)
  const masked = mask ? mask(whole) : whole
  return masked === whole ? value : masked
}

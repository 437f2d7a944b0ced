import type { Actor } from '../kernel/context.ts'
import { Problem } from '../kernel/problem.ts'
import { countDigits, hasDigits, isNumberOnly, maskNumbers, maskPhone } from './numbers.ts'
import { hasHiddenPhones } from './policy.ts'

/** Numbers in names have at least this many digits: "Studio 54321" is a name. */
const MIN_NAME_DIGITS = 7

/** Returns a stored phone as this staff member may see it. */
export const showPhone = (actor: Actor, phone: string | null): string | null =>
  phone !== null && hasHiddenPhones(actor) ? maskPhone(phone) : phone

export const maskName = (name: string): string | null =>
  isNumberOnly(name) ? null : maskNumbers(name, MIN_NAME_DIGITS)

/**
 * Returns the name of a contact as this staff member may see it. Every number is hidden, whether it is the
 * contact's or not: otherwise, writing a guess as the name would tell whether it is the number.
 */
export const showContactName = (actor: Actor, name: string | null): string | null =>
  name !== null && hasHiddenPhones(actor) ? maskName(name) : name

/** Whether the name of a contact shows this staff member less than it says. */
export const isNameHidden = (actor: Actor, name: string | null): boolean =>
  showContactName(actor, name) !== name

/**
 * Returns a text that may quote a phone number as this staff member may see it: of the service, the provider
 * or a receiver, or an id at the messaging app. What staff and customers wrote is not masked.
 */
export const showQuotingText = <T extends string | null>(actor: Actor, text: T): T =>
  (text !== null && hasHiddenPhones(actor) ? maskNumbers(text) : text) as T

/** Texts of messages of these types quote phones: those of the provider, and cards of people. */
export const quotesPhones = (type: unknown): boolean => type === 'SYSTEM' || type === 'CONTACTS'

/** Returns the text of a message as this staff member may see it. */
export const showMessageText = <T extends string | null>(
  actor: Actor,
  { type, text }: { type: string; text: T },
): T => (quotesPhones(type) ? showQuotingText(actor, text) : text)

/** A name that is nothing but a number is no name: a contact's name never stands in for its phone. */
export const toContactName = <T extends string | null | undefined>(name: T): T | undefined =>
  typeof name === 'string' && isNumberOnly(name) ? undefined : name

/** Returns a fix, or what is wrong, and after it what shows phones to a caller from whom its key hides them. */
export const withPhonesFix = ({ key }: Actor, fix: string): string =>
  key.phones ? fix : `${fix} An administrator can make a key with --phones.`

/** More digits in a name could be a guess at a number in another one: lists are sorted by whole names. */
const MAX_WRITTEN_DIGITS = 4

/**
 * Refuses a name with a number from staff from whom phones are hidden: whether it is already the contact's
 * name, and its place among others, would tell a number that stands in one. Throws 403 `phone_hidden`.
 */
export const refuseNumberInName = (actor: Actor, name: string | null | undefined): void => {
  if (!name || !hasHiddenPhones(actor) || countDigits(name) <= MAX_WRITTEN_DIGITS) return
  throw new Problem('forbidden', 'Phone numbers are hidden from you, so names with numbers are refused.', {
    reason: 'phone_hidden',
    errors: [
      {
        pointer: '#/name',
        code: 'phone_hidden',
        detail: `has more than ${MAX_WRITTEN_DIGITS} digits`,
        fix: withPhonesFix(actor, 'Leave out the number.'),
      },
    ],
  })
}

/** Returns the 403 of a comparison that would reveal hidden phones. `what`: "digits in query are". */
export const phoneHiddenProblem = (actor: Actor, pointer: string, what: string, given: string): Problem => {
  const fix = withPhonesFix(actor, given)
  return new Problem('forbidden', `Phone numbers are hidden from you, so ${what} refused.`, {
    reason: 'phone_hidden',
    errors: [{ pointer, code: 'phone_hidden', detail: 'would compare hidden phone numbers', fix }],
  })
}

/** Search results must not reveal hidden digits by what matches. Throws 403 `phone_hidden`. */
export const refuseHiddenDigits = (actor: Actor, query: string | undefined): void => {
  if (query === undefined || !hasHiddenPhones(actor) || !hasDigits(query)) return
  throw phoneHiddenProblem(actor, '#/query', 'digits in query are', 'Search by the letters of the name.')
}

/** The results of an import would tell which of hundreds of numbers are customers. Throws 403 `phone_hidden`. */
export const refuseBlindImport = (actor: Actor): void => {
  if (!hasHiddenPhones(actor)) return
  const fix = actor.key.phones
    ? 'Save contacts one by one, or ask somebody who may see phone numbers to import them.'
    : 'Save contacts one by one, or have an administrator make a key with --phones.'
  throw new Problem(
    'forbidden',
    `Phone numbers are hidden from you, so you may not import contacts. ${fix}`,
    {
      reason: 'phone_hidden',
      errors: [
        { pointer: '#/rows', code: 'phone_hidden', detail: 'would reveal which numbers are known', fix },
      ],
    },
  )
}

/** Whether a comparison of names may find the numbers in them: it has digits, or a pattern. */
const findsNumbers = (operand: unknown): boolean =>
  typeof operand === 'string'
    ? hasDigits(operand)
    : operand !== null &&
      typeof operand === 'object' &&
      (Object.hasOwn(operand, 'regex') || Object.values(operand).some(findsNumbers))

/** Whether this staff member may not compare names so, because it would find numbers in them. */
export const isNameTestHidden = (actor: Actor, operators: unknown): boolean =>
  hasHiddenPhones(actor) && findsNumbers(operators)

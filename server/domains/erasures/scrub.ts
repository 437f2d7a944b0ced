import { isObject } from '../../../catalog/values.ts'
import { toAsciiDigits } from '../../../storage/values/digits.ts'
import { fold } from '../../../storage/values/text.ts'
import type { ErasureSubject } from '../../../storage/tables/erasures.ts'

/*
 * Empties JSON of what it tells of a person. What is about them is found by the ids of the contact and of its
 * conversations, and by phones and other identifiers; then nothing stays of it but ids of our own, states and times.
 */

type Json = Record<string, unknown>

/** Whose ids they are, by the names of fields, and of objects that have an `id`. */
const CONTACT_FIELDS = /^(?:contact|other_contact|merged_contact|kept_contact|merged_into|into)(?:_id)?$/
const CONVERSATION_FIELDS = /^conversation(?:_id)?$/
/** Lists of whose ids they are. */
const CONTACT_LIST = /(?:^|_)contact_ids$/
const CONVERSATION_LIST = /(?:^|_)conversation_ids$/
/** Fields of identifiers: those that could be a word or a number of something else count in these alone. */
const IDENTIFIER_FIELDS = /external|customer|user|visitor|wa_id/i
/** Fields of values that only one person has. */
const OWN_VALUES = /^(?:phone|email|external_id|chatapp_user_id|web_visitor_id|customer_id|wa_id)$/
/** Identifiers that are looked for within texts: emails, and long ones that are no word and no number. */
const DISTINCTIVE = /@|^(?=.*\d)(?=.*\D).{12,}$/

/** Fields whose values say nothing of a person where they have this form. */
const RECORDS =
  'contact|conversation|message|channel|staff|team|tag|group|field|template|broadcast|job|approval|event|' +
  'event_type|endpoint|delivery|saved_filter|key|quick_message|short_link|export|erasure|policy|request|' +
  'target|reply_to|episode'
const ROLES = 'other|merged|kept|assignee|assigned|owner|actor|custom|undo_of|undone_by'
const OWN_IDS = new RegExp(`^(?:id|merged_into_id|(?:(?:${ROLES})_)?(?:${RECORDS})_ids?)$`)
const OWN_ID = /^(?:\d{1,19}|[a-z]{2,4}_[0-9A-HJKMNP-TV-Z]{26})$/
const STATES = /^(?:type|status|state|direction|operation|channel_type|kind)$/
const STATE = /^[\w.]{1,40}(?:\/\d+)?$/
const TIMES = /(?:_at|_until|^since|^at)$/
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

/** Digits with what people write between those of a phone. */
const NUMBERS = /\d(?:[\d\s()./+-]*\d)?/g
const GROUPS = /\d+/g
/** As many groups of digits as a phone is written in. */
const MAX_GROUPS = 15

/** Returns the numbers in a text that may be phones: other numbers may stand before and after one. */
const listNumbers = (text: string): string[] =>
  (toAsciiDigits(text).match(NUMBERS) ?? []).flatMap((number) => {
    const groups = number.match(GROUPS) ?? []
    const numbers = groups.flatMap((_, from) =>
      groups.slice(from, from + MAX_GROUPS).map((__, n) => groups.slice(from, from + n + 1).join('')),
    )
    return numbers.flatMap((one) => (one.startsWith('00') ? [one, one.slice(2)] : [one]))
  })

/** Returns the words of a text without case, each between spaces. */
const toWords = (text: string): string =>
  ` ${fold(text)
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()} `

export type Scrubber = {
  /** Whether the value tells of the person anywhere in it. */
  readonly concerns: (value: unknown, name?: string) => boolean
  /** Whether the value was given for several of whom the person is one: what is said may be about each of them. */
  readonly isListed: (value: unknown) => boolean
  /** Whose the ids and identifiers of an object are, in it and in its objects: lists are not looked into. */
  readonly whose: (object: Json, name?: string) => 'theirs' | 'anothers' | 'nobodys'
  /** Returns the value with what is about the person emptied, and the rest as it was. */
  readonly scrub: (value: unknown) => unknown
  /** Whether a text names the person. `names`: by their whole name too. */
  readonly isNamed: (text: string, field?: string, names?: boolean) => boolean
}

/** Returns whether an id in a list of this name is the person's. */
const toListTest = ({ contactIds, conversationIds }: ErasureSubject, field: string) => {
  const own = CONTACT_LIST.test(field) ? contactIds : CONVERSATION_LIST.test(field) ? conversationIds : []
  return (id: unknown): boolean => own.includes(String(id))
}

const listsSome = (subject: ErasureSubject, value: unknown, name = ''): boolean => {
  if (Array.isArray(value))
    return value.some(toListTest(subject, name)) || value.some((one) => listsSome(subject, one, name))
  return isObject(value) && Object.entries(value).some(([field, one]) => listsSome(subject, one, field))
}

export const createScrubber = (subject: ErasureSubject): Scrubber => {
  const contacts = new Set(subject.contactIds)
  const conversations = new Set(subject.conversationIds)
  const phones = new Set(subject.phones)
  const texts = subject.texts.map(fold)
  const names = subject.names.map(toWords)

  const isNamed = (text: string, field = '', byName = false): boolean => {
    if (OWN_IDS.test(field) && OWN_ID.test(text)) return false
    if (TIME.test(text)) return false
    const folded = fold(text)
    return (
      listNumbers(text).some((number) => phones.has(number)) ||
      texts.some((one) =>
        DISTINCTIVE.test(one) ? folded.includes(one) : IDENTIFIER_FIELDS.test(field) && folded === one,
      ) ||
      (byName && names.some((name) => toWords(text).includes(name)))
    )
  }

  const isOwnId = (field: string, value: unknown): boolean =>
    (CONTACT_FIELDS.test(field) && contacts.has(String(value))) ||
    (CONVERSATION_FIELDS.test(field) && conversations.has(String(value)))

  const isTheirsIn = (field: string): ((id: unknown) => boolean) => toListTest(subject, field)
  const isListed = (value: unknown): boolean => listsSome(subject, value)

  /** Whether an object is about the person, but for what its lists are about. */
  const isAbout = (object: Json, name: string): boolean =>
    Object.entries(object).some(([field, value]) => {
      if (isObject(value)) return isAbout(value, field)
      if (Array.isArray(value)) return value.length > 0 && value.every(isTheirsIn(field))
      if (typeof value !== 'string' && typeof value !== 'number') return false
      return isOwnId(field === 'id' ? name : field, value) || isNamed(String(value), field)
    })

  /** Whose a value is by its field; undefined where the field does not say. */
  const whoseValue = (field: string, text: string): boolean | undefined => {
    if (CONTACT_FIELDS.test(field)) return contacts.has(text)
    if (CONVERSATION_FIELDS.test(field)) return conversations.has(text)
    return OWN_VALUES.test(field) ? isNamed(text, field) : undefined
  }

  const whose = (object: Json, name = ''): ReturnType<Scrubber['whose']> => {
    const found = Object.entries(object).map(([field, value]) => {
      if (isObject(value)) return whose(value, field)
      if (typeof value !== 'string' && typeof value !== 'number') return 'nobodys'
      const isTheirs = whoseValue(field === 'id' ? name : field, String(value))
      return isTheirs === undefined ? 'nobodys' : isTheirs ? 'theirs' : 'anothers'
    })
    return found.includes('theirs') ? 'theirs' : found.includes('anothers') ? 'anothers' : 'nobodys'
  }

  const concerns = (value: unknown, name = ''): boolean => {
    if (Array.isArray(value)) return value.some((one) => concerns(one, name))
    if (isObject(value))
      return (
        isAbout(value, name) ||
        Object.entries(value).some(([field, one]) => isNamed(field, 'phone') || concerns(one, field))
      )
    return typeof value === 'string' && isNamed(value, name)
  }

  const scrub = (value: unknown, name = ''): unknown => {
    if (Array.isArray(value)) return value.map((one) => scrub(one, name))
    if (isObject(value)) {
      if (isAbout(value, name)) return wipe(value, name)
      return Object.fromEntries(
        Object.entries(value)
          .filter(([field]) => !isNamed(field, 'phone'))
          .map(([field, one]) => [field, scrub(one, field)]),
      )
    }
    return typeof value === 'string' && isNamed(value, name) ? null : value
  }
  return { concerns, isListed, whose, scrub, isNamed }
}

/** Returns a value without what people wrote: ids of our own, states, times and whether something is so stay. */
export const wipe = (value: unknown, field = ''): unknown => {
  if (typeof value === 'boolean') return value
  if (Array.isArray(value)) return value.map((one) => wipe(one, field)).filter((one) => one !== null)
  if (isObject(value)) {
    if (/^(?:attributes|metadata|values|filter|content)$/.test(field)) return {}
    return Object.fromEntries(
      Object.entries(value)
        .filter(([name]) => /^[a-z]\w{0,59}$/i.test(name) && !/\d{5}/.test(name))
        .map(([name, one]) => [name, wipe(one, name)]),
    )
  }
  const text = String(value)
  const isHarmless =
    (OWN_IDS.test(field) && OWN_ID.test(text)) ||
    (STATES.test(field) && STATE.test(text)) ||
    (TIMES.test(field) && TIME.test(text))
  return isHarmless ? value : null
}

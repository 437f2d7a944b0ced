import { isObject } from '../../catalog/values.ts'
import type { ErasureSubject } from '../../storage/tables/erasures.ts'
import { createScrubber, type Scrubber } from '../erasures/scrub.ts'

/*
 * Takes out of JSON what is about a person: events, answers and the like may tell of many at once. What is another
 * person's is left out; what is nobody's in particular, such as a tag, stays.
 */

type Json = Record<string, unknown>

const CONTACT_LIST = /contact_ids$/
const CONVERSATION_LIST = /conversation_ids$/
/** Lists of what is no person. */
const LABELS = /^(?:tags|groups|attributes|channels|types|fields|options|components|buttons)$/

export type Picker = {
  /** Returns what of a value is about the person; undefined when nothing is. */
  readonly pick: (value: unknown) => unknown
  /** Returns all of a value that is about the person, but for what in it is another person's. */
  readonly pickWhole: (value: unknown) => unknown
  /** Returns the texts in a value that are the person's, and null in place of all others. */
  readonly pickLiterals: (value: unknown) => unknown
  /** Whether an object has a value that identifies the person. */
  readonly identifies: (object: Json) => boolean
}

/** Finds whether values have something of the person. */
const createFinder = (subject: ErasureSubject, { concerns, whose }: Scrubber) => {
  const contacts = new Set(subject.contactIds)
  const conversations = new Set(subject.conversationIds)

  /** Returns the ids that are the person's; undefined when the list is not of ids. */
  const pickIds = (name: string, list: readonly unknown[]): unknown[] | undefined => {
    const own = CONTACT_LIST.test(name) ? contacts : CONVERSATION_LIST.test(name) ? conversations : undefined
    return own && list.filter((id) => own.has(String(id)))
  }

  const holds = (value: unknown, name = ''): boolean => {
    if (concerns(value, name)) return true
    if (Array.isArray(value))
      return (pickIds(name, value)?.length ?? 0) > 0 || value.some((one) => holds(one, name))
    return isObject(value) && Object.entries(value).some(([field, one]) => holds(one, field))
  }

  /** Whether ids or identifiers in it are the person's: a text that names them may be somebody else's. */
  const holdsIds = (value: unknown, name: string): boolean => {
    if (Array.isArray(value))
      return (pickIds(name, value)?.length ?? 0) > 0 || value.some((one) => holdsIds(one, name))
    return (
      isObject(value) &&
      (whose(value, name) === 'theirs' || Object.entries(value).some(([field, one]) => holdsIds(one, field)))
    )
  }
  return { pickIds, holds, holdsIds }
}

/** Returns a function that takes what is about the person out of a value; undefined where nothing is. */
const createTaker = ({ whose }: Scrubber, { pickIds, holds, holdsIds }: ReturnType<typeof createFinder>) => {
  const takeList = (list: readonly unknown[], name: string, isTheirs: boolean): unknown[] =>
    pickIds(name, list) ??
    list.flatMap((one) => {
      const isKept = isTheirs || LABELS.test(name) || !isObject(one) || holds(one, name)
      const taken = isKept ? take(one, name, isTheirs) : undefined
      return taken === undefined ? [] : [taken]
    })

  /** Of an object about somebody else, only what in it is about the person. */
  const takeFromAnother = (object: Json): Json | undefined => {
    const members = Object.entries(object)
      .filter(([field, one]) => typeof one === 'object' && one !== null && holdsIds(one, field))
      .map(([field, one]) => [field, take(one, field, false)])
    return members.length > 0 ? (Object.fromEntries(members) as Json) : undefined
  }

  /** `isTheirs`: it is within an object about the person. */
  const take = (value: unknown, name: string, isTheirs: boolean): unknown => {
    if (Array.isArray(value)) return takeList(value, name, isTheirs)
    if (!isObject(value)) return value
    const owner = whose(value, name)
    if (owner === 'anothers') return takeFromAnother(value)
    const members = Object.entries(value).flatMap(([field, one]) => {
      const taken = take(one, field, isTheirs || owner === 'theirs')
      return taken === undefined ? [] : [[field, taken] as const]
    })
    return Object.fromEntries(members)
  }
  return take
}

export const createPicker = (subject: ErasureSubject): Picker => {
  const scrubber = createScrubber(subject)
  const finder = createFinder(subject, scrubber)
  const take = createTaker(scrubber, finder)
  const identifiers = new Set([...subject.phones, ...subject.texts])

  const pickLiterals = (value: unknown, path = ''): unknown => {
    if (typeof value === 'string') return scrubber.isNamed(value, path, true) ? value : null
    if (Array.isArray(value)) return value.map((one) => pickLiterals(one, path))
    if (!isObject(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, pickLiterals(one, `${path} ${name}`)]),
    )
  }

  return {
    pick: (value) => {
      if (!finder.holds(value)) return undefined
      const taken = take(value, '', false)
      return taken !== undefined && finder.holds(taken) ? taken : undefined
    },
    pickWhole: (value) => take(value, '', true) ?? null,
    pickLiterals: (value) => pickLiterals(value),
    identifies: (object) =>
      Object.values(object).some((value) => typeof value === 'string' && identifiers.has(value)),
  }
}

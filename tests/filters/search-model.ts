import assert from 'node:assert/strict'
import fc from 'fast-check'
import { filterStrategy } from '../../storage/filters/strategy.ts'
import { fold } from '../../storage/values/text.ts'
import type { ContactsPage } from '../calls.ts'
import { type JsonObject, matchesFilter, type ModelContact } from './model.ts'
import type { SeededWorkspace } from './seed.ts'

export type Sort = { field: string; direction: 'asc' | 'desc' }

const bytes = (text: string | null): Buffer => Buffer.from(fold(text ?? ''))
const byId = (a: ModelContact, b: ModelContact): number => (BigInt(a.id) < BigInt(b.id) ? -1 : 1)
/** Compares contacts by each sort field, ascending. */
export const comparators: Record<string, (a: ModelContact, b: ModelContact) => number> = {
  createdAt: (a, b) => a.createdAt - b.createdAt,
  updatedAt: (a, b) => a.updatedAt - b.updatedAt,
  id: byId,
  name: (a, b) => Buffer.compare(bytes(a.name), bytes(b.name)),
  phoneNumber: (a, b) => Buffer.compare(bytes(a.phoneNumber), bytes(b.phoneNumber)),
}
export const arbitrarySort = fc.record({
  field: fc.constantFrom(...Object.keys(comparators)),
  direction: fc.constantFrom('asc' as const, 'desc' as const),
})
const NEWEST_FIRST: Sort = { field: 'createdAt', direction: 'desc' }
const sortIds = (contacts: readonly ModelContact[], { field, direction }: Sort): string[] => {
  const ascending = contacts
    .toSorted((a, b) => comparators[field]!(a, b) || byId(a, b))
    .map((contact) => contact.id)
  return direction === 'asc' ? ascending : ascending.reverse()
}
export const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined })
const omitUndefined = (input: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))

export const toIds = (rows: readonly { id: string }[]): string[] => rows.map((row) => row.id)

/** The criteria of a search; contacts match all of them. */
export type SearchCriteria = {
  filter?: JsonObject | undefined
  saved?: string | undefined
  query?: string | undefined
  tagIds?: string[] | undefined
  sort?: Sort | undefined
}

const matchesQuery = (contact: ModelContact, query: string): boolean => {
  const digits = /^[\d\s+().\-/]+$/.test(query) ? query.replaceAll(/\D/g, '') : ''
  const phone = contact.phoneNumber ?? ''
  return (
    fold(contact.name ?? '').includes(fold(query)) ||
    phone.includes(query) ||
    (digits !== '' && phone.includes(digits))
  )
}

/** Returns the ids that a search must return, in order, according to the model. */
export const findExpectedIds = (
  { contacts, context }: Pick<SeededWorkspace, 'contacts' | 'context'>,
  { filter, saved, query, tagIds, sort = NEWEST_FIRST }: SearchCriteria,
): string[] =>
  sortIds(
    contacts.filter(
      (contact) =>
        (filter === undefined || matchesFilter(context, contact, filter)) &&
        (saved === undefined || matchesFilter(context, contact, context.saved.get(saved)!)) &&
        (query === undefined || matchesQuery(contact, query)) &&
        (!tagIds?.length || contact.tags.some((tag) => tagIds.includes(tag.id))),
    ),
    sort,
  )

/** Returns the input of an operation with these criteria. */
export const toInput = ({ filter, saved, query, tagIds, sort }: SearchCriteria): Record<string, unknown> =>
  omitUndefined({ filter, saved_filter_id: saved, query, tag_ids: tagIds, sort })

/** Asserts a total, which may be an estimate only above the number of matches that a search sorts. */
export const assertTotal = (
  { total, approximate }: Pick<ContactsPage, 'total' | 'approximate'>,
  expected: number,
): void => {
  if (approximate)
    assert.ok(
      expected > filterStrategy.maxSortedMatches && total! > 0,
      `${total} of ${expected} is an estimate`,
    )
  else assert.deepEqual([total, approximate], [expected, false])
}

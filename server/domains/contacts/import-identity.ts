import type { Context } from '../../handler.ts'
import { findIdentifiedContacts } from '../../../storage/contacts/identity.ts'
import { Problem } from '../../kernel/problem.ts'
import { type GivenIdentity, matchIdentity } from './identity.ts'
import type { PhoneLine } from './phone-lines.ts'

/**
 * A contact as the rows so far leave it. `id`: of one that a row creates, which row that is. `givenBy`: the rows that
 * gave it the external id; undefined for the one that is stored.
 */
type Person = {
  id: string
  line: PhoneLine | undefined
  external_id: string | null
  givenBy: number[] | undefined
}

/** What an import finds a contact by. `givenBy`: one of these rows must succeed, or nobody has the external id. */
export type FoundLine = { line: PhoneLine; givenBy: readonly number[] | undefined }

/**
 * Returns a function that finds the line of the contact which a row means, in the order of the calls; it throws 404
 * and 409 as an upsert does. An external id that a row clears stays that of its contact until the import is over. Rows
 * without external ids cost nothing.
 */
export const createLineFinder = async (
  { tx, actor }: Context,
  rows: readonly GivenIdentity[],
): Promise<(row: number, given: GivenIdentity) => FoundLine> => {
  const externalIds = rows.flatMap(({ externalId }) => externalId ?? [])
  if (externalIds.length === 0) return (_row, { line }) => ({ line: line!, givenBy: undefined })
  const keys = rows.flatMap(({ line }) => line?.key ?? [])
  const known = await findIdentifiedContacts(tx, actor.workspace.id, keys, externalIds)
  const byKey = new Map<string, Person>()
  const byExternalId = new Map<string, Person>()
  const add = (person: Person) => {
    if (person.line) byKey.set(person.line.key, person)
    if (person.external_id !== null) byExternalId.set(person.external_id, person)
  }
  for (const { id, phone, line_key: key, external_id } of known)
    add({ id, line: phone === null ? undefined : { phone, key: key! }, external_id, givenBy: undefined })
  return (row, given) => {
    const { line, externalId } = given
    const person: Person = matchIdentity(
      given,
      line && byKey.get(line.key),
      typeof externalId === 'string' ? byExternalId.get(externalId) : undefined,
    ) ?? { id: `of row ${row}`, line, external_id: null, givenBy: undefined }
    if (!person.line)
      throw new Problem(
        'conflict',
        `Contact ${person.id} has no phone, and an import finds contacts by it. Use crm_upsert_contact.`,
        { reason: 'phone_required' },
      )
    if (externalId !== undefined && externalId !== person.external_id)
      Object.assign(person, { external_id: externalId, givenBy: [row] })
    else if (line && typeof externalId === 'string') person.givenBy?.push(row)
    add(person)
    return { line: person.line, givenBy: line ? undefined : person.givenBy }
  }
}

import type { ParsedRow } from './rows.ts'
import type { ImportBatch } from './send.ts'

/** What names the contact of a row: numbers are phones, which take less memory than texts. */
const listKeys = ({ draft: { phone, external_id: externalId } }: ParsedRow): (number | string)[] => {
  const digits =
    typeof phone === 'string' || typeof phone === 'number' ? String(phone).replaceAll(/\D/g, '') : ''
  return [
    ...(digits === '' ? [] : [Number(digits)]),
    ...(typeof externalId === 'string' && externalId !== '' ? [externalId] : []),
  ]
}

/**
 * Returns a function that counts the rows of a batch that name a contact of an earlier batch. A dry run leaves nothing
 * of that for the later one to find.
 */
export const createRepeatCounter = (): ((batch: ImportBatch) => number) => {
  const seen = new Set<number | string>()
  return ({ rows }) => {
    const keys = rows.filter((row) => !row.rejection).map(listKeys)
    const repeated = keys.filter((ofRow) => ofRow.some((key) => seen.has(key))).length
    for (const key of keys.flat()) seen.add(key)
    return repeated
  }
}

import { readContactIdentity } from '../../../storage/privacy/erasure-start.ts'
import type { Db } from '../../../storage/database.ts'
import type { ErasureSubject } from '../../../storage/tables/erasures.ts'
import { listSpellings } from '../contacts/phone-lines.ts'

/** Shorter digits are part of too much else to be looked for. */
const MIN_PHONE_DIGITS = 7

/** Returns what the person of a locked contact is found by: for erasures and exports. */
export const findSubject = async (tx: Db, workspaceId: string, id: string): Promise<ErasureSubject> => {
  const { phones, ...identity } = await readContactIdentity(tx, workspaceId, id)
  return {
    ...identity,
    phones: [...new Set(phones.flatMap((phone) => [phone, ...listSpellings(phone)]))].filter((phone) =>
      new RegExp(`^\\d{${MIN_PHONE_DIGITS},}$`).test(phone),
    ),
  }
}

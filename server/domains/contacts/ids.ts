import { reserveContactIds } from '../../../storage/contacts/contacts.ts'
import type { Context } from '../../handler.ts'

/** Contact ids that a server takes at a time, so that a contact's id is known before it is written. */
const BATCH = 64

/** Returns an id for a new contact. */
export const takeContactId = async ({
  tx,
  attempt,
  services: { contactIdPool: pool },
}: Pick<Context, 'tx' | 'attempt' | 'services'>): Promise<string> => {
  // A database that crashed may have lost that it gave these ids, and have given them to others.
  if (attempt > 2) pool.length = 0
  const pooled = pool.pop()
  if (pooled !== undefined) return pooled
  const batch = await reserveContactIds(tx, BATCH)
  const [next] = pool.slice(-1)
  // Ids are taken from the end, so that they grow in the order in which contacts are made. Another call may have
  // brought a batch meanwhile: a later one is used after it, and an earlier one is given up.
  if (next === undefined || BigInt(batch[0]!) > BigInt(next)) {
    pool.push(...batch)
    pool.sort((a, b) => (BigInt(a) < BigInt(b) ? 1 : -1))
  }
  return pool.pop()!
}

import type { Db } from '../../../storage/database.ts'
import { leaseTokens } from '../../../storage/access/rate-limits.ts'

/**
 * Takes one token from a bucket of the sandbox that holds `capacity` tokens and fills up in `windowSeconds`;
 * false when it is empty. Exact over all servers, on real time.
 */
export const takeSandboxToken = async (
  db: Db,
  bucket: string,
  capacity: number,
  windowSeconds: number,
): Promise<boolean> => {
  const { granted } = await leaseTokens(db, `sandbox ${bucket}`, capacity, windowSeconds, 1, 0)
  return granted > 0
}

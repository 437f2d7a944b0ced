/*
 * Whether others use the caches of this machine: programs of other virtual machines on the same processor, which no
 * counter here shows. A request to the bare server fits into the first two levels; one to the product needs the third,
 * so that it takes up to three times as long when that is taken, and the bare one does not.
 */

const ACCESSES = 2_000_000
/** Fits into the second level of any server's processor, and into the third alone. */
const SMALL_BYTES = 256 * 1024
const LARGE_BYTES = 4 * 1024 * 1024
/** On a quiet machine the third level takes three to five times as long as the second. */
const QUIET_FACTOR = 6

/** Numbers that lead from one to the next through all of them, in random order (Sattolo's algorithm). */
const createCycle = (bytes: number): Uint32Array => {
  const next = Uint32Array.from({ length: bytes / Uint32Array.BYTES_PER_ELEMENT }, (_, i) => i)
  for (let i = next.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * i)
    const value = next[i]!
    next[i] = next[j]!
    next[j] = value
  }
  return next
}

const small = createCycle(SMALL_BYTES)
const large = createCycle(LARGE_BYTES)
let at = 0

/** Milliseconds of accesses of which each waits for the one before. */
const measureAccesses = (cycle: Uint32Array): number => {
  const startedAt = performance.now()
  let position = at % cycle.length
  for (let i = 0; i < ACCESSES; i++) position = cycle[position]!
  at = position
  return performance.now() - startedAt
}

/** How much longer an access to the third level takes than one to the second. */
export const measureCacheNoise = (): number => {
  const factors = Array.from({ length: 3 }, () => measureAccesses(large) / measureAccesses(small))
  return factors.toSorted((a, b) => a - b)[1]!
}

export const isQuiet = (noise: number): boolean => noise < QUIET_FACTOR

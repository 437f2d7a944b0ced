/*
 * Measures whether other virtual machines on the same processor use its caches, which no counter of this machine
 * shows. A request to the bare server fits into the first two levels. One to the product needs the third, so it takes
 * up to three times as long when that level is in use, and the bare one does not.
 */

const ACCESSES = 2_000_000
/** Sizes that fit into the second level of any server's processor, and only into the third. */
const SMALL_BYTES = 256 * 1024
const LARGE_BYTES = 4 * 1024 * 1024
/** On a quiet machine the third level takes three to five times as long as the second. */
const QUIET_FACTOR = 6

/** A random cycle through all numbers, each leading to the next (Sattolo's algorithm). */
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

/** Milliseconds of dependent accesses: each waits for the previous one. */
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

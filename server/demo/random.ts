/** Returns numbers in [0, 1) that depend on the seed only (mulberry32). Not for secrets. */
export type Random = () => number

export const createRandom = (seed: number): Random => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** Returns a seed of its own for the nth item, which does not depend on the items created before. */
export const deriveSeed = (seed: number, n: number): number =>
  Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(n + 1, 0xc2b2ae35)

/** Returns an integer from 0 up to, but not including, `below`. */
export const randomInt = (random: Random, below: number): number => Math.floor(random() * below)

export const pick = <T>(random: Random, items: readonly T[]): T => items[randomInt(random, items.length)]!

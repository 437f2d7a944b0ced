/**
 * Numbers in [0, 1) that depend on the seed alone (mulberry32); good enough to look at, not to hide
 * anything.
 */
export type Random = () => number

export const randomFrom = (seed: number): Random => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** A seed of its own for the nth thing, so that it is the same whatever was made before it. */
export const seedOf = (seed: number, n: number): number =>
  Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(n + 1, 0xc2b2ae35)

export const whole = (random: Random, below: number): number => Math.floor(random() * below)

export const pick = <T>(random: Random, items: readonly T[]): T => items[whole(random, items.length)]!

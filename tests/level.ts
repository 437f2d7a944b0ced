/**
 * How thorough the tests are, named in `WCRM_TEST_LEVEL`: `quick` while one is writing code, `full` before a
 * change goes in, `soak` for hours nobody waits for. `scripts/test.ts` sets it.
 */
type Level = 'quick' | 'full' | 'soak'

const level = (process.env.WCRM_TEST_LEVEL ?? 'full') as Level

/**
 * How often a property is tried with generated values. `full` has found the faults that were planted to
 * prove the test, with room to spare; the soak looks for rarer ones with `soak` tries.
 */
export const runs = (full: number, soak: number): number =>
  ({ quick: Math.ceil(full / 4), full, soak })[level]

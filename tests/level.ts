/**
 * How thorough the tests are: `quick` while one is writing code, `full` before a change goes in, `soak` after
 * that in CI. `scripts/test.ts` sets `WCRM_TEST_LEVEL`.
 */
type Level = 'quick' | 'full' | 'soak'

const level = (process.env.WCRM_TEST_LEVEL ?? 'full') as Level

/**
 * How often a property is tried with generated values: `full` times for every change, a quarter of that in the
 * quick tests, and `soak` times where rarer faults are looked for.
 */
export const runs = (full: number, soak: number): number =>
  ({ quick: Math.ceil(full / 4), full, soak })[level]

/**
 * The seed of generated values: the same for every run, so that a change passes or fails by what it is and not
 * by chance. The soak draws a new one each time (fast-check prints it when a property fails), and has so many
 * cases that a kind that a property must have met is not missing. `WCRM_TEST_SEED` sets it for all.
 */
export const propertySeed: number | undefined = process.env.WCRM_TEST_SEED
  ? Number(process.env.WCRM_TEST_SEED)
  : level === 'soak'
    ? undefined
    : 20_260_701

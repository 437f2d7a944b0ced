/**
 * How thorough the tests are: `quick` during development, `full` before a commit, `soak` afterwards in CI.
 * `scripts/test.ts` sets `WCRM_TEST_LEVEL`.
 */
type Level = 'quick' | 'full' | 'soak'

const level = (process.env.WCRM_TEST_LEVEL ?? 'full') as Level

/**
 * The number of generated cases of a property: `full`, a quarter of that in the quick tests, and `soak` in the
 * soak, to find rarer faults.
 */
export const runs = (full: number, soak: number): number =>
  ({ quick: Math.ceil(full / 4), full, soak })[level]

/**
 * The seed of generated values. It is fixed, so that a change never passes or fails by chance. The soak uses a new
 * one each time (fast-check prints it when a property fails), and enough cases to meet every kind that a property
 * requires. `WCRM_TEST_SEED` sets it for all.
 */
export const propertySeed: number | undefined = process.env.WCRM_TEST_SEED
  ? Number(process.env.WCRM_TEST_SEED)
  : level === 'soak'
    ? undefined
    : 20_260_701

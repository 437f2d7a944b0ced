/**
 * Returns the delay after so many failures in a row: `first` after one, twice as long after each further one, never
 * longer than `longest`. Without a random part: the work of one job, or of one record, is retried alone.
 */
export const computeBackoff = (
  failures: number,
  { first, longest }: { first: number; longest: number },
): number => Math.min(first * 2 ** (failures - 1), longest)

/** Returns after how many seconds a run goes on that failed, after so many tries before that one. */
export const computeRetrySeconds = (failures: number): number =>
  computeBackoff(failures, { first: 2, longest: 600 })

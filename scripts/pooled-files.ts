/** Files whose databases are in clusters of their own, reached directly, or whose plans are to be kept. */
const BESIDE_THE_POOLER = [
  'tests/cli/start-errors.test.ts',
  'tests/jobs/outage.test.ts',
  'tests/storage/event-plans.test.ts',
  'tests/storage/failover.test.ts',
  'tests/storage/pipelining.test.ts',
  'tests/storage/replicas.test.ts',
  'tests/storage/unreachable.test.ts',
]

/**
 * Whether a file of tests reaches PostgreSQL through the pooler: `all` of them, or every second one, by its name, so
 * that a run of the tests meets PostgreSQL both ways, and a file always the same.
 */
export const isPooledFile = (file: string, all: boolean): boolean =>
  !BESIDE_THE_POOLER.includes(file) &&
  (all || [...file].reduce((sum, c) => sum + c.charCodeAt(0), 0) % 2 === 1)

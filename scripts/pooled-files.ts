import { readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/** The only way of tests to the pooler (`WCRM_TEST_POOLER_URL`). */
const DATABASES = 'tests/databases.ts'

/**
 * Files that import it, but whose databases are all embedded, in clusters of their own, or reached directly, or which
 * take any database (`anyDatabase`), since they are about something else.
 */
const BESIDE_THE_POOLER = [
  'tests/cli/cookbook.test.ts',
  'tests/cli/start-errors.test.ts',
  'tests/examples/examples.test.ts',
  'tests/http/docs-samples.test.ts',
  'tests/jobs/outage.test.ts',
  'tests/storage/embedded-owner.test.ts',
  'tests/storage/failover.test.ts',
  'tests/storage/replicas.test.ts',
  'tests/storage/unreachable.test.ts',
  'tests/telemetry/log-output.test.ts',
  'tests/telemetry/telemetry.test.ts',
]

const listImports = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(/(?:\bfrom |\bimport\()'(\.[^']+\.ts)'/g)]
    .map(([, path]) => normalize(join(dirname(file), path!)))
    .filter((path) => path.startsWith('tests/'))

/** Whether a file of tests may reach PostgreSQL through the pooler: it or a helper imports `tests/databases.ts`. */
export const createPooledFilter = (): ((file: string) => boolean) => {
  const known = new Map([[DATABASES, true]])
  const isPooled = (file: string): boolean => {
    if (!known.has(file)) {
      // For imports that form a cycle.
      known.set(file, false)
      known.set(file, listImports(file).some(isPooled))
    }
    return known.get(file)!
  }
  const stale = BESIDE_THE_POOLER.filter((file) => !isPooled(file))
  if (stale.length > 0)
    throw new Error(`No longer to be listed in scripts/pooled-files.ts: ${stale.join(', ')}`)
  return (file) => !BESIDE_THE_POOLER.includes(file) && isPooled(file)
}

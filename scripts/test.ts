import { spawn, spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate, openStorage } from '../storage/open.ts'
import { postgresBinaries, startCluster } from './cluster.ts'

/**
 * The whole test command: types, lint and arrows, then every test on both databases. `npm test -- FILE…`
 * runs some files alone. PostgreSQL is brought up here, in a cluster of its own; `WCRM_TEST_POSTGRES_URL`
 * names one that runs already.
 */
const files = process.argv.slice(2)

const check = (): boolean =>
  files.length > 0 || spawnSync(process.execPath, ['scripts/check.ts'], { stdio: 'inherit' }).status === 0

const runTests = (env: Record<string, string>): Promise<number> =>
  new Promise((resolve) => {
    const chosen = files.length > 0 ? files : globSync('tests/**/*.test.ts').sort()
    const child = spawn(
      process.execPath,
      ['--test', '--test-concurrency=2', '--test-timeout=300000', ...chosen],
      { stdio: 'inherit', env: { ...process.env, ...env } },
    )
    child.on('exit', (code, signal) => resolve(signal ? 1 : (code ?? 1)))
  })

const main = async (): Promise<number> => {
  if (!check()) return 1
  const template = mkdtempSync(join(tmpdir(), 'wcrm-template-'))
  const binaries = postgresBinaries()
  const given = process.env.WCRM_TEST_POSTGRES_URL
  if (!given && !binaries) {
    console.error(
      'PostgreSQL 15 or newer is not installed: only the embedded database is tested. (apt-get install postgresql-15, or set WCRM_TEST_POSTGRES_URL)',
    )
    if (process.env.CI) return 1
  }
  const cluster =
    !given && binaries
      ? await startCluster(binaries, { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' })
      : undefined
  try {
    // A fresh embedded database takes seconds to make; tests copy this one.
    const storage = await openStorage({ dataDir: template })
    await migrate(storage.db)
    await storage.close()
    const url = given ?? cluster?.url
    return await runTests({ WCRM_TEST_TEMPLATE: template, ...(url ? { WCRM_TEST_POSTGRES_URL: url } : {}) })
  } finally {
    cluster?.stop()
    rmSync(template, { recursive: true, force: true })
  }
}

process.exitCode = await main()

import { fork, spawn } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { isPoolerInstalled } from './pooler.ts'
import { createTestEnvironment, type TestEnvironment } from './test-environment.ts'
import { type FileResult, noCounts, type TestCounts } from './test-reporter.ts'

/**
 * The test command.
 *
 * - `npm test`: format, types and lint, then every test on both databases, but for the soak.
 * - `npm test -- FILE…`: these files alone, and each of their tests is shown.
 * - `npm run test:quick`: a selection, on the embedded database alone, with fewer generated cases.
 * - `npm run test:soak`: servers killed at random, and many more generated cases. `--minutes N`: no file begins after
 *   them; those that did not are named.
 * - `npm run test:pooler`: every file that reaches PostgreSQL does so through a PgBouncer in transaction mode, as in
 *   `npm test` every second one (`pooled-files.ts`).
 *
 * Files are dealt out to a few processes, each of which runs one after another (`test-worker.ts`).
 */
const { values: flags, positionals: files } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    soak: { type: 'boolean', default: false },
    pooler: { type: 'boolean', default: false },
    minutes: { type: 'string' },
  },
  allowPositionals: true,
})

/** When the last file may begin, on the clock of `performance.now()`. */
const deadline = flags.minutes === undefined ? Infinity : performance.now() + Number(flags.minutes) * 60_000

/** A test stops being waited for after five minutes, and after ten in the soak, which generates many cases. */
const TIMEOUT_MS = flags.soak ? 600_000 : 300_000

/**
 * Files that take longest come first, so that all processes end at about the same time. The one that opens many
 * embedded databases follows one that leaves its own open: they share its compiled code.
 */
const LONGEST = [
  'soak/lost-updates',
  'soak/bulk-messages',
  'soak/unknown-outcomes',
  'soak/packages',
  'soak/socket-fuzz',
  'filters/search',
  'core/isolation',
  'inbox/search',
  'admin/backup',
  'cli/start-errors',
  'cli/transcripts',
  'telemetry/telemetry',
  'contacts/erase',
  'core/cursors',
  'filters/operands',
  'core/bad-input',
  'cli/import-resume',
  'admin/demo',
  'reports/summary',
  'storage/statement-timeout',
  'storage/personal-data',
  'webhooks/delivery',
]

/** The quick tests: each domain and every door, without what waits or fills a database. */
const QUICK = [
  'contacts/contacts',
  'contacts/groups',
  'core/catalog',
  'core/idempotency',
  'core/perform',
  'filters/grammar',
  'http/http',
  'inbound/messages',
  'inbox/changes',
  'mcp/mcp',
  'messaging/replies',
  'templates/lint',
  'webhooks/endpoints',
  'workspace/workspace',
]

const toPath = (name: string): string => `tests/${name}.test.ts`

/** The soak is its own folder, and every file whose number of generated cases is greater in it. */
const isSoak = (file: string): boolean =>
  file.startsWith('tests/soak/') || /from '\.\.?\/level\.ts'/.test(readFileSync(file, 'utf8'))

/** Moves the files that take longest to the front. */
const orderByLength = (all: readonly string[]): string[] => [
  ...new Set([...LONGEST.map(toPath).filter((file) => all.includes(file)), ...all]),
]

/**
 * What no other run tests comes first. The rest begins anywhere, so that over several runs each file has its turn
 * where time is short.
 */
const listSoak = (all: readonly string[]): string[] => {
  const [own, others] = [true, false].map((isOwn) =>
    all.filter((file) => file.startsWith('tests/soak/') === isOwn),
  ) as [string[], string[]]
  const begin = Math.floor(Math.random() * others.length)
  return [...orderByLength(own), ...others.slice(begin), ...others.slice(0, begin)]
}

const selectFiles = (): string[] => {
  if (files.length > 0) return files
  const all = globSync('tests/**/*.test.ts').sort()
  if (flags.soak) return listSoak(all.filter(isSoak))
  const usual = all.filter((file) => !file.startsWith('tests/soak/'))
  if (flags.quick) return usual.filter((file) => QUICK.map(toPath).includes(file))
  return orderByLength(usual)
}

const check = (): Promise<boolean> =>
  new Promise((resolve) => {
    spawn(process.execPath, ['scripts/check.ts'], { stdio: 'inherit' }).on('exit', (code) =>
      resolve(code === 0),
    )
  })

/** The result of a process that ended too early, or badly: with what, and while or after which file it ran. */
const toCrashResult = (file: string, message: string): FileResult => {
  return {
    file,
    report: `✖ ${message}\n`,
    counts: { ...noCounts, tests: 1, failed: 1 },
    failures: [message],
    cpuSeconds: 0,
    childSeconds: 0,
  }
}

/** Has one process run files from the queue until it is empty or the process dies. */
const runWorker = (
  queue: string[],
  env: Record<string, string>,
  onResult: (result: FileResult, seconds: number) => void,
): Promise<void> =>
  new Promise((ended) => {
    const worker = fork('scripts/test-worker.ts', {
      execArgv: ['--test-reporter=./scripts/test-reporter.ts', `--test-timeout=${TIMEOUT_MS}`],
      env: { ...process.env, ...env, WCRM_TEST_WORKER: '1' },
    })
    let file: string | undefined
    let lastFile = ''
    let hasFailed = false
    let start = 0
    const sendNext = () => {
      file = performance.now() < deadline ? queue.shift() : undefined
      lastFile = file ?? lastFile
      start = performance.now()
      worker.send(file ?? '')
    }
    worker.on('message', (result: FileResult) => {
      // Node's runner then ends the process with 1, without another fault.
      hasFailed ||= isFailed(result)
      onResult(result, (performance.now() - start) / 1000)
      sendNext()
    })
    worker.on('exit', (code, signal) => {
      const how = `its process ended with ${signal ?? code}`
      if (file !== undefined) onResult(toCrashResult(file, `${file}: ${how}`), 0)
      else if (code !== 0 && !(code === 1 && hasFailed))
        onResult(toCrashResult(lastFile, `after all files, of which ${lastFile} was the last: ${how}`), 0)
      ended()
    })
    sendNext()
  })

const isFailed = ({ counts }: FileResult): boolean => counts.failed + counts.cancelled > 0

const printResult = (result: FileResult, seconds: number): void => {
  const { file, report, counts, cpuSeconds, childSeconds } = result
  const failed = isFailed(result)
  if (failed || files.length > 0) process.stdout.write(`${report}\n`)
  const own = `${cpuSeconds.toFixed(1)} s of processor time`
  const others = childSeconds > 0 ? `, ${childSeconds.toFixed(1)} s in processes that it started` : ''
  const mark = failed ? '✖' : '✔'
  console.log(`${mark} ${file}: ${counts.tests} tests, ${seconds.toFixed(1)} s, ${own}${others}`)
}

/** The closing lines, as node's own runner writes them. */
const printTotals = (results: readonly FileResult[], ms: number): void => {
  const failures = results.flatMap((result) => result.failures)
  if (failures.length > 0) console.log(`\n✖ failing tests:\n${failures.map((f) => `  ${f}\n`).join('')}`)
  const total = { ...noCounts }
  for (const { counts } of results)
    for (const key of Object.keys(total) as (keyof TestCounts)[]) total[key] += counts[key]
  const { tests, suites, passed, failed, cancelled, skipped, todo } = total
  const lines = { tests, suites, pass: passed, fail: failed, cancelled, skipped, todo, duration_ms: ms }
  for (const [name, value] of Object.entries(lines)) console.log(`ℹ ${name} ${value}`)
}

/** Runs the files and returns whether all of their tests passed. */
const runFiles = async (selected: readonly string[], env: Record<string, string>): Promise<boolean> => {
  const start = performance.now()
  const queue = [...selected]
  const results: FileResult[] = []
  const onResult = (result: FileResult, seconds: number): void => {
    results.push(result)
    printResult(result, seconds)
  }
  const runLane = async (): Promise<void> => {
    while (queue.length > 0 && performance.now() < deadline) await runWorker(queue, env, onResult)
  }
  // More than there are processors: tests wait for timers and for PostgreSQL, and the soak for leases to run out.
  const lanes = Math.min(selected.length, 4, availableParallelism() + (flags.soak ? 2 : 1))
  await Promise.all(Array.from({ length: lanes }, runLane))
  if (queue.length > 0)
    console.log(`\nNot run, for the ${flags.minutes} minutes were over:\n  ${queue.join('\n  ')}`)
  printTotals(results, Math.round(performance.now() - start))
  return !results.some(isFailed)
}

/** Without PostgreSQL half of the tests are missing: a word about it here, a failure in CI. */
const isComplete = ({ env }: TestEnvironment): boolean => {
  if (flags.quick || env.WCRM_TEST_POSTGRES_URL) return true
  console.error(
    'PostgreSQL 15 or newer is not installed: only the embedded database is tested. ' +
      '(apt-get install postgresql-15, or set WCRM_TEST_POSTGRES_URL)',
  )
  return !process.env.CI
}

const main = async (): Promise<boolean> => {
  if (Number.isNaN(deadline)) {
    console.error('--minutes must be a number.')
    return false
  }
  const checking = files.length > 0 || flags.quick || flags.soak || flags.pooler ? true : check()
  const pooler = !flags.quick && !flags.soak && isPoolerInstalled()
  if (!pooler && (flags.pooler || process.env.CI) && !flags.quick && !flags.soak) {
    console.error('PgBouncer is not installed. (apt-get install pgbouncer)')
    return false
  }
  // The databases are taken away on exit, and the tests' processes end with this one.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
  const environment = await createTestEnvironment({ embeddedOnly: flags.quick, pooler })
  try {
    if (!isComplete(environment) || !(await checking)) return false
    const level = flags.quick ? 'quick' : flags.soak ? 'soak' : (process.env.WCRM_TEST_LEVEL ?? 'full')
    const poolAll: Record<string, string> = flags.pooler ? { WCRM_TEST_POOL_ALL: '1' } : {}
    return await runFiles(selectFiles(), { ...environment.env, ...poolAll, WCRM_TEST_LEVEL: level })
  } finally {
    await environment.remove()
  }
}

process.exitCode = (await main()) ? 0 : 1

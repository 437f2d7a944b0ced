import { existsSync, readFileSync } from 'node:fs'
import { spec } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'

/** What a file's tests came to, counted as node's own runner counts. */
export type TestCounts = {
  tests: number
  suites: number
  passed: number
  failed: number
  cancelled: number
  skipped: number
  todo: number
}
export type FileResult = {
  file: string
  /** Node's own report of this file: every test, and the errors. */
  report: string
  counts: TestCounts
  /** Failed tests, as `name (file:line)` and the error. */
  failures: string[]
  /** Processor time of this process meanwhile, its threads included. */
  cpuSeconds: number
  /** Processor time of the processes that it started and that have ended meanwhile; 0 where there is no `/proc`. */
  childSeconds: number
}

export const noCounts: TestCounts = {
  tests: 0,
  suites: 0,
  passed: 0,
  failed: 0,
  cancelled: 0,
  skipped: 0,
  todo: 0,
}

type TestEvent = { type: string; data: any }

const WORKER = fileURLToPath(new URL('./test-worker.ts', import.meta.url))

/** Adds a test or suite that ended. */
const count = (counts: TestCounts, { type, data }: TestEvent): void => {
  if (data.details.type === 'suite') return void counts.suites++
  counts.tests++
  if (data.skip !== undefined) counts.skipped++
  else if (data.todo !== undefined) counts.todo++
  else if (type === 'test:pass') counts.passed++
  else if (data.details.error?.failureType === 'cancelledByParent') counts.cancelled++
  else counts.failed++
}

/** The error that a test threw, indented; repeated at the end of a run, where the log of a CI job is read. */
const formatError = (error: { cause?: unknown }): string =>
  inspect(error.cause ?? error, { breakLength: 100 }).replaceAll(/^/gm, '    ')

/** Linux counts it in hundredths of a second, whatever the machine. */
const TICKS_PER_SECOND = 100
const STAT = '/proc/self/stat'

/** Processor time of all processes so far that this one started and waited for, in seconds. */
const readChildSeconds = (): number => {
  if (!existsSync(STAT)) return 0
  const text = readFileSync(STAT, 'utf8')
  // The second field is a name in parentheses, which may hold anything; `cutime` and `cstime` are 16 and 17.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND
}

/** Collects what is reported of one file. */
const createCollector = () => {
  const counts = { ...noCounts }
  const failures: string[] = []
  const start = process.cpuUsage()
  const childStart = readChildSeconds()
  const formatter = new spec()
  let report = ''
  formatter.on('data', (chunk: Buffer | string) => {
    report += chunk.toString()
  })
  return {
    add: (event: TestEvent): void => {
      formatter.write(event as never)
      if (event.type !== 'test:pass' && event.type !== 'test:fail') return
      count(counts, event)
      const { name, file, line, details } = event.data
      if (event.type !== 'test:fail' || details.type === 'suite') return
      failures.push(`${name} (${file}:${line})\n${formatError(details.error)}`)
    },
    finish: async (file: string): Promise<FileResult> => {
      formatter.end()
      await new Promise((ended) => formatter.once('end', ended))
      const { user, system } = process.cpuUsage(start)
      const cpuSeconds = (user + system) / 1_000_000
      return { file, report, counts, failures, cpuSeconds, childSeconds: readChildSeconds() - childStart }
    },
  }
}

/**
 * Node's runner calls this in the process of the tests; it expects a default export. Sends the parent a
 * `FileResult` when a file has ended, and as text what went wrong after that.
 */
export default async function* reportToParent(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let collector = createCollector()
  for await (const event of events) {
    const { type, data } = event
    if (type === 'test:diagnostic' && data.message.startsWith('Error:')) yield `${data.message}\n`
    if (!['test:start', 'test:pass', 'test:fail', 'test:stdout', 'test:stderr'].includes(type)) continue
    const isEnd = data.file === WORKER
    if (!isEnd || type === 'test:fail') collector.add(event)
    if (!isEnd || type === 'test:start') continue
    process.send?.(await collector.finish(data.name))
    collector = createCollector()
  }
}

import { parseArgs } from 'node:util'
import { pino } from 'pino'
import postgres from 'postgres'
import { findOperation, type OperationName } from '../../catalog/index.ts'
import type { App } from '../../server/app.ts'
import { createApp } from '../../server/create-app.ts'
import { createMetrics } from '../../server/metrics.ts'
import { createSecretRing } from '../../server/secret.ts'
import { perform } from '../../server/kernel/perform.ts'
import { openStorage } from '../../storage/open.ts'
import { dropBenchDatabase, withPostgres } from './databases.ts'
import { fillReportDatabase, type ReportDataset } from './report-data.ts'
import { median } from './statistics.ts'

/**
 * Measures both reports over several ranges of days without HTTP, on a history of the last 31 days. Prints
 * medians and worst cases in milliseconds, and the ratio of the median to a bare count of the messages in the
 * same run.
 */
const { values: flags } = parseArgs({
  options: {
    messages: { type: 'string', default: '1000000' },
    conversations: { type: 'string', default: '200000' },
    staff: { type: 'string', default: '50' },
    runs: { type: 'string', default: '20' },
    'database-url': { type: 'string' },
  },
})
const runs = Number(flags.runs)

const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)
const month = { from: daysAgo(30), to: daysAgo(0), timezone: 'UTC' }
const cases: [name: string, operation: OperationName, input: Record<string, unknown>, target?: number][] = [
  ['summary, 31 days', 'reports_workspace_summary', month, 300],
  ['summary, 7 days', 'reports_workspace_summary', { preset: 'last_7_days' }],
  ['summary, today', 'reports_workspace_summary', { preset: 'today' }],
  ['staff, 31 days', 'reports_staff', { ...month, limit: 100 }, 250],
  ['staff, 7 days', 'reports_staff', { preset: 'last_7_days', limit: 100 }],
  ['staff, today', 'reports_staff', { preset: 'today', limit: 100 }],
]

const measureMs = async (work: () => Promise<unknown>): Promise<number> => {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

const runReport = async (
  app: App,
  key: string,
  operation: OperationName,
  input: Record<string, unknown>,
): Promise<void> => {
  const response = await perform(app, {
    transport: 'rest',
    operation: findOperation(operation),
    requestId: 'req_bench',
    authorization: `Bearer ${key}`,
    address: undefined,
    input,
  })
  if (response.status !== 200) throw new Error(`${operation}: ${response.body}`)
}

const measure = async ({ databaseUrl, workspaceId, key }: ReportDataset): Promise<void> => {
  const storage = await openStorage({ databaseUrl })
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  const app = createApp({
    storage,
    secrets: createSecretRing(['a secret for benchmarks only']),
    log: pino({ level: 'silent' }),
    metrics: createMetrics(),
    config: { publicUrl: 'http://localhost', limitRead: 1_000_000, limitWrite: 1_000_000 },
  })
  const countMessages = () => sql`select count(*) from messages where workspace_id = ${workspaceId}`
  process.stdout.write(`${'report'.padEnd(20)}   median    worst   count  ratio  target (ms)\n`)
  try {
    for (const [name, operation, input, target] of cases) {
      const [times, countTimes]: [number[], number[]] = [[], []]
      for (let i = 0; i < 8; i++) await runReport(app, key, operation, input)
      for (let i = 0; i < runs; i++) {
        countTimes.push(await measureMs(countMessages))
        times.push(await measureMs(() => runReport(app, key, operation, input)))
      }
      const [ms, countMs] = [median(times), median(countTimes)]
      process.stdout.write(
        `${name.padEnd(20)} ${ms.toFixed(1).padStart(8)} ${Math.max(...times)
          .toFixed(1)
          .padStart(
            8,
          )} ${countMs.toFixed(1).padStart(7)} ${(ms / countMs).toFixed(2).padStart(6)}  ${target ?? ''}\n`,
      )
    }
  } finally {
    await sql.end()
    await storage.close()
  }
}

const main = async (adminUrl: string): Promise<void> => {
  const size = {
    messages: Number(flags.messages),
    conversations: Number(flags.conversations),
    staff: Number(flags.staff),
  }
  process.stderr.write(
    `filling a database with ${size.messages} messages of ${size.conversations} conversations\n`,
  )
  const dataset = await fillReportDatabase(adminUrl, size)
  try {
    await measure(dataset)
  } finally {
    await dropBenchDatabase(adminUrl, dataset)
  }
}

await withPostgres(flags['database-url'], '2GB', main)

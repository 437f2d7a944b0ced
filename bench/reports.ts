import { parseArgs } from 'node:util'
import { pino } from 'pino'
import postgres from 'postgres'
import { findOperation, type OperationName } from '../catalog/index.ts'
import { postgresBinaries, startCluster } from '../scripts/cluster.ts'
import type { App } from '../server/core/app.ts'
import { createApp } from '../server/create-app.ts'
import { createMetrics } from '../server/metrics.ts'
import { perform } from '../server/core/perform.ts'
import { openStorage } from '../storage/open.ts'
import { dropReportDatabase, fillReportDatabase, type ReportDataset } from './report-data.ts'

/**
 * Both reports over some days, asked of the service without HTTP, on a history that lies in the last 31
 * days. Beside medians and worst cases in milliseconds stands the ratio of the median to a bare count of
 * the messages in the same run.
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

const back = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)
const month = { from: back(30), to: back(0), timezone: 'UTC' }
const cases: [name: string, operation: OperationName, input: Record<string, unknown>, target?: number][] = [
  ['summary, 31 days', 'reports_workspace_summary', month, 300],
  ['summary, 7 days', 'reports_workspace_summary', { preset: 'last_7_days' }],
  ['summary, today', 'reports_workspace_summary', { preset: 'today' }],
  ['staff, 31 days', 'reports_staff', { ...month, limit: 100 }, 500],
  ['staff, 7 days', 'reports_staff', { preset: 'last_7_days', limit: 100 }],
  ['staff, today', 'reports_staff', { preset: 'today', limit: 100 }],
]

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const begun = performance.now()
  await work()
  return performance.now() - begun
}

const ask = async (
  app: App,
  key: string,
  operation: OperationName,
  input: Record<string, unknown>,
): Promise<void> => {
  const answer = await perform(app, {
    transport: 'rest',
    operation: findOperation(operation),
    requestId: 'req_bench',
    authorization: `Bearer ${key}`,
    input,
  })
  if (answer.status !== 200) throw new Error(`${operation}: ${answer.body}`)
}

const measure = async ({ databaseUrl, workspaceId, key }: ReportDataset): Promise<void> => {
  const storage = await openStorage({ databaseUrl })
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  const app = createApp({
    storage,
    secret: 'a secret for benchmarks only',
    log: pino({ level: 'silent' }),
    metrics: createMetrics(),
    config: { publicUrl: 'http://localhost', limitRead: 1_000_000, limitWrite: 1_000_000 },
  })
  const bare = () => sql`select count(*) from messages where workspace_id = ${workspaceId}`
  process.stdout.write(`${'report'.padEnd(20)}   median    worst   count  ratio  target (ms)\n`)
  try {
    for (const [name, operation, input, target] of cases) {
      const [mine, counts]: [number[], number[]] = [[], []]
      for (let i = 0; i < 8; i++) await ask(app, key, operation, input)
      for (let i = 0; i < runs; i++) {
        counts.push(await timed(bare))
        mine.push(await timed(() => ask(app, key, operation, input)))
      }
      const [m, c] = [median(mine), median(counts)]
      process.stdout.write(
        `${name.padEnd(20)} ${m.toFixed(1).padStart(8)} ${Math.max(...mine)
          .toFixed(1)
          .padStart(8)} ${c.toFixed(1).padStart(7)} ${(m / c).toFixed(2).padStart(6)}  ${target ?? ''}\n`,
      )
    }
  } finally {
    await sql.end()
    await storage.close()
  }
}

const main = async (): Promise<void> => {
  const binaries = postgresBinaries()
  if (!flags['database-url'] && !binaries)
    throw new Error(
      'no PostgreSQL of version 15 or newer is installed here; install one, or pass --database-url',
    )
  const cluster = flags['database-url']
    ? undefined
    : await startCluster(binaries!, {
        shared_buffers: '2GB',
        max_wal_size: '8GB',
        checkpoint_timeout: '30min',
      })
  const adminUrl = flags['database-url'] ?? cluster!.url
  const size = {
    messages: Number(flags.messages),
    conversations: Number(flags.conversations),
    staff: Number(flags.staff),
  }
  try {
    process.stderr.write(
      `filling a database with ${size.messages} messages of ${size.conversations} conversations\n`,
    )
    const history = await fillReportDatabase(adminUrl, size)
    try {
      await measure(history)
    } finally {
      await dropReportDatabase(adminUrl, history)
    }
  } finally {
    cluster?.stop()
  }
}

await main()

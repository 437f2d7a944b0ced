import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Kysely } from 'kysely'
import { pino } from 'pino'
import { findOperation } from '../catalog/index.ts'
import { createApp } from '../server/create-app.ts'
import { createMetrics } from '../server/metrics.ts'
import { createSecretRing } from '../server/secret.ts'
import { perform } from '../server/core/perform.ts'
import type { Database } from '../storage/database.ts'
import { createClientFactory } from '../storage/client/client.ts'
import { createPipelinedDialect } from '../storage/client/driver.ts'
import { createPool } from '../storage/client/pool.ts'
import { type Dataset, fillDatabase } from './data.ts'
import { dropBenchDatabase, withPostgres } from './databases.ts'
import { type FilterCase, createFilterCases } from './filter-cases.ts'
import { startProduct } from './processes.ts'
import { openProcessorReader, type ProcessorReader } from './processor.ts'
import { median } from './statistics.ts'

/**
 * Measures the first page of 25 of representative filters over REST, one request at a time, at each number of
 * contacts. Prints medians and worst cases in milliseconds, the processor time of a request, and the growth from
 * the smallest to the largest number; writes the plans at the largest to `bench/plans.md`.
 */
const { values: flags } = parseArgs({
  options: {
    contacts: { type: 'string', default: '100000,1000000' },
    runs: { type: 'string', default: '40' },
    'database-url': { type: 'string' },
    plans: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
})
const runs = Number(flags.runs)
const root = fileURLToPath(new URL('..', import.meta.url))
const MAX_MEDIAN_MS = 12
const MAX_WORST_MS = 100
const MAX_GROWTH = 1.2

/** As those of connections for expensive reads. */
const SETTINGS = { jit: 'off', plan_cache_mode: 'force_custom_plan', max_parallel_workers_per_gather: 0 }

type FilterTiming = {
  median: number
  worst: number
  /** Processor time of a request, of the server and the database together. */
  cpuMs: number
  rows: number
  total: number | null
  approximate: boolean | null
  countMs: number
  count: number
  countApproximate: boolean
}

const createPost =
  (url: string, key: string) =>
  async (path: string, body: object): Promise<{ ms: number; response: Record<string, unknown> }> => {
    const startedAt = performance.now()
    const result = await fetch(url + path, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    const text = await result.text()
    const ms = performance.now() - startedAt
    if (!result.ok) throw new Error(`${path} ${JSON.stringify(body)}: ${result.status} ${text}`)
    return { ms, response: JSON.parse(text) as Record<string, unknown> }
  }

/** Runs the variants of a filter in turn, after one round that is not measured. */
const measureFilter = async (
  post: ReturnType<typeof createPost>,
  startCpu: () => ReturnType<ProcessorReader['start']> | undefined,
  { bodies }: FilterCase,
): Promise<FilterTiming> => {
  for (const body of bodies) await post('/v1/contacts/search', body)
  const results = []
  const stopCpu = await startCpu()
  for (let i = 0; i < runs; i++) results.push(await post('/v1/contacts/search', bodies[i % bodies.length]!))
  const cpu = await stopCpu?.()
  const { response } = await post('/v1/contacts/search', bodies[0]!)
  const counts = []
  for (let i = 0; i < 3; i++) counts.push(await post('/v1/contacts/count', bodies[0]!))
  const times = results.map(({ ms }) => ms)
  const { count, approximate } = counts[0]!.response as { count: number; approximate: boolean }
  return {
    median: median(times),
    worst: Math.max(...times),
    cpuMs: cpu ? (cpu.server + cpu.database) / 1000 / runs : NaN,
    rows: (response['data'] as unknown[]).length,
    total: response['total'] as number | null,
    approximate: response['approximate'] as boolean | null,
    countMs: median(counts.map(({ ms }) => ms)),
    count,
    countApproximate: approximate,
  }
}

/** Returns the statements that the first variant of each case sends, with their plans, as Markdown. */
const explainCases = async ({ databaseUrl, key }: Dataset, cases: readonly FilterCase[]): Promise<string> => {
  const statements: { sql: string; parameters: readonly unknown[] }[] = []
  const openClient = createClientFactory(databaseUrl, true)
  const main = createPool({
    max: 1,
    limits: { responseMs: 0, acquireMs: 0 },
    openClient: (onClose) => openClient(SETTINGS, onClose),
  })
  const db = new Kysely<Database>({
    dialect: createPipelinedDialect({ main, quick: main, custom: undefined, indexed: undefined }),
    log: (event) => {
      statements.push(event.query)
    },
  })
  const app = createApp({
    storage: {
      db,
      heavy: db,
      heavyReads: 1,
      embedded: false,
      access: { pooled: false, prepare: true },
      poolStats: () => ({}),
      isDiskFull: () => false,
      close: () => db.destroy(),
    },
    secrets: createSecretRing(['a secret for benchmarks only']),
    log: pino({ level: 'silent' }),
    metrics: createMetrics(),
    config: { publicUrl: 'http://localhost', limitRead: 100_000, limitWrite: 100_000 },
  })
  const parts: string[] = []
  const summary = ['| filter | milliseconds of each statement | pages read |', '|---|---|---|']
  try {
    for (const { name, bodies } of cases) {
      const call = {
        transport: 'rest' as const,
        operation: findOperation('crm_search_contacts'),
        requestId: 'req_bench',
        authorization: `Bearer ${key}`,
        address: undefined,
        input: bodies[0],
      }
      await perform(app, call)
      statements.length = 0
      const { status } = await perform(app, call)
      if (status !== 200) throw new Error(`${name}: ${status}`)
      parts.push(`## ${name}\n\n\`\`\`json\n${JSON.stringify(bodies[0])}\n\`\`\`\n`)
      const times: string[] = []
      let pages = 0
      for (const { sql, parameters } of statements.filter((statement) => /contact/.test(statement.sql))) {
        const text = `explain (analyze, buffers, costs off) ${sql}`
        const rows = await main.run({ text, parameters })
        const plan = rows.map((row) => String(row['QUERY PLAN'])).join('\n')
        times.push(/Execution Time: ([\d.]+)/.exec(plan)![1]!)
        const [, hit = 0, read = 0] = /Buffers: shared (?:hit=(\d+))? ?(?:read=(\d+))?/.exec(plan) ?? []
        pages += Number(hit) + Number(read)
        parts.push(`\`\`\`\n${plan}\n\`\`\`\n`)
      }
      summary.push(`| ${name} | ${times.join(' + ')} | ${pages} |`)
    }
  } finally {
    await db.destroy()
  }
  return [`${summary.join('\n')}\n`, ...parts].join('\n')
}

const formatTiming = (timing: FilterTiming): string =>
  [
    timing.median.toFixed(1).padStart(8),
    timing.worst.toFixed(1).padStart(8),
    timing.cpuMs.toFixed(1).padStart(6),
    `${timing.approximate ? '~' : ''}${timing.total}`.padStart(9),
    timing.countMs.toFixed(0).padStart(7),
    `${timing.countApproximate ? '~' : ''}${timing.count}`.padStart(9),
  ].join(' ')

const formatLine = (name: string, timings: readonly FilterTiming[]): string => {
  const last = timings.at(-1)!
  const growth = last.median / timings[0]!.median
  const misses = [
    ...(last.median > MAX_MEDIAN_MS ? [`median over ${MAX_MEDIAN_MS}`] : []),
    ...(last.worst > MAX_WORST_MS ? [`worst over ${MAX_WORST_MS}`] : []),
    ...(timings.length > 1 && growth > MAX_GROWTH ? [`${growth.toFixed(1)} times the smallest`] : []),
  ]
  return [
    name.padEnd(32),
    ` ${timings.map(formatTiming).join('  |')}`,
    `  ${timings.length > 1 ? growth.toFixed(2).padStart(6) : ''}`,
    `  ${misses.join(', ')}`,
  ].join('')
}

const writePlans = async (dataset: Dataset, cases: readonly FilterCase[]): Promise<void> => {
  writeFileSync(
    `${root}bench/plans.md`,
    `# Plans of filters at ${dataset.contacts} contacts\n\n` +
      'Written by `npm run bench:filters -- --plans`.\n\n' +
      (await explainCases(dataset, cases)),
  )
}

const measureSize = async (
  dataset: Dataset,
  timings: Map<string, FilterTiming[]>,
  plans: boolean,
): Promise<void> => {
  const product = await startProduct(dataset.databaseUrl, `${root}bin/wcrm.js`)
  const reader = await openProcessorReader(dataset.databaseUrl)
  try {
    const startCpu = () => reader?.start(product.pid, 'wcrm')
    const post = createPost(product.url, dataset.key)
    const cases = (await createFilterCases(post, dataset)).filter(
      ({ name }) => !flags.only || flags.only.split(',').includes(name),
    )
    for (const filterCase of cases) {
      const timing = await measureFilter(post, startCpu, filterCase)
      timings.set(filterCase.name, [...(timings.get(filterCase.name) ?? []), timing])
      process.stderr.write(`${formatLine(filterCase.name, [timing])}\n`)
    }
    if (plans) await writePlans(dataset, cases)
  } finally {
    await reader?.close()
    await product.stop()
  }
}

const main = async (adminUrl: string): Promise<void> => {
  const sizes = flags.contacts.split(',').map(Number)
  const timings = new Map<string, FilterTiming[]>()
  for (const [i, contacts] of sizes.entries()) {
    process.stderr.write(`filling a database with ${contacts} contacts\n`)
    const dataset = await fillDatabase(adminUrl, contacts)
    try {
      await measureSize(dataset, timings, flags.plans && i === sizes.length - 1)
    } finally {
      await dropBenchDatabase(adminUrl, dataset)
    }
  }
  const head = sizes
    .map((size) => `${`${size}: median`.padStart(8)}    worst    cpu     total   count   matches`)
    .join('  |')
  const lines = [...timings].map(([name, all]) => formatLine(name, all))
  process.stdout.write(`${'filter (ms)'.padEnd(32)} ${head}  growth\n${lines.join('\n')}\n`)
}

await withPostgres(flags['database-url'], '2GB', main)

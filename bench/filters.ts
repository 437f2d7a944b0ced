import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Kysely } from 'kysely'
import { pino } from 'pino'
import postgres from 'postgres'
import { findOperation } from '../catalog/index.ts'
import { postgresBinaries, startCluster } from '../scripts/cluster.ts'
import { createApp } from '../server/create-app.ts'
import { createMetrics } from '../server/metrics.ts'
import { perform } from '../server/core/perform.ts'
import type { Database } from '../storage/database.ts'
import { createPipelinedDialect } from '../storage/driver.ts'
import { type Dataset, dropDatabase, fillDatabase } from './data.ts'
import { type FilterCase, createFilterCases } from './filter-cases.ts'
import { startProduct } from './processes.ts'

/**
 * The first page of 25 of representative filters, asked of the product one after another over REST, at each
 * number of contacts. Prints medians and worst cases in milliseconds, and how much the largest costs more
 * than the smallest; writes the plans of the largest to `bench/plans.md`.
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
const MEDIAN_MS = 15
const WORST_MS = 250
const GROWTH = 1.5

type Timing = {
  median: number
  worst: number
  rows: number
  total: number | null
  approximate: boolean | null
  countMs: number
  count: number
  countApproximate: boolean
}

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!

const post =
  (url: string, key: string) =>
  async (path: string, body: object): Promise<{ ms: number; response: Record<string, unknown> }> => {
    const begun = performance.now()
    const result = await fetch(url + path, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    const text = await result.text()
    const ms = performance.now() - begun
    if (!result.ok) throw new Error(`${path} ${JSON.stringify(body)}: ${result.status} ${text}`)
    return { ms, response: JSON.parse(text) as Record<string, unknown> }
  }

/** Each variant of a filter in turn, after one round that is not timed. */
const time = async (ask: ReturnType<typeof post>, { bodies }: FilterCase): Promise<Timing> => {
  for (const body of bodies) await ask('/v1/contacts/search', body)
  const asked = []
  for (let i = 0; i < runs; i++) asked.push(await ask('/v1/contacts/search', bodies[i % bodies.length]!))
  const { response } = await ask('/v1/contacts/search', bodies[0]!)
  const counts = []
  for (let i = 0; i < 3; i++) counts.push(await ask('/v1/contacts/count', bodies[0]!))
  const times = asked.map(({ ms }) => ms)
  const { count, approximate } = counts[0]!.response as { count: number; approximate: boolean }
  return {
    median: median(times),
    worst: Math.max(...times),
    rows: (response['data'] as unknown[]).length,
    total: response['total'] as number | null,
    approximate: response['approximate'] as boolean | null,
    countMs: median(counts.map(({ ms }) => ms)),
    count,
    countApproximate: approximate,
  }
}

/** The statements that one call sends, with their plans. */
const plansOf = async ({ databaseUrl, key }: Dataset, cases: readonly FilterCase[]): Promise<string> => {
  const statements: { sql: string; parameters: readonly unknown[] }[] = []
  const main = postgres(databaseUrl, {
    max: 1,
    onnotice: () => {},
    connection: { jit: 'off', plan_cache_mode: 'force_custom_plan', TimeZone: 'UTC' } as never,
  })
  const db = new Kysely<Database>({
    dialect: createPipelinedDialect({ main, quick: main, custom: undefined }),
    log: (event) => {
      statements.push(event.query)
    },
  })
  const app = createApp({
    storage: { db, embedded: false, close: () => db.destroy() },
    secret: 'a secret for benchmarks only',
    log: pino({ level: 'silent' }),
    metrics: createMetrics(),
    config: { publicUrl: 'http://localhost', limitRead: 100_000, limitWrite: 100_000 },
  })
  const parts: string[] = []
  try {
    for (const { name, bodies } of cases) {
      const call = {
        transport: 'rest' as const,
        operation: findOperation('crm_search_contacts'),
        requestId: 'req_bench',
        authorization: `Bearer ${key}`,
        input: bodies[0],
      }
      await perform(app, call)
      statements.length = 0
      const { status } = await perform(app, call)
      if (status !== 200) throw new Error(`${name}: ${status}`)
      parts.push(`## ${name}\n\n\`\`\`json\n${JSON.stringify(bodies[0])}\n\`\`\`\n`)
      for (const { sql, parameters } of statements.filter((s) => /contact/.test(s.sql))) {
        const rows = await main.unsafe(`explain (analyze, buffers, costs off) ${sql}`, parameters as never[])
        parts.push(`\`\`\`\n${rows.map((row) => String(row['QUERY PLAN'])).join('\n')}\n\`\`\`\n`)
      }
    }
  } finally {
    await db.destroy()
  }
  return parts.join('\n')
}

const line = (name: string, all: readonly Timing[]): string => {
  const last = all.at(-1)!
  const growth = last.median / all[0]!.median
  const shown = all.map(
    (t) =>
      `${t.median.toFixed(1).padStart(8)} ${t.worst.toFixed(1).padStart(8)} ${`${t.approximate ? '~' : ''}${t.total}`.padStart(9)} ${t.countMs.toFixed(0).padStart(7)} ${`${t.countApproximate ? '~' : ''}${t.count}`.padStart(9)}`,
  )
  const misses = [
    ...(last.median > MEDIAN_MS ? [`median over ${MEDIAN_MS}`] : []),
    ...(last.worst > WORST_MS ? [`worst over ${WORST_MS}`] : []),
    ...(all.length > 1 && growth > GROWTH ? [`${growth.toFixed(1)} times the smallest`] : []),
  ]
  return `${name.padEnd(32)} ${shown.join('  |')}  ${all.length > 1 ? growth.toFixed(2).padStart(6) : ''}  ${misses.join(', ')}`
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
  const sizes = flags.contacts.split(',').map(Number)
  const timings = new Map<string, Timing[]>()
  try {
    for (const [i, contacts] of sizes.entries()) {
      process.stderr.write(`filling a database with ${contacts} contacts\n`)
      const dataset = await fillDatabase(adminUrl, contacts)
      const product = await startProduct(dataset.databaseUrl, `${root}bin/wcrm.js`)
      try {
        const ask = post(product.url, dataset.key)
        const cases = (await createFilterCases(ask, dataset)).filter(
          ({ name }) => !flags.only || flags.only.split(',').includes(name),
        )
        for (const one of cases) {
          const timing = await time(ask, one)
          timings.set(one.name, [...(timings.get(one.name) ?? []), timing])
          process.stderr.write(`${line(one.name, [timing])}\n`)
        }
        if (flags.plans && i === sizes.length - 1)
          writeFileSync(
            `${root}bench/plans.md`,
            `# Plans of filters at ${contacts} contacts\n\nWritten by \`npm run bench:filters -- --plans\`.\n\n${await plansOf(dataset, cases)}`,
          )
      } finally {
        await product.stop()
        await dropDatabase(adminUrl, dataset)
      }
    }
    const head = sizes
      .map((n) => `${`${n}: median`.padStart(8)}    worst     total   count   matches`)
      .join('  |')
    process.stdout.write(
      `${'filter (ms)'.padEnd(32)} ${head}  growth\n${[...timings].map(([name, all]) => line(name, all)).join('\n')}\n`,
    )
  } finally {
    cluster?.stop()
  }
}

await main()

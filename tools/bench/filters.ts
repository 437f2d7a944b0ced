import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Dataset, fillDatabase } from './data.ts'
import { dropBenchDatabase, withPostgres } from './databases.ts'
import { type FilterCase, createFilterCases } from './filter-cases.ts'
import { startProduct } from './processes.ts'
import { openProcessorReader, type ProcessorReader } from './processor.ts'
import { median } from './statistics.ts'

/**
 * Measures the first page of 25 of representative filters over REST, one request at a time, at each number of
 * contacts. Prints medians and worst cases in milliseconds, the processor time of a request, and the growth from
 * the smallest to the largest number.
 */
const { values: flags } = parseArgs({
  options: {
    contacts: { type: 'string', default: '100000,1000000' },
    runs: { type: 'string', default: '40' },
    'database-url': { type: 'string' },
    only: { type: 'string' },
  },
})
const runs = Number(flags.runs)
const root = fileURLToPath(new URL('../..', import.meta.url))
const MAX_MEDIAN_MS = 12
const MAX_WORST_MS = 100
const MAX_GROWTH = 1.2

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

const measureSize = async (dataset: Dataset, timings: Map<string, FilterTiming[]>): Promise<void> => {
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
  } finally {
    await reader?.close()
    await product.stop()
  }
}

const main = async (adminUrl: string): Promise<void> => {
  const sizes = flags.contacts.split(',').map(Number)
  const timings = new Map<string, FilterTiming[]>()
  for (const contacts of sizes) {
    process.stderr.write(`filling a database with ${contacts} contacts\n`)
    const dataset = await fillDatabase(adminUrl, contacts)
    try {
      await measureSize(dataset, timings)
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

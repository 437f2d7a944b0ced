import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { createCases, fillRequest } from './cases.ts'
import { openLoadClient } from './client.ts'
import { type Dataset, fillDatabase, prepareForCases } from './data.ts'
import { dropBenchDatabase, withPostgres } from './databases.ts'
import { sourceLauncher } from './launchers.ts'
import { readResidentMemoryMb, type RunningServer, startProduct } from './processes.ts'
import { percentile } from './statistics.ts'
import { writeResults } from './results.ts'
import type { WrkRequest } from './wrk.ts'

/**
 * Loads the product with reads and writes, seven to three, over 64 connections, for minutes. Targets: memory
 * is flat (the most in the last minute is within 10 % of the most in the second), and the 99th percentile of
 * reads is below 100 ms. Exits with 1 when one is missed.
 */
const { values: flags } = parseArgs({
  options: {
    contacts: { type: 'string', default: '20000' },
    seconds: { type: 'string', default: '300' },
    connections: { type: 'string', default: '64' },
    'database-url': { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
const seconds = Number(flags.seconds)
const connections = Number(flags.connections)
const MAX_READ_P99_MS = 100
const MAX_GROWTH = 1.1
const SAMPLE_MS = 500
const MINUTE = 60_000 / SAMPLE_MS
const print = (text: string): void => void process.stderr.write(`${text}\n`)

/** Of a hundred requests. */
const shares: Record<string, number> = {
  'get by id': 30,
  'list 25': 10,
  'search name': 5,
  conversations: 15,
  events: 10,
  upsert: 15,
  tag: 15,
}

/** Returns a function that returns the next request, of all kinds in an order that mixes them. */
const createMix = (dataset: Dataset) => {
  const kinds = createCases(dataset).flatMap(({ name, product, writes }) =>
    name in shares
      ? [
          {
            name,
            requests: product.requests,
            at: 0,
            share: shares[name]!,
            owed: 0,
            writes,
            number: writes?.base,
          },
        ]
      : [],
  )
  const isWrite = new WeakSet<WrkRequest>()
  const next = (): WrkRequest => {
    // The kind that is furthest behind its share.
    for (const kind of kinds) kind.owed += kind.share
    const kind = kinds.reduce((a, b) => (b.owed > a.owed ? b : a))
    kind.owed -= 100
    const request = kind.requests[kind.at++ % kind.requests.length]!
    if (!kind.writes) return request
    const filled = fillRequest(request, kind.number!++, kind.writes.rows)
    isWrite.add(filled)
    return filled
  }
  return { next, isRead: (request: WrkRequest) => !isWrite.has(request) }
}

const describeTimes = (times: readonly number[]): string =>
  [0.5, 0.95, 0.99].map((share) => percentile(times, share).toFixed(0)).join(', ')

const load = async (dataset: Dataset, product: RunningServer): Promise<string[]> => {
  const [before] = loadavg()
  const times = { reads: [] as number[], writes: [] as number[] }
  const memory: number[] = []
  const { next, isRead } = createMix(dataset)
  const client = await openLoadClient(product.url, {
    connections,
    next,
    onResponse: (request, ms) => void times[isRead(request) ? 'reads' : 'writes'].push(ms),
  })
  const interval = setInterval(() => memory.push(readResidentMemoryMb(product.pid) ?? 0), SAMPLE_MS)
  const sent = await client.run({ milliseconds: seconds * 1000 })
  clearInterval(interval)
  client.close()
  // A short run, to try it out, has no second minute.
  const second = Math.max(...(memory.length > 2 * MINUTE ? memory.slice(MINUTE, 2 * MINUTE) : memory))
  const last = Math.max(...memory.slice(-MINUTE))
  const p99 = percentile(times.reads, 0.99)
  const isFlat = last <= second * MAX_GROWTH
  const isQuick = p99 < MAX_READ_P99_MS
  if (!isFlat || !isQuick) process.exitCode = 1
  return [
    `${sent} requests in ${seconds} s over ${connections} connections, ${(sent / seconds).toFixed(0)}/s, ` +
      `${times.reads.length} reads and ${times.writes.length} writes; load average before ${before!.toFixed(1)}`,
    `reads: p50, p95, p99 of ${describeTimes(times.reads)} ms; writes: ${describeTimes(times.writes)} ms`,
    `memory: at most ${second.toFixed(0)} MB in the second minute, ${last.toFixed(0)} MB in the last`,
    `${isFlat ? 'memory is flat' : `MEMORY GROWS by more than ${MAX_GROWTH}`}; ` +
      `p99 of reads ${isQuick ? 'below' : 'MISSES'} ${MAX_READ_P99_MS} ms`,
  ]
}

await withPostgres(flags['database-url'], '512MB', async (adminUrl) => {
  print(`filling a database with ${flags.contacts} contacts`)
  const dataset = await fillDatabase(adminUrl, Number(flags.contacts))
  try {
    await prepareForCases(dataset.databaseUrl, dataset.workspaceId)
    const product = await startProduct(dataset.databaseUrl, sourceLauncher)
    try {
      const lines = await load(dataset, product)
      if (flags.write) await writeResults('mixed', lines, adminUrl)
      process.stdout.write(`${lines.join('\n')}\n`)
    } finally {
      await product.stop()
    }
  } finally {
    await dropBenchDatabase(adminUrl, dataset)
  }
})

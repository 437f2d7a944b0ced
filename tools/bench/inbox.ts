import { parseArgs } from 'node:util'
import { pino } from 'pino'
import postgres from 'postgres'
import { findOperation } from '../../catalog/index.ts'
import type { App } from '../../server/app.ts'
import { createApp } from '../../server/create-app.ts'
import { createMetrics } from '../../server/metrics.ts'
import { createSecretRing } from '../../server/secret.ts'
import { perform } from '../../server/kernel/perform.ts'
import { openStorage } from '../../storage/open.ts'
import { dropBenchDatabase, withPostgres } from './databases.ts'
import { fillInboxDatabase, type InboxDataset } from './inbox-data.ts'
import { median } from './statistics.ts'

/**
 * Measures the first page of 25 conversations under each filter, and one far down the list, without HTTP, at
 * each number of conversations. Prints medians and worst cases in milliseconds, and the ratio of the median
 * to a bare read of 26 rows along the same index in the same run.
 */
const { values: flags } = parseArgs({
  options: {
    conversations: { type: 'string', default: '100000,1000000' },
    runs: { type: 'string', default: '60' },
    'database-url': { type: 'string' },
  },
})
const runs = Number(flags.runs)

type InboxTiming = { median: number; worst: number; rows: number; ratio: number }
type InboxCase = { name: string; key?: 'agentKey'; inputs: Record<string, unknown>[]; deep?: boolean }

const names = ['lovelace', 'ada hop', 'edsger knuth', 'grace', 'turing']
const createInboxCases = ({ channels }: InboxDataset): InboxCase[] => [
  { name: 'everything', inputs: [{}] },
  { name: 'everything, page far down', inputs: [{}], deep: true },
  { name: 'open', inputs: [{ state: 'open' }] },
  { name: 'closed', inputs: [{ state: 'closed' }] },
  { name: 'unassigned', inputs: [{ assigned: false }] },
  { name: 'assigned', inputs: [{ assigned: true }] },
  { name: 'the unassigned queue', inputs: [{ state: 'open', assigned: false }] },
  { name: 'the queue, page far down', inputs: [{ state: 'open', assigned: false }], deep: true },
  { name: 'customers wait', inputs: [{ reply_status: 'incoming_no_reply' }] },
  { name: 'open, we wait', inputs: [{ state: 'open', reply_status: 'outgoing_no_response' }] },
  { name: 'closed and waiting (rare)', inputs: [{ state: 'closed', reply_status: 'incoming_no_reply' }] },
  { name: 'closed, unassigned (none)', inputs: [{ state: 'closed', assigned: false }] },
  { name: 'a busy channel', inputs: [{ channel_id: channels[0] }] },
  { name: 'a quiet channel', inputs: [{ channel_id: channels[7] }] },
  {
    name: "a channel's queue",
    inputs: channels.slice(0, 4).map((id) => ({ channel_id: id, state: 'open', assigned: false })),
  },
  { name: 'a quiet channel, open', inputs: [{ channel_id: channels[7], state: 'open' }] },
  { name: 'agent of 3 channels', key: 'agentKey', inputs: [{}] },
  { name: 'agent of 3 channels, queue', key: 'agentKey', inputs: [{ state: 'open', assigned: false }] },
  { name: 'common name', inputs: names.map((query) => ({ query })) },
  { name: 'common name, open', inputs: names.map((query) => ({ query, state: 'open' })) },
  {
    name: 'one contact by digits',
    inputs: [1234, 20_001, 33_333].map((n) => ({ query: String(15_550_000_000 + n) })),
  },
  { name: 'some contacts by digits', inputs: ['5550001', '5550012', '5550044'].map((query) => ({ query })) },
  {
    name: 'some digits, closed waiting',
    inputs: ['5550001', '5550012'].map((query) => ({
      query,
      state: 'closed',
      reply_status: 'incoming_no_reply',
    })),
  },
  { name: 'two letters', inputs: ['ad', 'lo'].map((query) => ({ query })) },
  { name: 'two letters in nobody', inputs: [{ query: 'xq' }] },
  { name: 'three letters in nobody', inputs: [{ query: 'xqz' }] },
  { name: 'agent of 3 channels, name', key: 'agentKey', inputs: names.map((query) => ({ query })) },
]

const createSearch =
  (app: App, key: string) =>
  async (input: Record<string, unknown>): Promise<{ ms: number; data: unknown[]; cursor: string | null }> => {
    const startedAt = performance.now()
    const response = await perform(app, {
      transport: 'rest',
      operation: findOperation('inbox_search_conversations'),
      requestId: 'req_bench',
      authorization: `Bearer ${key}`,
      address: undefined,
      input,
    })
    const ms = performance.now() - startedAt
    if (response.status !== 200) throw new Error(`${JSON.stringify(input)}: ${response.body}`)
    const body = JSON.parse(response.body) as { data: unknown[]; next_cursor: string | null }
    return { ms, data: body.data, cursor: body.next_cursor }
  }

/** Returns the input for a page that follows twenty pages of 100. */
const skipPages = async (
  search: ReturnType<typeof createSearch>,
  input: Record<string, unknown>,
): Promise<Record<string, unknown>> => {
  let cursor: string | null = null
  for (let page = 0; page < 20; page++)
    cursor = (await search({ ...input, limit: 100, ...(cursor ? { cursor } : {}) })).cursor ?? cursor
  return { ...input, ...(cursor ? { cursor } : {}) }
}

const measureCase = async (
  app: App,
  inbox: InboxDataset,
  testCase: InboxCase,
  readBare: () => Promise<number>,
): Promise<InboxTiming> => {
  const search = createSearch(app, inbox[testCase.key ?? 'key'])
  const inputs = testCase.deep ? [await skipPages(search, testCase.inputs[0]!)] : testCase.inputs
  for (let i = 0; i < 8; i++) await search(inputs[i % inputs.length]!)
  const [times, bareTimes, rows]: [number[], number[], number[]] = [[], [], []]
  for (let i = 0; i < runs; i++) {
    bareTimes.push(await readBare())
    const { ms, data } = await search(inputs[i % inputs.length]!)
    times.push(ms)
    rows.push(data.length)
  }
  return {
    median: median(times),
    worst: Math.max(...times),
    rows: median(rows),
    ratio: median(times) / median(bareTimes),
  }
}

/**
 * Reads 26 rows along the index of the list, by a prepared statement over one connection. Returns
 * milliseconds.
 */
const createBareRead =
  (sql: postgres.Sql, { workspaceId }: InboxDataset) =>
  async (): Promise<number> => {
    const startedAt = performance.now()
    JSON.stringify(
      await sql`select * from conversations where workspace_id = ${workspaceId}
        order by activity_at desc, id desc limit 26`,
    )
    return performance.now() - startedAt
  }

const measureAll = async (inbox: InboxDataset): Promise<Map<string, InboxTiming>> => {
  const storage = await openStorage({ databaseUrl: inbox.databaseUrl })
  const sql = postgres(inbox.databaseUrl, { max: 1, onnotice: () => {} })
  const app = createApp({
    storage,
    secrets: createSecretRing(['a secret for benchmarks only']),
    log: pino({ level: 'silent' }),
    metrics: createMetrics(),
    config: { publicUrl: 'http://localhost', limitRead: 1_000_000, limitWrite: 1_000_000 },
  })
  const timings = new Map<string, InboxTiming>()
  try {
    for (const testCase of createInboxCases(inbox)) {
      const timing = await measureCase(app, inbox, testCase, createBareRead(sql, inbox))
      timings.set(testCase.name, timing)
      process.stderr.write(`${testCase.name.padEnd(30)} ${formatTiming(timing)}\n`)
    }
  } finally {
    await sql.end()
    await storage.close()
  }
  return timings
}

const formatTiming = ({ median: ms, worst, ratio, rows }: InboxTiming): string =>
  `${ms.toFixed(2).padStart(8)} ${worst.toFixed(1).padStart(7)} ` +
  `${ratio.toFixed(1).padStart(6)}x ${String(rows).padStart(4)}`

const main = async (adminUrl: string): Promise<void> => {
  const sizes = flags.conversations.split(',').map(Number)
  const all: Map<string, InboxTiming>[] = []
  for (const size of sizes) {
    process.stderr.write(`filling a database with ${size} conversations\n`)
    const inbox = await fillInboxDatabase(adminUrl, size)
    try {
      all.push(await measureAll(inbox))
    } finally {
      await dropBenchDatabase(adminUrl, inbox)
    }
  }
  const head = sizes.map((size) => `${`${size}: ms`.padStart(8)}   worst   ratio rows`).join('  |')
  const lines = [...all[0]!.keys()].map(
    (name) => `${name.padEnd(30)} ${all.map((timings) => formatTiming(timings.get(name)!)).join('  |')}`,
  )
  process.stdout.write(`${'filter'.padEnd(30)} ${head}\n${lines.join('\n')}\n`)
}

await withPostgres(flags['database-url'], '2GB', main)

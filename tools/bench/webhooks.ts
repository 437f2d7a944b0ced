import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { sql } from 'kysely'
import { createEventId } from '../../server/ids.ts'
import type { Db } from '../../storage/database.ts'
import { insertEvents } from '../../storage/events/events.ts'
import { openStorage } from '../../storage/open.ts'
import { claimDeliveries, releaseDeliveries } from '../../storage/webhooks/deliveries.ts'
import { runWebhookStorm } from '../../tests/soak/webhook-storm.ts'
import { type Dataset, fillDatabase } from './data.ts'
import { dropBenchDatabase, withPostgres } from './databases.ts'
import { startProduct } from './processes.ts'
import { median, percentile } from './statistics.ts'

/**
 * Measures webhooks on PostgreSQL, with receivers in this process, which share the machine with the server
 * and the database: deliveries per second of a backlog; the time from an event, written by a call of the API
 * at a steady rate, until its endpoint has received it; the time of a claim beside a million completed
 * deliveries. `--storm` adds 20,000 events to 20 endpoints while two servers are killed in turn and a fifth
 * of the responses are failures.
 */
const { values: flags } = parseArgs({
  options: {
    'database-url': { type: 'string' },
    deliveries: { type: 'string', default: '20000' },
    endpoints: { type: 'string', default: '20' },
    rate: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '20' },
    done: { type: 'string', default: '1000000' },
    storm: { type: 'boolean', default: false },
    profile: { type: 'string' },
  },
})
const [deliveries, endpoints, rate, seconds, done] = [
  flags.deliveries,
  flags.endpoints,
  flags.rate,
  flags.seconds,
  flags.done,
].map(Number) as [number, number, number, number, number]
const print = (text: string): void => void process.stdout.write(`${text}\n`)
const formatMs = (n: number): string => `${n.toFixed(n < 10 ? 1 : 0)} ms`

/** Starts a server that responds with 200 to everything. `onBody` is called with each body. */
const startReceivers = async () => {
  const receivers = {
    url: '',
    count: 0,
    onBody: (_body: string): void => {},
    close: () =>
      new Promise((closed) => {
        server.closeAllConnections()
        server.close(closed)
      }),
  }
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString()
    })
    request.on('end', () => {
      receivers.count++
      receivers.onBody(body)
      response.end('ok')
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  receivers.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return receivers
}
type Receivers = Awaited<ReturnType<typeof startReceivers>>

const createPost =
  (url: string, key: string) =>
  async (path: string, body: unknown): Promise<void> => {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(text)
  }
type PostJson = ReturnType<typeof createPost>

const measureThroughput = async (db: Db, ws: string, receivers: Receivers): Promise<void> => {
  const events = Math.ceil(deliveries / endpoints)
  const rows = Array.from({ length: events }, (_, n) => ({
    id: createEventId(),
    type: 'group.created/1',
    occurred_at: new Date().toISOString(),
    data: { group: { id: String(n), name: `Group ${n}`, emoji: null } },
  }))
  receivers.count = 0
  // In one transaction, so that the server finds all of it at once.
  await db.transaction().execute((tx) => insertEvents(tx, ws, rows))
  const startedAt = performance.now()
  while (receivers.count < events * endpoints) await sleep(5)
  const elapsedMs = performance.now() - startedAt
  for (;;) {
    const {
      rows: [row],
    } = await sql<{
      n: string
    }>`select count(*) as n from webhook_deliveries where workspace_id = ${ws}
      and status <> 'delivered'`.execute(db)
    if (row!.n === '0') break
    await sleep(20)
  }
  print(
    `${events * endpoints} deliveries to ${endpoints} endpoints: ` +
      `${((events * endpoints * 1000) / elapsedMs).toFixed(0)} a second ` +
      `(${(elapsedMs / 1000).toFixed(1)} s)`,
  )
}

const measureLatency = async (post: PostJson, receivers: Receivers): Promise<void> => {
  const delays: number[] = []
  const callTimes: number[] = []
  receivers.onBody = (body) => {
    const event = JSON.parse(body) as { occurred_at: string }
    delays.push(Date.now() - Date.parse(event.occurred_at))
  }
  receivers.count = 0
  const total = rate * seconds
  const startedAt = performance.now()
  const calls: Promise<void>[] = []
  for (let n = 0; n < total; n++) {
    const earlyMs = (n / rate) * 1000 - (performance.now() - startedAt)
    if (earlyMs > 1) await sleep(earlyMs)
    const calledAt = performance.now()
    calls.push(
      post('/v1/groups', { name: `Group of ${startedAt} ${n}` }).then(() => {
        callTimes.push(performance.now() - calledAt)
      }),
    )
  }
  await Promise.all(calls)
  for (const end = Date.now() + 10_000; delays.length < total && Date.now() < end;) await sleep(20)
  receivers.onBody = () => {}
  print(
    `${rate} events a second for ${seconds} s, from the event until its endpoint has it: ` +
      `median ${formatMs(percentile(delays, 0.5))}, p99 ${formatMs(percentile(delays, 0.99))}, ` +
      `worst ${formatMs(Math.max(...delays))} (${delays.length} of ${total}; ` +
      `the calls took ${formatMs(percentile(callTimes, 0.5))}, p99 ${formatMs(percentile(callTimes, 0.99))})`,
  )
}

const measureClaims = async (db: Db, ws: string): Promise<void> => {
  /** Returns the median milliseconds of claims that are released again, and the number of deliveries. */
  const measureClaim = async (): Promise<[number, number]> => {
    const times: number[] = []
    let claimed = 0
    for (let n = 0; n < 21; n++) {
      const startedAt = performance.now()
      const leased = await claimDeliveries(db, 30, 8, new Map())
      times.push(performance.now() - startedAt)
      claimed = leased.length
      await releaseDeliveries(db, leased)
    }
    return [median(times), claimed]
  }
  const fill = (status: string, from: number, to: number) =>
    sql`
    insert into webhook_deliveries (workspace_id, id, endpoint_id, event_id, event_type, status, attempts,
      next_attempt_at, created_at, delivered_at)
    select ${ws}::bigint, 'dlv_' || ${status}::text || lpad(n::text, 18, '0'), e.id,
      'evt_' || ${status}::text || lpad(n::text, 18, '0'), 'group.created/1', ${status}::text, 1,
      case when ${status}::text = 'pending' then now() end, now() - n * interval '1 millisecond', case
        when ${status}::text = 'delivered' then now() end
    from generate_series(${from}::int, ${to}::int) as n
      join lateral (select id from webhook_endpoints where workspace_id = ${ws}
        order by id offset n % ${endpoints}::int limit 1) as e on true`.execute(db)
  const measureWith = async (name: string): Promise<void> => {
    await sql`vacuum analyze webhook_deliveries`.execute(db)
    const idle = await measureClaim()
    await fill('pending', 1, 2000)
    const busy = await measureClaim()
    await sql`delete from webhook_deliveries where status = 'pending'`.execute(db)
    print(
      `a claim with ${name}: ${formatMs(idle[0])} when nothing is due, ` +
        `${formatMs(busy[0])} for ${busy[1]} deliveries of 2000 due`,
    )
  }
  await sql`truncate webhook_deliveries, webhook_attempts`.execute(db)
  await measureWith('an empty table')
  for (let n = 0; n < done; n += 100_000) await fill('delivered', n + 1, Math.min(done, n + 100_000))
  await measureWith(`${done} deliveries that are done`)
}

const benchmark = async (dataset: Dataset): Promise<void> => {
  const { db, close } = await openStorage(
    { databaseUrl: dataset.databaseUrl },
    { connections: 8, noTimeout: true },
  )
  const ws = dataset.workspaceId
  const receivers = await startReceivers()
  process.env.WCRM_WEBHOOK_ALLOW = '127.0.0.0/8'
  const product = await startProduct(
    dataset.databaseUrl,
    fileURLToPath(new URL('../../bin/wcrm.js', import.meta.url)),
    flags.profile,
  )
  try {
    const post = createPost(product.url, dataset.key)
    for (let n = 0; n < endpoints; n++)
      await post('/v1/webhooks/endpoints', { url: `${receivers.url}/${n}`, event_types: ['group.created/1'] })
    await measureThroughput(db, ws, receivers)
    await measureThroughput(db, ws, receivers)
    // Only one endpoint subscribes to the events of the calls.
    await sql`delete from webhook_subscriptions where workspace_id = ${ws}
      and endpoint_id <> (select min(id) from webhook_endpoints where workspace_id = ${ws})`.execute(db)
    await measureLatency(post, receivers)
    await product.stop()
    await measureClaims(db, ws)
  } finally {
    await product.stop()
    await receivers.close()
    await close()
  }
}

const runStorm = async (databaseUrl: string): Promise<void> => {
  const [events, endpointCount] = [20_000, 20]
  const dataDir = mkdtempSync(join(tmpdir(), 'wcrm-storm-'))
  const result = await runWebhookStorm(
    {
      location: { databaseUrl },
      direct: { databaseUrl },
      flags: ['--database-url', databaseUrl, '--data', dataDir],
      remove: async () => {},
    },
    {
      events,
      endpoints: endpointCount,
      perSecond: 200,
      killEveryMs: 4000,
      failures: { errors: 100, drops: 98, silences: 2 },
      timeoutMs: 3_600_000,
    },
  )
  rmSync(dataDir, { recursive: true, force: true })
  const percent = (part: number, whole: number, digits: number) => ((100 * part) / whole).toFixed(digits)
  print(
    `${events} events to ${endpointCount} endpoints, ${result.kills} kills, ` +
      `${percent(result.failedAttempts, result.attempts, 0)} % of the answers bad: ` +
      `${result.missing} missing, ` +
      `${result.duplicates} taken twice (${percent(result.duplicates, events * endpointCount, 2)} %), ` +
      `${result.unstable} with another id or body, ${result.unsigned} with a wrong signature, ` +
      `${result.seconds.toFixed(0)} s`,
  )
}

await withPostgres(flags['database-url'], '512MB', async (adminUrl) => {
  const parts = [benchmark, ...(flags.storm ? [(dataset: Dataset) => runStorm(dataset.databaseUrl)] : [])]
  for (const part of parts) {
    const dataset = await fillDatabase(adminUrl, 100)
    try {
      await part(dataset)
    } finally {
      await dropBenchDatabase(adminUrl, dataset)
    }
  }
})

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { sql } from 'kysely'
import { postgresBinaries, startCluster } from '../scripts/cluster.ts'
import { createEventId } from '../server/ids.ts'
import type { Db } from '../storage/database.ts'
import { insertEvents } from '../storage/events.ts'
import { openStorage } from '../storage/open.ts'
import { claimDeliveries, releaseDeliveries } from '../storage/webhook-deliveries.ts'
import { weather } from '../tests/soak/webhook-storm.ts'
import { type Dataset, dropDatabase, fillDatabase } from './data.ts'
import { startProduct } from './processes.ts'

/**
 * Webhooks on PostgreSQL, to receivers in this process, which share the machine with the server and the
 * database: how many deliveries a second a backlog is worked off with; how long from an event, written by a
 * call of the API at a steady rate, until its endpoint has it; how long a claim takes with a million
 * deliveries that are done. `--storm` adds 20,000 events to 20 endpoints while two servers are killed in
 * turn and a fifth of the answers are bad.
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
const say = (text: string): void => void process.stdout.write(`${text}\n`)
const percentile = (sorted: readonly number[], p: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))]!
const ms = (n: number): string => `${n.toFixed(n < 10 ? 1 : 0)} ms`

/** Answers 200 to everything; `took` is told of each body. */
const startReceivers = async () => {
  const receivers = {
    url: '',
    count: 0,
    took: (_body: string): void => {},
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
      receivers.took(body)
      response.end('ok')
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  receivers.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return receivers
}
type Receivers = Awaited<ReturnType<typeof startReceivers>>

const callWith =
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
type Call = ReturnType<typeof callWith>

const throughput = async (db: Db, ws: string, receivers: Receivers): Promise<void> => {
  const events = Math.ceil(deliveries / endpoints)
  const rows = Array.from({ length: events }, (_, n) => ({
    id: createEventId(),
    type: 'group.created/1',
    occurred_at: new Date().toISOString(),
    data: { group: { id: String(n), name: `Group ${n}`, emoji: null } },
  }))
  receivers.count = 0
  // In one transaction: the server finds it all at once.
  await db.transaction().execute((tx) => insertEvents(tx, ws, rows))
  const begun = performance.now()
  while (receivers.count < events * endpoints) await pause(5)
  const sent = performance.now() - begun
  for (;;) {
    const {
      rows: [row],
    } = await sql<{
      n: string
    }>`select count(*) as n from webhook_deliveries where workspace_id = ${ws} and status <> 'delivered'`.execute(
      db,
    )
    if (row!.n === '0') break
    await pause(20)
  }
  say(
    `${events * endpoints} deliveries to ${endpoints} endpoints: ${(((events * endpoints) / sent) * 1000).toFixed(0)} a second (${(sent / 1000).toFixed(1)} s)`,
  )
}

const latency = async (call: Call, receivers: Receivers): Promise<void> => {
  const took: number[] = []
  const answered: number[] = []
  receivers.took = (body) => {
    const event = JSON.parse(body) as { occurred_at: string }
    took.push(Date.now() - Date.parse(event.occurred_at))
  }
  receivers.count = 0
  const total = rate * seconds
  const begun = performance.now()
  const calls: Promise<void>[] = []
  for (let n = 0; n < total; n++) {
    const early = (n / rate) * 1000 - (performance.now() - begun)
    if (early > 1) await pause(early)
    const sent = performance.now()
    calls.push(
      call('/v1/groups', { name: `Group of ${begun} ${n}` }).then(() => {
        answered.push(performance.now() - sent)
      }),
    )
  }
  await Promise.all(calls)
  for (const end = Date.now() + 10_000; took.length < total && Date.now() < end;) await pause(20)
  receivers.took = () => {}
  const sorted = took.toSorted((a, b) => a - b)
  say(
    `${rate} events a second for ${seconds} s, from the event until its endpoint has it: median ${ms(percentile(sorted, 0.5))}, p99 ${ms(percentile(sorted, 0.99))}, worst ${ms(sorted.at(-1)!)} (${sorted.length} of ${total}; the calls took ${ms(
      percentile(
        answered.toSorted((a, b) => a - b),
        0.5,
      ),
    )}, p99 ${ms(
      percentile(
        answered.toSorted((a, b) => a - b),
        0.99,
      ),
    )})`,
  )
}

const claims = async (db: Db, ws: string): Promise<void> => {
  /** Median milliseconds of a claim that is taken back, and what it claimed. */
  const time = async (): Promise<[number, number]> => {
    const took: number[] = []
    let claimed = 0
    for (let n = 0; n < 21; n++) {
      const begun = performance.now()
      const leased = await claimDeliveries(db, 30, 8, new Map())
      took.push(performance.now() - begun)
      claimed = leased.length
      await releaseDeliveries(db, leased)
    }
    return [
      percentile(
        took.toSorted((a, b) => a - b),
        0.5,
      ),
      claimed,
    ]
  }
  const fill = (status: string, from: number, to: number) =>
    sql`
    insert into webhook_deliveries (workspace_id, id, endpoint_id, event_id, event_type, status, attempts, next_attempt_at, created_at, delivered_at)
    select ${ws}::bigint, 'dlv_' || ${status}::text || lpad(n::text, 18, '0'), e.id, 'evt_' || ${status}::text || lpad(n::text, 18, '0'), 'group.created/1', ${status}::text, 1,
      case when ${status}::text = 'pending' then now() end, now() - n * interval '1 millisecond', case when ${status}::text = 'delivered' then now() end
    from generate_series(${from}::int, ${to}::int) as n join lateral (select id from webhook_endpoints where workspace_id = ${ws} order by id offset n % ${endpoints}::int limit 1) as e on true`.execute(
      db,
    )
  const measure = async (name: string): Promise<void> => {
    await sql`vacuum analyze webhook_deliveries`.execute(db)
    const idle = await time()
    await fill('pending', 1, 2000)
    const busy = await time()
    await sql`delete from webhook_deliveries where status = 'pending'`.execute(db)
    say(
      `a claim with ${name}: ${ms(idle[0])} when nothing is due, ${ms(busy[0])} for ${busy[1]} deliveries of 2000 due`,
    )
  }
  await sql`truncate webhook_deliveries, webhook_attempts`.execute(db)
  await measure('an empty table')
  for (let n = 0; n < done; n += 100_000) await fill('delivered', n + 1, Math.min(done, n + 100_000))
  await measure(`${done} deliveries that are done`)
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
    fileURLToPath(new URL('../bin/wcrm.js', import.meta.url)),
    flags.profile,
  )
  try {
    const call = callWith(product.url, dataset.key)
    for (let n = 0; n < endpoints; n++)
      await call('/v1/webhooks/endpoints', { url: `${receivers.url}/${n}`, event_types: ['group.created/1'] })
    await throughput(db, ws, receivers)
    await throughput(db, ws, receivers)
    // One endpoint hears of the events that the API causes.
    await sql`delete from webhook_subscriptions where workspace_id = ${ws} and endpoint_id <> (select min(id) from webhook_endpoints where workspace_id = ${ws})`.execute(
      db,
    )
    await latency(call, receivers)
    await product.stop()
    await claims(db, ws)
  } finally {
    await product.stop()
    await receivers.close()
    await close()
  }
}

const storm = async (databaseUrl: string): Promise<void> => {
  const [events, hooks] = [20_000, 20]
  const dataDir = mkdtempSync(join(tmpdir(), 'wcrm-storm-'))
  const after = await weather(
    {
      location: { databaseUrl },
      flags: ['--database-url', databaseUrl, '--data', dataDir],
      remove: async () => {},
    },
    {
      events,
      endpoints: hooks,
      perSecond: 200,
      killEveryMs: 4000,
      trouble: { errors: 100, drops: 98, silences: 2 },
      longestMs: 3_600_000,
    },
  )
  rmSync(dataDir, { recursive: true, force: true })
  say(
    `${events} events to ${hooks} endpoints, ${after.kills} kills, ${((100 * after.troubled) / after.attempts).toFixed(0)} % of the answers bad: ${after.missing} missing, ${after.duplicates} taken twice ` +
      `(${((100 * after.duplicates) / (events * hooks)).toFixed(2)} %), ${after.unstable} with another id or body, ${after.unsigned} with a wrong signature, ${after.seconds.toFixed(0)} s`,
  )
}

const binaries = postgresBinaries()
if (!flags['database-url'] && !binaries)
  throw new Error(
    'no PostgreSQL of version 15 or newer is installed here; install one, or pass --database-url',
  )
const cluster = flags['database-url']
  ? undefined
  : await startCluster(binaries!, {
      shared_buffers: '512MB',
      max_wal_size: '8GB',
      checkpoint_timeout: '30min',
    })
try {
  const url = flags['database-url'] ?? cluster!.url
  for (const work of [
    benchmark,
    ...(flags.storm ? [(dataset: Dataset) => storm(dataset.databaseUrl)] : []),
  ]) {
    const dataset = await fillDatabase(url, 100)
    try {
      await work(dataset)
    } finally {
      await dropDatabase(url, dataset)
    }
  }
} finally {
  cluster?.stop()
}

import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import postgres from 'postgres'
import { findOperation } from '../../catalog/index.ts'
import type { App } from '../../server/app.ts'
import { createApp } from '../../server/create-app.ts'
import { createMetrics } from '../../server/metrics.ts'
import { createSecretRing } from '../../server/secret.ts'
import { perform } from '../../server/kernel/perform.ts'
import { createStaff, createWorkspace } from '../../storage/workspace/admin.ts'
import { migrate } from '../../storage/migrations/migrate.ts'
import { openStorage } from '../../storage/open.ts'
import { createBenchDatabase, createFullKey, dropBenchDatabase, withPostgres } from './databases.ts'
import { median } from './statistics.ts'

/**
 * Measures the cost of the audit trail: writes with and without it in alternating rounds of one run, without
 * HTTP. The target is for the processor time of a write, in this process and in PostgreSQL together, since
 * writes per second depend on the load of the machine; both are printed. Fails when the median of the rounds
 * is 15 % or more. Then measures the first page under each filter of a trail of `--rows` rows, in
 * milliseconds.
 */
const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '2' },
    flight: { type: 'string', default: '16' },
    rows: { type: 'string', default: '1000000' },
    'database-url': { type: 'string' },
  },
})
const [rounds, seconds, flight, rows] = [flags.rounds, flags.seconds, flags.flight, flags.rows].map(
  Number,
) as [number, number, number, number]
const MAX_CPU_RATIO = 1.15
const MAX_READ_MS = 250
/** The unit of the times in /proc. */
const CLOCK_TICK_MS = 10
const print = (text: string): void => void process.stdout.write(`${text}\n`)

const call = async (app: App, key: string, name: string, input: Record<string, unknown>): Promise<string> => {
  const response = await perform(app, {
    transport: 'rest',
    operation: findOperation(name),
    requestId: 'req_01JABCDEFGHJKMNPQRSTVWXYZ0',
    authorization: `Bearer ${key}`,
    address: undefined,
    input,
    client: 'bench/1.0',
    idempotencyKey: name === 'audit_list' ? undefined : randomUUID(),
  })
  if (response.status >= 300) throw new Error(`${name}: ${response.body}`)
  return response.body
}

type WriteRound = { perSecond: number; cpuMs: number }
type ReadCpuMs = () => Promise<number>

/**
 * Returns a reader of the processor time that this process and those of the database have used, in
 * milliseconds. Database processes on another machine are not included.
 */
const createCpuReader =
  (sql: postgres.Sql): ReadCpuMs =>
  async () => {
    const pids = await sql<
      { pid: number }[]
    >`select pid from pg_stat_activity where datname = current_database()`
    const ticks = pids
      .map(({ pid }) => `/proc/${pid}/stat`)
      .filter((file) => existsSync(file))
      .map((file) =>
        readFileSync(file, 'utf8')
          .replace(/^.*\) /, '')
          .split(' '),
      )
      .reduce((sum, fields) => sum + Number(fields[11]) + Number(fields[12]), 0)
    const { user, system } = process.cpuUsage()
    return ticks * CLOCK_TICK_MS + (user + system) / 1000
  }

/** Writes for `--seconds`, `--flight` calls at once. */
const runRound = async (readCpuMs: ReadCpuMs, write: () => Promise<unknown>): Promise<WriteRound> => {
  const cpuBefore = await readCpuMs()
  const startedAt = performance.now()
  const until = startedAt + seconds * 1000
  let count = 0
  await Promise.all(
    Array.from({ length: flight }, async () => {
      while (performance.now() < until) {
        await write()
        count++
      }
    }),
  )
  const perSecond = count / ((performance.now() - startedAt) / 1000)
  return { perSecond, cpuMs: ((await readCpuMs()) - cpuBefore) / count }
}

let nextPhone = 33_700_000_000

const writes: Record<string, (app: App, key: string, ids: readonly string[]) => Promise<unknown>> = {
  upsert: (app, key) =>
    call(app, key, 'crm_upsert_contact', { phone: `+${++nextPhone}`, name: 'Ada Lovelace', tags: ['new'] }),
  tag: (app, key, ids) =>
    call(app, key, 'crm_tag_contacts', {
      contact_ids: [ids[Math.floor(Math.random() * ids.length)]],
      tags: [`tag ${Math.floor(Math.random() * 500)}`],
    }),
}

/** Returns whether the target is met. */
const measureWrites = async (
  audited: App,
  unaudited: App,
  key: string,
  readCpuMs: ReadCpuMs,
): Promise<boolean> => {
  const ids: string[] = []
  for (let i = 0; i < 2000; i++)
    ids.push((JSON.parse((await writes['upsert']!(audited, key, [])) as string) as { id: string }).id)
  let isMet = true
  for (const [name, write] of Object.entries(writes)) {
    const pairs: { withIt: WriteRound; without: WriteRound }[] = []
    for (let n = -1; n < rounds; n++) {
      // The first one has colder caches.
      const order = n % 2 === 0 ? [audited, unaudited] : [unaudited, audited]
      const results = new Map<App, WriteRound>()
      for (const app of order) results.set(app, await runRound(readCpuMs, () => write(app, key, ids)))
      if (n >= 0) pairs.push({ withIt: results.get(audited)!, without: results.get(unaudited)! })
    }
    const medianOf = (side: 'withIt' | 'without', field: keyof WriteRound) =>
      median(pairs.map((pair) => pair[side][field]))
    const ratios = pairs.map(({ withIt, without }) => withIt.cpuMs / without.cpuMs)
    const ratio = median(ratios)
    isMet &&= ratio < MAX_CPU_RATIO
    print(
      `${name.padEnd(8)} with ${medianOf('withIt', 'cpuMs').toFixed(2)} ms of processor, ` +
        `without ${medianOf('without', 'cpuMs').toFixed(2)}: ` +
        `${ratio.toFixed(3)}${ratio < MAX_CPU_RATIO ? '' : ` MISSES ${MAX_CPU_RATIO}`} ` +
        `(${ratios.map((r) => r.toFixed(2)).join(' ')}); ` +
        `${medianOf('withIt', 'perSecond').toFixed(0)}/s and ` +
        `${medianOf('without', 'perSecond').toFixed(0)}/s`,
    )
  }
  return isMet
}

/**
 * Fills the trail over 400 days: fifty staff, one transport that is rarely used, one rare operation, one rare
 * key, and one refused call in a hundred.
 */
const fillAuditLog = async (sql: postgres.Sql, workspaceId: string): Promise<void> => {
  await sql`
    insert into audit_log (workspace_id, id, staff_id, key_id, door, client, operation, target_type,
      target_id, outcome, code, dry_run, confirmed, changes, request_id)
    select ${workspaceId}::bigint, (((extract(epoch
      from now()) * 1000)::bigint - (${rows}::bigint - n) *
        (34560000000 / ${rows}::bigint)) << 18) + n % 262144,
      1 + n % 50, 1 + n % 50 + case when n % 20000 = 7 then 50 else 0 end, case when n % 5000 = 3 then 'cli'
        else (array['rest', 'rest', 'ops', 'mcp'])[1 + n % 4] end, 'bench/1.0',
      case when n % 100000 = 5 then 'webhooks_rotate_secret'
        else (array['crm_upsert_contact', 'crm_tag_contacts', 'messaging_send_reply',
          'inbox_close_conversation'])[1 + (n / 7) % 4] end,
      'contact', (1 + n % 40000)::text, case when n % 100 = 0 then 'refused' when n % 10000 = 1 then 'failed'
        else 'done' end, null, n % 50 = 0, n % 30 = 0,
      '{"input":{"phone":"*******4567","name":"Ada Lovelace"},"result":{"action":"created"}}',
        'req_01JABCDEFGHJKMNPQRSTVWXYZ0'
    from generate_series(1::bigint, ${rows}::bigint) as n`
  // Fifty staff with two keys each; the first key exists already.
  await sql`
    insert into api_keys (workspace_id, id, hash, staff_id, scopes, api_version,
      created_at) overriding system value
    select ${workspaceId}::bigint, n, sha256(n::text::bytea), 1 + (n - 1) % 50, '{}', '2026-10-01', now()
      from generate_series(2, 100) as n`
  await sql`vacuum analyze audit_log, api_keys`
}

const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString()
const reads: Record<string, Record<string, unknown>> = {
  everything: {},
  staff: { staff_id: '7' },
  nobody: { staff_id: '999' },
  'a rare key': { key_id: '58' },
  'a rare operation': { operation: 'webhooks_rotate_secret' },
  'no operation': { operation: 'nothing' },
  target: { target_id: '777' },
  refused: { outcome: 'refused' },
  failed: { outcome: 'failed' },
  'a rare transport': { door: 'cli' },
  'a day of last year': { from: daysAgo(370), to: daysAgo(369) },
  'staff, a day long ago': { staff_id: '7', from: daysAgo(370), to: daysAgo(369) },
  'staff, refused (none)': { staff_id: '7', outcome: 'refused' },
  'staff, rare transport': { staff_id: '4', door: 'cli' },
  'operation, target': { operation: 'crm_tag_contacts', target_id: '777' },
  'transport, staff (none)': { door: 'mcp', staff_id: '7' },
  'key, operation': { key_id: '3', operation: 'crm_upsert_contact' },
  'all of them': {
    staff_id: '1',
    key_id: '1',
    operation: 'crm_upsert_contact',
    door: 'rest',
    outcome: 'refused',
    from: daysAgo(300),
    to: daysAgo(1),
  },
}

const measureReads = async (app: App, key: string): Promise<boolean> => {
  let isMet = true
  for (const [name, input] of Object.entries(reads)) {
    const times: number[] = []
    let rowCount = 0
    for (let i = 0; i < 12; i++) {
      const startedAt = performance.now()
      rowCount = (JSON.parse(await call(app, key, 'audit_list', input)) as { data: unknown[] }).data.length
      if (i >= 2) times.push(performance.now() - startedAt)
    }
    isMet &&= median(times) < MAX_READ_MS
    const ms = [median(times), Math.max(...times)].map((time) => time.toFixed(1).padStart(8))
    print(
      `${name.padEnd(24)} ${ms[0]} ms, worst ${ms[1]} ms, ${String(rowCount).padStart(3)} rows ` +
        (median(times) < MAX_READ_MS ? '' : `MISSES ${MAX_READ_MS}`),
    )
  }
  return isMet
}

const measure = async (adminUrl: string): Promise<void> => {
  const databaseUrl = await createBenchDatabase(adminUrl, 'audit')
  const storages = [await openStorage({ databaseUrl }), await openStorage({ databaseUrl })]
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  try {
    const db = storages[0]!.db
    await migrate(db)
    const now = new Date().toISOString()
    const { id } = await createWorkspace(db, { name: 'Bench' }, now)
    const staff = await createStaff(db, id, { name: 'Owner', role: 'owner' }, [], now)
    const key = await createFullKey(db, id, staff.id, now)
    const [audited, unaudited] = storages.map((storage, i) =>
      createApp({
        storage,
        secrets: createSecretRing(['a secret of at least sixteen']),
        log: pino({ level: 'warn' }),
        metrics: createMetrics(),
        config: { publicUrl: 'http://localhost', limitRead: 1e9, limitWrite: 1e9, audit: i === 0 },
      }),
    ) as [App, App]
    const writesMet = await measureWrites(audited, unaudited, key, createCpuReader(sql))
    if (rows > 0) await fillAuditLog(sql, id)
    const readsMet = rows > 0 ? await measureReads(audited, key) : true
    if (!writesMet || !readsMet) process.exitCode = 1
  } finally {
    await sql.end()
    for (const storage of storages) await storage.close()
    await dropBenchDatabase(adminUrl, { databaseUrl })
  }
}

await withPostgres(flags['database-url'], '512MB', measure)

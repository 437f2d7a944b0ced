import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import postgres from 'postgres'
import { currentVersion, findOperation, scopes } from '../catalog/index.ts'
import { postgresBinaries, startCluster } from '../scripts/cluster.ts'
import type { App } from '../server/core/app.ts'
import { createApp } from '../server/create-app.ts'
import { hashApiKey, createApiKey } from '../server/api-keys.ts'
import { createMetrics } from '../server/metrics.ts'
import { perform } from '../server/core/perform.ts'
import { createKey, createStaff, createWorkspace } from '../storage/admin.ts'
import { migrate, openStorage } from '../storage/open.ts'

/**
 * What the audit trail costs a write: with it and without it in alternating rounds of one run, without
 * HTTP. Judged is the processor time of a change, in this process and in PostgreSQL's together, since
 * changes a second follow whatever else the machine does; both are printed. Fails when the median of the
 * rounds is 15 % or more. Then the first page under each filter of a trail of `--rows` rows, in
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
const MOST = 1.15
const READ_MS = 250
/** Clock ticks of /proc, in milliseconds. */
const TICK_MS = 10
const say = (text: string): void => void process.stdout.write(`${text}\n`)
const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!

const call = async (app: App, key: string, name: string, input: Record<string, unknown>): Promise<string> => {
  const answer = await perform(app, {
    transport: 'rest',
    operation: findOperation(name),
    requestId: 'req_01JABCDEFGHJKMNPQRSTVWXYZ0',
    authorization: `Bearer ${key}`,
    input,
    client: 'bench/1.0',
    idempotencyKey: name === 'audit_list' ? undefined : randomUUID(),
  })
  if (answer.status >= 300) throw new Error(`${name}: ${answer.body}`)
  return answer.body
}

type Round = { perSecond: number; cpuMs: number }
type Spent = () => Promise<number>

/**
 * Processor time spent so far by this process and by the database's, in milliseconds; of the latter nothing
 * where they are out of sight.
 */
const spentBy =
  (sql: postgres.Sql): Spent =>
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
    return ticks * TICK_MS + (user + system) / 1000
  }

/** Changes for some seconds, `flight` of them at once. */
const round = async (spent: Spent, change: () => Promise<unknown>): Promise<Round> => {
  const before = await spent()
  const begun = performance.now()
  const until = begun + seconds * 1000
  let done = 0
  await Promise.all(
    Array.from({ length: flight }, async () => {
      while (performance.now() < until) {
        await change()
        done++
      }
    }),
  )
  const perSecond = done / ((performance.now() - begun) / 1000)
  return { perSecond, cpuMs: ((await spent()) - before) / done }
}

let phone = 33_700_000_000

const writes: Record<string, (app: App, key: string, ids: readonly string[]) => Promise<unknown>> = {
  upsert: (app, key) =>
    call(app, key, 'crm_upsert_contact', { phone: `+${++phone}`, name: 'Ada Lovelace', tags: ['new'] }),
  tag: (app, key, ids) =>
    call(app, key, 'crm_tag_contacts', {
      contact_ids: [ids[Math.floor(Math.random() * ids.length)]],
      tags: [`tag ${Math.floor(Math.random() * 500)}`],
    }),
}

const measureWrites = async (audited: App, bare: App, key: string, spent: Spent): Promise<boolean> => {
  const ids: string[] = []
  for (let i = 0; i < 2000; i++)
    ids.push((JSON.parse((await writes['upsert']!(audited, key, [])) as string) as { id: string }).id)
  let held = true
  for (const [name, write] of Object.entries(writes)) {
    const pairs: { withIt: Round; without: Round }[] = []
    for (let n = -1; n < rounds; n++) {
      // Whoever is first finds the caches colder.
      const order = n % 2 === 0 ? [audited, bare] : [bare, audited]
      const done = new Map<App, Round>()
      for (const app of order) done.set(app, await round(spent, () => write(app, key, ids)))
      if (n >= 0) pairs.push({ withIt: done.get(audited)!, without: done.get(bare)! })
    }
    const of = (side: 'withIt' | 'without', what: keyof Round) =>
      median(pairs.map((pair) => pair[side][what]))
    const ratios = pairs.map(({ withIt, without }) => withIt.cpuMs / without.cpuMs)
    const ratio = median(ratios)
    held &&= ratio < MOST
    say(
      `${name.padEnd(8)} with ${of('withIt', 'cpuMs').toFixed(2)} ms of processor, without ${of('without', 'cpuMs').toFixed(2)}: ${ratio.toFixed(3)}${ratio < MOST ? '' : ` MISSES ${MOST}`} (${ratios.map((r) => r.toFixed(2)).join(' ')}); ` +
        `${of('withIt', 'perSecond').toFixed(0)}/s and ${of('without', 'perSecond').toFixed(0)}/s`,
    )
  }
  return held
}

/**
 * A trail over 400 days: fifty staff, one door that few use, one operation and one key that are rare, and
 * one row in a hundred refused.
 */
const fill = async (sql: postgres.Sql, workspaceId: string): Promise<void> => {
  await sql`
    insert into audit_log (workspace_id, id, staff_id, key_id, door, client, operation, target_type, target_id, outcome, code, dry_run, confirmed, changes, request_id)
    select ${workspaceId}::bigint, (((extract(epoch from now()) * 1000)::bigint - (${rows}::bigint - n) * (34560000000 / ${rows}::bigint)) << 18) + n % 262144,
      1 + n % 50, 1 + n % 50 + case when n % 20000 = 7 then 50 else 0 end, case when n % 5000 = 3 then 'cli' else (array['rest', 'rest', 'ops', 'mcp'])[1 + n % 4] end, 'bench/1.0',
      case when n % 100000 = 5 then 'webhooks_rotate_secret' else (array['crm_upsert_contact', 'crm_tag_contacts', 'messaging_send_reply', 'inbox_close_conversation'])[1 + (n / 7) % 4] end,
      'contact', (1 + n % 40000)::text, case when n % 100 = 0 then 'refused' when n % 10000 = 1 then 'failed' else 'done' end, null, n % 50 = 0, n % 30 = 0,
      '{"input":{"phone":"*******4567","name":"Ada Lovelace"},"result":{"action":"created"}}', 'req_01JABCDEFGHJKMNPQRSTVWXYZ0'
    from generate_series(1::bigint, ${rows}::bigint) as n`
  // Fifty staff with two keys each; the first has hers.
  await sql`
    insert into api_keys (workspace_id, id, hash, staff_id, scopes, api_version, created_at) overriding system value
    select ${workspaceId}::bigint, n, sha256(n::text::bytea), 1 + (n - 1) % 50, '{}', '2026-10-01', now() from generate_series(2, 100) as n`
  await sql`vacuum analyze audit_log, api_keys`
}

const before = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString()
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
  'a rare door': { door: 'cli' },
  'a day of last year': { from: before(370), to: before(369) },
  'staff, a day long ago': { staff_id: '7', from: before(370), to: before(369) },
  'staff, refused (none)': { staff_id: '7', outcome: 'refused' },
  'staff, rare door': { staff_id: '4', door: 'cli' },
  'operation, target': { operation: 'crm_tag_contacts', target_id: '777' },
  'door, staff (none)': { door: 'mcp', staff_id: '7' },
  'key, operation': { key_id: '3', operation: 'crm_upsert_contact' },
  'all of them': {
    staff_id: '1',
    key_id: '1',
    operation: 'crm_upsert_contact',
    door: 'rest',
    outcome: 'refused',
    from: before(300),
    to: before(1),
  },
}

const measureReads = async (app: App, key: string): Promise<boolean> => {
  let held = true
  for (const [name, input] of Object.entries(reads)) {
    const times: number[] = []
    let n = 0
    for (let i = 0; i < 12; i++) {
      const begun = performance.now()
      n = (JSON.parse(await call(app, key, 'audit_list', input)) as { data: unknown[] }).data.length
      if (i >= 2) times.push(performance.now() - begun)
    }
    held &&= median(times) < READ_MS
    say(
      `${name.padEnd(24)} ${median(times).toFixed(1).padStart(8)} ms, worst ${Math.max(...times)
        .toFixed(1)
        .padStart(
          8,
        )} ms, ${String(n).padStart(3)} rows ${median(times) < READ_MS ? '' : `MISSES ${READ_MS}`}`,
    )
  }
  return held
}

const measure = async (url: string): Promise<boolean> => {
  const admin = postgres(url, { max: 1, onnotice: () => {} })
  const name = `bench_audit_${Date.now()}`
  await admin.unsafe(`create database ${name}`)
  const own = new URL(url)
  own.pathname = `/${name}`
  const storages = [
    await openStorage({ databaseUrl: own.href }),
    await openStorage({ databaseUrl: own.href }),
  ]
  const sql = postgres(own.href, { max: 1, onnotice: () => {} })
  try {
    const db = storages[0]!.db
    await migrate(db)
    const now = new Date().toISOString()
    const { id } = await createWorkspace(db, { name: 'Bench' }, now)
    const staff = await createStaff(db, id, { name: 'Owner', role: 'owner' }, [], now)
    const key = createApiKey(false)
    await createKey(
      db,
      id,
      hashApiKey(key),
      { staff_id: staff.id, scopes: [...scopes], api_version: currentVersion },
      now,
    )
    const [audited, bare] = storages.map((storage, i) =>
      createApp({
        storage,
        secret: 'a secret of at least sixteen',
        log: pino({ level: 'warn' }),
        metrics: createMetrics(),
        config: { publicUrl: 'http://localhost', limitRead: 1e9, limitWrite: 1e9, audit: i === 0 },
      }),
    ) as [App, App]
    const written = await measureWrites(audited, bare, key, spentBy(sql))
    if (rows > 0) await fill(sql, id)
    return [written, rows > 0 ? await measureReads(audited, key) : true].every(Boolean)
  } finally {
    await sql.end()
    for (const storage of storages) await storage.close()
    await admin.unsafe(`drop database ${name} with (force)`)
    await admin.end()
  }
}

const binaries = postgresBinaries()
if (!flags['database-url'] && !binaries)
  throw new Error('the benchmark needs PostgreSQL 15 or newer, or --database-url')
const cluster = flags['database-url'] ? undefined : await startCluster(binaries!)
try {
  if (!(await measure(flags['database-url'] ?? cluster!.url))) process.exitCode = 1
} finally {
  cluster?.stop()
}

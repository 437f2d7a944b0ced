import { createHmac } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { postgresBinaries, startCluster } from '../scripts/cluster.ts'
import { resolveProviderSettings, WEBHOOK_PATH } from '../server/provider/settings.ts'
import { type Dataset, dropDatabase, fillDatabase } from './data.ts'
import { startProduct } from './processes.ts'

/**
 * The provider's webhook with bodies of 1,000 updates: how long until they are stored and answered, when
 * they are new and when they come again, and how many a second are worked off. Beside it stand bare inserts
 * in the same run: of the stored rows, and of a message, its conversation and its event for each update.
 */
const { values: flags } = parseArgs({
  options: {
    updates: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '5' },
    contacts: { type: 'string', default: '20000' },
    'database-url': { type: 'string' },
    profile: { type: 'string' },
  },
})
const [updates, rounds] = [Number(flags.updates), Number(flags.rounds)]
const [NUMBER, ACCOUNT] = ['106540352242922', '102290129340398']
const secret = resolveProviderSettings({}, 'a secret for benchmarks only', '').appSecret
const say = (text: string): void => void process.stdout.write(`${text}\n`)

type Part = Record<string, unknown>
let serial = 0
const wamid = (): string => `wamid.HBgLMTU1NTAxMDAwNDIVAgASGBQzQTdDNEE${String(++serial).padStart(12, '0')}`
const seconds = (): string => String(Math.floor(Date.now() / 1000))
const bodyOf = (parts: Part): string =>
  JSON.stringify({
    object: 'whatsapp_business_account',
    entry: [
      {
        id: ACCOUNT,
        changes: [
          {
            field: 'messages',
            value: {
              messaging_product: 'whatsapp',
              metadata: { display_phone_number: '15550100001', phone_number_id: NUMBER },
              ...parts,
            },
          },
        ],
      },
    ],
  })
const messagesOf = (phones: readonly string[]): Part => ({
  contacts: phones.map((wa_id) => ({ profile: { name: `Customer ${wa_id}` }, wa_id })),
  messages: phones.map((from) => ({
    from,
    id: wamid(),
    timestamp: seconds(),
    type: 'text',
    text: { body: 'Hello! Is my order on its way? I have not heard of it since Monday.' },
  })),
})

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!

/** Milliseconds until the body is answered. */
const post = async (url: string, body: string): Promise<number> => {
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
  const begun = performance.now()
  const answer = await fetch(url + WEBHOOK_PATH, {
    method: 'POST',
    body,
    headers: { 'Content-Type': 'application/json', 'X-Hub-Signature-256': signature },
  })
  await answer.text()
  if (answer.status !== 200) throw new Error(`answered ${answer.status}`)
  return performance.now() - begun
}

const benchmark = async (dataset: Dataset): Promise<void> => {
  const sql = postgres(dataset.databaseUrl, {
    max: 2,
    onnotice: () => {},
    connection: { jit: 'off' } as never,
  })
  const ws = dataset.workspaceId
  await sql`update channels set provider_phone_number_id = ${NUMBER}, account_id = ${ACCOUNT} where workspace_id = ${ws}`
  await sql`create table bare_updates (like provider_updates including all)`
  await sql`create table bare_messages (like messages including all)`
  await sql`create table bare_conversations (like conversations including all)`
  await sql`create table bare_events (like events including all)`
  const product = await startProduct(
    dataset.databaseUrl,
    fileURLToPath(new URL('../bin/wcrm.js', import.meta.url)),
    flags.profile,
  )
  try {
    /** Milliseconds until nothing waits, from when the body was answered. */
    const settled = async (): Promise<number> => {
      const begun = performance.now()
      for (;;) {
        const [row] = await sql`select count(*)::int as n from provider_updates where state = 'waiting'`
        if (row!['n'] === 0) return performance.now() - begun
        await pause(20)
      }
    }
    const run = async (name: string, bodies: () => Promise<string> | string): Promise<string> => {
      const stored: number[] = []
      const rates: number[] = []
      let body = ''
      for (let n = 0; n <= rounds; n++) {
        body = await bodies()
        const ms = await post(product.url, body)
        const rest = await settled()
        // The first round warms up.
        if (n > 0) stored.push(ms)
        if (n > 0) rates.push(updates / ((ms + rest) / 1000))
      }
      say(
        `${name.padEnd(34)} answered in ${median(stored).toFixed(0).padStart(4)} ms (worst ${Math.max(...stored).toFixed(0)}), done ${median(rates).toFixed(0).padStart(5)} updates/s`,
      )
      return body
    }
    const phones = dataset.people.flatMap((p) => p.phone ?? []).slice(0, updates)
    const known = await run(`${updates} messages, known customers`, () => bodyOf(messagesOf(phones)))
    await run(`${updates} messages, ${updates / 10} customers`, () =>
      bodyOf(messagesOf(phones.map((_, n) => phones[n % Math.ceil(updates / 10)]!))),
    )
    let next = 0
    await run(`${updates} messages, new customers`, () =>
      bodyOf(messagesOf(phones.map(() => `1202${String(5_550_000 + next++).padStart(7, '0')}`))),
    )
    await run(`${updates} statuses`, async () => {
      const sent = await sql<{ provider_id: string }[]>`
        insert into messages (workspace_id, conversation_id, channel_id, direction, type, status, text, provider_id, created_at, sent_at)
        select workspace_id, id, channel_id, 'outbound', 'TEXT', 'sent', 'hi', 'wamid.out.' || gen_random_uuid(), now(), now() from conversations where workspace_id = ${ws} order by id limit ${updates} returning provider_id`
      return bodyOf({
        statuses: sent.map(({ provider_id: id }) => ({
          id,
          status: 'delivered',
          timestamp: seconds(),
          recipient_id: '15550100042',
        })),
      })
    })
    await duplicates(sql, product.url, known)
    await bare(sql, ws, known)
  } finally {
    await sql.end()
    await product.stop()
  }
}

const duplicates = async (sql: postgres.Sql, url: string, body: string): Promise<void> => {
  const look = () =>
    sql`select count(*)::int as n, max(xmin::text::bigint) as changed, (select count(*)::int from messages) as messages, (select count(*)::int from events) as events from provider_updates`
  const before = JSON.stringify(await look())
  const took: number[] = []
  for (let n = 0; n < 5; n++) took.push(await post(url, body))
  await pause(300)
  if (JSON.stringify(await look()) !== before) throw new Error('duplicates changed something')
  say(
    `${`${5 * updates} duplicates`.padEnd(34)} answered in ${median(took).toFixed(0).padStart(4)} ms (worst ${Math.max(...took).toFixed(0)}) a body, nothing changed`,
  )
}

/** What a program with nothing but the database would do with the same updates. */
const bare = async (sql: postgres.Sql, ws: string, body: string): Promise<void> => {
  const parsed = JSON.parse(body) as { entry: [{ changes: [{ value: { messages: { id: string }[] } }] }] }
  const rows = parsed.entry[0].changes[0].value.messages
  const stored: number[] = []
  const done: number[] = []
  for (let n = 0; n < rounds; n++) {
    let begun = performance.now()
    await sql`
      insert into bare_updates (dedupe, kind, payload, next_attempt_at, received_at)
      select u->>'id', 'message', u, now(), now() from jsonb_array_elements(${JSON.stringify(rows.map((row) => ({ ...row, id: `${row.id} ${n}` })))}::text::jsonb) as u`
    stored.push(performance.now() - begun)
    begun = performance.now()
    for (const [i, row] of rows.entries()) {
      await sql.begin(async (tx) => {
        const [v] =
          await tx`insert into bare_conversations (workspace_id, contact_id, state, created_at, updated_at) values (${ws}, ${i}, 'open', now(), now()) returning id`
        await tx`insert into bare_messages (workspace_id, conversation_id, direction, type, status, text, provider_id, created_at) values (${ws}, ${v!['id'] as string}, 'inbound', 'TEXT', 'received', 'hi', ${`${row.id} ${n}`}, now())`
        await tx`update bare_conversations set unread_count = 1, last_activity_at = now() where workspace_id = ${ws} and id = ${v!['id'] as string}`
        await tx`insert into bare_events (workspace_id, id, type, occurred_at, data) values (${ws}, ${`evt_${row.id}_${n}`}, 'message.received/1', now(), ${sql.json(row as never)})`
      })
    }
    done.push(updates / ((performance.now() - begun) / 1000))
  }
  say(
    `${'bare insert of the same rows'.padEnd(34)} took        ${median(stored).toFixed(0).padStart(4)} ms, one transaction an update ${median(done).toFixed(0).padStart(5)} updates/s`,
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
  const dataset = await fillDatabase(url, Number(flags.contacts))
  try {
    await benchmark(dataset)
  } finally {
    await dropDatabase(url, dataset)
  }
} finally {
  cluster?.stop()
}

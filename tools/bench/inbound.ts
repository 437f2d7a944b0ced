import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { resolveSandboxSettings, WEBHOOK_PATH } from '../../server/provider/settings.ts'
import { type Dataset, fillDatabase } from './data.ts'
import { dropBenchDatabase, withPostgres } from './databases.ts'
import { startProduct } from './processes.ts'
import { median } from './statistics.ts'

/**
 * Measures the provider's webhook with bodies of 1,000 updates: the time until they are stored and answered,
 * for new and for duplicate updates, and how many updates per second are applied. For comparison, in the same
 * run: bare inserts of the stored rows, and of a message, its conversation and its event for each update.
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
const secret = resolveSandboxSettings('a secret for benchmarks only', '').appSecret
const print = (text: string): void => void process.stdout.write(`${text}\n`)

type JsonObject = Record<string, unknown>
let messageCount = 0
const createMessageId = (): string =>
  `wamid.HBgLMTU1NTAxMDAwNDIVAgASGBQzQTdDNEE${String(++messageCount).padStart(12, '0')}`
const nowSeconds = (): string => String(Math.floor(Date.now() / 1000))
const createBody = (parts: JsonObject): string =>
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
const createMessages = (phones: readonly string[]): JsonObject => ({
  contacts: phones.map((wa_id) => ({ profile: { name: `Customer ${wa_id}` }, wa_id })),
  messages: phones.map((from) => ({
    from,
    id: createMessageId(),
    timestamp: nowSeconds(),
    type: 'text',
    text: { body: 'Hello! Is my order on its way? I have not heard of it since Monday.' },
  })),
})

/** Posts a signed body. Returns the milliseconds until the response. */
const post = async (url: string, body: string): Promise<number> => {
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
  const startedAt = performance.now()
  const response = await fetch(url + WEBHOOK_PATH, {
    method: 'POST',
    body,
    headers: { 'Content-Type': 'application/json', 'X-Hub-Signature-256': signature },
  })
  await response.text()
  if (response.status !== 200) throw new Error(`status ${response.status}`)
  return performance.now() - startedAt
}

const benchmark = async (dataset: Dataset): Promise<void> => {
  const sql = postgres(dataset.databaseUrl, {
    max: 2,
    onnotice: () => {},
    connection: { jit: 'off' } as never,
  })
  const ws = dataset.workspaceId
  await sql`update channels set provider_phone_number_id = ${NUMBER}, account_id = ${ACCOUNT}
    where workspace_id = ${ws}`
  await sql`create table bare_updates (like provider_updates including all)`
  await sql`create table bare_messages (like messages including all)`
  await sql`create table bare_conversations (like conversations including all)`
  await sql`create table bare_events (like events including all)`
  const product = await startProduct(
    dataset.databaseUrl,
    fileURLToPath(new URL('../../bin/wcrm.js', import.meta.url)),
    flags.profile,
  )
  try {
    /** Waits until all updates are applied. Returns milliseconds. */
    const waitUntilApplied = async (): Promise<number> => {
      const startedAt = performance.now()
      for (;;) {
        const [row] = await sql`select count(*)::int as n from provider_updates where state = 'waiting'`
        if (row!['n'] === 0) return performance.now() - startedAt
        await sleep(20)
      }
    }
    const run = async (name: string, bodies: () => Promise<string> | string): Promise<string> => {
      const responseTimes: number[] = []
      const rates: number[] = []
      let body = ''
      for (let n = 0; n <= rounds; n++) {
        body = await bodies()
        const ms = await post(product.url, body)
        const applyMs = await waitUntilApplied()
        // The first round is a warm-up.
        if (n > 0) responseTimes.push(ms)
        if (n > 0) rates.push(updates / ((ms + applyMs) / 1000))
      }
      print(
        `${name.padEnd(34)} answered in ${median(responseTimes).toFixed(0).padStart(4)} ms ` +
          `(worst ${Math.max(...responseTimes).toFixed(0)}), ` +
          `done ${median(rates).toFixed(0).padStart(5)} updates/s`,
      )
      return body
    }
    const phones = dataset.people.flatMap((p) => p.phone ?? []).slice(0, updates)
    const known = await run(`${updates} messages, known customers`, () => createBody(createMessages(phones)))
    await run(`${updates} messages, ${updates / 10} customers`, () =>
      createBody(createMessages(phones.map((_, n) => phones[n % Math.ceil(updates / 10)]!))),
    )
    let next = 0
    await run(`${updates} messages, new customers`, () =>
      createBody(createMessages(phones.map(() => `1202${String(5_550_000 + next++).padStart(7, '0')}`))),
    )
    await run(`${updates} statuses`, async () => {
      const sent = await sql<{ provider_id: string }[]>`
        insert into messages (workspace_id, conversation_id, channel_id, direction, type, status, text,
          provider_id, created_at, sent_at)
        select workspace_id, id, channel_id, 'outbound', 'TEXT', 'sent', 'hi',
          'wamid.out.' || gen_random_uuid(), now(), now() from conversations where workspace_id = ${ws}
            order by id limit ${updates} returning provider_id`
      return createBody({
        statuses: sent.map(({ provider_id: id }) => ({
          id,
          status: 'delivered',
          timestamp: nowSeconds(),
          recipient_id: '15550100042',
        })),
      })
    })
    await measureDuplicates(sql, product.url, known)
    await measureBareInserts(sql, ws, known)
  } finally {
    await sql.end()
    await product.stop()
  }
}

/** Posts a body again, which must change no row. */
const measureDuplicates = async (sql: postgres.Sql, url: string, body: string): Promise<void> => {
  const readState = () =>
    sql`select count(*)::int as n, max(xmin::text::bigint) as changed, (select count(*)::int
      from messages) as messages, (select count(*)::int from events) as events from provider_updates`
  const before = JSON.stringify(await readState())
  const times: number[] = []
  for (let n = 0; n < 5; n++) times.push(await post(url, body))
  await sleep(300)
  if (JSON.stringify(await readState()) !== before) throw new Error('duplicates changed rows')
  print(
    `${`${5 * updates} duplicates`.padEnd(34)} answered in ${median(times).toFixed(0).padStart(4)} ms ` +
      `(worst ${Math.max(...times).toFixed(0)}) a body, nothing changed`,
  )
}

/** Measures what a program without the product would write for the same updates. */
const measureBareInserts = async (sql: postgres.Sql, ws: string, body: string): Promise<void> => {
  const parsed = JSON.parse(body) as { entry: [{ changes: [{ value: { messages: { id: string }[] } }] }] }
  const rows = parsed.entry[0].changes[0].value.messages
  const storeTimes: number[] = []
  const rates: number[] = []
  for (let n = 0; n < rounds; n++) {
    let startedAt = performance.now()
    const payload = JSON.stringify(rows.map((row) => ({ ...row, id: `${row.id} ${n}` })))
    await sql`
      insert into bare_updates (dedupe, kind, payload, next_attempt_at, received_at)
      select u->>'id', 'message', u, now(), now()
      from jsonb_array_elements(${payload}::text::jsonb) as u`
    storeTimes.push(performance.now() - startedAt)
    startedAt = performance.now()
    for (const [i, row] of rows.entries()) {
      await sql.begin(async (tx) => {
        const [conversation] = await tx<{ id: string }[]>`
          insert into bare_conversations (workspace_id, contact_id, state, created_at, updated_at)
          values (${ws}, ${i}, 'open', now(), now()) returning id`
        const { id } = conversation!
        await tx`
          insert into bare_messages
            (workspace_id, conversation_id, direction, type, status, text, provider_id, created_at)
          values (${ws}, ${id}, 'inbound', 'TEXT', 'received', 'hi', ${`${row.id} ${n}`}, now())`
        await tx`
          update bare_conversations set unread_count = 1, last_activity_at = now()
          where workspace_id = ${ws} and id = ${id}`
        await tx`
          insert into bare_events (workspace_id, id, type, occurred_at, data)
          values (${ws}, ${`evt_${row.id}_${n}`}, 'message.received/1', now(), ${sql.json(row as never)})`
      })
    }
    rates.push(updates / ((performance.now() - startedAt) / 1000))
  }
  print(
    `${'bare insert of the same rows'.padEnd(34)} took        ` +
      `${median(storeTimes).toFixed(0).padStart(4)} ms, ` +
      `one transaction an update ${median(rates).toFixed(0).padStart(5)} updates/s`,
  )
}

await withPostgres(flags['database-url'], '512MB', async (adminUrl) => {
  const dataset = await fillDatabase(adminUrl, Number(flags.contacts))
  try {
    await benchmark(dataset)
  } finally {
    await dropBenchDatabase(adminUrl, dataset)
  }
})

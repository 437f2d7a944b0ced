import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import { resolveSandboxSettings, WEBHOOK_PATH } from '../../server/provider/settings.ts'
import { fillDatabase } from './data.ts'
import { dropBenchDatabase } from './databases.ts'
import { startProduct } from './processes.ts'

/** Bytes of tables and of their indexes; `rows`: of the table that names the group. */
export type GroupSize = { rows: number; bytes: number; indexBytes: number }
/**
 * What was measured with so many contacts. `wal`: bytes of the write-ahead log for one change of a contact over REST
 * and for one message of a customer, both with their share of full pages after one checkpoint. `kept`: bytes in the
 * tables with a retention for one of each. `vacuumSecondsPerGb`: of a vacuum that visits every page and index.
 */
export type Measurement = {
  contacts: number
  measured: string
  groups: Record<GroupName, GroupSize>
  wal: { change: number; message: number }
  kept: { event: number; audit: number; response: number; update: number }
  vacuumSecondsPerGb: number
}

const GROUPS = {
  contacts: ['contacts', 'contact_facts', 'contact_attributes', 'contact_tags', 'contact_groups'],
  conversations: [
    'conversations',
    'conversation_episodes',
    'reply_waits',
    'conversation_tags',
    'contact_exchanges',
  ],
  messages: ['messages', 'message_reactions', 'broadcast_recipients'],
} as const
export type GroupName = keyof typeof GROUPS

const CHANGES = 2000
const MESSAGES_PER_BODY = 1000
const BODIES = 5
const [NUMBER, ACCOUNT] = ['106540352242922', '102290129340398']

type Size = { bytes: number; index_bytes: number }

const readSize = async (sql: postgres.Sql, tables: readonly string[]): Promise<Size> => {
  const [row] = await sql<Size[]>`
    select sum(pg_total_relation_size(relid))::float8 as bytes,
      sum(pg_indexes_size(relid))::float8 as index_bytes
    from (
      select name::regclass as relid from unnest(${tables as string[]}::text[]) as name
      union select leaf.relid from unnest(${tables as string[]}::text[]) as name,
        pg_partition_tree(name::regclass) as leaf
    ) as relations`
  return row!
}

const readGroups = async (sql: postgres.Sql): Promise<Record<GroupName, GroupSize>> => {
  const entries = Object.entries(GROUPS).map(async ([name, tables]) => {
    const { bytes, index_bytes: indexBytes } = await readSize(sql, tables)
    const [row] = await sql<{ n: number }[]>`select count(*)::float8 as n from ${sql(name)}`
    return [name, { rows: row!.n, bytes, indexBytes }] as const
  })
  return Object.fromEntries(await Promise.all(entries)) as Record<GroupName, GroupSize>
}

const readWalBytes = async (sql: postgres.Sql): Promise<number> => {
  const [row] = await sql<
    { bytes: number }[]
  >`select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes`
  return row!.bytes
}

/** Returns the bytes of the log that `work` wrote. */
const countWal = async (sql: postgres.Sql, work: () => Promise<void>): Promise<number> => {
  await sql`checkpoint`
  const before = await readWalBytes(sql)
  await work()
  return (await readWalBytes(sql)) - before
}

/** Sets a value of so many different contacts, sixteen calls at once. */
const changeContacts = async (url: string, key: string, ids: readonly string[]): Promise<void> => {
  const queue = ids.values()
  const worker = async (): Promise<void> => {
    for (const id of queue) {
      const answer = await fetch(`${url}/v1/contacts/${id}`, {
        method: 'PATCH',
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ name: `Customer ${id}` }),
      })
      if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
      await answer.body?.cancel()
    }
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}

const createBody = (phones: readonly string[], round: number): string =>
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
              contacts: phones.map((phone) => ({ profile: { name: 'Customer' }, wa_id: phone })),
              messages: phones.map((from, n) => ({
                from,
                id: `wamid.HBgLMTU1NTAxMDAwNDIVAgASGBQzQTdDNEE${round}${String(n).padStart(8, '0')}`,
                timestamp: String(Math.floor(Date.now() / 1000)),
                type: 'text',
                text: { body: 'Hello! Is my order on its way? I have not heard of it since Monday.' },
              })),
            },
          },
        ],
      },
    ],
  })

/** Sends messages of customers to the webhook, and waits until they are applied. */
const receiveMessages = async (sql: postgres.Sql, url: string, phones: readonly string[]): Promise<void> => {
  const secret = resolveSandboxSettings('a secret for benchmarks only', '').appSecret
  for (let round = 0; round < BODIES; round++) {
    const body = createBody(phones.slice(round * MESSAGES_PER_BODY, (round + 1) * MESSAGES_PER_BODY), round)
    const answer = await fetch(url + WEBHOOK_PATH, {
      method: 'POST',
      body,
      headers: {
        'Content-Type': 'application/json',
        'X-Hub-Signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
      },
    })
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
  }
  for (;;) {
    const [row] = await sql`select count(*)::int as n from provider_updates where state = 'waiting'`
    if (row!['n'] === 0) return
    await sleep(50)
  }
}

/** Returns the bytes and rows that `work` added to tables. */
const countGrowth = async (
  sql: postgres.Sql,
  tables: readonly string[],
  work: () => Promise<void>,
): Promise<{ bytes: number; rows: number }[]> => {
  const read = () =>
    Promise.all(
      tables.map(async (table) => {
        const { bytes } = await readSize(sql, [table])
        const [row] = await sql<{ n: number }[]>`select count(*)::float8 as n from ${sql(table)}`
        return { bytes, rows: row!.n }
      }),
    )
  const before = await read()
  await work()
  return (await read()).map((after, i) => ({
    bytes: after.bytes - before[i]!.bytes,
    rows: after.rows - before[i]!.rows,
  }))
}

const perRow = ({ bytes, rows }: { bytes: number; rows: number }): number => Math.round(bytes / rows)

/** Fills a database with so many contacts, and measures what they and further changes take. */
export const measureCapacity = async (adminUrl: string, contacts: number): Promise<Measurement> => {
  const dataset = await fillDatabase(adminUrl, contacts)
  const sql = postgres(dataset.databaseUrl, { max: 2, onnotice: () => {} })
  const wal = { change: 0, message: 0 }
  try {
    const groups = await readGroups(sql)
    await sql`update channels set provider_phone_number_id = ${NUMBER}, account_id = ${ACCOUNT}`
    const launcher = fileURLToPath(new URL('../../bin/wcrm.js', import.meta.url))
    const product = await startProduct(dataset.databaseUrl, launcher)
    const tables = ['events', 'audit_log', 'idempotency', 'provider_updates']
    const people = dataset.people.filter(({ phone }) => phone !== null)
    try {
      const [event, audit, response, update] = await countGrowth(sql, tables, async () => {
        const ids = people.slice(0, CHANGES).map(({ id }) => id)
        wal.change = Math.round(
          (await countWal(sql, () => changeContacts(product.url, dataset.key, ids))) / CHANGES,
        )
        const phones = people.slice(CHANGES, CHANGES + BODIES * MESSAGES_PER_BODY).map((p) => p.phone!)
        const bytes = await countWal(sql, () => receiveMessages(sql, product.url, phones))
        wal.message = Math.round(bytes / phones.length)
      })
      await product.stop()
      const startedAt = performance.now()
      await sql.unsafe(`vacuum (disable_page_skipping, index_cleanup on) ${Object.values(GROUPS).flat()}`)
      const seconds = (performance.now() - startedAt) / 1000
      const gigabytes = Object.values(groups).reduce((sum, { bytes }) => sum + bytes, 0) / 1e9
      return {
        contacts,
        measured: new Date().toISOString().slice(0, 10),
        groups,
        wal,
        kept: {
          event: perRow(event!),
          audit: perRow(audit!),
          response: perRow(response!),
          update: perRow(update!),
        },
        vacuumSecondsPerGb: Math.round((seconds / gigabytes) * 10) / 10,
      }
    } finally {
      await product.stop()
    }
  } finally {
    await sql.end()
    await dropBenchDatabase(adminUrl, dataset)
  }
}

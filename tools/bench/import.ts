import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { countries } from '../../server/demo/countries.ts'
import { pick, type Random, createRandom, randomInt } from '../../server/demo/random.ts'
import { type Dataset, fillDatabase } from './data.ts'
import { dropBenchDatabase, withPostgres } from './databases.ts'
import { readResidentMemoryMb, startProduct } from './processes.ts'

/**
 * Measures imports over REST and a bare insert of the same rows into the same indexed tables, in alternating
 * rounds. Prints rows per second and the ratio.
 */
const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '100000' },
    batch: { type: 'string', default: '500' },
    flight: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '5' },
    again: { type: 'boolean', default: false },
    'database-url': { type: 'string' },
    profile: { type: 'string' },
  },
})
const [total, batch, flight, rounds] = [
  Number(flags.rows),
  Number(flags.batch),
  Number(flags.flight),
  Number(flags.rounds),
]
const print = (text: string): void => void process.stderr.write(`${text}\n`)

/** Each row has one of the first 40 tags, and one of the next 40. */
const TAG_COUNT = 40
const fields = [
  { key: 'town', type: 'text' },
  {
    key: 'level',
    type: 'select',
    options: ['free', 'pro', 'gold'].map((value) => ({ label: value, value })),
  },
  { key: 'visits', type: 'int' },
  { key: 'joined', type: 'date' },
  { key: 'active', type: 'boolean' },
] as const

/** Returns a row of an import with five values and two tags. `n` determines its phone. */
const createRow = (random: Random, n: number) => {
  const { given, family, cities } = pick(random, countries)
  return {
    phone: `+15${String(500_000_000 + n).padStart(9, '0')}`,
    name: `${pick(random, given)} ${pick(random, family)}`,
    attributes: {
      town: pick(random, cities),
      level: pick(random, ['free', 'pro', 'gold']),
      visits: randomInt(random, 200),
      joined: `20${10 + randomInt(random, 16)}-0${1 + randomInt(random, 9)}-1${randomInt(random, 10)}`,
      active: random() < 0.5,
    },
    tags: [`Tag ${randomInt(random, TAG_COUNT)}`, `Tag ${TAG_COUNT + randomInt(random, TAG_COUNT)}`],
  }
}
type ImportRow = ReturnType<typeof createRow>

/** Processes the batches, `--flight` of them at a time. Returns the seconds that it took. */
const measureSeconds = async (
  batches: readonly ImportRow[][],
  work: (rows: ImportRow[]) => Promise<void>,
): Promise<number> => {
  const startedAt = performance.now()
  const remaining = [...batches]
  await Promise.all(
    Array.from({ length: flight }, async () => {
      for (let rows = remaining.pop(); rows; rows = remaining.pop()) await work(rows)
    }),
  )
  return (performance.now() - startedAt) / 1000
}

const createBareInsert =
  (sql: postgres.Sql, workspaceId: string, fieldIds: readonly string[]) =>
  async (rows: ImportRow[]): Promise<void> => {
    const now = new Date().toISOString()
    const facts = rows.map(({ attributes: { town, level, visits, joined, active } }) =>
      JSON.stringify(
        Object.fromEntries([town, level, visits, joined, active].map((value, i) => [fieldIds[i]!, value])),
      ),
    )
    const column = <T>(value: (row: ImportRow) => T) => rows.map(value)
    await sql`
    with u as materialized (
      select nextval(pg_get_serial_sequence('contacts', 'id')) as id, x.* from unnest(
        ${column((r) => r.phone.slice(1))}::text[], ${column((r) => r.name)}::text[],
          ${column((r) => r.name.toLowerCase())}::text[], ${facts}::text[],
        ${column((r) => r.attributes.town.toLowerCase())}::text[],
          ${column((r) => r.attributes.level)}::text[], ${column((r) => r.attributes.visits)}::int[],
            ${column((r) => r.attributes.joined)}::text[],
        ${column((r) => String(r.attributes.active))}::text[],
          ${column((r) => r.tags[0]!.slice(4))}::bigint[], ${column((r) => r.tags[1]!.slice(4))}::bigint[]
      ) as x (phone, name, key, attrs, town, level, visits, joined, active, tag_1, tag_2)
    ), c as (
      insert into contacts (workspace_id, id, phone, name, name_key, search, created_at, updated_at)
      select ${workspaceId}::bigint, id, phone, name, key, key || chr(10) || phone, ${now}::timestamptz,
        ${now}::timestamptz from u
    ), f as (
      insert into contact_facts (workspace_id, contact_id, attrs)
        select ${workspaceId}::bigint, id, attrs::jsonb from u
    ), t as (
      insert into contact_tags (workspace_id, tag_id, contact_id) select ${workspaceId}::bigint, tag, id
        from u, unnest(array[tag_1, tag_2]) as tag
    )
    insert into contact_attributes (workspace_id, contact_id, field_id, text_key, free, number_value,
      bool_value, time_value)
    select ${workspaceId}::bigint, id, v.* from u, lateral (values
      (${fieldIds[0]!}::bigint, town, true, null::numeric, null::boolean, null::timestamptz),
        (${fieldIds[1]!}::bigint, level, false, null, null, null),
          (${fieldIds[2]!}::bigint, null, false, visits, null, null),
      (${fieldIds[3]!}::bigint, null, false, null, null, joined::timestamptz),
        (${fieldIds[4]!}::bigint, null, false, null, active::boolean, null)) as v`
  }

const createCall =
  (url: string, key: string) =>
  async (path: string, body: unknown): Promise<Record<string, unknown>> => {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text.slice(0, 500)}`)
    return JSON.parse(text) as Record<string, unknown>
  }

/** Requires that no row or related row is missing or duplicated. */
const requireAllRows = async (
  sql: postgres.Sql,
  workspaceId: string,
  fieldIds: readonly string[],
  before: number,
): Promise<void> => {
  const [counts] = await sql`
    select (select count(*) from contacts
      where workspace_id = ${workspaceId})::int - ${before}::int as contacts,
      (select sum(n) from counters where workspace_id = ${workspaceId}
        and subject = 'contacts')::int - ${before}::int as counted,
      (select count(*) from contact_attributes where workspace_id = ${workspaceId}
        and field_id = any(${fieldIds}::bigint[]))::int / 5 as attributes,
      (select count(*) from events where workspace_id = ${workspaceId}
        and type = 'contact.created/1')::int as created,
      (select sum(k.n) from counters k join tags t on k.subject = 'tag:' || t.id
        and t.workspace_id = k.workspace_id where k.workspace_id = ${workspaceId}
          and t.name ~ '^Tag \\d+$')::int / 2 as tagged`
  for (const [name, count] of Object.entries(counts!))
    if (count !== total) throw new Error(`${name}: ${String(count)} instead of ${total}`)
}

const benchmark = async (dataset: Dataset): Promise<void> => {
  const product = await startProduct(
    dataset.databaseUrl,
    fileURLToPath(new URL('../../bin/wcrm.js', import.meta.url)),
    flags.profile,
  )
  const sql = postgres(dataset.databaseUrl, {
    max: flight,
    onnotice: () => {},
    connection: { jit: 'off' } as never,
  })
  let maxMemoryMb = 0
  const interval = setInterval(() => {
    maxMemoryMb = Math.max(maxMemoryMb, readResidentMemoryMb(product.pid) ?? 0)
  }, 250)
  try {
    const call = createCall(product.url, dataset.key)
    const fieldIds: string[] = []
    for (const field of fields) fieldIds.push((await call('/v1/custom-fields', field))['id'] as string)
    const random = createRandom(1)
    const rows = Array.from({ length: total }, (_, n) => createRow(random, n))
    const batches = Array.from({ length: Math.ceil(total / batch) }, (_, i) =>
      rows.slice(i * batch, (i + 1) * batch),
    )
    const send = async (part: ImportRow[]) => {
      const { succeeded } = await call('/v1/contacts/import', { rows: part })
      if (succeeded !== part.length) throw new Error(`${String(succeeded)} of ${part.length} rows succeeded`)
    }
    const sides = [
      { name: 'product', work: send, seconds: 0 },
      { name: 'bare insert', work: createBareInsert(sql, '999', fieldIds), seconds: 0 },
    ]
    const perRound = Math.ceil(batches.length / rounds)
    for (let at = 0; at < batches.length; at += perRound) {
      for (const side of sides) {
        const seconds = await measureSeconds(batches.slice(at, at + perRound), side.work)
        side.seconds += seconds
        const { length } = batches.slice(at, at + perRound).flat()
        print(`${side.name.padEnd(12)} ${Math.round(length / seconds)} rows/s`)
      }
    }
    await requireAllRows(sql, dataset.workspaceId, fieldIds, dataset.contacts)
    const [productRate, bareRate] = sides.map(({ seconds }) => total / seconds) as [number, number]
    process.stdout.write(
      `${total} rows, ${batch} a call, ${flight} calls in flight: ` +
        `product ${Math.round(productRate)} rows/s, bare insert ${Math.round(bareRate)} rows/s, ` +
        `ratio ${(productRate / bareRate).toFixed(2)}; memory at most ${maxMemoryMb.toFixed(0)} MB\n`,
    )
    if (!flags.again) return
    const unchangedRate = total / (await measureSeconds(batches, send))
    process.stdout.write(`the same rows again, all unchanged: ${Math.round(unchangedRate)} rows/s\n`)
    const changed = batches.map((part) =>
      part.map((row) => ({
        ...row,
        attributes: { ...row.attributes, visits: row.attributes.visits + 1 },
        tags: [...row.tags, 'Again'],
      })),
    )
    const changedRate = total / (await measureSeconds(changed, send))
    process.stdout.write(`with another value and one more tag: ${Math.round(changedRate)} rows/s\n`)
  } finally {
    clearInterval(interval)
    await sql.end()
    await product.stop()
  }
}

await withPostgres(flags['database-url'], '512MB', async (adminUrl) => {
  const dataset = await fillDatabase(adminUrl, 1000)
  try {
    await benchmark(dataset)
  } finally {
    await dropBenchDatabase(adminUrl, dataset)
  }
})

import { setTimeout } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import postgres from 'postgres'
import { type BenchCase, type CaseSide, fillRequest } from './cases.ts'
import type { Servers } from './comparison.ts'
import type { WrkRequest } from './wrk.ts'

type Json = Record<string, unknown>

const send = async (url: string, { method = 'GET', path, headers = {}, body }: WrkRequest): Promise<Json> => {
  const response = await fetch(url + path, { method, headers, ...(body ? { body } : {}) })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 500)}`)
  return JSON.parse(text) as Json
}

/** Cursors are sealed by the product; what outsiders wrote is named over MCP alone. */
const withoutCursor = ({ untrusted_fields: _untrusted, ...body }: Json): Json =>
  typeof body['next_cursor'] === 'string' ? { ...body, next_cursor: 'a cursor' } : body

/** The ids of a page: what both sides of a case show where one shows fewer fields. */
const toIds = ({ data }: Json): Json => ({ data: (data as { id: string }[]).map(({ id }) => id) })

/** Values that differ between two writes: ids, times, phones, counts. Only their form is compared. */
const toForm = (text: string): string =>
  text
    .replaceAll(/"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"/g, '"time"')
    .replaceAll(/"\d+"/g, '"digits"')
    .replaceAll(/:\d+/g, ':0')

const assertSame = (name: string, product: Json, other: Json, isForm: boolean): void => {
  const [a, b] = [product, other].map((body) => {
    const text = JSON.stringify(withoutCursor(body))
    return isForm ? toForm(text) : text
  }) as [string, string]
  if (a === b) return
  const at = [...a].findIndex((character, i) => character !== b[i])
  const from = Math.max(0, at - 60)
  throw new Error(
    `${name}: the two servers answer differently at character ${at}:\n` +
      `product ${a.slice(from, from + 300)}\nbare    ${b.slice(from, from + 300)}`,
  )
}

/** Counts what the cases write. */
const countRows = async (sql: postgres.Sql, workspaceId: string): Promise<Json> => {
  const tables = ['contacts', 'contact_tags', 'events', 'audit_log', 'idempotency', 'webhook_deliveries']
  const counts = tables.map(
    (table) => `(select count(*) from ${table} where workspace_id = $1)::int as ${table}`,
  )
  const [row] = await sql.unsafe(
    `select ${counts.join(', ')},
      (select sum(n) from counters where workspace_id = $1)::int as counters,
      (select count(*) from contacts where workspace_id = $1
        and updated_at > now() - interval '1 hour' and created_at < updated_at)::int as updated`,
    [workspaceId],
  )
  return row as Json
}

/** Counts when the last requests of the round before have been committed. */
const countSettled = async (sql: postgres.Sql, workspaceId: string): Promise<Json> => {
  let counts = await countRows(sql, workspaceId)
  for (;;) {
    await setTimeout(100)
    const again = await countRows(sql, workspaceId)
    if (isDeepStrictEqual(counts, again)) return again
    counts = again
  }
}

const subtract = (after: Json, before: Json): Json =>
  Object.fromEntries(Object.entries(after).map(([table, n]) => [table, Number(n) - Number(before[table])]))

/**
 * Sends the first request of a case to both servers. Throws when their bodies differ, or when a write does
 * not write the same rows. Over MCP the body is that of the REST API, in an envelope.
 */
export const requireSameAnswers = async (
  { name, product, other, writes, varies, slim }: BenchCase,
  servers: Servers,
  database: { databaseUrl: string; workspaceId: string },
): Promise<void> => {
  // Outside the range of numbers that the rounds use.
  const { base, rows = 1 } = writes ?? { base: 0 }
  const n = rows > 1 ? 199 * rows : base - 2
  const sendFirst = ({ server, requests: [first] }: CaseSide, number: number): Promise<Json> =>
    send(servers[server]!.url, writes ? fillRequest(first!, number, rows) : first!)
  const sendBoth = async (onSent: () => Promise<void>): Promise<void> => {
    const ours = await sendFirst(product, n)
    await onSent()
    const theirs = await sendFirst(other, n + 1)
    const result = ours['result'] as Json | undefined
    const answer = (result?.['structuredContent'] as Json | undefined) ?? ours
    if (slim) assertSame(name, toIds(answer), toIds(theirs), false)
    else assertSame(name, answer, theirs, Boolean(writes ?? varies))
  }
  if (!writes) return await sendBoth(async () => {})
  const sql = postgres(database.databaseUrl, { max: 1, onnotice: () => {} })
  try {
    const count = () => countSettled(sql, database.workspaceId)
    const before = await count()
    let between = before
    await sendBoth(async () => void (between = await count()))
    const [ours, theirs] = [subtract(between, before), subtract(await count(), between)]
    if (!isDeepStrictEqual(ours, theirs))
      throw new Error(
        `${name}: the two servers write different rows: ${JSON.stringify(ours)}, ${JSON.stringify(theirs)}`,
      )
  } finally {
    await sql.end()
  }
}

import { usage } from './fault.ts'
import type { Io } from './io.ts'
import type { CommandSpec } from './manifest.ts'
import { allPages } from './pages.ts'
import type { Connection } from './remote.ts'

type Row = Readonly<Record<string, unknown>>
type Attribute = { readonly key: string; readonly display: string | null }

const named = (value: unknown): string => Array.isArray(value) ? value.map((item: { name?: unknown }) => String(item.name ?? '')).join(', ') : ''

/** Cells of one contact by column, in the order of the columns. */
const cellsOf = (row: Row): Map<string, string> => {
  const plain = ['id', 'name', 'phone', 'email', 'dnd', 'starred', 'created_at', 'updated_at', 'last_activity_at', 'chatapp_user_id', 'web_visitor_id']
  const cells = new Map(plain.map((name) => [name, row[name] === null || row[name] === undefined ? '' : String(row[name])]))
  cells.set('tags', named(row['tags'])).set('groups', named(row['groups']))
  for (const { key, display } of (row['attributes'] ?? []) as Attribute[]) if (key !== 'email') cells.set(`attributes.${key}`, display ?? '')
  return cells
}

/** RFC 4180. Control characters that a terminal would obey are left out. What a spreadsheet would run as a formula is customers' text, and gets an apostrophe (OWASP, CSV injection). */
const csvCell = (text: string): string => {
  const clean = text.replace(/(?![\t\n\r])\p{Cc}/gu, '')
  const safe = /^[=+\-@\t\r]/.test(clean) ? `'${clean}` : clean
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** Rows as CSV with a header; the columns are those that any row has. */
export const csv = (rows: readonly Row[]): string => {
  const cells = rows.map(cellsOf)
  const columns = [...new Set([...cellsOf({}).keys(), ...cells.flatMap((row) => [...row.keys()])])]
  return [columns, ...cells.map((row) => columns.map((name) => row.get(name) ?? ''))].map((line) => `${line.map(csvCell).join(',')}\r\n`).join('')
}

/** Writes every contact that matches. Nothing is written until all have arrived, so that a failure leaves stdout empty. */
export const exportRows = async (io: Io, to: Connection, spec: CommandSpec, input: Row, format = 'csv'): Promise<number> => {
  if (!['csv', 'ndjson', 'json'].includes(format)) throw usage(`--format is csv or ndjson, not "${format}".`, '--format')
  const answer = await allPages(io, to, spec.operation, { ...input, detail: 'full', limit: 100 })
  const rows = answer['data'] as Row[]
  if (format === 'json') io.stdout.write(`${JSON.stringify(answer)}\n`)
  else if (format === 'csv') io.stdout.write(csv(rows))
  else for (const row of rows) io.stdout.write(`${JSON.stringify(row)}\n`)
  return 0
}

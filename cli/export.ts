import { once } from 'node:events'
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { finished, pipeline } from 'node:stream/promises'
import { usage } from './fault.ts'
import { exactValue, guard, joinNames } from './import/rows.ts'
import type { Io } from './io.ts'
import type { CommandSpec } from './manifest.ts'
import { allPages, pagesOf } from './pages.ts'
import type { Connection } from './remote.ts'

type Row = Readonly<Record<string, unknown>>
type Attribute = {
  readonly key: string
  readonly type: string | null
  readonly value: unknown
  readonly typed_value: unknown
}

const plain = [
  'id',
  'name',
  'phone',
  'email',
  'dnd',
  'starred',
  'created_at',
  'updated_at',
  'last_activity_at',
  'chatapp_user_id',
  'web_visitor_id',
  'tags',
  'groups',
]

const named = (value: unknown): string =>
  joinNames(((value as { name: string | null }[] | undefined) ?? []).map(({ name }) => name ?? ''))

const textOf = (value: unknown): string => (value === null || value === undefined ? '' : String(value))

/**
 * RFC 4180. Control characters that a terminal would obey are left out. What a spreadsheet would run as a
 * formula is customers' text, and gets an apostrophe (OWASP, CSV injection).
 */
const csvCell = (text: string): string => {
  const safe = guard(text.replace(/(?![\t\n\r])\p{Cc}/gu, ''))
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

const csvLine = (cells: readonly string[]): string => `${cells.map(csvCell).join(',')}\r\n`

/** Contacts as CSV, for columns that are known before the first row. */
export const csvWriter = (attributes: readonly string[]): { header: string; line: (row: Row) => string } => ({
  header: csvLine([...plain, ...attributes.map((key) => `attributes.${key}`)]),
  line: (row) => {
    const values = new Map(
      ((row['attributes'] as Attribute[] | undefined) ?? []).map((a) => [a.key, textOf(exactValue(a))]),
    )
    return csvLine([
      ...plain.map((name) => (name === 'tags' || name === 'groups' ? named(row[name]) : textOf(row[name]))),
      ...attributes.map((key) => values.get(key) ?? ''),
    ])
  },
})

/** Text values are shown up to this length; what is cut cannot be brought back by an import. */
const CLIPPED_AT = 2000

const hasClipped = (row: Row): boolean =>
  ((row['attributes'] as Attribute[] | undefined) ?? []).some(
    ({ value }) =>
      typeof value === 'string' && value.length >= CLIPPED_AT && Array.from(value).length === CLIPPED_AT,
  )

/** The text of an export in pieces, page by page. */
async function* textsOf(
  io: Io,
  to: Connection,
  spec: CommandSpec,
  input: Row,
  format: string,
): AsyncGenerator<string> {
  const fields =
    format === 'csv'
      ? ((await allPages(io, to, 'crm_list_custom_fields', { limit: 100 }))['data'] as { key: string }[])
      : []
  const csv = csvWriter(fields.map((f) => f.key).filter((key) => key !== 'email'))
  if (format === 'csv') yield csv.header
  let [first, clipped]: [Row | undefined, number] = [undefined, 0]
  for await (const page of pagesOf(io, to, spec.operation, { ...input, detail: 'full', limit: 100 })) {
    const rows = page['data'] as Row[]
    const before = first === undefined ? '{"data":[' : rows.length > 0 ? ',' : ''
    clipped += rows.filter(hasClipped).length
    if (format === 'json') yield before + rows.map((row) => JSON.stringify(row)).join(',')
    else yield rows.map(format === 'csv' ? csv.line : (row) => `${JSON.stringify(row)}\n`).join('')
    first ??= page
  }
  const { data: _data, ...envelope } = first!
  if (format === 'json') yield `],${JSON.stringify({ ...envelope, next_cursor: null }).slice(1)}\n`
  if (clipped > 0)
    io.stderr.write(
      `${clipped} contacts have texts that are cut at ${CLIPPED_AT} characters: importing them again would cut them for good.\n`,
    )
}

const write = async (path: string, texts: AsyncIterable<string>): Promise<void> => {
  const file = createWriteStream(path, { mode: 0o600 })
  const done = finished(file)
  done.catch(() => {})
  for await (const text of texts) if (!file.write(text)) await Promise.race([once(file, 'drain'), done])
  file.end()
  await done
}

/** The folder of the file that is to be written. */
const placeOf = (output: string): string => {
  if (existsSync(output) && !statSync(output).isFile())
    throw usage(`${output} is not a file.`, '--output', 'Leave --output out to write to standard output.')
  return dirname(resolve(output))
}

/**
 * Writes every contact that matches, page by page into a file of its own; it is shown, or gets its name,
 * when it is whole.
 */
export const exportRows = async (
  io: Io,
  to: Connection,
  spec: CommandSpec,
  input: Row,
  { format = 'csv', output: given }: { format?: string | undefined; output?: string | undefined },
): Promise<number> => {
  const output = given === '-' ? undefined : given
  if (!['csv', 'ndjson', 'json'].includes(format))
    throw usage(`--format is csv or ndjson, not "${format}".`, '--format')
  const place = output === undefined ? tmpdir() : placeOf(output)
  let folder: string
  try {
    folder = mkdtempSync(join(place, '.wcrm-export-'))
  } catch (error) {
    throw usage(
      `Cannot write to ${place}: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}.`,
      '--output',
      'Name a file in a folder that can be written.',
    )
  }
  try {
    const kept = join(folder, 'contacts')
    await write(kept, textsOf(io, to, spec, input, format))
    if (output === undefined) await pipeline(createReadStream(kept), io.stdout, { end: false })
    else renameSync(kept, output)
    return 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

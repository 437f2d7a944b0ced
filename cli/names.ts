import { cliError, usageError } from './error.ts'
import type { Io } from './io.ts'
import { type CommandSpec, type Field, type FieldNames } from './manifest.ts'
import { fetchAllPages } from './pages.ts'
import { callOperation, type ServerConnection } from './remote.ts'
import { escapeControlCharacters, foldName, formatCell, readPath } from './text.ts'

type Row = Readonly<Record<string, unknown>>

const MAX_CANDIDATES = 20
const MAX_SEARCH = 100

const describeRow = (row: Row, { by, beside }: FieldNames): string =>
  [
    String(row['id']),
    ...by.slice(0, 1).map((name) => formatCell(row[name])),
    formatCell(beside && row[beside]),
  ]
    .filter((part) => part !== '')
    .join(' ')

/** Returns the rows that a name means: those with this name, else those whose name begins with it. */
const matchName = (
  rows: readonly Row[],
  { by }: FieldNames,
  text: string,
  whole: boolean,
): readonly Row[] => {
  const wanted = foldName(text)
  const names = (row: Row): string[] => by.map((field) => foldName(String(row[field] ?? '')))
  const exact = rows.filter((row) => names(row).includes(wanted))
  return exact.length > 0 || whole
    ? exact
    : rows.filter((row) => names(row).some((name) => name.startsWith(wanted)))
}

/** What resolving names needs. `whole`: the beginning of a name is not enough. */
type Lookup = { readonly io: Io; readonly to: ServerConnection; readonly whole: boolean }

const findRow = async (
  { io, to, whole }: Lookup,
  names: FieldNames,
  flag: string,
  text: string,
): Promise<Row> => {
  const search = { [names.search ?? 'search']: text.trim().slice(0, MAX_SEARCH), limit: 100 }
  const { value } = await fetchAllPages(io, to, names.operation, search)
  const rows = matchName(value['data'] as Row[], names, text, whole)
  if (rows.length === 1) return rows[0]!
  const shown = escapeControlCharacters(text)
  if (rows.length > 1) {
    const more = rows.length > MAX_CANDIDATES ? `; and ${rows.length - MAX_CANDIDATES} more` : ''
    throw usageError(
      `${flag}: "${shown}" may be ${rows.length} of them: ` +
        `${rows
          .slice(0, MAX_CANDIDATES)
          .map((row) => describeRow(row, names))
          .join('; ')}${more}.`,
      flag,
      'Give the id.',
    )
  }
  const rule = whole ? '; it must be the whole name' : ''
  const detail = `${flag}: no visible record has the name "${shown}"${rule}.`
  throw cliError(3, {
    type: 'about:blank',
    title: 'Not found',
    status: 404,
    detail,
    code: 'not_found',
    errors: [{ parameter: flag, code: 'not_found', detail, fix: `List them: wcrm ${names.command}` }],
  })
}

/** Returns the id that a name means; ids, and words that the server knows, are returned as they are. */
const resolveName = async (
  lookup: Lookup,
  names: FieldNames,
  flag: string,
  text: string,
): Promise<string> => {
  if (text.trim() === '' || /^\d+$/.test(text) || new RegExp(names.pattern).test(text)) return text
  if (text === '@me' && names.me) {
    const { value } = await callOperation(lookup.io, lookup.to, names.me.operation, {})
    return String(readPath(value, names.me.path))
  }
  const row = await findRow(lookup, names, flag, text)
  if (lookup.io.stderr.isTTY) lookup.io.stderr.write(`${flag}: ${describeRow(row, names)}\n`)
  return String(row['id'])
}

/**
 * Replaces names by ids in a field that takes ids. Where the command asks for a confirmation, only a whole name
 * counts. Throws a usage error that lists the candidates for a name that several have.
 */
export const resolveNames = async (
  io: Io,
  to: ServerConnection,
  spec: CommandSpec,
  field: Field,
  value: unknown,
): Promise<unknown> => {
  const { names } = field
  if (!names) return value
  const lookup = { io, to, whole: spec.confirm !== undefined }
  const flag = spec.args.includes(field.name) ? field.name : (names.flag ?? field.flag)
  if (typeof value === 'string') return await resolveName(lookup, names, flag, value)
  if (!Array.isArray(value)) return value
  const ids: unknown[] = []
  for (const item of value)
    ids.push(typeof item === 'string' ? await resolveName(lookup, names, flag, item) : item)
  return ids
}

import { cliError, usageError } from './error.ts'
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

/** What resolving names needs. `whole`: the beginning of a name is not enough. */
type Lookup = {
  readonly to: ServerConnection
  readonly names: FieldNames
  readonly flag: string
  readonly whole: boolean
}

/** Returns the rows that a name means: those with this name, else those whose name begins with it. */
const matchName = (rows: readonly Row[], text: string, { names: { by }, whole }: Lookup): readonly Row[] => {
  const wanted = foldName(text)
  const namesOf = (row: Row): string[] => by.map((field) => foldName(String(row[field] ?? '')))
  const exact = rows.filter((row) => namesOf(row).includes(wanted))
  return exact.length > 0 || whole
    ? exact
    : rows.filter((row) => namesOf(row).some((name) => name.startsWith(wanted)))
}

const findRow = async (lookup: Lookup, text: string): Promise<Row> => {
  const { to, names, flag, whole } = lookup
  const search = { [names.search ?? 'search']: text.trim().slice(0, MAX_SEARCH), limit: 100 }
  const { value } = await fetchAllPages(to, names.operation, search)
  const rows = matchName(value['data'] as Row[], text, lookup)
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
const resolveName = async (lookup: Lookup, text: string): Promise<string> => {
  const { to, names, flag } = lookup
  if (text.trim() === '' || /^\d+$/.test(text) || new RegExp(names.pattern).test(text)) return text
  if (text === '@me' && names.me) {
    const { value } = await callOperation(to, names.me.operation, {})
    return String(readPath(value, names.me.path))
  }
  const row = await findRow(lookup, text)
  if (to.io.stderr.isTTY) to.io.stderr.write(`${flag}: ${describeRow(row, names)}\n`)
  return String(row['id'])
}

/**
 * Replaces names by ids in a field that takes ids. Where the command asks for a confirmation, only a whole name
 * counts. Throws a usage error that lists the candidates for a name that several have.
 */
export const resolveNames = async (
  { to, spec }: { to: ServerConnection; spec: CommandSpec },
  field: Field,
  value: unknown,
): Promise<unknown> => {
  const { names } = field
  if (!names) return value
  const flag = spec.args.includes(field.name) ? field.name : (names.flag ?? field.flag)
  const lookup = { to, names, flag, whole: spec.confirm !== undefined }
  if (typeof value === 'string') return await resolveName(lookup, value)
  if (!Array.isArray(value)) return value
  const ids: unknown[] = []
  for (const item of value) ids.push(typeof item === 'string' ? await resolveName(lookup, item) : item)
  return ids
}

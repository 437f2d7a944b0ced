import { usageError } from './error.ts'
import { type Io, isInteractive } from './io.ts'
import type { CommandSpec } from './manifest.ts'
import type { JsonFlag, ParsedCommand } from './parsed-command.ts'
import {
  formatNotes,
  isDrawnByPages,
  parseColumns,
  parsePickedFields,
  pickFields,
  printPages,
  printResponse,
  type ViewFlags,
} from './output.ts'
import type { JqProgram } from './jq.ts'
import type { ApiResponse } from './remote.ts'
import { createRowWriter, type RowFormat, type RowWriter, writeRows, writeText } from './row-formats.ts'
import { type TextTemplate } from './template-text.ts'
import { formatCell, readPath } from './text.ts'

/** An answer to print; `body` is what the server sent, byte for byte. */
export type Answer = Pick<ApiResponse, 'value' | 'clock' | 'approvalId'> & { readonly body?: string }

/** How a command prints its answer. */
export type AnswerFormat = {
  readonly json: boolean
  /** The fields of `--json=a,b`. */
  readonly picks?: readonly string[] | undefined
  readonly rows?: RowFormat | undefined
  readonly jq?: JqProgram | undefined
  readonly template?: TextTemplate | undefined
  /** The fields that the template names. */
  readonly templateFields?: readonly string[] | undefined
  readonly quiet: boolean
  readonly view: ViewFlags
  /** The flags that say so, as given. */
  readonly flags: readonly string[]
}

const refuseTwo = (given: readonly string[]): void => {
  if (given.length > 1)
    throw usageError(`${given.slice(0, 2).join(' and ')} exclude each other.`, given[0]!, 'Give one of them.')
}

const listFormatFlags = (
  { formats = [], jq, template, quiet, view }: ParsedCommand,
  json: JsonFlag,
): string[] => [
  ...formats.map((name) => `--${name}`),
  ...(json.on ? [json.fields === undefined ? '--json' : '--json=…'] : []),
  ...(jq === undefined ? [] : ['--jq']),
  ...(template === undefined ? [] : ['--template']),
  ...(quiet ? ['--quiet'] : []),
  ...(view?.columns === undefined ? [] : ['--columns']),
]

/**
 * Reads the flags that say how the answer is printed. Throws a usage error, before anything is sent, for two that
 * exclude each other, an unknown field or column, and an expression that does not compile.
 */
export const parseAnswerFormat = async (
  spec: CommandSpec,
  parsed: ParsedCommand,
  json: JsonFlag,
): Promise<AnswerFormat> => {
  const { formats = [], jq, template, quiet = false, view } = parsed
  const rows = formats.map((name) => `--${name}`)
  const one = (flag: string, value: unknown): string[] =>
    value === undefined || value === false ? [] : [flag]
  refuseTwo([...rows, ...one('--json', json.on)])
  refuseTwo([
    ...rows.filter((flag) => flag !== '--ndjson' || jq === undefined),
    ...one('--jq', jq),
    ...one('--template', template),
    ...one('--quiet', quiet),
  ])
  if (json.on) refuseTwo(['--json', ...one('--template', template), ...one('--quiet', quiet)])
  // Columns are those of tables, of tab-separated lines and of CSV.
  if (view?.columns !== undefined) {
    const others = listFormatFlags(parsed, json).filter(
      (flag) => !['--csv', '--header', '--columns'].includes(flag),
    )
    refuseTwo(['--columns', ...others])
  }
  const text = template === undefined ? undefined : await import('./template-text.ts')
  return {
    json: json.on,
    picks: json.fields === undefined ? undefined : parsePickedFields(spec, json.fields),
    rows: formats[0] === 'header' ? 'tsv' : formats[0],
    jq: jq === undefined ? undefined : await (await import('./jq.ts')).compileJq(jq),
    template: text?.parseTextTemplate(spec, template!),
    templateFields: text?.listTemplateFields(template!),
    quiet,
    flags: listFormatFlags(parsed, json),
    view: {
      wide: view?.wide ?? false,
      utc: view?.utc ?? false,
      columns: view?.columns === undefined ? undefined : parseColumns(spec, view.columns),
    },
  }
}

/** Where an answer goes, of which command it is, and its format. */
export type AnswerTarget = { readonly io: Io; readonly spec: CommandSpec; readonly format: AnswerFormat }

/** Returns what writes the rows of a list as soon as a page of them is there; undefined: the whole answer is needed. */
const findRowWriter = ({ io, spec, format }: AnswerTarget, all: boolean): RowWriter | undefined => {
  if (!spec.output.list) return undefined
  const { rows, jq, template, quiet, view } = format
  const columns = view.columns ?? spec.output.columns
  const { id } = spec.output
  if (rows === 'ndjson' && jq)
    return { header: '', rows: (page) => jq(page.map((row) => `${JSON.stringify(row)}\n`).join('')) }
  if (rows) return createRowWriter(rows, columns)
  if (template) return { header: '', rows: (page) => page.map(template).join('') }
  if (quiet)
    return {
      header: '',
      rows: (page) =>
        id
          ? page
              .flatMap((row) => readPath(row, id) ?? [])
              .map((found) => `${String(found)}\n`)
              .join('')
          : '',
    }
  const drawn = isDrawnByPages(io, spec) || isInteractive(io)
  return all && !format.json && !jq && !drawn ? createRowWriter('lines', columns) : undefined
}

/** Returns what writes rows as they come, one by one; undefined: as they are drawn without a format. */
export const createStreamWriter = (io: Io, spec: CommandSpec, format: AnswerFormat): RowWriter | undefined =>
  findRowWriter(
    { io, spec, format: format.jq && !format.rows ? { ...format, rows: 'ndjson' } : format },
    false,
  )

/**
 * Prints a list page by page, where its format allows that. Returns false when it does not: nothing was read, and the
 * whole answer is to be printed. `read` returns the pages of `--all`, or the one that was asked for.
 */
export const printList = async (
  target: AnswerTarget,
  { all, read }: { all: boolean; read: () => AsyncIterable<Answer> | Promise<Iterable<Answer>> },
): Promise<boolean> => {
  const { io, spec, format } = target
  const writer = findRowWriter(target, all)
  if (writer) {
    const last = await writeRows(io, await read(), writer)
    if (!format.quiet) io.stderr.write(formatNotes(spec, last))
    return true
  }
  if (!all || format.json || format.jq || !isDrawnByPages(io, spec)) return false
  await printPages({ io, spec, flags: format.view }, await read())
  return true
}

/** What failed, for somebody who sees nothing of the answer. */
const formatFailures = (value: Readonly<Record<string, unknown>>): string =>
  (Array.isArray(value['failures']) ? (value['failures'] as Record<string, unknown>[]) : [])
    .map((failure) => `${String(failure['id'] ?? failure['row'])}: ${formatCell(failure['message'])}\n`)
    .join('')

/** Prints an answer as a whole. */
export const printAnswer = async (
  { io, spec, format }: AnswerTarget,
  { value, body, clock }: Answer,
): Promise<void> => {
  const { picks, jq, template, quiet } = format
  if (quiet) {
    const id = spec.output.id === undefined ? undefined : readPath(value, spec.output.id)
    if (typeof id === 'string') await writeText(io, `${id}\n`)
    io.stderr.write(formatFailures(value))
  } else if (template) await writeText(io, template(value))
  else if (format.json || jq) {
    const text = picks ? JSON.stringify(pickFields(spec, value, picks)) : (body ?? JSON.stringify(value))
    await writeText(io, jq ? await jq(text) : `${text}\n`)
  } else await printResponse({ io, spec, flags: format.view }, { value, clock })
}

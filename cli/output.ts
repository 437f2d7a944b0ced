import { isObject, pick } from '../catalog/values.ts'
import { usageError } from './error.ts'
import type { TableColumn } from '../catalog/operation.ts'
import { hasColor, type Io, isDrawn, writeOut } from './io.ts'
import type { CommandSpec } from './manifest.ts'
import type { ServerClock } from './remote.ts'
import type { TerminalStyle } from './table.ts'
import { formatRecord, formatTsv, escapeControlCharacters } from './text.ts'

type ResponseBody = Readonly<Record<string, unknown>>

/** Returns the fields that `--json=a,b` may name: those of a list's rows and of its envelope. */
export const listJsonFields = (spec: CommandSpec): string[] => [
  ...spec.output.fields.map((f) => f.name),
  ...spec.output.envelope.map((f) => f.name).filter((name) => name !== 'next_cursor'),
]

/** Parses the names of `--json=a,b`. Throws a usage error for an unknown one, before anything is sent. */
export const parsePickedFields = (spec: CommandSpec, text: string): string[] => {
  const names = text
    .split(',')
    .map((s) => s.trim())
    .filter((s) => s !== '')
  const known = listJsonFields(spec)
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined || names.length === 0)
    throw usageError(
      `--json has no field "${unknown ?? ''}".`,
      '--json',
      `One or more of: ${known.join(', ')}.`,
    )
  return names
}

/**
 * Returns what `--json=a,b` selects. Of a list: the selected fields of each row and of the envelope, and
 * `next_cursor`.
 */
export const pickFields = (
  spec: CommandSpec,
  value: ResponseBody,
  names: readonly string[],
): ResponseBody => {
  if (!spec.output.list) return pick(value, names)
  const rowFields = spec.output.fields.map((f) => f.name)
  const data = (value['data'] as ResponseBody[]).map((row) =>
    pick(
      row,
      names.filter((name) => rowFields.includes(name)),
    ),
  )
  return {
    data,
    ...pick(
      value,
      names.filter((name) => !rowFields.includes(name)),
    ),
    ...('next_cursor' in value ? { next_cursor: value['next_cursor'] } : {}),
  }
}

const hasPartialFailure = (value: ResponseBody): boolean => {
  const failed = value['failed']
  return (
    value['stopped_early'] === true ||
    // What failed in a job (which has `done`) did not fail in the call that shows it.
    (typeof failed === 'number' && failed > 0 && !('done' in value)) ||
    (Array.isArray(failed) && failed.length > 0)
  )
}

/**
 * Returns the exit code of a response that is printed: 9 when some of the items failed, 2 when what was
 * checked (a draft or a filter) is invalid, else 0.
 */
export const getResponseExitCode = (value: ResponseBody): number =>
  hasPartialFailure(value) ? 9 : value['valid'] === false ? 2 : 0

/** Says how to wait for the person who decides on a call. */
export const formatAskedHint = (approvalId: string): string =>
  `A person has to approve this call. Wait for it: wcrm approvals get ${approvalId} --wait-seconds ` + '30\n'

/** Says how much of a list is shown. `width`: cells that a line may have; a cursor that does not fit is never cut. */
const formatPageNote = (spec: CommandSpec, value: ResponseBody, width = Infinity): string | undefined => {
  const cursor = value['next_cursor']
  if (typeof cursor !== 'string') return undefined
  const shown = (value['data'] as unknown[]).length
  const total =
    typeof value['total'] === 'number'
      ? ` of ${value['approximate'] === true ? 'about ' : ''}` +
        `${value['total_is_lower_bound'] === true ? 'more than ' : ''}${value['total']}`
      : ''
  const next = spec.output.paged ? 'All rows: --all. Next page:' : 'Next page:'
  const flag = `${spec.output.paged ? '--cursor' : '--after'} ${cursor}`
  const searchedTo = value['searched_to']
  const searched = typeof searchedTo === 'string' ? `, searched back to ${searchedTo}` : ''
  const said = `${shown}${total} shown${searched}. ${next}`
  if (said.length + 1 + flag.length <= width) return `${said} ${flag}`
  return flag.length <= width ? `${said}\n${flag}` : `${said} the next_cursor of --json`
}

/** Formats the warnings of a response: each is a sentence, or a sentence and a path in the request. */
const formatWarnings = (value: ResponseBody): string =>
  (Array.isArray(value['warnings'])
    ? (value['warnings'] as (string | { path?: string; message?: string })[])
    : []
  )
    .map((warning) => {
      if (typeof warning === 'string') return warning
      return `${warning.message ?? ''}${warning.path ? ` (${warning.path})` : ''}`
    })
    .map(
      (text) => `Warning: ${escapeControlCharacters(text)}
`,
    )
    .join('')

const createStyle = (io: Io, flags: ViewFlags, clock: ServerClock | undefined): TerminalStyle => ({
  width: io.stdout.columns || 80,
  color: hasColor(io),
  ...(clock ? { time: { ...clock, utc: flags.utc } } : {}),
})

/** How a terminal shows a list. `columns`: only these, by name; `wide`: all, however wide the terminal is. */
export type ViewFlags = {
  readonly wide: boolean
  readonly utc: boolean
  readonly columns?: readonly string[] | undefined
}

/** Parses `--columns a,b`. Throws a usage error for an unknown one, before anything is sent. */
export const parseColumns = (spec: CommandSpec, text: string): string[] => {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  const known = [
    ...spec.output.fields.map((field) => field.name),
    ...viewColumns(spec).map(({ path }) => path),
  ]
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined || names.length === 0)
    throw usageError(
      `--columns has no column "${unknown ?? ''}".`,
      '--columns',
      `One or more of: ${[...new Set(known)].join(', ')}.`,
    )
  return names
}

const viewColumns = ({ output }: CommandSpec): readonly TableColumn[] =>
  Array.isArray(output.view) ? (output.view as TableColumn[]) : output.columns.map((path) => ({ path }))

const listColumns = (spec: CommandSpec, { wide, columns }: ViewFlags): readonly TableColumn[] => {
  const shown = viewColumns(spec)
  const find = (path: string): TableColumn => shown.find((column) => column.path === path) ?? { path }
  if (columns) return columns.map((path) => ({ ...find(path), wrap: true }))
  if (!wide) return shown
  const roots = shown.map(({ path }) => path.split('.')[0]!)
  return [...shown, ...spec.output.columns.filter((name) => !roots.includes(name)).map(find)]
}

/** What a table left out, and how to see it. */
const formatLeft = (columns: readonly TableColumn[], hidden: number, width: number): string | undefined => {
  const count = columns.length + hidden
  if (count === 0) return undefined
  const said = `+${count} ${count === 1 ? 'column' : 'columns'}: --wide`
  if (columns.length === 0) return said
  const names = columns.map(({ path }) => path)
  const withNames = (shown: readonly string[]): string => `${said}, --columns ${shown.join(',')}`
  if (withNames(names).length <= width) return withNames(names)
  const fitting = names.findLastIndex((_, i) => withNames([...names.slice(0, i + 1), '…']).length <= width)
  return fitting === -1 ? said : withNames([...names.slice(0, fitting + 1), '…'])
}

/** What stderr says beside rows for programs: warnings, and how to get the next page. */
export const formatNotes = (spec: CommandSpec, value: ResponseBody): string => {
  const note = formatPageNote(spec, value)
  return formatWarnings(value) + (note ? `${note}\n` : '')
}

/** Of a text in a list; `--columns` shows all of it. */
const MAX_LINES = 4

/** Where a response is shown, of which command, and by which flags. */
type Display = { readonly io: Io; readonly spec: CommandSpec; readonly flags: ViewFlags }

type Page = { readonly value: ResponseBody; readonly clock?: ServerClock | undefined }

/** Whether a terminal shows all pages of a list as one table. */
export const isDrawnByPages = (io: Io, { group, output }: CommandSpec): boolean =>
  isDrawn(io) && group !== 'reports' && output.view !== 'thread'

/** Draws the pages of a list on a terminal, each as soon as it is there. */
export const printPages = async (
  { io, spec, flags }: Display,
  pages: AsyncIterable<Page> | Iterable<Page>,
): Promise<void> => {
  const { createTable, paint, wrap } = await import('./table.ts')
  let style = createStyle(io, flags, undefined)
  let table: ReturnType<typeof createTable> | undefined
  let last: ResponseBody = {}
  let count = 0
  for await (const { value, clock } of pages) {
    if (!table) {
      io.stderr.write(formatWarnings(value))
      style = createStyle(io, flags, clock)
      table = createTable(listColumns(spec, flags), style, {
        wide: flags.wide,
        all: flags.columns !== undefined,
        ...(flags.columns === undefined ? { maxLines: MAX_LINES } : {}),
      })
    }
    const rows = value['data'] as ResponseBody[]
    count += rows.length
    last = value
    await writeOut(io, table.page(rows))
  }
  if (count === 0) io.stdout.write(last['next_cursor'] ? 'Nothing found so far.\n' : 'Nothing found.\n')
  const hidden =
    flags.columns || flags.wide
      ? 0
      : listColumns(spec, { ...flags, wide: true }).length - listColumns(spec, flags).length
  const { width } = style
  const notes = [
    count > 0 ? formatLeft(table?.left() ?? [], hidden, width) : undefined,
    formatPageNote(spec, last, width),
  ]
  for (const note of notes)
    for (const line of note === undefined ? [] : wrap(note, width))
      io.stdout.write(`${paint(style, 'dim', line)}\n`)
}

/** Prints a response: drawn on a terminal, plain lines into a pipe. */
export const printResponse = async (display: Display, page: Page): Promise<void> => {
  const { io, spec, flags } = display
  const { value, clock } = page
  const rows = spec.output.list ? (value['data'] as ResponseBody[]) : undefined
  if (rows && isDrawnByPages(io, spec)) return await printPages(display, [page])
  if (isDrawn(io)) {
    const style = createStyle(io, flags, clock)
    if (spec.group === 'reports') {
      const { drawReport } = await import('./report-views/report.ts')
      io.stdout.write(drawReport(spec, value, formatPageNote(spec, value, style.width), style))
      return
    }
    if (rows && (flags.columns || flags.wide)) await printPages(display, [page])
    else if (rows) {
      io.stdout.write((await import('./thread.ts')).drawThread(value['data'] as unknown[], style))
      const note = formatPageNote(spec, value, style.width)
      if (note) io.stdout.write(`${note}\n`)
    } else io.stdout.write((await import('./views.ts')).drawRecord(value, style))
    if (spec.group === 'short-links' && typeof value['url'] === 'string')
      io.stdout.write(await (await import('./qr.ts')).drawQrCode(value['url'], style))
  } else if (rows) {
    io.stdout.write(formatTsv(rows, flags.columns ?? spec.output.columns))
    io.stderr.write(formatNotes(spec, value))
  } else {
    io.stdout.write(
      formatRecord(value)
        .map((line) => `${line}\n`)
        .join(''),
    )
  }
}

/** Leaves out what is not there, so that what a person agrees to stands together. */
const dropEmpty = (value: ResponseBody): ResponseBody =>
  Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => {
      if (inner === null || (Array.isArray(inner) && inner.length === 0)) return []
      return [[name, isObject(inner) ? dropEmpty(inner) : inner]]
    }),
  )

/** Shows on stderr, before a prompt, what a dry run answered: in words where the server gives them, else the answer. */
export const printDryRun = async (io: Io, { value, clock }: Page): Promise<void> => {
  const style = createStyle(io, { wide: false, utc: false }, clock)
  const { plan, ...answer } = value
  const summary = isObject(plan) && Array.isArray(plan['summary']) ? (plan['summary'] as string[]) : []
  if (summary.length === 0) {
    io.stderr.write((await import('./views.ts')).drawRecord(dropEmpty(answer), style))
    return
  }
  const { wrap } = await import('./table.ts')
  const lines = summary.flatMap((line) => wrap(escapeControlCharacters(line), style.width))
  io.stderr.write(lines.map((line) => `${line}\n`).join(''))
}

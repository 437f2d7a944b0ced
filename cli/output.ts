import { usageError } from './error.ts'
import { hasColor, type Io, isInteractive } from './io.ts'
import type { CommandSpec } from './manifest.ts'
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

const pick = (value: ResponseBody, names: readonly string[]): ResponseBody =>
  Object.fromEntries(names.filter((name) => name in value).map((name) => [name, value[name]]))

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
    (typeof failed === 'number' && failed > 0) ||
    (Array.isArray(failed) && failed.length > 0)
  )
}

/**
 * Returns the exit code of a response that is printed: 9 when some of the items failed, 2 when what was
 * checked (a draft or a filter) is invalid, else 0.
 */
export const getResponseExitCode = (value: ResponseBody): number =>
  hasPartialFailure(value) ? 9 : value['valid'] === false ? 2 : 0

const formatPageNote = (spec: CommandSpec, value: ResponseBody): string | undefined => {
  const cursor = value['next_cursor']
  if (typeof cursor !== 'string') return undefined
  const shown = (value['data'] as unknown[]).length
  const total =
    typeof value['total'] === 'number'
      ? ` of ${value['approximate'] === true ? 'about ' : ''}${value['total']}`
      : ''
  const next = spec.output.paged ? 'All rows: --all. Next page: --cursor' : 'Next page: --after'
  return `${shown}${total} shown. ${next} ${cursor}`
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

/** Prints a response: drawn on a terminal, plain lines into a pipe. */
export const printResponse = async (io: Io, spec: CommandSpec, value: ResponseBody): Promise<void> => {
  const rows = spec.output.list ? (value['data'] as ResponseBody[]) : undefined
  if (rows) io.stderr.write(formatWarnings(value))
  if (isInteractive(io)) {
    const style = { width: io.stdout.columns || 80, color: hasColor(io) }
    if (spec.group === 'reports') {
      const { drawReport } = await import('./report-views/report.ts')
      io.stdout.write(drawReport(spec, value, formatPageNote(spec, value), style))
      return
    }
    const { drawRecord, drawTable } = await import('./views.ts')
    io.stdout.write(
      rows
        ? drawTable(rows, spec.output.columns, formatPageNote(spec, value), style)
        : drawRecord(value, style),
    )
    if (spec.group === 'short-links' && typeof value['url'] === 'string')
      io.stdout.write(await (await import('./qr.ts')).drawQrCode(value['url'], style))
  } else if (rows) {
    io.stdout.write(formatTsv(rows, spec.output.columns))
    const note = formatPageNote(spec, value)
    if (note) io.stderr.write(`${note}\n`)
  } else {
    io.stdout.write(
      formatRecord(value)
        .map((line) => `${line}\n`)
        .join(''),
    )
  }
}

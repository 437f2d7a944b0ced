import { usage } from './fault.ts'
import { hasColor, type Io, isInteractive } from './io.ts'
import type { CommandSpec } from './manifest.ts'
import { recordLines, tsv, visible } from './text.ts'

type Value = Readonly<Record<string, unknown>>

/** The fields that `--json=a,b` may name: those of a list's rows, and those around them. */
export const jsonFields = (spec: CommandSpec): string[] => [
  ...spec.output.fields.map((f) => f.name),
  ...spec.output.envelope.map((f) => f.name).filter((name) => name !== 'next_cursor'),
]

/** Splits `--json=a,b`; an unknown name is refused before anything is sent. */
export const readPicks = (spec: CommandSpec, text: string): string[] => {
  const names = text
    .split(',')
    .map((s) => s.trim())
    .filter((s) => s !== '')
  const known = jsonFields(spec)
  const wrong = names.find((name) => !known.includes(name))
  if (wrong !== undefined || names.length === 0)
    throw usage(`--json has no field "${wrong ?? ''}".`, '--json', `One or more of: ${known.join(', ')}.`)
  return names
}

const pick = (value: Value, names: readonly string[]): Value =>
  Object.fromEntries(names.filter((name) => name in value).map((name) => [name, value[name]]))

/**
 * What `--json=a,b` keeps: of a list, the fields of each row, its `next_cursor`, and what was named of the
 * rest.
 */
export const picked = (spec: CommandSpec, value: Value, names: readonly string[]): Value => {
  if (!spec.output.list) return pick(value, names)
  const ofRows = spec.output.fields.map((f) => f.name)
  const data = (value['data'] as Value[]).map((row) =>
    pick(
      row,
      names.filter((name) => ofRows.includes(name)),
    ),
  )
  return {
    data,
    ...pick(
      value,
      names.filter((name) => !ofRows.includes(name)),
    ),
    ...('next_cursor' in value ? { next_cursor: value['next_cursor'] } : {}),
  }
}

/** Some of the things asked for failed: the answer is printed all the same, with exit code 9. */
export const partlyFailed = (value: Value): boolean => {
  const failed = value['failed']
  return (
    value['stopped_early'] === true ||
    (typeof failed === 'number' && failed > 0) ||
    (Array.isArray(failed) && failed.length > 0)
  )
}

const moreNote = (spec: CommandSpec, value: Value): string | undefined => {
  const cursor = value['next_cursor']
  if (typeof cursor !== 'string') return undefined
  const shown = (value['data'] as unknown[]).length
  const total =
    typeof value['total'] === 'number'
      ? ` of ${value['approximate'] === true ? 'about ' : ''}${value['total']}`
      : ''
  return `${shown}${total} shown. ${spec.output.paged ? 'The rest: --all, or the next page: --cursor' : 'The next page: --after'} ${cursor}`
}

/** What the server warns of: a sentence, or a sentence about a place in the request. */
const warnings = (value: Value): string =>
  (Array.isArray(value['warnings'])
    ? (value['warnings'] as (string | { path?: string; message?: string })[])
    : []
  )
    .map(
      (w) =>
        `Warning: ${typeof w === 'string' ? visible(w) : visible(`${w.message ?? ''}${w.path ? ` (${w.path})` : ''}`)}\n`,
    )
    .join('')

/** Prints an answer for whoever reads it: drawn on a terminal, plain lines into a pipe. */
export const print = async (io: Io, spec: CommandSpec, value: Value): Promise<void> => {
  const rows = spec.output.list ? (value['data'] as Value[]) : undefined
  if (rows) io.stderr.write(warnings(value))
  if (isInteractive(io)) {
    const look = { width: io.stdout.columns || 80, color: hasColor(io) }
    if (spec.group === 'reports')
      return void io.stdout.write(
        (await import('./pictures/reports.ts')).drawReport(spec, value, moreNote(spec, value), look),
      )
    const { drawRecord, drawTable } = await import('./views.ts')
    io.stdout.write(
      rows ? drawTable(rows, spec.output.columns, moreNote(spec, value), look) : drawRecord(value, look),
    )
    if (spec.group === 'short-links' && typeof value['url'] === 'string')
      io.stdout.write(await (await import('./qr.ts')).drawQr(value['url'], look))
  } else if (rows) {
    io.stdout.write(tsv(rows, spec.output.columns))
    const note = moreNote(spec, value)
    if (note) io.stderr.write(`${note}\n`)
  } else {
    io.stdout.write(
      recordLines(value)
        .map((line) => `${line}\n`)
        .join(''),
    )
  }
}

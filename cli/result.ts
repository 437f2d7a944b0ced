import { hasColor, type Io, isDrawn, isDumb } from './io.ts'
import { formatRecord, formatTsv } from './text.ts'

/** A record, or `{data: […]}` for a list. */
export type CommandResult = Record<string, unknown>

/** Prints a result: as JSON on request, drawn on a terminal, plain lines into a pipe. */
export const printResult = async (
  io: Io,
  result: CommandResult,
  { columns, json = false }: { columns?: readonly string[] | undefined; json?: boolean } = {},
): Promise<void> => {
  if (json) {
    io.stdout.write(`${JSON.stringify(result)}\n`)
    return
  }
  const list = columns && { columns, rows: result['data'] as CommandResult[] }
  if (isDrawn(io)) {
    const { drawRecord, drawTable } = await import('./views.ts')
    const style = { width: io.stdout.columns ?? 80, color: hasColor(io) }
    io.stdout.write(list ? drawTable(list.rows, list.columns, style) : drawRecord(result, style))
  } else {
    io.stdout.write(
      list
        ? formatTsv(list.rows, list.columns)
        : formatRecord(result)
            .map((line) => `${line}\n`)
            .join(''),
    )
  }
}

const REDRAW_INTERVAL_MS = 100

/** Creates a progress line that overwrites itself; silent when stderr is not a terminal. */
export const createProgressLine = (
  io: Io,
  unit: string,
): { update: (done: number) => void; end: () => void } => {
  if (!io.stderr.isTTY || isDumb(io)) return { update: () => {}, end: () => {} }
  let drawnAt = 0
  return {
    update: (done) => {
      if (performance.now() - drawnAt < REDRAW_INTERVAL_MS) return
      drawnAt = performance.now()
      io.stderr.write(`\r${unit}: ${done.toLocaleString('en')}\u001b[K`)
    },
    end: () => {
      io.stderr.write('\r\u001b[K')
    },
  }
}

import { hasColor, type Io, isInteractive } from '../io.ts'
import { recordLines, tsv } from '../text.ts'
import type { Result, Verb } from './verb.ts'

/** Prints a result for whoever reads it: JSON when asked, drawn on a terminal, plain lines into a pipe. */
export const show = async (
  io: Io,
  verb: Pick<Verb, 'columns'>,
  result: Result,
  json: boolean,
): Promise<void> => {
  if (json) {
    io.stdout.write(`${JSON.stringify(result)}\n`)
    return
  }
  const rows = verb.columns ? (result['data'] as Result[]) : undefined
  if (isInteractive(io)) {
    const { drawRecord, drawTable } = await import('../views.ts')
    const look = { width: io.stdout.columns ?? 80, color: hasColor(io) }
    io.stdout.write(rows ? drawTable(rows, verb.columns!, undefined, look) : drawRecord(result, look))
  } else {
    io.stdout.write(
      rows
        ? tsv(rows, verb.columns!)
        : recordLines(result)
            .map((line) => `${line}\n`)
            .join(''),
    )
  }
}

/** A line that is written over as work goes on; nothing where nobody watches. */
export const progress = (io: Io, what: string): { tell: (done: number) => void; end: () => void } => {
  if (!io.stderr.isTTY) return { tell: () => {}, end: () => {} }
  let told = 0
  return {
    tell: (done) => {
      if (performance.now() - told < 100) return
      told = performance.now()
      io.stderr.write(`\r${what}: ${done.toLocaleString('en')}\u001b[K`)
    },
    end: () => {
      io.stderr.write('\r\u001b[K')
    },
  }
}

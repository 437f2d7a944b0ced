import { hasColor, type Io, isDumb } from '../io.ts'
import type { ImportTotals } from './state.ts'

export type ImportProgress = {
  /** Shows how much of the file was read, before rows are sent. */
  showBytesRead: (bytes: number, size: number) => void
  showTotals: (totals: ImportTotals, rows: number) => void
  printLine: (text: string) => void
  showWait: (reason: string, seconds: number) => void
  end: () => void
}

const REDRAW_INTERVAL_MS = 100
const CLEAR_LINE = '\r\u001b[K'

/** Reports waits of several batches at the same time only once. */
const throttleWaits = (print: (text: string) => void) => {
  let waitingUntil = 0
  return (reason: string, seconds: number): void => {
    const now = performance.now()
    if (now < waitingUntil) return
    waitingUntil = now + seconds * 1000
    print(`${reason}: continuing in ${seconds} s.`)
  }
}

/** Creates the progress output on stderr: a progress bar on a terminal, otherwise a line for each wait. */
export const createImportProgress = async (io: Io): Promise<ImportProgress> => {
  const printLine = (text: string) => {
    io.stderr.write(`${text}\n`)
  }
  if (!io.stderr.isTTY || isDumb(io))
    return {
      showBytesRead: () => {},
      showTotals: () => {},
      printLine,
      showWait: throttleWaits(printLine),
      end: () => {},
    }
  const { drawProgress } = await import('../views.ts')
  let bar = { done: 0, total: 0, note: '' }
  let drawnAt = 0
  const draw = (next: Partial<typeof bar>) => {
    bar = { ...bar, ...next }
    drawnAt = performance.now()
    io.stderr.write(
      `${CLEAR_LINE}${drawProgress(bar, { width: io.stderr.columns || 80, color: hasColor(io) })}`,
    )
  }
  return {
    showBytesRead: (done, total) => {
      if (performance.now() - drawnAt > REDRAW_INTERVAL_MS) draw({ done, total, note: 'bytes read' })
    },
    showTotals: (totals, total) =>
      draw({
        done: totals.rows,
        total,
        note: totals.failed > 0 ? `${totals.failed.toLocaleString('en')} failed` : '',
      }),
    printLine: (text) => {
      io.stderr.write(`${CLEAR_LINE}${text}\n`)
      draw({})
    },
    showWait: throttleWaits((note) => draw({ note })),
    end: () => {
      io.stderr.write(CLEAR_LINE)
    },
  }
}

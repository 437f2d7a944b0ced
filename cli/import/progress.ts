import { hasColor, type Io } from '../io.ts'
import type { Totals } from './state.ts'

export type ImportProgress = {
  /** How far the file is read, before anything is sent. */
  reading: (bytes: number, size: number) => void
  tell: (totals: Totals, rows: number) => void
  line: (text: string) => void
  wait: (why: string, seconds: number) => void
  end: () => void
}

/** Batches that wait together are told of once. */
const onceEach = (tell: (text: string) => void) => {
  let goesOn = 0
  return (why: string, seconds: number): void => {
    const now = performance.now()
    if (now < goesOn) return
    goesOn = now + seconds * 1000
    tell(`${why}: going on in ${Math.ceil(seconds)} s.`)
  }
}

/**
 * What is told on stderr while an import runs: on a terminal a bar that is drawn over itself, else a line
 * for each wait.
 */
export const importProgress = async (io: Io): Promise<ImportProgress> => {
  const plain = (text: string) => {
    io.stderr.write(`${text}\n`)
  }
  if (!io.stderr.isTTY)
    return { reading: () => {}, tell: () => {}, line: plain, wait: onceEach(plain), end: () => {} }
  const { drawProgress } = await import('../views.ts')
  const clear = '\r\u001b[K'
  let [bar, drawn] = [{ done: 0, total: 0, note: '' }, 0]
  const draw = (next: Partial<typeof bar>) => {
    bar = { ...bar, ...next }
    drawn = performance.now()
    io.stderr.write(`${clear}${drawProgress(bar, { width: io.stderr.columns || 80, color: hasColor(io) })}`)
  }
  return {
    reading: (done, total) => {
      if (performance.now() - drawn > 100) draw({ done, total, note: 'bytes read' })
    },
    tell: (totals, total) =>
      draw({
        done: totals.rows,
        total,
        note: totals.failed > 0 ? `${totals.failed.toLocaleString('en')} failed` : '',
      }),
    line: (text) => {
      io.stderr.write(`${clear}${text}\n`)
      draw({})
    },
    wait: onceEach((note) => draw({ note })),
    end: () => {
      io.stderr.write(clear)
    },
  }
}

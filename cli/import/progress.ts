import { hasColor, type Io } from '../io.ts'
import type { Totals } from './state.ts'

export type ImportProgress = { tell: (totals: Totals) => void; line: (text: string) => void; wait: (why: string, seconds: number) => void; end: () => void }

/** What is told on stderr while an import runs: on a terminal a bar that is drawn over itself, else a line for each wait. */
export const importProgress = async (io: Io, rows: number): Promise<ImportProgress> => {
  let goesOn = 0
  /** Batches on their way wait together: one line tells it. */
  const waits = (why: string, seconds: number): string | undefined => {
    const now = performance.now()
    if (now < goesOn) return undefined
    goesOn = now + seconds * 1000
    return `${why}: going on in ${Math.ceil(seconds)} s.`
  }
  if (!io.stderr.isTTY) {
    const line = (text: string) => { io.stderr.write(`${text}\n`) }
    return {
      tell: () => {}, line, end: () => {},
      wait: (why, seconds) => {
        const text = waits(why, seconds)
        if (text) line(text)
      },
    }
  }
  const { drawProgress } = await import('../views.ts')
  const clear = '\r\u001b[K'
  let [done, drawn] = [0, '']
  const draw = (note: string) => {
    drawn = drawProgress({ done, total: rows, note }, { width: io.stderr.columns || 80, color: hasColor(io) })
    io.stderr.write(`${clear}${drawn}`)
  }
  return {
    tell: (totals) => {
      done = totals.rows
      draw(totals.failed > 0 ? `${totals.failed.toLocaleString('en')} failed` : '')
    },
    line: (text) => { io.stderr.write(`${clear}${text}\n${drawn}`) },
    wait: (why, seconds) => {
      const text = waits(why, seconds)
      if (text) draw(text)
    },
    end: () => { io.stderr.write(clear) },
  }
}

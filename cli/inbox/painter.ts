// Writes the lines of a whole screen to the terminal, those that have changed. A layout engine is not needed for what
// is laid out already, and takes 30 ms and much memory for each drawing.

export type Painter = {
  /** Draws what has changed since the last time. */
  readonly paint: (lines: readonly string[]) => void
  /** Forgets what is on the screen: all is drawn the next time. */
  readonly reset: () => void
  /** Between these nothing is drawn. */
  readonly pause: () => void
  readonly resume: () => void
}

/** One drawing appears at once, and a line that a terminal finds wider than it is never moves those below it. */
const BEGIN = '\u001b[?2026h\u001b[?7l'
const END = '\u001b[?7h\u001b[?2026l'

export const createPainter = (write: (text: string) => void): Painter => {
  let shown: readonly string[] = []
  let isPaused = false
  return {
    paint: (lines) => {
      if (isPaused) return
      const changed = lines.flatMap((line, i) =>
        line === shown[i] ? [] : [`\u001b[${i + 1};1H\u001b[0m\u001b[2K${line}`],
      )
      if (changed.length > 0) write(BEGIN + changed.join('') + END)
      shown = lines
    },
    reset: () => {
      shown = []
    },
    pause: () => {
      isPaused = true
    },
    resume: () => {
      isPaused = false
    },
  }
}

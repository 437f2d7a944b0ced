import { useApp, useInput, usePaste, useWindowSize } from 'ink'
import { type ReactNode, useEffect, useState } from 'react'
import type { Inbox } from './data.ts'
import { pasteText, pressKeys } from './keys.ts'
import { drawScreen } from './screen.ts'

/** Times on the screen move on without a key; the seconds of a rate limit do so each second. */
const TICK_MS = 1000
const SLOW_TICKS = 15

/** Suspends this process and its parent, as Control-Z does elsewhere. Resolves when it is resumed. */
const stopProcess = (): Promise<void> =>
  new Promise((resolve) => {
    process.once('SIGCONT', () => resolve())
    process.kill(0, 'SIGTSTP')
  })

/** The inbox on a terminal. `subscribe` calls back when there is something new to draw; `write` prints. */
export const InboxApp = ({
  inbox,
  subscribe,
  quit,
  write,
  color,
}: {
  inbox: Inbox
  subscribe: (listener: () => void) => () => void
  quit: (exitCode?: number) => void
  write: (text: string) => void
  color: boolean
}): ReactNode => {
  const [painter] = useState(() => createPainter(write))
  const [resumed, setResumed] = useState(0)
  const { columns, rows } = useWindowSize()
  const { suspendTerminal } = useApp()
  useEffect(() => {
    let next: NodeJS.Immediate | undefined
    const draw = (): void => {
      next ??= setImmediate(() => {
        next = undefined
        painter.paint(drawScreen(inbox.state, { width: columns, height: rows, color }))
      })
    }
    painter.reset()
    draw()
    const unsubscribe = subscribe(draw)
    let ticks = 0
    const timer = setInterval(() => {
      if (++ticks % SLOW_TICKS === 0 || inbox.state.limitedUntil !== undefined) draw()
    }, TICK_MS)
    return () => {
      unsubscribe()
      clearInterval(timer)
      clearImmediate(next)
    }
  }, [subscribe, inbox, painter, columns, rows, color, resumed])
  const suspend = (): void => {
    // Nothing is drawn while the shell has the terminal.
    painter.pause()
    void suspendTerminal(stopProcess).then(() => {
      painter.resume()
      setResumed((n) => n + 1)
    })
  }
  const size = { width: columns, height: rows }
  useInput((input, key) => pressKeys(inbox, input, key, { quit, suspend, ...size }))
  usePaste((text) => pasteText(inbox, text, size))
  return null
}

// Writes the lines of a whole screen to the terminal, those that have changed. A layout engine is not needed for what
// is laid out already, and takes 30 ms and much memory for each drawing.

type Painter = {
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

const createPainter = (write: (text: string) => void): Painter => {
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

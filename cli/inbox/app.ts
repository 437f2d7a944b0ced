import { Text, useApp, useInput, usePaste, useWindowSize } from 'ink'
import { createElement as h, type ReactNode, useEffect, useState } from 'react'
import type { Inbox } from './data.ts'
import { pasteText, pressKeys } from './keys.ts'
import { drawScreen } from './screen.ts'

/** Times on the screen move on without a key; the seconds of a rate limit do so each second. */
const TICK_MS = 1000
const SLOW_TICKS = 15

/** Stops this process, and what started it, as Control-Z does elsewhere. Resolves when it goes on. */
const stopProcess = (): Promise<void> =>
  new Promise((resolve) => {
    process.once('SIGCONT', () => resolve())
    process.kill(0, 'SIGTSTP')
  })

/** The inbox on a terminal. `subscribe` calls back when there is something new to draw. */
export const InboxApp = ({
  inbox,
  subscribe,
  quit,
  color,
}: {
  inbox: Inbox
  subscribe: (listener: () => void) => () => void
  quit: (exitCode?: number) => void
  color: boolean
}): ReactNode => {
  const [, redraw] = useState(0)
  const { columns, rows } = useWindowSize()
  const { suspendTerminal } = useApp()
  useEffect(() => {
    const draw = (): void => redraw((n) => n + 1)
    const unsubscribe = subscribe(draw)
    let ticks = 0
    const timer = setInterval(() => {
      if (++ticks % SLOW_TICKS === 0 || inbox.state.limitedUntil !== undefined) draw()
    }, TICK_MS)
    return () => {
      unsubscribe()
      clearInterval(timer)
    }
  }, [subscribe, inbox])
  const suspend = (): void => void suspendTerminal(stopProcess)
  useInput((input, key) => pressKeys(inbox, input, key, { quit, suspend, height: rows }))
  usePaste((text) => pasteText(inbox, text))
  const lines = drawScreen(inbox.state, { width: columns, height: rows, color })
  return h(Text, { wrap: 'truncate' }, lines.join('\n'))
}

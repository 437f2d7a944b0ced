import { Text, useInput, usePaste, useWindowSize } from 'ink'
import { createElement as h, type ReactNode, useEffect, useState } from 'react'
import type { Inbox } from './data.ts'
import { pasteText, pressKey } from './keys.ts'
import { drawScreen } from './screen.ts'

/** Times on the screen move on without a key. */
const TICK_MS = 15_000

/** The inbox on a terminal. `subscribe` calls back when there is something new to draw. */
export const InboxApp = ({
  inbox,
  subscribe,
  quit,
  color,
}: {
  inbox: Inbox
  subscribe: (listener: () => void) => () => void
  quit: () => void
  color: boolean
}): ReactNode => {
  const [, redraw] = useState(0)
  const { columns, rows } = useWindowSize()
  useEffect(() => {
    const draw = (): void => redraw((n) => n + 1)
    const unsubscribe = subscribe(draw)
    const timer = setInterval(draw, TICK_MS)
    return () => {
      unsubscribe()
      clearInterval(timer)
    }
  }, [subscribe])
  useInput((input, key) => pressKey(inbox, input, key, { quit, height: rows }))
  usePaste((text) => pasteText(inbox, text))
  const lines = drawScreen(inbox.state, { width: columns, height: rows, color })
  return h(Text, { wrap: 'truncate' }, lines.join('\n'))
}

import type { ClientPresence } from '../../../storage/client/client-presence.ts'
import type { App } from '../../app.ts'

/** How long a wait is without news: other servers may not be heard. */
const MAX_PAUSE_MS = { heard: 2000, unheard: 300 }

export type EventWatch = {
  /**
   * Returns at the next event since the last `wait`, or after `ms` at most; false when the server stops, so that
   * waiting is over.
   */
  wait: (ms: number) => Promise<boolean>
  close: () => void
}

/** Watches for signals that a workspace has new events, for a client. `close` must be called. */
export const watchEvents = (
  { signals, streams }: Pick<App, 'signals' | 'streams'>,
  workspaceId: string,
  client?: ClientPresence,
): EventWatch => {
  let isWoken = false
  let resolveWait: (() => void) | undefined
  const wake = (): void => {
    isWoken = true
    resolveWait?.()
  }
  const unsubscribe = signals.on('events', (about) => {
    if (about === '*' || about === workspaceId) wake()
  })
  // What a handler reads next tells it that the client is gone.
  const stopWatching = client?.onGone(wake)
  // A server that stops ends the wait; the client asks another one.
  streams.open.add(wake)
  return {
    wait: async (ms) => {
      const pauseMs = Math.min(ms, signals.areHeard() ? MAX_PAUSE_MS.heard : MAX_PAUSE_MS.unheard)
      if (!isWoken && !streams.stopped && pauseMs > 0)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, pauseMs)
          resolveWait = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      isWoken = false
      resolveWait = undefined
      return !streams.stopped
    },
    close: () => {
      unsubscribe()
      stopWatching?.()
      streams.open.delete(wake)
    },
  }
}

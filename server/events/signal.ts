import type { App } from '../core/app.ts'

/**
 * Calls `listener` after every commit of this process that may have written events or deliveries; those of
 * other processes are found by polling. Returns a function that unsubscribes.
 */
export const onEvents = (app: App, listener: () => void): (() => void) => {
  app.eventListeners.add(listener)
  return () => {
    app.eventListeners.delete(listener)
  }
}

/** Wakes everything that waits for events or deliveries: some were committed just now. */
export const notifyEvents = (app: App): void => {
  for (const listener of app.eventListeners) listener()
}

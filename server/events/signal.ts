import type { App } from '../app.ts'

type Listener = () => void
const listeners = new WeakMap<App, Set<Listener>>()

/**
 * Calls `listen` after every commit of this process that may have written events or deliveries; others are
 * found by looking. Answers the way to stop it.
 */
export const onEvents = (app: App, listen: Listener): (() => void) => {
  let set = listeners.get(app)
  if (!set) listeners.set(app, (set = new Set()))
  set.add(listen)
  return () => {
    set.delete(listen)
  }
}

/** Says that events or deliveries were committed just now. */
export const announceEvents = (app: App): void => {
  for (const listen of listeners.get(app) ?? []) listen()
}

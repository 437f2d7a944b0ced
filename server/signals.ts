import type { SignalChannel } from '../storage/signals.ts'

/**
 * What may interest other processes:
 * - `events`: a workspace has new events; `about` is its id, `*` for several;
 * - `job`: a background job has something to do; `about` is its name;
 * - `clocks`: the business time of a workspace was moved.
 */
export type SignalTopic = 'events' | 'job' | 'clocks'

type Listener = (about: string) => void

/**
 * Hints to whoever waits for something, in this process at once, in the others within some milliseconds. What
 * is to be done stands in the database: a signal that is lost costs one interval of polling.
 */
export type Signals = {
  send: (topic: SignalTopic, about?: string) => void
  /** Returns the function that unsubscribes. */
  on: (topic: SignalTopic, listener: Listener) => () => void
  /** Whether those of other processes arrive now, so that polling may be slow. */
  areHeard: () => boolean
  /** Begins to hear other processes. `onOpen`: what they sent before was missed. */
  start: (onOpen: () => void) => void
  stop: () => void
}

/** A process notifies no more often: under load, one notification stands for many changes. */
const MIN_INTERVAL_MS = 50
/** Of one notification; more of them become one about everything. */
const MAX_WORKSPACES = 100

type SignalOptions = {
  /** Undefined: there are no other processes, or none can be told. */
  channel: SignalChannel | undefined
  /** There are no others. */
  alone: boolean
  onError: (error: unknown) => void
}

export const createSignals = ({ channel, alone, onError }: SignalOptions): Signals => {
  const id = crypto.randomUUID()
  const listeners = new Map<string, Set<Listener>>()
  const pending = new Set<string>()
  let lastSentAt = -Infinity
  let timer: NodeJS.Timeout | undefined
  let isStopped = false

  const deliver = (topic: string, about: string): void => {
    for (const listener of listeners.get(topic) ?? []) listener(about)
  }
  const flush = (): void => {
    timer = undefined
    if (pending.size === 0 || isStopped) return
    lastSentAt = performance.now()
    const texts = [...pending]
    pending.clear()
    const events = texts.filter((text) => text.startsWith('events:'))
    const sent =
      events.length > MAX_WORKSPACES ? [...texts.filter((text) => !events.includes(text)), 'events:*'] : texts
    channel!.send([id, ...sent].join(' ')).catch(onError)
  }
  return {
    send: (topic, about = '*') => {
      deliver(topic, about)
      if (!channel || isStopped) return
      pending.add(`${topic}:${about}`)
      // After what else is committed in this turn.
      timer ??= setTimeout(flush, Math.max(0, lastSentAt + MIN_INTERVAL_MS - performance.now())).unref()
    },
    on: (topic, listener) => {
      const all = listeners.get(topic) ?? new Set()
      listeners.set(topic, all.add(listener))
      return () => {
        all.delete(listener)
      }
    },
    areHeard: () => alone || (channel?.isListening() ?? false),
    start: (onOpen) => {
      const missed = (): void => {
        deliver('events', '*')
        onOpen()
      }
      channel?.listen((text) => {
        const [from, ...signals] = text.split(' ')
        if (from === id) return
        for (const signal of signals) {
          const [topic, about = '*'] = signal.split(':')
          deliver(topic!, about)
        }
      }, missed)
    },
    stop: () => {
      isStopped = true
      clearTimeout(timer)
    },
  }
}

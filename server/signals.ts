import type { SignalChannel } from '../storage/client/signals.ts'
import type { Siblings } from './siblings.ts'

/**
 * What may interest other processes:
 * - `events`: a workspace has new events; `about` is its id, `*` for several;
 * - `job`: a background job has something to do; `about` is its name;
 * - `clocks`: the business time of a workspace was moved.
 */
type SignalTopic = 'events' | 'job' | 'clocks'

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
/** The same of messages to the other processes of the server, which are cheaper. */
const SIBLING_INTERVAL_MS = 10
/** Of one notification; more of them become one about everything. */
const MAX_WORKSPACES = 100

type SignalOptions = {
  /** Undefined: there are no other servers, or none can be told. */
  channel: SignalChannel | undefined
  /** The other processes of this server. */
  siblings?: Siblings | undefined
  /** There are no other servers. */
  alone: boolean
  onError: (error: unknown) => void
}

/** Collects texts and sends them together: at once where it is quiet, else `intervalMs` after the last time. */
const createOutlet = (intervalMs: number, sendTexts: (texts: string[]) => void) => {
  const pending = new Set<string>()
  let lastSentAt = -Infinity
  let timer: NodeJS.Timeout | undefined
  const flush = (): void => {
    timer = undefined
    lastSentAt = performance.now()
    const texts = [...pending]
    pending.clear()
    sendTexts(texts)
  }
  return {
    add: (text: string): void => {
      pending.add(text)
      // After what else is committed in this turn.
      timer ??= setTimeout(flush, Math.max(0, lastSentAt + intervalMs - performance.now())).unref()
    },
    stop: () => clearTimeout(timer),
  }
}

/** Texts about many workspaces become one about all of them. */
const condense = (texts: readonly string[]): string[] => {
  const others = texts.filter((text) => !text.startsWith('events:'))
  return texts.length - others.length > MAX_WORKSPACES ? [...others, 'events:*'] : [...texts]
}

export const createSignals = ({ channel, siblings, alone, onError }: SignalOptions): Signals => {
  // Siblings tell each other directly, and drop what comes from one of them by way of the database.
  const id = siblings?.group ?? crypto.randomUUID()
  const listeners = new Map<string, Set<Listener>>()
  let isStopped = false

  const deliver = (topic: string, about: string): void => {
    for (const listener of listeners.get(topic) ?? []) listener(about)
  }
  const deliverAll = (texts: readonly string[]): void => {
    for (const text of texts) {
      const [topic, about = '*'] = text.split(':')
      deliver(topic!, about)
    }
  }
  const outlets = [
    ...(channel
      ? [
          createOutlet(
            MIN_INTERVAL_MS,
            (texts) => void channel.send([id, ...condense(texts)].join(' ')).catch(onError),
          ),
        ]
      : []),
    ...(siblings ? [createOutlet(SIBLING_INTERVAL_MS, (texts) => siblings.sendSignal(texts.join(' ')))] : []),
  ]
  siblings?.onSignal((text) => deliverAll(text.split(' ')))
  return {
    send: (topic, about = '*') => {
      deliver(topic, about)
      if (!isStopped) for (const outlet of outlets) outlet.add(`${topic}:${about}`)
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
        const [from, ...texts] = text.split(' ')
        if (from !== id) deliverAll(texts)
      }, missed)
    },
    stop: () => {
      isStopped = true
      for (const outlet of outlets) outlet.stop()
    },
  }
}

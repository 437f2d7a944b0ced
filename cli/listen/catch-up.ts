import type { StreamedEvent } from '../event-stream.ts'
import { callOperation, type ServerConnection } from '../remote.ts'

const IDLE_MS = 1_000
const MAX_PAGES = 200

/** What is listened to: these types, or all. */
type Watched = { readonly to: ServerConnection; readonly types: readonly string[] | undefined }

/**
 * Counts the events of the log after `from`, up to `last`, that are not among those that were dealt with.
 * Undefined when the log is too long to tell.
 */
const countMissed = async (
  { to, types }: Watched,
  { from, last, seen }: { from: string | undefined; last: string; seen: ReadonlySet<string> },
): Promise<number | undefined> => {
  let missed = 0
  let cursor = from
  for (let page = 0; page < MAX_PAGES; page++) {
    const input = {
      limit: 100,
      ...(types ? { types } : {}),
      ...(cursor === undefined ? {} : { after: cursor }),
    }
    const { value } = await callOperation(to, 'events_list', input)
    const { data, next_cursor: next } = value as { data: { id: string }[]; next_cursor: string | null }
    for (const { id } of data) {
      if (!seen.has(id)) missed++
      if (id === last) return missed
    }
    if (next === null || next === cursor) return missed
    cursor = next
  }
  return undefined
}

export type CatchUp = {
  /** The connection is there, or was lost. */
  readonly connection: (isConnected: boolean) => void
  /** An event arrived; it is being dealt with. */
  readonly begin: () => void
  /** It was dealt with. */
  readonly end: (event: StreamedEvent) => void
  /** Waits for a count that is being made. */
  readonly settle: () => Promise<void>
}

/**
 * Says after each lost connection how many events were caught up, and compares them with the log: whether one was
 * missed. It does so when no event has come for a second. `start`: the event after which listening began.
 */
export const watchConnection = (
  watched: Watched,
  start: string | undefined,
  say: (text: string) => void,
): CatchUp => {
  let from = start
  let last = start
  let seen = new Set<string>()
  let lostAt: number | undefined
  let state: 'live' | 'away' | 'catching up' = 'live'
  let timer: NodeJS.Timeout | undefined
  let counting = Promise.resolve()

  const report = async (): Promise<void> => {
    const ids = seen
    const lastSeen = last
    const begin = from
    state = 'live'
    seen = new Set()
    from = last
    const missed =
      ids.size === 0 || lastSeen === undefined
        ? 0
        : await countMissed(watched, { from: begin, last: lastSeen, seen: ids }).catch(() => undefined)
    say(`Caught up ${ids.size}, missed ${missed ?? 'unknown: the log could not be compared'}.\n`)
  }
  const count = (): void => {
    counting = report()
  }
  const arm = (): void => {
    if (state === 'catching up') timer = setTimeout(count, IDLE_MS)
  }
  return {
    connection: (isConnected) => {
      clearTimeout(timer)
      if (!isConnected) {
        if (state === 'away') return
        // A connection that is lost again while catching up is one and the same absence.
        if (state === 'live') {
          lostAt = performance.now()
          from = last
          seen = new Set()
          say('Connection lost. Reconnecting …\n')
        }
        state = 'away'
      } else if (state === 'away') {
        say(`Connected again after ${Math.round((performance.now() - lostAt!) / 100) / 10} s.\n`)
        state = 'catching up'
        arm()
      }
    },
    begin: () => clearTimeout(timer),
    end: ({ id }) => {
      last = String(id)
      if (state !== 'live') seen.add(last)
      arm()
    },
    settle: async () => {
      clearTimeout(timer)
      if (state === 'catching up') count()
      await counting
    },
  }
}

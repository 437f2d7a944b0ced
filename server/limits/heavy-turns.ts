import type { ClientPresence } from '../../storage/client/client-presence.ts'

/**
 * A turn of an expensive read. `start` begins it, `drop` gives it up: its client is gone. The ids of keys and of
 * workspaces differ from each other.
 */
export type HeavyTurn = {
  readonly keyId: string
  readonly workspaceId: string
  startedAt: number
  /** Whom the read is for; undefined for a change, which nobody gives up. */
  readonly reader: ClientPresence | undefined
  readonly start: () => void
  readonly drop: () => void
}

/** A set of turns that knows how many of them each key and workspace has: each read asks several times. */
export type HeavyTurns = {
  readonly size: number
  /** How many are of this key or workspace. */
  readonly count: (id: string) => number
  readonly add: (turn: HeavyTurn) => void
  /** False when it was not among them. */
  readonly delete: (turn: HeavyTurn) => boolean
  /** In the order in which they were added. */
  readonly values: () => Iterable<HeavyTurn>
}

export const createHeavyTurns = (): HeavyTurns => {
  const turns = new Set<HeavyTurn>()
  const counts = new Map<string, number>()
  const change = (id: string, by: number): void => {
    const n = (counts.get(id) ?? 0) + by
    if (n === 0) counts.delete(id)
    else counts.set(id, n)
  }
  return {
    get size() {
      return turns.size
    },
    count: (id) => counts.get(id) ?? 0,
    add: (turn) => {
      if (turns.has(turn)) return
      turns.add(turn)
      change(turn.keyId, 1)
      change(turn.workspaceId, 1)
    },
    delete: (turn) => {
      if (!turns.delete(turn)) return false
      change(turn.keyId, -1)
      change(turn.workspaceId, -1)
      return true
    },
    values: () => turns.values(),
  }
}

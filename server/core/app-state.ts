import type { KeyRow } from '../../storage/keys.ts'

/** Keys looked up a moment ago, by their hash, and when each key's `last_used_at` was last written. */
type KeyCache = {
  readonly keys: Map<string, { readonly loadedAt: number; readonly row: Promise<KeyRow | undefined> }>
  readonly usedAt: Map<string, number>
}

/**
 * One token bucket of the rate limit. `held` tokens were leased from the database and not handed out yet;
 * `level` is what the bucket would hold if this server were alone; `stored` is the level in the database as
 * last seen. Times are seconds of `performance.now()`.
 */
export type RateLimitBucket = {
  capacity: number
  held: number
  level: number
  updatedAt: number
  stored: number
  storedAt: number
  leasing?: Promise<void> | undefined
}

/** The event streams that are open on this server. */
export type StreamRegistry = {
  /** Number of open streams of each key. */
  readonly countByKey: Map<string, number>
  /** Ends a stream; one entry for each open stream. */
  readonly open: Set<() => void>
  /** Reads under way; they must end before the storage is closed. */
  readonly pending: Set<Promise<unknown>>
  stopped: boolean
}

/** How many early refusals of each key were recorded in this minute of real time. */
type AuditLimiter = { minute: number; readonly countByKey: Map<string, number> }

export type AppState = {
  readonly keyCache: KeyCache
  readonly rateLimitBuckets: Map<string, RateLimitBucket>
  /** Contact ids that were taken from the database's sequence and not given to a contact yet. */
  readonly contactIdPool: string[]
  /** Idempotency keys of the calls that are running in this process. */
  readonly runningKeys: Set<string>
  readonly auditLimiter: AuditLimiter
  /** Called after every commit of this process that may have written events or deliveries. */
  readonly eventListeners: Set<() => void>
  readonly streams: StreamRegistry
}

/** What one server keeps in memory between calls. */
export const createAppState = (): AppState => ({
  keyCache: { keys: new Map(), usedAt: new Map() },
  rateLimitBuckets: new Map(),
  contactIdPool: [],
  runningKeys: new Set(),
  auditLimiter: { minute: 0, countByKey: new Map() },
  eventListeners: new Set(),
  streams: { countByKey: new Map(), open: new Set(), pending: new Set(), stopped: false },
})

import type { AuditEntry } from '../storage/access/audit.ts'
import type { KernelState } from './kernel/kernel.ts'
import type { Label } from '../storage/labels/labels.ts'
import type { DatabaseTime } from './real-time.ts'
import { createHeavyTurns, type HeavyTurns } from './limits/heavy-turns.ts'

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

/** Bytes of request bodies that are held in memory: of all requests, and of each sender. */
export type BodyBudget = { total: number; readonly bySender: Map<string, number> }

/** How many early refusals of each key were recorded in this minute of real time. */
type AuditLimiter = { minute: number; readonly countByKey: Map<string, number> }

/** Expensive reads (limits/heavy-reads.ts). */
type HeavyReadQueue = {
  readonly running: HeavyTurns
  readonly waiting: HeavyTurns
  /** How long the reads of each key took of late. */
  readonly meanMs: Map<string, number>
  /** The number of the last turn of each key and workspace. */
  readonly lastTurn: Map<string, number>
  /** `count`: of all so far. `mixed`: the number of the last one whose workspace was not that of the one before. */
  readonly turns: { count: number; workspaceId: string | undefined; mixed: number }
}

/** When a wrong clock was last logged: `performance.now()`. */
type ClockCheck = { loggedAt: number }

/**
 * What an AI agent's key has seen today: the contacts of subjects that were counted (`c`, `v` or `m` and an id), and
 * questions (`q` and a digest). `from`, `until`: the day in this time zone, milliseconds since 1970.
 */
export type SeenContacts = {
  readonly from: number
  readonly until: number
  readonly timezone: string
  readonly subjects: Map<string, string | null>
}

/** Reads of contacts by an AI agent's key and operation in an hour, not yet written to the audit trail. */
type ContactReads = {
  readonly entry: AuditEntry
  readonly workspaceId: string
  readonly hour: string
  calls: number
  readonly contacts: Set<string>
}

/** What one server keeps in memory between calls. */
export type AppState = KernelState & {
  /** True from the signal to stop: a load balancer is told to send nothing more. */
  isStopping: boolean
  readonly clockCheck: ClockCheck
  readonly databaseTime: DatabaseTime
  readonly rateLimitBuckets: Map<string, RateLimitBucket>
  /** Contact ids that were taken from the database's sequence and not given to a contact yet. */
  readonly contactIdPool: string[]
  /** By the id of the key. */
  readonly seenContacts: Map<string, SeenContacts>
  readonly contactReads: Map<string, ContactReads>
  readonly auditLimiter: AuditLimiter
  readonly streams: StreamRegistry
  readonly bodyBudget: BodyBudget
  readonly heavyReadQueue: HeavyReadQueue
  /** What the database said of regular expressions: null when it takes them, else its message. */
  readonly regexVerdicts: Map<string, string | null>
  /** By id and by name (labels/label-cache.ts). */
  readonly labelCache: Map<string, Label>
}

export const createAppState = (): AppState => ({
  isStopping: false,
  disk: { seenAt: -Infinity, loggedAt: -Infinity },
  outage: { since: undefined, checking: undefined },
  clockCheck: { loggedAt: -Infinity },
  databaseTime: { last: undefined, setBackMs: 0 },
  keyCache: { keys: new Map(), known: new Set(), usedAt: new Map() },
  failureBuckets: new Map(),
  rateLimitBuckets: new Map(),
  contactIdPool: [],
  runningKeys: new Set(),
  seenContacts: new Map(),
  contactReads: new Map(),
  auditLimiter: { minute: 0, countByKey: new Map() },
  streams: { countByKey: new Map(), open: new Set(), pending: new Set(), stopped: false },
  bodyBudget: { total: 0, bySender: new Map() },
  heavyReadQueue: {
    running: createHeavyTurns(),
    waiting: createHeavyTurns(),
    meanMs: new Map(),
    lastTurn: new Map(),
    turns: { count: 0, workspaceId: undefined, mixed: -Infinity },
  },
  regexVerdicts: new Map(),
  labelCache: new Map(),
})

import type { Logger } from 'pino'
import type { EventRow } from '../../storage/events/events.ts'
import type { KeyRow } from '../../storage/access/keys.ts'
import type { StoredView } from '../../storage/access/idempotency.ts'
import type { Db } from '../../storage/database.ts'
import type { Replica } from '../../storage/client/replicas.ts'
import type { Clocks } from '../clock.ts'
import type { Metrics } from '../metrics.ts'
import type { Sealer } from '../sealer.ts'
import type { ExecutionResult, WriteCall } from './call.ts'
import type { Actor } from './context.ts'
import type { Guard } from './guard.ts'
import type { AnyHandler, AnySettler } from './handler.ts'

/**
 * Keys looked up a moment ago, by their hash; the hashes of keys that were valid when they were last looked
 * up; and when each key's `last_used_at` was last written.
 */
type KeyCache = {
  readonly keys: Map<string, { readonly loadedAt: number; readonly row: Promise<KeyRow | undefined> }>
  readonly known: Set<string>
  readonly usedAt: Map<string, number>
}

/**
 * Failed authentications of one client network: `level` more may fail now. `pending` resolve when the
 * look-ups under way have ended. `updatedAt`: milliseconds of `performance.now()`.
 */
export type FailureBucket = { level: number; updatedAt: number; readonly pending: Set<Promise<void>> }

/** When the database last failed for a full disk, and when that was last logged: `performance.now()`. */
export type DiskState = { seenAt: number; loggedAt: number }

/** `since`: when the outage of the database began, `performance.now()`. `checking`: whether there is one. */
export type OutageState = { since: number | undefined; checking: Promise<boolean | undefined> | undefined }

/** What the kernel keeps in memory between calls. */
export type KernelState = {
  readonly disk: DiskState
  readonly outage: OutageState
  readonly keyCache: KeyCache
  /** By the name of the network. */
  readonly failureBuckets: Map<string, FailureBucket>
  /** Idempotency keys of the calls that are running in this process. */
  readonly runningKeys: Set<string>
}

/** Where the events of changes go. */
export type Outbox = {
  /**
   * Returns the events that the last statement of a change writes: from its second attempt on, with those before them
   * that tell of what they name.
   */
  readonly prepare: (
    tx: Db,
    workspaceId: string,
    events: readonly EventRow[],
    attempt: number,
  ) => Promise<readonly EventRow[]>
  /** Inserts events in the transaction of their change. Returns whether any of them needs a webhook delivery. */
  readonly write: (tx: Db, workspaceId: string, events: readonly EventRow[]) => Promise<boolean>
  /** Wakes what waits for the events of a change, once they are committed. */
  readonly notify: (workspaceId: string, needsDelivery: boolean) => void
  /** The same for a call that has ended well, if it may have written some. */
  readonly notifyOf: (call: WriteCall, result: ExecutionResult) => void
}

/** What the kernel needs of a server; the whole is `App` (server/app.ts). It knows no feature. */
export type Kernel = KernelState &
  Clocks & {
    readonly db: Db
    /** The connections for expensive reads. */
    readonly heavy: Db
    /** The standby that reads may go to. */
    readonly replica: Replica | undefined
    readonly embedded: boolean
    /** True while the embedded database refuses changes, so that a full disk cannot stop it. */
    readonly isDatabaseDiskFull: () => boolean
    readonly config: {
      /** Base of every URL the service returns, without a trailing slash. */
      readonly publicUrl: string
      /** Whether hosted clients may sign people in (docs/oauth.md). */
      readonly oauth: boolean
      /** Failed authentications per minute of one client network. */
      readonly authFailureLimit: number
      /** How long one request to the provider may take, and a repeat waits for what became of an earlier one. */
      readonly providerTimeoutMs: number
    }
    /** What features add to every call, in their order (server/guards/guards.ts). */
    readonly guards: readonly Guard<Kernel>[]
    readonly handlers: Readonly<Record<string, AnyHandler>>
    readonly settlers: Readonly<Record<string, AnySettler | undefined>>
    readonly outbox: Outbox
    /** Wakes a background job, on whichever server runs it. */
    readonly wake: (job: string) => void
    /** What a caller may see, to be kept with an answer that is given again. */
    readonly toView: (actor: Actor) => StoredView
    readonly log: Logger
    readonly metrics: Metrics
    readonly cursorSealer: Sealer
    /** Seals stored responses that contain a secret. */
    readonly responseSealer: Sealer
  }

import type { EventTypeId } from '../../catalog/events.ts'
import type { Operation, Scope } from '../../catalog/index.ts'
import type { KeyPolicy } from '../../catalog/policy.ts'
import type { Role } from '../../catalog/workspace.ts'
import type { ApprovalRow } from '../../storage/agents/approvals.ts'
import type { Db } from '../../storage/database.ts'
import type { DeferredWrite } from '../../storage/client/deferred-write.ts'
import type { Label } from '../../storage/labels/labels.ts'
import type { Sealer } from '../sealer.ts'
import type { Emit } from './emit.ts'

/** How a call reached the service; clients know it as the `door` of an audit row. */
export type Transport = 'rest' | 'ops' | 'mcp' | 'cli'

/**
 * What the audit trail keeps of a call beyond its input: its transport, the name the client gives itself,
 * the `Request-Id` of the response, and whether the verb was sent.
 */
export type CallTrace = { door: Transport; client: string | null; requestId: string; confirmed: boolean }

/**
 * What a job changed of a contact or a conversation. With the id beside it, an erasure of the contact finds and
 * empties it.
 */
export type UndoneRecord = ({ readonly contact_id: string } | { readonly conversation_id: string }) &
  Readonly<Record<string, unknown>>

/** Why a change of one of many records failed. */
export type RecordFailure = { id: string; code: string; message: string }

/** Who a request acts as: the key, its owner and the workspace, loaded together at authentication. */
export type Actor = {
  readonly workspace: {
    readonly id: string
    readonly name: string
    readonly timezone: string
    readonly features: readonly string[]
    readonly contactLimit: number | null
    readonly templateLimit: number | null
  }
  readonly staff: {
    readonly id: string
    readonly name: string
    readonly role: Role
    /** Phones are hidden from the caller: from the staff member, or from whatever uses the key. */
    readonly hidePhoneNumbers: boolean
    readonly reports: boolean
    /** Channels the staff member may use; null: all. */
    readonly channelIds: readonly string[] | null
  }
  readonly key: {
    readonly id: string
    /** The first of the keys that took each other's place: what an agent has used up or was refused is of all. */
    readonly familyId: string
    readonly name: string | null
    readonly scopes: readonly Scope[]
    readonly test: boolean
    readonly apiVersion: string
    readonly expiresAt: string | null
    /** The addresses and CIDRs that it may be used from; null: anywhere. */
    readonly allowFrom: readonly string[] | null
    /** Marked as the key of an AI agent. */
    readonly agent: boolean
    /** What an agent's key may do by itself; null: the default. Other keys have none. */
    readonly policy: KeyPolicy | null
    /** Since when every call is refused, real time; null: it is not paused. */
    readonly pausedAt: string | null
    /** False: phones are masked for whatever is called with it. */
    readonly phones: boolean
    /** Different contacts that an agent's key may see in a day; null: the server's default. */
    readonly contactsPerDay: number | null
  }
  /** Who approved the call, while one that an agent asked for runs. */
  readonly approvedBy?: { readonly staffId: string; readonly name: string; readonly keyId: string }
}

/** Who waits for a call: `signal` ends it, `reached` is told how far it is, from 0 to 1. */
export type CallWatch = { readonly signal: AbortSignal; readonly reached?: (share: number) => void }

/**
 * Everything a handler may use. It emits only events of the types `Emits`: a handler is given those that its
 * operation declares, and a helper that emits names those it needs. Without `Emits` it emits none.
 */
export type Context<Emits extends EventTypeId = never> = {
  /** The transaction of the call, or the plain connection for a read. */
  readonly tx: Db
  /** Where expensive reads run: connections of their own, with a shorter deadline. */
  readonly heavy: Db
  /** What the database said of regular expressions: null when it takes them, else its message. */
  readonly regexVerdicts: Map<string, string | null>
  /** By id and by name (labels/label-cache.ts). */
  readonly labelCache: Map<string, Label>
  readonly actor: Actor
  /** Business time, ISO 8601 UTC. */
  readonly now: string
  /** Real time, ISO 8601 UTC: of what expires or passes by itself, whatever the clock of the workspace. */
  readonly realNow: string
  readonly dryRun: boolean
  /** The call was sent with the token of a plan, which holds so far. */
  readonly planned: boolean
  /** 1, and one more each time the call is retried. */
  readonly attempt: number
  /** Seals and opens the cursors of this list for this key owner and these filters. */
  readonly cursors: Cursors
  /**
   * Returns what a person decides on before a call runs, line by line, as the actor may see it. `output`: of its dry
   * run, null where the actor may not see that.
   */
  readonly summarizeCall: (op: Operation, input: Json, output: Json | null) => Promise<string[]>
  /** Returns the version of what a request acts on at this time; null where it has none (`readRequestVersion`). */
  readonly readRequestVersion: (request: ApprovalRow) => Promise<string | null>
  /** Watches for events of the workspace, from now on; `wait` also returns after a while without any. */
  readonly watchEvents: () => EventWatch
  /** Throws 503 where there is no messaging provider: for changes whose sends a job makes. */
  readonly requireProvider: () => void
  readonly limits: () => { read: Allowance; write: Allowance }
  /** Base of every URL the service returns. */
  readonly publicUrl: string
  readonly filters: FilterSettings
  /** Records that a job changes in one transaction. */
  readonly jobBatchSize: number
  /** Tells a job what was changed of a record, so that it can be taken back; nothing elsewhere. */
  readonly recordUndo: (undone: UndoneRecord) => void
  /** Tells a job of all records that failed, of which the answer lists the first alone; nothing elsewhere. */
  readonly recordFailures: (failures: readonly RecordFailure[]) => void
  /** How the call came; undefined for a read. */
  readonly trace: CallTrace | undefined
  /**
   * Leaves the last write of a local change to the statement that writes its response: one round trip
   * instead of two. When it does not write the row it must, the call is retried.
   */
  readonly deferWrite: (write: DeferredWrite) => void
  /**
   * The deferred write may be optimistic, and assume what it finds: on the first attempt of a call. Where it finds
   * something else, the call is retried.
   */
  readonly mayBeOptimistic: boolean
  /**
   * Writes what a dry run leaves behind, once it was rolled back: its plan, for as long as usual or until `expiresAt`.
   * Does nothing in another call.
   */
  readonly afterDryRun: (write: (db: Db, expiresAt?: string) => Promise<void>) => void
  /** Returns an id for a new contact. */
  readonly newContactId: () => Promise<string>
  /**
   * Returns an address at which the file of a message is read without a key, and when it expires (real time,
   * ISO 8601 UTC).
   */
  readonly mediaUrl: (messageId: string) => { url: string; expires_at: string }
  /** The same of a finished file that was made for download. */
  readonly exportUrl: (exportId: string) => { url: string; expires_at: string }
  /** Returns a webhook address in its stored form. Throws 400 on the field `url` when it is not public. */
  readonly checkWebhookUrl: (text: string) => Promise<string>
  /** Seals the secrets of webhook endpoints. */
  readonly webhookSealer: Sealer
  /**
   * Gives the audit trail a record as it was and the values that are written; only fields that differ are
   * kept. `after` is null when the record is deleted.
   */
  readonly auditChange: (before: object, after: object | null) => void
  /**
   * Tells whoever waits for the call how far it is, from 0 to 1. Throws when they have cancelled it: everything is
   * rolled back.
   */
  readonly reached: (share: number) => void
  /** Queues an event; it is written in the transaction of the change. */
  readonly emit: Emit<Emits>
}

/** `enabled`: this server accepts filters. `countTimeBoxMs`: how long an exact count may take.
 * `stepMs`: how long a statement should take where others wait for it, on the embedded database. */
export type FilterSettings = {
  readonly enabled: boolean
  readonly countTimeBoxMs: number
  readonly stepMs: number | undefined
}

type Json = Record<string, unknown>

export type EventWatch = {
  /**
   * Returns at the next event since the last `wait`, or after `ms` at most; false when the server stops, so that
   * waiting is over.
   */
  wait: (ms: number) => Promise<boolean>
  close: () => void
}

export type Allowance = { limit: number; remaining: number; window_seconds: number }

export type Cursors = {
  /**
   * Returns the position in a cursor, null without a cursor. Throws 400 `cursor_invalid` or `cursor_expired`.
   */
  open: (cursor: string | undefined) => readonly (string | number | boolean | null)[] | null
  /** Returns a cursor that continues after this position. */
  seal: (position: readonly (string | number | boolean | null)[]) => string
}

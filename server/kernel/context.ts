import type { EventTypeId } from '../../catalog/events.ts'
import type { Scope } from '../../catalog/index.ts'
import type { KeyPolicy } from '../../catalog/policy.ts'
import type { Role } from '../../catalog/workspace.ts'
import type { ClientPresence } from '../../storage/client/client-presence.ts'
import type { Db } from '../../storage/database.ts'
import type { DeferredWrite } from '../../storage/client/deferred-write.ts'
import type { EventRow } from '../../storage/events/events.ts'
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
 * What a handler gets. It emits only events of the types `Emits`: a handler is given those that its operation
 * declares, and a helper that emits names those it needs. Without `Emits` it emits none.
 */
export type CallContext<Emits extends EventTypeId = never, Services = unknown> = {
  /** The transaction of the call, or the plain connection for a read. */
  readonly tx: Db
  /** Where expensive reads run: connections of their own, with a shorter deadline. */
  readonly heavy: Db
  readonly actor: Actor
  /** Business time, ISO 8601 UTC. */
  readonly now: string
  /** Real time, ISO 8601 UTC: of what expires or passes by itself, whatever the clock of the workspace. */
  readonly realNow: string
  readonly dryRun: boolean
  /** 1, and one more each time the call is retried. */
  readonly attempt: number
  /** How the call came, and who waits for it. */
  readonly call: CallOrigin
  /** Seals and opens the cursors of this list for this key owner and these filters. */
  readonly cursors: Cursors
  /** Queues an event; it is written in the transaction of the change. */
  readonly emit: Emit<Emits>
  /** What is left to the end of the call. */
  readonly pending: PendingWrites
  /**
   * Gives the audit trail a record as it was and the values that are written; only fields that differ are
   * kept. `after` is null when the record is deleted.
   */
  readonly auditChange: (before: object, after: object | null) => void
  /** What features use of the server. */
  readonly services: Services
}

/** Records that a filter found: texts of arrays of their ids, each with what is kept of them beside it, or null. */
export type FoundRecords = readonly { readonly ids: string; readonly digests: string | null }[]

/**
 * `trace`: of a change. `plan`: its token. `found`: what that plan keeps, in place of what its filter finds now.
 * `lookedUp`: what its handler looked up outside, before the transaction.
 */
export type CallOrigin = {
  readonly trace?: CallTrace | undefined
  readonly plan?: string | undefined
  readonly found?: FoundRecords | undefined
  readonly lookedUp?: unknown
  readonly watch?: CallWatch | undefined
  readonly presence?: ClientPresence | undefined
}

/** A record as it was, and the values that are written; null when the record is deleted. */
export type RecordChange = { before: Record<string, unknown>; after: Record<string, unknown> | null }

/** What a handler leaves to the end of the call. */
export type PendingWrites = {
  events: EventRow[]
  /**
   * The last write of a local change, left to the statement that writes its response: one round trip instead of two.
   * When it does not write the row it must, the call is retried.
   */
  deferred?: DeferredWrite
  /**
   * The deferred write may be optimistic, and assume what it finds: on the first attempt of a call. Where it finds
   * something else, the call is retried.
   */
  mayBeOptimistic?: boolean
  change?: RecordChange
  /** What was changed of records, so that a job can take it back; unused elsewhere. */
  undo?: UndoneRecord[]
  /** All records that failed, of which the answer of a job lists the first alone; unused elsewhere. */
  failures?: readonly RecordFailure[]
  /** What a change by a filter is for: a plan of it keeps that. */
  found?: FoundRecords
  /** The background jobs that have work once the change is committed. */
  wakes?: readonly string[]
}

export type Cursors = {
  /**
   * Returns the position in a cursor, null without a cursor. Throws 400 `cursor_invalid` or `cursor_expired`.
   */
  open: (cursor: string | undefined) => readonly (string | number | boolean | null)[] | null
  /** Returns a cursor that continues after this position. */
  seal: (position: readonly (string | number | boolean | null)[]) => string
}

import type { Db } from '../../storage/database.ts'
import type { Finale } from '../../storage/deferred-write.ts'
import type { Role } from '../../catalog/workspace.ts'
import type { Scope } from '../../catalog/index.ts'
import type { Emit } from './emit.ts'
import type { Sealer } from '../secret.ts'

/** Where a call came in. */
export type Door = 'rest' | 'ops' | 'mcp' | 'cli'

/** Who a request acts as: the key, its owner, and the workspace, read together at authentication. */
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
    readonly hidePhoneNumbers: boolean
    readonly reports: boolean
    /** Channels the staff member may use; null: all. */
    readonly channelIds: readonly string[] | null
  }
  readonly key: {
    readonly id: string
    readonly name: string | null
    readonly scopes: readonly Scope[]
    readonly test: boolean
    readonly apiVersion: string
    readonly expiresAt: string | null
  }
}

/** Owners, admins and managers see manager-only fields; agents do not (contract 7). */
export const seesManagerFields = (actor: Actor): boolean => actor.staff.role !== 'agent'

/** Only agents may have phones hidden from them (contract 7). */
export const phonesHidden = (actor: Actor): boolean =>
  actor.staff.role === 'agent' && actor.staff.hidePhoneNumbers

/** What a handler is given; nothing else is in its reach. */
export type Context = {
  /** The transaction of the call, or the plain connection for a read. */
  readonly tx: Db
  readonly actor: Actor
  /** Business time, ISO 8601 UTC. */
  readonly now: string
  readonly dryRun: boolean
  /** 1, then one more each time the call is run anew. */
  readonly attempt: number
  /** Signs and checks the cursors of this list for this key owner and these filters. */
  readonly cursors: Cursors
  readonly limits: () => { read: Allowance; write: Allowance }
  /** Base of every URL we hand out. */
  readonly publicUrl: string
  readonly filters: FilterSettings
  /**
   * Leaves the last work of a one-part change to the statement that writes its answer: one round trip
   * instead of two. When it does not write what it must, the call is run anew.
   */
  readonly finish: (finale: Finale) => void
  /** The id of a contact to come. */
  readonly newContactId: () => Promise<string>
  /**
   * An address at which the file of a message is read without a key, until it expires (real time, ISO 8601
   * UTC).
   */
  readonly mediaUrl: (messageId: string) => { url: string; expires_at: string }
  /**
   * An address for webhooks in the form in which it is kept. Throws 400 on the field `url` when it is not
   * public.
   */
  readonly checkWebhookUrl: (text: string) => Promise<string>
  /** Seals what webhook endpoints keep secret. */
  readonly webhookSealer: Sealer
  /**
   * Notes for the audit trail how a record was, and what of it is written; only fields that differ are
   * kept. `after` is null when it is gone.
   */
  readonly note: (before: object, after: object | null) => void
  /** Notes an event; it is written with the change. */
  readonly emit: Emit
}

/** `on`: filters are not switched off on this server. `countTimeBoxMs`: how long an exact count may take. */
export type FilterSettings = { readonly on: boolean; readonly countTimeBoxMs: number }

export type Allowance = { limit: number; remaining: number; window_seconds: number }

export type Cursors = {
  /**
   * The position in a cursor, or null when there is none. Throws 400 `cursor_invalid` or `cursor_expired`.
   */
  open: (cursor: string | undefined) => readonly (string | number | boolean | null)[] | null
  /** A cursor that continues after this position. */
  seal: (position: readonly (string | number | boolean | null)[]) => string
}

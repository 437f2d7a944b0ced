import {
  bigint,
  boolean,
  identity,
  jsonb,
  nullable,
  oneOf,
  timestamp,
  withDefault,
  type Table,
} from './columns.ts'

/** What the person of an erasure is found by in copies. Phones are digits; names are folded. */
export type ErasureSubject = {
  /** The contact, and those that were merged into it. */
  contactIds: string[]
  conversationIds: string[]
  /** In all spellings of their lines. */
  phones: string[]
  /** Email, external ids, and ids at the messaging app and at bridges. */
  texts: string[]
  /** Whole names that nobody else has: what filters may look for. */
  names: string[]
  /** The last update of the provider that had arrived. */
  lastUpdateId: string
  /** The last update and the last message of the sandbox. Absent from erasures that began in an earlier version. */
  lastSandboxUpdateId?: string
  lastSandboxSeq?: string
}

/** Rows of one table by what became of them. */
export type ErasedCounts = { deleted: number; cleared: number; pseudonymised: number }

/** Erasures of contacts. */
export const erasureTables = {
  erasures: {
    workspace_id: bigint(),
    id: identity(),
    contact_id: bigint(),
    state: withDefault(oneOf('running', 'done')),
    staff_id: bigint(),
    created_at: timestamp(),
    finished_at: nullable(timestamp()),
    is_repeated: withDefault(boolean()),
    counts: withDefault(jsonb<Record<string, Partial<ErasedCounts>>>()),
    subject: nullable(jsonb<ErasureSubject>()),
  },
} satisfies Record<string, Table>

import type { CallOptions } from './transport.ts'

/** Options of a change. */
export type ChangeOptions = CallOptions & {
  /**
   * The same key for the same change, however often it is called: it happens once. A fresh one for each call when
   * absent, which its own attempts share.
   */
  readonly idempotencyKey?: string
  /** Every check runs, and nothing changes. */
  readonly dryRun?: boolean
  /** Why an AI agent makes the change, for the person who decides on it. */
  readonly reason?: string
  /** With `dryRun`, `show` answers a plan; its token makes the change do exactly that, or be refused. */
  readonly plan?: string
}

/** Options of a change of one record that has a version. */
export type Versioned = {
  /**
   * The `version` that was read: where the record was changed since, nothing happens, and the call throws a `WcrmError`
   * with the code `precondition_failed` and `currentVersion`. `*`: any version.
   */
  readonly ifVersion?: string | null
}

/** Options of a change that needs a verb to confirm it, unless it is rehearsed. */
export type Confirmed<V extends string> = ChangeOptions &
  ({ readonly confirm: V } | { readonly dryRun: true; readonly confirm?: V })

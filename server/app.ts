import type { BlockList } from 'node:net'
import type { Operation } from '../catalog/index.ts'
import type { ApprovalRow } from '../storage/agents/approvals.ts'
import type { Db } from '../storage/database.ts'
import type { AppState } from './app-state.ts'
import type { MediaStore } from './media-store.ts'
import type { WebhookGuard } from './outbound-guard.ts'
import type { Actor } from './kernel/context.ts'
import type { Kernel } from './kernel/kernel.ts'
import type { Provider } from './provider/port.ts'
import type { Sealer } from './sealer.ts'
import type { SecretRing } from './secret.ts'
import type { Siblings } from './siblings.ts'
import type { Signals } from './signals.ts'
import type { JobRunner } from './work/runner.ts'

/** `enabled`: this server accepts filters. `countTimeBoxMs`: how long an exact count may take.
 * `stepMs`: how long a statement should take where others wait for it, on the embedded database. */
export type FilterSettings = {
  readonly enabled: boolean
  readonly countTimeBoxMs: number
  readonly stepMs: number | undefined
}

type AppConfig = Kernel['config'] & {
  /** Requests per minute. */
  limits: Record<'read' | 'write', { key: number; workspace: number }> & { channel: number }
  /** Different phones a day that staff from whom phones are hidden may name. */
  phoneBudget: number
  /** Different contacts a day that an AI agent's key may see, unless the key has a budget of its own. */
  contactBudget: number
  filters: FilterSettings
  /** Days that finished webhook deliveries are kept. */
  webhookRetentionDays: number
  /** Days that events are kept; null: no limit. */
  eventRetentionDays: number | null
  /** Whether calls write rows to the audit trail: only a benchmark turns it off. */
  audit: boolean
  /** Days that rows of the audit trail are kept. */
  auditRetentionDays: number
  /** Who may read the metrics (`serveMetrics`). */
  metrics: { token: string | undefined; isApart: boolean }
  /** The proxies whose `X-Forwarded-For` is believed. */
  trustedProxies: BlockList
}

/** Everything a call may use. One per server; it holds no state of a single request. */
export type App = Kernel &
  AppState & {
    /** How many expensive reads may run at a time. */
    readonly heavyReads: number
    readonly config: AppConfig
    readonly operations: readonly Operation[]
    /** What the sealers seal with. */
    readonly secrets: SecretRing
    readonly confirmSealer: Sealer
    /** Seals what a dry run said that a change would do. */
    readonly planSealer: Sealer
    /** Seals the addresses of files. */
    readonly mediaSealer: Sealer
    /** Seals signing secrets and header values of webhook endpoints. */
    readonly webhookSealer: Sealer
    /** Seals the credentials of accounts at the provider. */
    readonly accountSealer: Sealer
    /** Checks where webhooks may be sent. */
    readonly webhookGuard: WebhookGuard
    readonly provider: Provider
    /** The other processes of this server; undefined where it has one. */
    readonly siblings: Siblings | undefined
    /** Hints between whoever writes and whoever waits for it, in this process and in others. */
    readonly signals: Signals
    /** The background jobs of this server. */
    readonly jobs: JobRunner
    /** What a person decides on before a call runs (server/guards/agents/approvals/call-summary.ts). */
    readonly summarizeCall: (
      db: Db,
      actor: Actor,
      call: {
        op: Operation
        input: Record<string, unknown>
        output: Record<string, unknown> | null
        planId: string | undefined
      },
    ) => Promise<string[]>
    /** Returns the version of what a request of an agent acts on (server/guards/agents/approvals/call-subjects.ts). */
    readonly readRequestVersion: (db: Db, request: ApprovalRow) => Promise<string | null>
    /** Where received files are kept. */
    readonly media: MediaStore | undefined
  }

/** What handlers use of a server: all but its connections and its clock, which the call has its own of. */
export type Services = Omit<App, 'db' | 'heavy' | 'replica' | 'now'>

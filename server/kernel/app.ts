import type { ApprovalRow } from '../../storage/agents/approvals.ts'
import type { BlockList } from 'node:net'
import type { Logger } from 'pino'
import type { Operation } from '../../catalog/index.ts'
import type { Db } from '../../storage/database.ts'
import type { Replica } from '../../storage/client/replicas.ts'
import type { ClockOffsets } from '../clock.ts'
import type { JobRunner } from '../work/runner.ts'
import type { MediaStore } from '../domains/media/store.ts'
import type { Metrics } from '../metrics.ts'
import type { Provider } from '../provider/port.ts'
import type { Sealer } from '../sealer.ts'
import type { Siblings } from '../siblings.ts'
import type { Signals } from '../signals.ts'
import type { SecretRing } from '../secret.ts'
import type { WebhookGuard } from '../domains/webhooks/guard.ts'
import type { AppState } from './app-state.ts'
import type { Actor, FilterSettings } from './context.ts'
import type { AnyHandler, AnySettler } from './handler.ts'

type AppConfig = {
  /** Base of every URL the service returns, without a trailing slash. */
  publicUrl: string
  /** Whether hosted clients may sign people in (docs/oauth.md). */
  oauth: boolean
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
  /** Failed authentications per minute of one client network. */
  authFailureLimit: number
  /** Who may read the metrics (`serveMetrics`). */
  metrics: { token: string | undefined; isApart: boolean }
  /** How long one request to the provider may take, and a repeat waits for what became of an earlier one. */
  providerTimeoutMs: number
  /** The proxies whose `X-Forwarded-For` is believed. */
  trustedProxies: BlockList
}

/** Everything a call may use. One per server; it holds no state of a single request. */
export type App = AppState & {
  readonly db: Db
  /** The connections for expensive reads, and how many of those may run at a time. */
  readonly heavy: Db
  readonly heavyReads: number
  /** The standby that reads may go to. */
  readonly replica: Replica | undefined
  readonly embedded: boolean
  /** True while the embedded database refuses changes, so that a full disk cannot stop it. */
  readonly isDatabaseDiskFull: () => boolean
  readonly config: AppConfig
  readonly operations: readonly Operation[]
  readonly handlers: Readonly<Record<string, AnyHandler>>
  readonly settlers: Readonly<Record<string, AnySettler | undefined>>
  readonly log: Logger
  readonly metrics: Metrics
  /** What the sealers seal with. */
  readonly secrets: SecretRing
  readonly cursorSealer: Sealer
  readonly confirmSealer: Sealer
  /** Seals what a dry run said that a change would do. */
  readonly planSealer: Sealer
  /** Seals the addresses of files. */
  readonly mediaSealer: Sealer
  /** Seals stored responses that contain a secret. */
  readonly responseSealer: Sealer
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
    op: Operation,
    input: Record<string, unknown>,
    output: Record<string, unknown> | null,
  ) => Promise<string[]>
  /** Returns the version of what a request of an agent acts on (server/guards/agents/approvals/call-subjects.ts). */
  readonly readRequestVersion: (db: Db, request: ApprovalRow) => Promise<string | null>
  /** Where received files are kept. */
  readonly media: MediaStore | undefined
  /** How far each workspace's business time (`businessTime`) is ahead of real time. */
  readonly clockOffsets: ClockOffsets
  /** Real time (server/real-time.ts), ISO 8601 UTC: of what expires, is retained or is recorded of calls. */
  readonly now: () => string
}

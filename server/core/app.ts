import type { Logger } from 'pino'
import type { Operation } from '../../catalog/index.ts'
import type { Db } from '../../storage/database.ts'
import type { JobRunner } from '../jobs/runner.ts'
import type { MediaStore } from '../media/store.ts'
import type { Metrics } from '../metrics.ts'
import type { Provider } from '../provider/port.ts'
import type { Sealer } from '../sealer.ts'
import type { WebhookGuard } from '../webhooks/guard.ts'
import type { AppState } from './app-state.ts'
import type { FilterSettings } from './context.ts'
import type { AnyHandler } from './handler.ts'

type AppConfig = {
  /** Base of every URL the service returns, without a trailing slash. */
  publicUrl: string
  /** Requests per minute. */
  limits: Record<'read' | 'write', { key: number; workspace: number }>
  filters: FilterSettings
  /** Days that finished webhook deliveries are kept. */
  webhookRetentionDays: number
  /** Days that events are kept; undefined: forever. */
  eventRetentionDays: number | undefined
  /** Whether calls write rows to the audit trail: only a benchmark turns it off. */
  audit: boolean
  /** Days that rows of the audit trail are kept. */
  auditRetentionDays: number
}

/** Everything a call may use. One per server; it holds no state of a single request. */
export type App = AppState & {
  readonly db: Db
  readonly embedded: boolean
  readonly config: AppConfig
  readonly operations: readonly Operation[]
  readonly handlers: Readonly<Record<string, AnyHandler>>
  readonly log: Logger
  readonly metrics: Metrics
  readonly cursorSealer: Sealer
  readonly confirmSealer: Sealer
  /** Seals the addresses of files. */
  readonly mediaSealer: Sealer
  /** Seals stored responses that contain a secret. */
  readonly responseSealer: Sealer
  /** Seals signing secrets and header values of webhook endpoints. */
  readonly webhookSealer: Sealer
  /** Checks where webhooks may be sent. */
  readonly webhookGuard: WebhookGuard
  readonly provider: Provider
  /** The background jobs of this server. */
  readonly jobs: JobRunner
  /** Where received files are kept. */
  readonly media: MediaStore | undefined
  /** How far business time is ahead of real time, in milliseconds: the sandbox's clock can be advanced. */
  readonly clock: { offsetMs: number }
  /** Business time, ISO 8601 UTC. */
  readonly now: () => string
}

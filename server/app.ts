import type { Logger } from 'pino'
import { catalog, type Operation } from '../catalog/index.ts'
import type { Db } from '../storage/database.ts'
import type { Storage } from '../storage/open.ts'
import type { FilterSettings } from './core/context.ts'
import { handlers } from './handlers.ts'
import type { MediaStore } from './media/store.ts'
import type { Metrics } from './metrics.ts'
import type { AnyHandler } from './core/handler.ts'
import { noProvider } from './provider/none.ts'
import type { Provider } from './provider/port.ts'
import { type Sealer, sealer } from './secret.ts'
import { type KeyMemory, newKeyMemory } from './core/steps/authenticate.ts'
import { type RateMemory, WORKSPACE_FACTOR } from './core/steps/rate-limit.ts'
import { createGuard, type Guard } from './webhooks/guard.ts'
import type { Resolve } from './webhooks/guard/resolve.ts'

type AppConfig = {
  /** Base of every URL we hand out, without a trailing slash. */
  publicUrl: string
  /** Requests per minute. */
  limits: Record<'read' | 'write', { key: number; workspace: number }>
  filters: FilterSettings
  /** Days that webhook deliveries are kept when they are over. */
  webhookRetentionDays: number
  /** Days that events are kept; undefined: for ever. */
  eventRetentionDays: number | undefined
  /** Whether calls leave rows in the audit trail: only a benchmark does without. */
  audit: boolean
  /** Days that rows of the audit trail are kept. */
  auditRetentionDays: number
}

/** Everything a call may reach. One per server; it holds no request's state. */
export type App = {
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
  /** Seals answers that are kept for retries and hold a secret. */
  readonly answerSealer: Sealer
  /** Seals signing secrets and header values of webhook endpoints. */
  readonly webhookSealer: Sealer
  /** Where webhooks may be sent. */
  readonly webhookGuard: Guard
  readonly keyMemory: KeyMemory
  readonly rateMemory: RateMemory
  /** Ids that this process may give to contacts to come. */
  readonly contactIds: string[]
  /** Idempotency keys that this process is working on. */
  readonly running: Set<string>
  readonly provider: Provider
  /** Where received files are kept. */
  readonly media: MediaStore | undefined
  /** How far business time is ahead of real time, in milliseconds: the sandbox's clock can be advanced. */
  readonly clock: { offsetMs: number }
  /** Business time, ISO 8601 UTC. */
  readonly now: () => string
}

export type AppOptions = {
  storage: Storage
  /** `WCRM_SECRET`. */
  secret: string
  log: Logger
  metrics: Metrics
  config: {
    publicUrl: string
    limitRead: number
    limitWrite: number
    limitWorkspaceRead?: number | undefined
    limitWorkspaceWrite?: number | undefined
    advancedFilters?: 'on' | 'off'
    countTimeBox?: number
    webhookAllow?: string
    webhookRetentionDays?: number
    eventRetentionDays?: number | undefined
    audit?: boolean
    auditRetentionDays?: number
  }
  now?: () => string
  /** How names of webhook endpoints are resolved; as the machine does when absent. */
  resolve?: Resolve | undefined
  provider?: Provider
  media?: MediaStore | undefined
  /** Operations beyond the catalog's, with their handlers. */
  extra?: readonly { operation: Operation; handler: AnyHandler }[]
}

export const createApp = ({
  storage,
  secret,
  log,
  metrics,
  config,
  now,
  resolve,
  provider = noProvider,
  media,
  extra = [],
}: AppOptions): App => {
  const clock = { offsetMs: 0 }
  return {
    db: storage.db,
    embedded: storage.embedded,
    config: {
      publicUrl: config.publicUrl,
      limits: {
        read: {
          key: config.limitRead,
          workspace: config.limitWorkspaceRead ?? config.limitRead * WORKSPACE_FACTOR,
        },
        write: {
          key: config.limitWrite,
          workspace: config.limitWorkspaceWrite ?? config.limitWrite * WORKSPACE_FACTOR,
        },
      },
      filters: { on: config.advancedFilters !== 'off', countTimeBoxMs: config.countTimeBox ?? 1000 },
      webhookRetentionDays: config.webhookRetentionDays ?? 30,
      eventRetentionDays: config.eventRetentionDays,
      audit: config.audit ?? true,
      auditRetentionDays: config.auditRetentionDays ?? 400,
    },
    operations: [...catalog, ...extra.map((e) => e.operation)],
    handlers: { ...handlers, ...Object.fromEntries(extra.map((e) => [e.operation.name, e.handler])) },
    log,
    metrics,
    cursorSealer: sealer(secret, 'cursors'),
    confirmSealer: sealer(secret, 'confirmations'),
    mediaSealer: sealer(secret, 'media'),
    answerSealer: sealer(secret, 'answers'),
    webhookSealer: sealer(secret, 'webhooks'),
    webhookGuard: createGuard(config.webhookAllow, resolve),
    keyMemory: newKeyMemory(),
    rateMemory: new Map(),
    contactIds: [],
    running: new Set(),
    provider,
    media,
    clock,
    now: now ?? (() => new Date(Date.now() + clock.offsetMs).toISOString()),
  }
}

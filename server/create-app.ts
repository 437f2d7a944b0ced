import type { Logger } from 'pino'
import { catalog, type Operation } from '../catalog/index.ts'
import type { Storage } from '../storage/open.ts'
import type { App } from './core/app.ts'
import { createAppState } from './core/app-state.ts'
import type { AnyHandler } from './core/handler.ts'
import { handlers } from './handlers.ts'
import { createJobRunner } from './jobs/runner.ts'
import type { MediaStore } from './media/store.ts'
import type { Metrics } from './metrics.ts'
import { unconfiguredProvider } from './provider/port.ts'
import type { Provider } from './provider/port.ts'
import { createSealer } from './sealer.ts'
import { createWebhookGuard } from './webhooks/guard.ts'
import type { ResolveHost } from './webhooks/guard/resolve.ts'

/** The limit of a workspace as a whole is this many times a key's limit, unless it is configured. */
const WORKSPACE_LIMIT_FACTOR = 10

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
    /** Milliseconds. */
    countTimeBox?: number
    webhookAllow?: string
    webhookRetentionDays?: number
    eventRetentionDays?: number | undefined
    audit?: boolean
    auditRetentionDays?: number
  }
  now?: () => string
  /** Resolves the host names of webhook endpoints; the system resolver when absent. */
  resolve?: ResolveHost | undefined
  provider?: Provider
  media?: MediaStore | undefined
  /** Operations beyond the catalog's, with their handlers. */
  extra?: readonly { operation: Operation; handler: AnyHandler }[]
}

const toAppConfig = (config: AppOptions['config']): App['config'] => ({
  publicUrl: config.publicUrl,
  limits: {
    read: {
      key: config.limitRead,
      workspace: config.limitWorkspaceRead ?? config.limitRead * WORKSPACE_LIMIT_FACTOR,
    },
    write: {
      key: config.limitWrite,
      workspace: config.limitWorkspaceWrite ?? config.limitWrite * WORKSPACE_LIMIT_FACTOR,
    },
  },
  filters: { enabled: config.advancedFilters !== 'off', countTimeBoxMs: config.countTimeBox ?? 1000 },
  webhookRetentionDays: config.webhookRetentionDays ?? 30,
  eventRetentionDays: config.eventRetentionDays,
  audit: config.audit ?? true,
  auditRetentionDays: config.auditRetentionDays ?? 400,
})

export const createApp = ({
  storage,
  secret,
  log,
  metrics,
  config,
  now,
  resolve,
  provider = unconfiguredProvider,
  media,
  extra = [],
}: AppOptions): App => {
  const clock = { offsetMs: 0 }
  return {
    ...createAppState(),
    db: storage.db,
    embedded: storage.embedded,
    config: toAppConfig(config),
    operations: [...catalog, ...extra.map((e) => e.operation)],
    handlers: { ...handlers, ...Object.fromEntries(extra.map((e) => [e.operation.name, e.handler])) },
    log,
    metrics,
    cursorSealer: createSealer(secret, 'cursors'),
    confirmSealer: createSealer(secret, 'confirmations'),
    mediaSealer: createSealer(secret, 'media'),
    responseSealer: createSealer(secret, 'answers'),
    webhookSealer: createSealer(secret, 'webhooks'),
    webhookGuard: createWebhookGuard(config.webhookAllow, resolve),
    provider,
    jobs: createJobRunner(log),
    media,
    clock,
    now: now ?? (() => new Date(Date.now() + clock.offsetMs).toISOString()),
  }
}

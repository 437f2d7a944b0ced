import type { Logger } from 'pino'
import { registerPoolMetrics } from './pool-metrics.ts'
import { catalog, type Operation } from '../catalog/index.ts'
import type { Storage } from '../storage/open.ts'
import { Config } from './config.ts'
import type { App } from './app.ts'
import { createAppState } from './app-state.ts'
import { noteSharedFailure } from './kernel/outage.ts'
import type { AnyHandler } from './kernel/handler.ts'
import { readRequestVersion } from './guards/agents/approvals/call-subjects.ts'
import { summarizeCall } from './guards/agents/approvals/call-summary.ts'
import { guards } from './guards/guards.ts'
import { handlers, settlers } from './handlers.ts'
import { createOutbox } from './domains/events/outbox.ts'
import { toStoredView } from './visibility/replays.ts'
import { parseProxyList } from './http/address.ts'
import { errorLogDetails } from './kernel/log-details.ts'
import { createJobRunner, type JobName } from './work/runner.ts'
import type { MediaStore } from './media-store.ts'
import type { Metrics } from './metrics.ts'
import { isOauthPossible } from './oauth/metadata.ts'
import { measureProvider } from './provider/measured.ts'
import { unconfiguredProvider, type Provider } from './provider/port.ts'
import { toTimeoutMs } from './provider/settings.ts'
import { createSealer } from './sealer.ts'
import { readRealTime } from './real-time.ts'
import type { SecretRing } from './secret.ts'
import type { Siblings } from './siblings.ts'
import { createSignals } from './signals.ts'
import { createWebhookGuard, type WebhookGuard } from './outbound-guard.ts'
import type { ResolveHost } from './network/resolve.ts'

/** The limit of a workspace as a whole is this many times a key's limit, unless it is configured. */
const WORKSPACE_LIMIT_FACTOR = 10

/** How long one statement of a filter should take where the database serves one caller at a time. */
const EMBEDDED_STEP_MS = 15

export type AppOptions = {
  storage: Omit<Storage, 'access' | 'close'>
  /** `WCRM_SECRET` and the previous ones. */
  secrets: SecretRing
  log: Logger
  metrics: Metrics
  /** What is absent is as `Config` has it, but for the audit trail, which has no setting: calls are recorded. */
  config: {
    publicUrl: string
    /** `WCRM_OAUTH`. */
    oauth?: 'auto' | 'off'
    limitRead: number
    limitWrite: number
    limitWorkspaceRead?: number | undefined
    limitWorkspaceWrite?: number | undefined
    limitAuthFailures?: number
    limitChannel?: number
    phoneBudget?: number
    contactBudget?: number
    advancedFilters?: 'on' | 'off'
    /** Milliseconds. */
    countTimeBox?: number
    webhookAllow?: string
    webhookRetentionDays?: number
    eventRetentionDays?: number | null
    audit?: boolean
    auditRetentionDays?: number
    metricsToken?: string | undefined
    metricsListen?: object | undefined
    /** `WCRM_TRUST_PROXY`. */
    trustProxy?: string
    /** Seconds. */
    providerTimeout?: number | undefined
  }
  /** In place of `readRealTime`. */
  now?: () => string
  /** Resolves the host names of webhook endpoints; the system resolver when absent. */
  resolve?: ResolveHost | undefined
  /** Creates the client of the messaging provider; sends are refused when absent. */
  createProvider?: (guard: WebhookGuard, app: () => App) => Provider
  media?: MediaStore | undefined
  /** The other processes of this server, if it has several. */
  siblings?: Siblings | undefined
  /** Operations beyond the catalog's, with their handlers. */
  extra?: readonly { operation: Operation; handler: AnyHandler }[]
}

const defaults = Config.parse({})

const toAppConfig = (config: AppOptions['config'], embedded: boolean, processes: number): App['config'] => ({
  publicUrl: config.publicUrl,
  oauth: config.oauth !== 'off' && isOauthPossible(config.publicUrl),
  limits: {
    read: {
      key: config.limitRead,
      workspace: config.limitWorkspaceRead ?? config.limitRead * WORKSPACE_LIMIT_FACTOR,
    },
    write: {
      key: config.limitWrite,
      workspace: config.limitWorkspaceWrite ?? config.limitWrite * WORKSPACE_LIMIT_FACTOR,
    },
    channel: config.limitChannel ?? defaults.limitChannel,
  },
  phoneBudget: config.phoneBudget ?? defaults.phoneBudget,
  contactBudget: config.contactBudget ?? defaults.contactBudget,
  filters: {
    enabled: config.advancedFilters !== 'off',
    countTimeBoxMs: config.countTimeBox ?? defaults.countTimeBox,
    stepMs: embedded ? EMBEDDED_STEP_MS : undefined,
  },
  webhookRetentionDays: config.webhookRetentionDays ?? defaults.webhookRetentionDays,
  eventRetentionDays:
    config.eventRetentionDays === undefined ? defaults.eventRetentionDays : config.eventRetentionDays,
  audit: config.audit ?? true,
  auditRetentionDays: config.auditRetentionDays ?? defaults.auditRetentionDays,
  // Each process counts for itself.
  authFailureLimit: Math.ceil((config.limitAuthFailures ?? defaults.limitAuthFailures) / processes),
  metrics: { token: config.metricsToken, isApart: config.metricsListen !== undefined },
  trustedProxies: parseProxyList(config.trustProxy ?? ''),
  providerTimeoutMs: toTimeoutMs(config),
})

export const createApp = ({
  storage,
  secrets,
  log,
  metrics,
  config,
  now,
  resolve,
  createProvider = () => unconfiguredProvider,
  media,
  siblings,
  extra = [],
}: AppOptions): App => {
  const webhookGuard = createWebhookGuard(config.webhookAllow, resolve)
  const state = createAppState()
  registerPoolMetrics(metrics, storage)
  const signals = createSignals({
    channel: storage.signals,
    siblings,
    alone: storage.embedded,
    onError: (error) => log.debug(errorLogDetails(error), 'Cannot tell other processes of a change'),
  })
  const app: App = {
    ...state,
    db: storage.db,
    heavy: storage.heavy,
    heavyReads: storage.heavyReads,
    replica: storage.replica,
    embedded: storage.embedded,
    isDatabaseDiskFull: storage.isDiskFull,
    config: toAppConfig(config, storage.embedded, siblings?.count ?? 1),
    operations: [...catalog, ...extra.map((e) => e.operation)],
    guards,
    settlers,
    outbox: createOutbox(signals),
    wake: (job) => app.jobs.job(job as JobName).wake(),
    toView: toStoredView,
    summarizeCall: (db, actor, call) => summarizeCall(app, db, { actor, ...call }),
    readRequestVersion: (db, request) => readRequestVersion(app, db, request),
    handlers: { ...handlers, ...Object.fromEntries(extra.map((e) => [e.operation.name, e.handler])) },
    log,
    metrics,
    secrets,
    cursorSealer: createSealer(secrets, 'cursors'),
    confirmSealer: createSealer(secrets, 'confirmations'),
    planSealer: createSealer(secrets, 'plans'),
    mediaSealer: createSealer(secrets, 'media'),
    responseSealer: createSealer(secrets, 'answers'),
    webhookSealer: createSealer(secrets, 'webhooks'),
    accountSealer: createSealer(secrets, 'provider accounts'),
    webhookGuard,
    provider: measureProvider(
      createProvider(webhookGuard, () => app),
      metrics,
    ),
    siblings,
    signals,
    jobs: createJobRunner(log, {
      signals,
      isLogged: (error) => noteSharedFailure({ ...state, db: storage.db, log }, error),
      onRun: (job, outcome, seconds) => metrics.jobRuns.observe({ job, outcome }, seconds),
    }),
    media,
    clockOffsets: new Map(),
    now: now ?? (() => readRealTime(state.databaseTime)),
  }
  return app
}

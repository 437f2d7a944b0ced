import { z } from 'zod'
import { isDatabaseUrl, namesOneServer } from '../storage/client/database-url.ts'
import { ListenAddress } from './listen-address.ts'
import { parseProxyList } from './http/address.ts'
import { parseMediaLocation } from './domains/media/location.ts'
import { DEFAULT_MAX_CONNECTIONS } from './http/listener.ts'
import { DEFAULT_DAYS } from './work/retention-periods.ts'
import { isProviderHost } from './provider/settings.ts'
import { MIN_SECRET_LENGTH } from './secret.ts'
import { parsedBy } from './parsed-by.ts'
import { findUnknownVariables } from './variables.ts'
import { parseAllowList } from './network/allow.ts'

/** Configuration of a server: flags, then `WCRM_*` variables, checked by one schema. */
const numberBetween = (min: number, max: number, error = `must be a number from ${min} to ${max}`) =>
  // A blank text would be the number 0.
  z.preprocess(
    (value) => (typeof value === 'string' && value.trim() === '' ? undefined : value),
    z.coerce.number({ error }).min(min, { error }).max(max, { error }),
  )

const wholeBetween = (min: number, max: number, error = `must be a whole number from ${min} to ${max}`) =>
  numberBetween(min, max, error).refine(Number.isInteger, { error })

const PerMinute = wholeBetween(1, 100_000_000)

const daysBetween = (min: number, max: number, others = '') =>
  wholeBetween(min, max, `must be a number of days from ${min} to ${max}${others}`)

const EventDays = daysBetween(14, 3650, ', or none: no limit')

const PROCESSES = 'must be a number from 1 to 64, or auto'

/** The message never shows the value: it has a password. */
const DatabaseUrl = z
  .string()
  .regex(/^postgres(ql)?:\/\//, { error: 'must begin with postgres://', abort: true })
  .refine(isDatabaseUrl, {
    error:
      'must look like postgres://USER:PASSWORD@HOST:5432/DATABASE; characters such as / # ? % in the user and ' +
      'the password are percent-encoded, as %2F for /; target_session_attrs is read-write, ' +
      'primary, read-only, standby or any',
    abort: true,
  })

const AllowList = parsedBy(parseAllowList)
const ProxyList = parsedBy(parseProxyList)
const MediaPlace = parsedBy(parseMediaLocation)

export const Config = z.object({
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('Address to listen on.')
    .meta({ env: 'WCRM_HOST', flag: 'host' }),
  port: wholeBetween(0, 65535)
    .default(8787)
    .describe('Port to listen on; 0 picks a free one.')
    .meta({ env: 'WCRM_PORT', flag: 'port' }),
  dataDir: z
    .string()
    .min(1)
    .default('.wcrm')
    .describe('Folder of the embedded database and the secret.')
    .meta({ env: 'WCRM_DATA', flag: 'data' }),
  databaseUrl: DatabaseUrl.optional()
    .describe('URL of PostgreSQL 15 or newer; the embedded database when absent.')
    .meta({ env: 'WCRM_DATABASE_URL', flag: 'database-url' }),
  databaseReadUrl: DatabaseUrl.refine(namesOneServer, 'must name one server')
    .optional()
    .describe('URL of one standby for lists, searches and reports, used when it is up to date.')
    .meta({ env: 'WCRM_DATABASE_READ_URL' }),
  databaseConnections: wholeBetween(2, 200)
    .optional()
    .describe('Maximum number of connections to PostgreSQL for each process; 18, fewer with many processes.')
    .meta({ env: 'WCRM_DATABASE_CONNECTIONS' }),
  processes: z
    .union([z.literal('auto'), wholeBetween(1, 64, PROCESSES)], {
      error: PROCESSES,
    })
    .default(1)
    .describe(
      'Processes that serve the port together; auto: one for each core. More than one requires ' +
        'PostgreSQL.',
    )
    .meta({ env: 'WCRM_PROCESSES', flag: 'processes' }),
  migrate: z
    .stringbool({ error: 'must be true or false' })
    .default(true)
    .describe('false: refuse a database with an older schema; migrate it with wcrm admin migrate.')
    .meta({ env: 'WCRM_MIGRATE', flag: 'no-migrate' }),
  databasePrepare: z
    .enum(['auto', 'on', 'off'])
    .default('auto')
    .describe('Prepared statements; auto turns them off behind a pooler that does not support them.')
    .meta({ env: 'WCRM_DATABASE_PREPARE' }),
  memory: z
    .enum(['small', 'large'])
    .optional()
    .describe(
      'large: up to 370 MB in each process (default with PostgreSQL). small: slower, up to 280 MB ' +
        '(default with the embedded database).',
    )
    .meta({ env: 'WCRM_MEMORY' }),
  publicUrl: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL, such as https://crm.example.com' })
    .optional()
    .describe('Base of every URL that the server returns, when it is behind a proxy.')
    .meta({ env: 'WCRM_PUBLIC_URL' }),
  oauth: z
    .enum(['auto', 'off'])
    .default('auto')
    .describe(
      'auto: AI clients can sign in with OAuth if WCRM_PUBLIC_URL is https without a path. off: only API ' +
        'keys.',
    )
    .meta({ env: 'WCRM_OAUTH' }),
  secret: z
    .string()
    .min(MIN_SECRET_LENGTH, `must have at least ${MIN_SECRET_LENGTH} characters`)
    .optional()
    .describe(
      'Encrypts cursors and stored secrets; must be the same on every server. Generated and stored in ' +
        'the data folder when absent.',
    )
    .meta({ env: 'WCRM_SECRET' }),
  secretPrevious: z
    .string()
    .min(MIN_SECRET_LENGTH, `must have at least ${MIN_SECRET_LENGTH} characters`)
    .optional()
    .describe('Previous secrets, separated by commas, while WCRM_SECRET is rotated: they only decrypt.')
    .meta({ env: 'WCRM_SECRET_PREVIOUS' }),
  limitRead: PerMinute.default(300)
    .describe('Reads per minute for each key.')
    .meta({ env: 'WCRM_LIMIT_READ' }),
  limitWrite: PerMinute.default(60)
    .describe('Changes per minute for each key.')
    .meta({ env: 'WCRM_LIMIT_WRITE' }),
  limitWorkspaceRead: PerMinute.optional()
    .describe("Reads per minute for a whole workspace; ten times a key's when absent.")
    .meta({ env: 'WCRM_LIMIT_WORKSPACE_READ' }),
  limitWorkspaceWrite: PerMinute.optional()
    .describe("Changes per minute for a whole workspace; ten times a key's when absent.")
    .meta({ env: 'WCRM_LIMIT_WORKSPACE_WRITE' }),
  phoneBudget: wholeBetween(1, 100_000)
    .default(100)
    .describe('Different phones a day that staff with hidden phone numbers may save or send to.')
    .meta({ env: 'WCRM_PHONE_BUDGET' }),
  contactBudget: wholeBetween(0, 1_000_000)
    .default(2000)
    .describe(
      "Different contacts a day (of the workspace) that an AI agent's key may see, unless it has its own budget.",
    )
    .meta({ env: 'WCRM_CONTACT_BUDGET' }),
  limitAuthFailures: PerMinute.default(20)
    .describe('Failed authentications per minute for each client address.')
    .meta({ env: 'WCRM_LIMIT_AUTH_FAILURES' }),
  limitChannel: PerMinute.default(1200)
    .describe('Requests per minute from the bridge of a bridged channel.')
    .meta({ env: 'WCRM_LIMIT_CHANNEL' }),
  advancedFilters: z
    .enum(['on', 'off'])
    .default('on')
    .describe('Contact filters, the most expensive requests; off refuses them.')
    .meta({ env: 'WCRM_ADVANCED_FILTERS' }),
  countTimeBox: wholeBetween(0, 10_000)
    .default(1000)
    .describe('Milliseconds allowed for an exact count of a filter; after that it is estimated.')
    .meta({ env: 'WCRM_COUNT_TIME_BOX' }),
  logLevel: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Minimum log level; logs are JSON lines on stderr.')
    .meta({ env: 'WCRM_LOG_LEVEL' }),
  provider: z
    .enum(['sandbox', 'none'])
    .optional()
    .describe(
      'sandbox: the built-in sandbox emulates the messaging provider, and no message reaches a customer ' +
        '(default with the embedded database). none: sends are refused (default with PostgreSQL). With ' +
        'WCRM_PROVIDER_URL, sandbox means a standalone sandbox.',
    )
    .meta({ env: 'WCRM_PROVIDER' }),
  providerUrl: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .optional()
    .describe('Base URL of the messaging provider, without the version.')
    .meta({ env: 'WCRM_PROVIDER_URL' }),
  providerVersion: z
    .string()
    .regex(/^v\d+\.\d+$/, 'must look like v23.0')
    .default('v23.0')
    .describe("Version of the provider's API.")
    .meta({ env: 'WCRM_PROVIDER_VERSION' }),
  providerToken: z
    .string()
    .min(1)
    .optional()
    .describe('Access token of the provider.')
    .meta({ env: 'WCRM_PROVIDER_TOKEN' }),
  providerAppId: z
    .string()
    .min(1)
    .optional()
    .describe('App id at the provider; template samples are uploaded to it.')
    .meta({ env: 'WCRM_PROVIDER_APP_ID' }),
  providerArchiveUrl: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .optional()
    .describe("Base URL of the provider's template archive, when it differs.")
    .meta({ env: 'WCRM_PROVIDER_ARCHIVE_URL' }),
  providerTimeout: numberBetween(0.1, 20)
    .default(15)
    .describe(
      'Seconds that a request to the messaging provider may take; repeating a send with an unknown ' +
        'outcome waits as long.',
    )
    .meta({ env: 'WCRM_PROVIDER_TIMEOUT' }),
  providerAppSecret: z
    .string()
    .min(1)
    .optional()
    .describe("App secret that signs the provider's webhooks.")
    .meta({ env: 'WCRM_PROVIDER_APP_SECRET' }),
  providerVerifyToken: z
    .string()
    .min(1)
    .optional()
    .describe('Token that the provider sends to verify the webhook URL.')
    .meta({ env: 'WCRM_PROVIDER_VERIFY_TOKEN' }),
  webhookAllow: AllowList.default('')
    .describe(
      'Addresses that webhooks may be sent to although they are not public: host:port or CIDR, separated ' +
        'by commas. For development.',
    )
    .meta({ env: 'WCRM_WEBHOOK_ALLOW' }),
  eventRetentionDays: z
    .preprocess((value) => (value === 'none' ? null : value), EventDays.nullable())
    .default(DEFAULT_DAYS.events)
    .describe('Days to keep the event log, at least 14; none: no limit.')
    .meta({ env: 'WCRM_EVENT_RETENTION_DAYS' }),
  webhookRetentionDays: daysBetween(1, 3650)
    .default(DEFAULT_DAYS.webhooks)
    .describe('Days to keep finished webhook deliveries.')
    .meta({ env: 'WCRM_WEBHOOK_RETENTION_DAYS' }),
  auditRetentionDays: daysBetween(1, 36_500)
    .default(DEFAULT_DAYS.audit)
    .describe('Days to keep the audit trail.')
    .meta({ env: 'WCRM_AUDIT_RETENTION_DAYS' }),
  trustProxy: ProxyList.default('')
    .describe(
      'Addresses or CIDRs of the proxies in front, separated by commas: their X-Forwarded-For is trusted.',
    )
    .meta({ env: 'WCRM_TRUST_PROXY' }),
  maxConnections: wholeBetween(20, 100_000)
    .default(DEFAULT_MAX_CONNECTIONS)
    .describe('Maximum open connections of clients; at most a quarter from one address that is not a proxy.')
    .meta({ env: 'WCRM_MAX_CONNECTIONS' }),
  shutdownGrace: numberBetween(0, 600)
    .default(5)
    .describe(
      'Seconds from SIGTERM, when /readyz turns 503, until requests are refused: as long as the load balancer ' +
        'takes to notice. SIGINT stops at once.',
    )
    .meta({ env: 'WCRM_SHUTDOWN_GRACE' }),
  metricsToken: z
    .string()
    .regex(/^\S{16,}$/, 'must have at least 16 characters, without spaces')
    .optional()
    .describe('Bearer token that reads /metrics; when absent, only this machine may.')
    .meta({ env: 'WCRM_METRICS_TOKEN' }),
  metricsListen: ListenAddress.optional()
    .describe(
      'ADDRESS:PORT, or PORT at the same address: serves /metrics and the probes there; /metrics is then ' +
        'off on the main port.',
    )
    .meta({ env: 'WCRM_METRICS_LISTEN' }),
  media: MediaPlace.optional()
    .describe(
      'Folder of received files, or s3://BUCKET/PREFIX?region=REGION&endpoint=URL; "media" in the data folder ' +
        'when absent.',
    )
    .meta({ env: 'WCRM_MEDIA' }),
  mediaPrevious: MediaPlace.optional()
    .describe('Previous store of received files, which is also read while wcrm admin media move runs.')
    .meta({ env: 'WCRM_MEDIA_PREVIOUS' }),
  demo: z.boolean().default(true).describe('Create a demo workspace when the database is empty.'),
})
export type Config = z.output<typeof Config>

type Meta = { env?: string; flag?: string }
const entries = Object.entries(Config.shape).map(([name, schema]) => ({
  name,
  ...((schema as z.ZodType).meta() as Meta & { description?: string }),
}))

/** All settings with their variables and flags, for `wcrm serve --help`. */
export const settings = entries

/** Returns a URL without what may be secret in it. */
const hideCredentials = (text: string): string => {
  const url = URL.parse(text)
  return url ? `${url.protocol}//${url.host}${url.pathname}` : 'a URL'
}

/**
 * Throws when `--data` stands beside `WCRM_DATABASE_URL`: one names an embedded database, the other a
 * PostgreSQL, and a command must not choose the one that the server does not use. `--database-url` beside
 * `WCRM_DATA` is clear: with PostgreSQL, the folder holds the secret and received files.
 */
const requireOneDatabase = (
  { dataDir, databaseUrl }: Record<string, unknown>,
  { WCRM_DATABASE_URL: variable }: Record<string, string | undefined>,
): void => {
  if (dataDir === undefined || databaseUrl !== undefined || !variable) return
  throw new Error(
    `--data names a folder (${String(dataDir)}), but WCRM_DATABASE_URL names a PostgreSQL database ` +
      `(${hideCredentials(variable)}). For the folder's own database, unset WCRM_DATABASE_URL; for PostgreSQL, ` +
      'leave --data out (WCRM_DATA names the folder of its secret and files).',
  )
}

const variables = entries.flatMap(({ env }) => env ?? [])

/** Throws when a variable is nearly the name of one that is read: its value would silently not count. */
const refuseMisspelt = (env: Record<string, string | undefined>): void => {
  const lines = findUnknownVariables(env, variables).flatMap(({ name, nearest }) =>
    nearest ? `${name}: is not a setting. Did you mean ${nearest}?` : [],
  )
  if (lines.length > 0) throw new Error(lines.join('\n'))
}

/** Variables that mean nothing to this version, and resemble none that do. */
export const listIgnoredVariables = (env: Record<string, string | undefined>): string[] =>
  findUnknownVariables(env, variables).map(({ name }) => name)

/**
 * Reads the configuration. Flags override variables; an empty or blank variable counts as absent. Throws an error that
 * names the invalid flag or variable, or a misspelt variable.
 */
export const readConfig = (
  flags: Record<string, unknown>,
  env: Record<string, string | undefined>,
): Config => {
  refuseMisspelt(env)
  requireOneDatabase(flags, env)
  const values: Record<string, unknown> = {}
  for (const { name, env: variable } of entries) {
    const value = flags[name] ?? (variable && env[variable]?.trim() ? env[variable] : undefined)
    if (value !== undefined) values[name] = value
  }
  const parsed = Config.safeParse(values)
  if (parsed.success) return parsed.data
  const lines = parsed.error.issues.map((issue) => {
    const { name, env: variable, flag } = entries.find((e) => e.name === issue.path[0])!
    const where = flags[name] !== undefined && flag ? `--${flag}` : (variable ?? name)
    return `${where}: ${issue.code === 'invalid_value' ? `must be one of ${issue.values.join(', ')}` : issue.message}`
  })
  // A number can be wrong in two ways that have one error.
  throw new Error([...new Set(lines)].join('\n'))
}

/**
 * Checks that the provider is configured completely or not at all: without the app secret, every webhook
 * would be refused. Throws an error that names the missing variables.
 */
export const requireProvider = (config: Config): Config => {
  if (config.providerUrl === undefined) return config
  const isTrueProvider = isProviderHost(new URL(config.providerUrl))
  if (config.provider === 'none' || (config.provider === 'sandbox' && isTrueProvider))
    throw new Error(
      `WCRM_PROVIDER: is ${config.provider}, but WCRM_PROVIDER_URL names a provider; unset one of them`,
    )
  const missing = (['providerToken', 'providerAppSecret', 'providerVerifyToken'] as const).filter(
    (name) => config[name] === undefined,
  )
  if (missing.length === 0) return config
  throw new Error(
    missing
      .map((name) => `${entries.find((e) => e.name === name)!.env}: is required with WCRM_PROVIDER_URL`)
      .join('\n'),
  )
}

import { z } from 'zod'
import { parseAllowList } from './webhooks/guard/allow.ts'

/** Configuration of a server: flags, then `WCRM_*` variables, checked by one schema. */
const PerMinute = z.coerce.number().int().min(1).max(100_000_000)

/** Returns its input unchanged when it parses. */
const AllowList = z.string().transform((text, ctx) => {
  try {
    parseAllowList(text)
  } catch (error) {
    ctx.addIssue({ code: 'custom', message: (error as Error).message })
  }
  return text
})

export const Config = z.object({
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('Address to listen on.')
    .meta({ env: 'WCRM_HOST', flag: 'host' }),
  port: z.coerce
    .number()
    .int()
    .min(0)
    .max(65535)
    .default(8787)
    .describe('Port to listen on; 0 picks a free one.')
    .meta({ env: 'WCRM_PORT', flag: 'port' }),
  dataDir: z
    .string()
    .min(1)
    .default('.wcrm')
    .describe('Folder of the embedded database and the secret.')
    .meta({ env: 'WCRM_DATA', flag: 'data' }),
  databaseUrl: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must begin with postgres://')
    .optional()
    .describe('URL of PostgreSQL 15 or newer; the embedded database when absent.')
    .meta({ env: 'WCRM_DATABASE_URL', flag: 'database-url' }),
  databaseConnections: z.coerce
    .number()
    .int()
    .min(2)
    .max(200)
    .default(16)
    .describe('Maximum number of connections to PostgreSQL.')
    .meta({ env: 'WCRM_DATABASE_CONNECTIONS' }),
  databasePrepare: z
    .enum(['on', 'off'])
    .default('on')
    .describe('Prepared statements; off behind a PgBouncer that does not support them.')
    .meta({ env: 'WCRM_DATABASE_PREPARE' }),
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('Base of every URL that the server returns, when it is behind a proxy.')
    .meta({ env: 'WCRM_PUBLIC_URL' }),
  secret: z
    .string()
    .min(16, 'must have at least 16 characters')
    .optional()
    .describe(
      'Seals cursors and stored secrets; must be the same on every server. Generated and stored in ' +
        'the data folder when absent.',
    )
    .meta({ env: 'WCRM_SECRET' }),
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
  advancedFilters: z
    .enum(['on', 'off'])
    .default('on')
    .describe('Contact filters, the most expensive requests; off refuses them.')
    .meta({ env: 'WCRM_ADVANCED_FILTERS' }),
  countTimeBox: z.coerce
    .number()
    .int()
    .min(0)
    .max(10_000)
    .default(1000)
    .describe('Milliseconds allowed for an exact count of a filter; after that it is estimated.')
    .meta({ env: 'WCRM_COUNT_TIME_BOX' }),
  logLevel: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Minimum log level; logs are JSON lines on stderr.')
    .meta({ env: 'WCRM_LOG_LEVEL' }),
  providerUrl: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .optional()
    .describe('Base URL of the messaging provider, without the version; the built-in sandbox when absent.')
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
  eventRetentionDays: z.coerce
    .number()
    .int()
    .min(14)
    .max(3650)
    .optional()
    .describe('Days to keep the event log, at least 14; forever when absent.')
    .meta({ env: 'WCRM_EVENT_RETENTION_DAYS' }),
  webhookRetentionDays: z.coerce
    .number()
    .int()
    .min(1)
    .max(3650)
    .default(30)
    .describe('Days to keep finished webhook deliveries.')
    .meta({ env: 'WCRM_WEBHOOK_RETENTION_DAYS' }),
  auditRetentionDays: z.coerce
    .number()
    .int()
    .min(1)
    .max(36500)
    .default(400)
    .describe('Days to keep the audit trail.')
    .meta({ env: 'WCRM_AUDIT_RETENTION_DAYS' }),
  media: z
    .string()
    .min(1)
    .optional()
    .describe('Folder of received files; "media" in the data folder when absent.')
    .meta({ env: 'WCRM_MEDIA' }),
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

/**
 * Reads the configuration. Flags override variables; an empty variable counts as absent. Throws an error that
 * names the invalid flag or variable.
 */
export const readConfig = (
  flags: Record<string, unknown>,
  env: Record<string, string | undefined>,
): Config => {
  const values: Record<string, unknown> = {}
  for (const { name, env: variable } of entries) {
    const value = flags[name] ?? (variable && env[variable] !== '' ? env[variable] : undefined)
    if (value !== undefined) values[name] = value
  }
  const parsed = Config.safeParse(values)
  if (parsed.success) return parsed.data
  const lines = parsed.error.issues.map((issue) => {
    const { name, env: variable, flag } = entries.find((e) => e.name === issue.path[0])!
    const where = flags[name] !== undefined && flag ? `--${flag}` : (variable ?? name)
    return `${where}: ${issue.message}`
  })
  throw new Error(lines.join('\n'))
}

/**
 * Checks that the provider is configured completely or not at all: without the app secret, every webhook
 * would be refused. Throws an error that names the missing variables.
 */
export const requireProvider = (config: Config): Config => {
  if (config.providerUrl === undefined) return config
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

import { hkdfSync } from 'node:crypto'

/** How the provider is reached, and how its webhooks are verified. */
export type ProviderSettings = {
  /** This server serves the sandbox that emulates the provider. */
  builtIn: boolean
  /** A sandbox is the provider, this server's own or a standalone one: it alone is sent control calls. */
  sandbox: boolean
  /** Without the API version and without a trailing slash. */
  baseUrl: string
  version: string
  token: string
  appSecret: string
  verifyToken: string
  appId?: string | undefined
  archiveUrl?: string | undefined
  /** Of one request. */
  timeoutMs?: number
}

/** How long one request to the provider may take, and a repeat waits for what became of an earlier call. */
const DEFAULT_TIMEOUT_MS = 15_000

export const toTimeoutMs = ({ providerTimeout }: Pick<ProviderConfig, 'providerTimeout'>): number =>
  providerTimeout === undefined ? DEFAULT_TIMEOUT_MS : providerTimeout * 1000

/** Path of the built-in sandbox on this server. */
export const SANDBOX_PATH = '/sandbox/provider'
export const WEBHOOK_PATH = '/provider/webhook'

export type ProviderConfig = {
  /** `WCRM_PROVIDER`. */
  provider?: 'sandbox' | 'none' | undefined
  providerUrl?: string | undefined
  providerVersion?: string
  providerToken?: string | undefined
  providerAppSecret?: string | undefined
  providerVerifyToken?: string | undefined
  providerAppId?: string | undefined
  providerArchiveUrl?: string | undefined
  /** Seconds. */
  providerTimeout?: number | undefined
}

const DEFAULT_VERSION = 'v23.0'

/** Begins the tokens that standalone sandboxes make for themselves; no token of the provider begins so. */
export const SANDBOX_TOKEN_PREFIX = 'wcrm_sandbox_'

const deriveSecret = (secret: string, purpose: string): string =>
  Buffer.from(hkdfSync('sha256', secret, 'wcrm', `sandbox ${purpose}`, 24)).toString('base64url')

const stripTrailingSlashes = (url: string): string => url.replace(/\/+$/, '')

/**
 * Returns who the provider is: one at a URL, the built-in sandbox, or nobody. The sandbox plays it where it
 * was asked for; the embedded database is for trying the service out, which asks for it.
 */
export const chooseProvider = (
  { provider, providerUrl }: ProviderConfig,
  embedded: boolean,
): 'url' | 'sandbox' | 'none' =>
  providerUrl === undefined ? (provider ?? (embedded ? 'sandbox' : 'none')) : 'url'

/** Domains of the provider itself. */
const PROVIDER_HOSTS = ['facebook.com', 'fbsbx.com', 'whatsapp.net'] as const

/** Whether the URL is on one of the provider's hosts or below it. */
export const isProviderHost = ({ hostname }: URL): boolean =>
  PROVIDER_HOSTS.some((host) => hostname === host || hostname.endsWith(`.${host}`))

/**
 * Whether a standalone sandbox is at this URL. It is said by `WCRM_PROVIDER` or by the token, and never asked
 * for: a true provider must not be sent what only a sandbox understands.
 */
const isStandaloneSandbox = ({ provider, providerUrl, providerToken }: ProviderConfig): boolean =>
  (provider === 'sandbox' || providerToken?.startsWith(SANDBOX_TOKEN_PREFIX) === true) &&
  !isProviderHost(new URL(providerUrl!))

/**
 * Returns how the built-in sandbox is reached, which this server serves at `localUrl`. Its secrets are derived
 * from the server's, so that all servers of a database agree.
 */
export const resolveSandboxSettings = (
  secret: string,
  localUrl: string,
  version = DEFAULT_VERSION,
): ProviderSettings => ({
  builtIn: true,
  sandbox: true,
  baseUrl: `${localUrl}${SANDBOX_PATH}`,
  version,
  appId: 'sandbox',
  token: deriveSecret(secret, 'token'),
  appSecret: deriveSecret(secret, 'app secret'),
  verifyToken: deriveSecret(secret, 'verify token'),
})

/** Returns how the provider is reached; undefined when there is none. */
export const resolveProviderSettings = (
  config: ProviderConfig,
  { secret, localUrl, embedded }: { secret: string; localUrl: string; embedded: boolean },
): ProviderSettings | undefined => {
  const version = config.providerVersion ?? DEFAULT_VERSION
  const chosen = chooseProvider(config, embedded)
  if (chosen === 'none') return undefined
  if (chosen === 'sandbox')
    return { ...resolveSandboxSettings(secret, localUrl, version), timeoutMs: toTimeoutMs(config) }
  return {
    builtIn: false,
    sandbox: isStandaloneSandbox(config),
    baseUrl: stripTrailingSlashes(config.providerUrl!),
    version,
    token: config.providerToken!,
    appSecret: config.providerAppSecret!,
    verifyToken: config.providerVerifyToken!,
    appId: config.providerAppId,
    archiveUrl: config.providerArchiveUrl && stripTrailingSlashes(config.providerArchiveUrl),
    timeoutMs: toTimeoutMs(config),
  }
}

import { hkdfSync } from 'node:crypto'

/** How the provider is reached, and how its webhooks are known. */
export type ProviderSettings = {
  /** This server plays the provider itself. */
  builtIn: boolean
  /** Without the version and without a slash at the end. */
  baseUrl: string
  version: string
  token: string
  appSecret: string
  verifyToken: string
  appId?: string | undefined
  archiveUrl?: string | undefined
}

/** Where the built-in sandbox is, below the server's own address. */
export const SANDBOX_PATH = '/sandbox/provider'
export const WEBHOOK_PATH = '/provider/webhook'

export type ProviderConfig = {
  providerUrl?: string | undefined
  providerVersion?: string
  providerToken?: string | undefined
  providerAppSecret?: string | undefined
  providerVerifyToken?: string | undefined
  providerAppId?: string | undefined
  providerArchiveUrl?: string | undefined
}

const DEFAULT_VERSION = 'v23.0'

const derived = (secret: string, purpose: string): string =>
  Buffer.from(hkdfSync('sha256', secret, 'wcrm', `sandbox ${purpose}`, 24)).toString('base64url')

const bare = (url: string): string => url.replace(/\/+$/, '')

/**
 * The configured provider, else the sandbox that this server serves at `localUrl`. Its secrets come from
 * the server's, so that all servers of a database agree.
 */
export const providerSettings = (
  config: ProviderConfig,
  secret: string,
  localUrl: string,
): ProviderSettings => {
  const version = config.providerVersion ?? DEFAULT_VERSION
  if (config.providerUrl === undefined) {
    return {
      builtIn: true,
      baseUrl: `${localUrl}${SANDBOX_PATH}`,
      version,
      appId: 'sandbox',
      token: derived(secret, 'token'),
      appSecret: derived(secret, 'app secret'),
      verifyToken: derived(secret, 'verify token'),
    }
  }
  return {
    builtIn: false,
    baseUrl: bare(config.providerUrl),
    version,
    token: config.providerToken!,
    appSecret: config.providerAppSecret!,
    verifyToken: config.providerVerifyToken!,
    appId: config.providerAppId,
    archiveUrl: config.providerArchiveUrl && bare(config.providerArchiveUrl),
  }
}

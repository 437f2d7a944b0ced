import { createAccountsApi } from './adapter/accounts.ts'
import { createProviderHttp, type ProviderHttp } from './adapter/http.ts'
import { createLinksApi } from './adapter/links.ts'
import { createMediaApi } from './adapter/media.ts'
import { createMessagesApi } from './adapter/messages.ts'
import { createSamplesApi } from './adapter/samples.ts'
import { createTemplatesApi } from './adapter/templates.ts'
import { createWebhookGuard, type WebhookGuard } from '../outbound-guard.ts'
import { Problem } from '../kernel/problem.ts'
import type { Provider } from './port.ts'
import { toTimeoutMs } from './settings.ts'

export type AdapterOptions = {
  /** Base URL of the provider or of a sandbox, without the API version. */
  baseUrl: string
  /** API version, such as `v23.0`. */
  version: string
  token: string
  /** The app that template samples are uploaded to; without it uploads are refused. */
  appId?: string | undefined
  /**
   * Base URL of the template archive. Defaults to `baseUrl`, or for the provider itself to the other host
   * that it uses for the archive.
   */
  archiveUrl?: string | undefined
  /** Timeout of one request, in milliseconds. */
  timeoutMs?: number | undefined
  /** False for the provider itself: it is not asked for what only a sandbox can answer. */
  sandbox?: boolean | undefined
  /** Checks the addresses that files are downloaded from; public ones alone when absent. */
  guard?: WebhookGuard | undefined
}

const ARCHIVE_URLS: Readonly<Record<string, string>> = {
  'https://graph.facebook.com': 'https://api.facebook.com',
}

/** A refusal of a template or link is the provider's own, but for one that names a rule of the lint. */
const refusingItself = (http: ProviderHttp): ProviderHttp => ({
  ...http,
  request: async (...call) => {
    try {
      return await http.request(...call)
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== 'invalid_input' || error.extras.errors?.[0]?.rule)
        throw error
      const { errors: _, ...extras } = error.extras
      throw new Problem('upstream_error', error.message, extras)
    }
  },
})

/** Creates the client of the provider's HTTP API, or of a sandbox that emulates it. */
export const createAdapter = ({
  baseUrl: configuredUrl,
  version,
  token,
  appId,
  archiveUrl,
  timeoutMs = toTimeoutMs({}),
  sandbox = true,
  guard = createWebhookGuard(),
}: AdapterOptions): Provider => {
  const baseUrl = configuredUrl.replace(/\/+$/, '')
  const http = createProviderHttp({ baseUrl, version, token, timeoutMs })
  return {
    ...createMessagesApi(http, sandbox),
    ...createMediaApi(http, guard.agent),
    ...createAccountsApi(http),
    ...createTemplatesApi(
      refusingItself(http),
      archiveUrl?.replace(/\/+$/, '') ?? ARCHIVE_URLS[baseUrl] ?? baseUrl,
    ),
    ...createSamplesApi(http, appId),
    ...createLinksApi(refusingItself(http)),
  }
}

import { accounts } from './adapter/accounts.ts'
import { createHttp } from './adapter/http.ts'
import { links } from './adapter/links.ts'
import { media, MEDIA_HOSTS } from './adapter/media.ts'
import { messages } from './adapter/messages.ts'
import { samples } from './adapter/samples.ts'
import { templates } from './adapter/templates.ts'
import type { Provider } from './port.ts'

export type AdapterOptions = {
  /** Base URL of the provider or of a sandbox, without the version. */
  baseUrl: string
  /** Such as `v23.0`. */
  version: string
  token: string
  /** The app that samples of templates are uploaded to; without it they are refused. */
  appId?: string | undefined
  /**
   * Base URL of the template archive; the base URL's when absent, but for the provider itself, which has it
   * on another host.
   */
  archiveUrl?: string | undefined
  /** How long one answer may take, in milliseconds. */
  timeoutMs?: number | undefined
  /** Domains beside the base URL's that are sent the token when a file is fetched there. */
  mediaHosts?: readonly string[] | undefined
}

const ARCHIVES: Readonly<Record<string, string>> = {
  'https://graph.facebook.com': 'https://api.facebook.com',
}

/**
 * The provider as it is spoken to over HTTP: the Cloud API of the messaging app, or a sandbox that speaks
 * the same.
 */
export const createAdapter = ({
  baseUrl: given,
  version,
  token,
  appId,
  archiveUrl,
  timeoutMs = 15_000,
  mediaHosts = MEDIA_HOSTS,
}: AdapterOptions): Provider => {
  const baseUrl = given.replace(/\/+$/, '')
  const http = createHttp({ baseUrl, version, token, timeoutMs })
  return {
    ...messages(http),
    ...media(http, mediaHosts),
    ...accounts(http),
    ...templates(http, archiveUrl?.replace(/\/+$/, '') ?? ARCHIVES[baseUrl] ?? baseUrl),
    ...samples(http, appId),
    ...links(http),
  }
}

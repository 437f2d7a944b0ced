import { z } from 'zod'
import { Problem } from '../../core/problem.ts'
import { isPublicName } from '../../public-name.ts'
import type { Provider } from '../port.ts'
import { Maybe, ProviderId } from './answers.ts'
import { at, deadline, type Http, readUpTo } from './http.ts'
import { refusalProblem, transportProblem } from './problems.ts'

const Uploaded = z.object({ id: ProviderId })
const Info = z.object({
  url: z.string().min(1),
  mime_type: z.string().min(1),
  file_size: z.coerce.number().int().nonnegative().nullish().catch(null),
  sha256: Maybe,
})

const MOST_REDIRECTS = 3
/** A hundred megabytes take longer than an answer. */
const PATIENCE = 8

const refusedUrl = (): Problem =>
  new Problem('upstream_error', 'The address of the file is not one that may be fetched.', {
    reason: 'media_refused',
  })

/** Where a file may be fetched: on the provider's own address as it is configured, or publicly over https. */
const fetchable = (url: string, base: URL): URL => {
  const at = URL.canParse(url) ? new URL(url) : undefined
  if (!at || at.username !== '' || at.password !== '') throw refusedUrl()
  if (at.origin === base.origin) return at
  if (at.protocol !== 'https:' || at.port !== '' || !isPublicName(at.hostname)) throw refusedUrl()
  return at
}

/** Hosts beside the base URL's that are the provider's: only they are shown the token. */
export const MEDIA_HOSTS = ['facebook.com', 'fbsbx.com', 'whatsapp.net'] as const

const isTrusted = (url: URL, base: URL, hosts: readonly string[]): boolean =>
  url.origin === base.origin ||
  (url.protocol === 'https:' &&
    hosts.some((host) => url.hostname === host || url.hostname.endsWith(`.${host}`)))

const tooLarge = (mostBytes: number): Problem =>
  new Problem('payload_too_large', `The file has more than ${mostBytes} bytes.`, { limit_bytes: mostBytes })

export const media = (
  { ask, options: { baseUrl, token, timeoutMs } }: Http,
  hosts: readonly string[],
): Pick<Provider, 'uploadMedia' | 'mediaInfo' | 'downloadMedia'> => ({
  uploadMedia: async ({ phoneNumberId }, { bytes, contentType, fileName }, signal) => {
    const body = new FormData()
    body.set('messaging_product', 'whatsapp')
    body.set('type', contentType)
    body.set('file', new Blob([Uint8Array.from(bytes)], { type: contentType }), fileName ?? 'file')
    return await ask(Uploaded, { method: 'POST', path: at(phoneNumberId, 'media'), body }, signal)
  },

  mediaInfo: async (mediaId, signal) => {
    const {
      url,
      mime_type: contentType,
      file_size: size,
      sha256,
    } = await ask(Info, { method: 'GET', path: at(mediaId) }, signal)
    return { url, contentType, size: size ?? null, sha256 }
  },

  downloadMedia: async (url, mostBytes, outer) => {
    const base = new URL(baseUrl)
    const signal = deadline(outer, PATIENCE * timeoutMs)
    let at = fetchable(url, base)
    try {
      for (let hop = 0; hop <= MOST_REDIRECTS; hop++) {
        const response = await fetch(at, {
          redirect: 'manual',
          signal,
          headers: isTrusted(at, base, hosts) ? { Authorization: `Bearer ${token}` } : {},
        })
        if (response.status >= 300 && response.status < 400) {
          await response.body?.cancel()
          const to = response.headers.get('location') ?? ''
          at = fetchable(to !== '' && URL.canParse(to, at) ? new URL(to, at).href : '', base)
          continue
        }
        if (!response.ok) {
          await response.body?.cancel()
          const gone = response.status === 404 || response.status === 410
          throw gone
            ? new Problem('upstream_error', 'The provider does not have the file at this address any more.', {
                reason: 'provider_not_found',
              })
            : refusalProblem(response.status, response.headers, undefined, token)
        }
        if (Number(response.headers.get('content-length')) > mostBytes) {
          await response.body?.cancel()
          throw tooLarge(mostBytes)
        }
        const bytes = await readUpTo(response, mostBytes)
        if (!bytes) throw tooLarge(mostBytes)
        return bytes
      }
      throw refusedUrl()
    } catch (error) {
      throw transportProblem(error, signal)
    }
  },
})

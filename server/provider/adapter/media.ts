import { fetch as fetchWith, type Dispatcher } from 'undici'
import { z } from 'zod'
import { Problem } from '../../kernel/problem.ts'
import { isPublicHostName } from '../../public-host-name.ts'
import { isProviderHost } from '../settings.ts'
import type { Provider } from '../port.ts'
import { OptionalText, ProviderId } from './responses.ts'
import { limitBytes, tooLargeProblem } from '../../media-store.ts'
import { joinPath, withTimeout, type ProviderHttp } from './http.ts'
import { refusalProblem, transportProblem } from './problems.ts'

const Uploaded = z.object({ id: ProviderId })
const Info = z.object({
  url: z.string().min(1),
  mime_type: z.string().min(1),
  file_size: z.coerce.number().int().nonnegative().nullish().catch(null),
  sha256: OptionalText,
})

const MAX_REDIRECTS = 3
/** A download of up to a hundred megabytes may take this many times as long as another request. */
const DOWNLOAD_TIMEOUT_FACTOR = 8

const forbiddenUrlProblem = (): Problem =>
  new Problem('upstream_error', 'The URL of the file is not allowed.', {
    reason: 'media_refused',
  })

/** Throws unless files may be downloaded from this URL: the configured provider, or a public https host. */
const requireFetchableUrl = (text: string, base: URL): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || url.username !== '' || url.password !== '') throw forbiddenUrlProblem()
  if (url.origin === base.origin) return url
  if (url.protocol !== 'https:' || url.port !== '' || !isPublicHostName(url.hostname))
    throw forbiddenUrlProblem()
  return url
}

/** Whether the token may be sent there: to the configured provider, and to the true one's hosts of files. */
const isTrusted = (url: URL, base: URL): boolean =>
  url.origin === base.origin || (url.protocol === 'https:' && isProviderHost(url))

export const createMediaApi = (
  { request, options: { baseUrl, token, timeoutMs } }: ProviderHttp,
  agent: Dispatcher,
): Pick<Provider, 'uploadMedia' | 'mediaInfo' | 'downloadMedia'> => ({
  uploadMedia: async ({ phoneNumberId }, { bytes, contentType, fileName }, signal) => {
    const body = new FormData()
    body.set('messaging_product', 'whatsapp')
    body.set('type', contentType)
    body.set('file', new Blob([Uint8Array.from(bytes)], { type: contentType }), fileName ?? 'file')
    return await request(Uploaded, { method: 'POST', path: joinPath(phoneNumberId, 'media'), body }, signal)
  },

  mediaInfo: async (mediaId, signal) => {
    const {
      url,
      mime_type: contentType,
      file_size: size,
      sha256,
    } = await request(Info, { method: 'GET', path: joinPath(mediaId) }, signal)
    return { url, contentType, size: size ?? null, sha256 }
  },

  downloadMedia: async (fileUrl, maxBytes, callerSignal) => {
    const base = new URL(baseUrl)
    const signal = withTimeout(callerSignal, DOWNLOAD_TIMEOUT_FACTOR * timeoutMs)
    let url = requireFetchableUrl(fileUrl, base)
    // A host that is not the provider's cannot send the token back to the provider, for a file of its choice.
    let trusted = true
    try {
      for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
        trusted &&= isTrusted(url, base)
        const options: FetchOptions = {
          redirect: 'manual',
          signal,
          headers: trusted ? { Authorization: `Bearer ${token}` } : {},
        }
        const response =
          url.origin === base.origin ? await fetch(url, options) : await fetchPublic(url, options, agent)
        if (response.status < 300 || response.status >= 400) {
          await requireFile(response, maxBytes, token)
          return readFile(response, maxBytes, signal)
        }
        await response.body?.cancel()
        const location = response.headers.get('location') ?? ''
        const target = location !== '' && URL.canParse(location, url) ? new URL(location, url).href : ''
        url = requireFetchableUrl(target, base)
      }
      throw forbiddenUrlProblem()
    } catch (error) {
      throw transportProblem(error, signal)
    }
  },
})

type FetchOptions = { redirect: 'manual'; signal: AbortSignal; headers: Record<string, string> }

/** Fetches from an address that is checked on the connection itself. Throws when it is not public. */
const fetchPublic = async (url: URL, options: FetchOptions, dispatcher: Dispatcher): Promise<Response> => {
  try {
    return (await fetchWith(url, { ...options, dispatcher })) as unknown as Response
  } catch (error) {
    throw ((error as Error).cause as { code?: string } | undefined)?.code === 'ADDRESS_REFUSED'
      ? forbiddenUrlProblem()
      : error
  }
}

/** Throws the problem of a refusal, and 413 for a file that is said to be large. */
const requireFile = async (response: Response, maxBytes: number, token: string): Promise<void> => {
  if (!response.ok) {
    await response.body?.cancel()
    if (response.status === 404 || response.status === 410)
      throw new Problem('upstream_error', 'The provider no longer has the file at this URL.', {
        reason: 'provider_not_found',
      })
    throw refusalProblem(response.status, response.headers, undefined, token)
  }
  if (Number(response.headers.get('content-length')) > maxBytes) {
    await response.body?.cancel()
    throw tooLargeProblem(maxBytes)
  }
}

/** Yields the file of a response as it arrives. */
async function* readFile(
  response: Response,
  maxBytes: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* limitBytes(response.body ?? [], maxBytes)
  } catch (error) {
    throw transportProblem(error, signal)
  }
}

import { fetch, type Response } from 'undici'
import { Problem } from '../../kernel/problem.ts'
import { type WebhookGuard, checkWebhookUrl } from '../../outbound-guard.ts'
import { limitBytes, tooLargeProblem } from '../../media-store.ts'

const MAX_REDIRECTS = 3

const refused = (detail: string): Problem =>
  new Problem('upstream_error', detail, { reason: 'media_refused' })

/** `content` arrives as it is read; it throws 413 when there is more than was asked for. */
export type Download = { content: AsyncIterable<Uint8Array>; contentType: string | null }

/**
 * Begins the download of a file that a bridge named, over connections to checked addresses, redirects included.
 * Throws a problem with the reason `media_refused` when the URL will never do, and 413 when there are more than
 * `maxBytes`; rejects with another error when a retry may succeed.
 */
export const downloadFromUrl = async (
  guard: WebhookGuard,
  address: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Download> => {
  let url = address
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const checked = await checkWebhookUrl(url, guard).catch((error: unknown) => {
      throw error instanceof Problem && error.status === 400
        ? refused('The URL of the file is not allowed.')
        : error
    })
    const response = await fetch(checked.url, { redirect: 'manual', signal, dispatcher: guard.agent })
    if (response.status < 300 || response.status >= 400) return await openFile(response, maxBytes)
    await response.body?.cancel()
    url = URL.parse(response.headers.get('location') ?? '', checked.url)?.href ?? ''
  }
  throw refused('The URL of the file redirects too often.')
}

const openFile = async (response: Response, maxBytes: number): Promise<Download> => {
  if (!response.ok) {
    await response.body?.cancel()
    if (response.status >= 400 && response.status < 500 && response.status !== 408 && response.status !== 429)
      throw refused(`The URL of the file answers ${response.status}.`)
    throw new Error(`the URL of the file answers ${response.status}`)
  }
  if (Number(response.headers.get('content-length') ?? 0) > maxBytes) {
    await response.body?.cancel()
    throw tooLargeProblem(maxBytes)
  }
  const body = (response.body ?? []) as AsyncIterable<Uint8Array>
  return { content: limitBytes(body, maxBytes), contentType: response.headers.get('content-type') }
}

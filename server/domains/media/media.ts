import { toMediaUrl, openMediaUrl } from './urls.ts'
import type { Handler, OutputOf } from '../../handler.ts'
import type { Reason } from '../../../catalog/reasons.ts'
import { findMedia } from '../../../storage/messages/media.ts'
import type { App } from '../../app.ts'
import { notFound, Problem } from '../../kernel/problem.ts'
import { countFailure } from '../../kernel/throttle.ts'
import { parseRange } from './range.ts'
import type { MediaStore } from '../../media-store.ts'
import { canSeeChannel } from '../../visibility/policy.ts'

type Output = OutputOf<'messaging_get_media'>

const DEFAULT_CONTENT_TYPE = 'application/octet-stream'

/** Returns the file of a message and its URL. Staff without access to its channel get 404. */
export const getMedia: Handler<'messaging_get_media'> = async (ctx, { message_id: id }) => {
  const media = await findMedia(ctx.tx, ctx.actor.workspace.id, id)
  if (!media || !canSeeChannel(ctx.actor, media.channel_id)) throw notFound('message', id)
  const shown = {
    content_type: toContentType(media.content_type),
    file_name: media.file_name,
    size: media.size === null ? null : Number(media.size),
  }
  switch (media.state) {
    case 'kept':
      return { ...shown, ...toMediaUrl(ctx, media.message_id) }
    case 'linked':
      return { ...shown, url: media.url!, expires_at: null }
    case 'waiting':
      throw new Problem(
        'conflict',
        'The file is still being downloaded. Retry in a few seconds.',
        { reason: 'media_pending' },
        { 'Retry-After': '5' },
      )
    case 'too_large':
      throw mediaGone('media_too_large', media.error ?? 'The file is larger than this server keeps.')
    case 'lost':
      throw mediaGone(
        'media_lost',
        media.error ?? 'The file could not be downloaded from the messaging provider.',
      )
    default:
      throw mediaGone('no_media', 'No file came with this message.')
  }
}

const mediaGone = (reason: Reason, detail: string): Problem => new Problem('not_found', detail, { reason })

/** Customers choose it: what does not look like a media type is replaced by the default. */
const toContentType = (type: string | null): string =>
  type !== null && /^[\w.+-]{1,100}\/[\w.+-]{1,100}(?:; ?[\w.+-]{1,50}=[\w.+-]{1,100})?$/.test(type)
    ? type
    : DEFAULT_CONTENT_TYPE

/**
 * Serves the file of a sealed URL, or what the header `Range` asks of it. It passes through this server wherever the
 * file is, so that a deleted message has no URL that still works, and no browser shows a file as a page of the
 * store. Throws 404 when the URL is invalid or expired, or the file is deleted, 429 when the client sent too many
 * invalid ones, and 503 while the store does not respond.
 */
export const serveMedia = async (
  app: App,
  token: string,
  { address, range }: { address?: string | undefined; range: string | undefined },
): Promise<Response> => {
  const opened = openMediaUrl(app.mediaSealer, token, app.now())
  if (!opened) countFailure(app, address, 'media_url')
  if (!opened || opened.hasExpired)
    throw new Problem(
      'not_found',
      'This URL of a file has expired. Call messaging_get_media for a new one.',
      { reason: 'media_url_expired' },
    )
  const { workspaceId, messageId } = opened
  const media = await findMedia(app.db, workspaceId, messageId)
  const key = media?.state === 'kept' ? media.key : null
  const found = app.media && key !== null ? await openFile(app.media, key, range) : undefined
  if (!media || !found) throw mediaGone('media_lost', 'The file is not in the store of this server.')
  const contentType = toContentType(media.content_type)
  return new Response(found.content, {
    status: found.status,
    headers: {
      ...found.headers,
      'Accept-Ranges': 'bytes',
      'Content-Type': contentType,
      'Content-Disposition': toContentDisposition(toFileName(media.file_name, messageId, contentType)),
      // Customers can send anything: a browser must never show it as a page of this server.
      'X-Content-Type-Options': 'nosniff',
      'Content-Security-Policy': "sandbox; default-src 'none'",
      'Cache-Control': 'private, max-age=300',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Referrer-Policy': 'no-referrer',
    },
  })
}

type OpenedFile = {
  status: 200 | 206 | 416
  content: ReadableStream<Uint8Array> | null
  headers: Record<string, string>
}

/** Opens a file, or the range of it. Undefined when it does not exist. */
const openFile = async (
  store: MediaStore,
  key: string,
  header: string | undefined,
): Promise<OpenedFile | undefined> => {
  const whole = header === undefined ? undefined : await store.find(key)
  const range = whole && parseRange(header!, whole.size)
  if (range === 'unsatisfiable')
    return { status: 416, content: null, headers: { 'Content-Range': `bytes */${whole!.size}` } }
  const file = await store.read(key, range)
  if (!file) return undefined
  const headers = { 'Content-Length': String(file.size) }
  if (!range || file.size !== range.end - range.start + 1)
    return { status: 200, content: file.content, headers }
  const { start, end } = range
  return {
    status: 206,
    content: file.content,
    headers: { ...headers, 'Content-Range': `bytes ${start}-${end}/${whole!.size}` },
  }
}

const fileExtensions: Readonly<Record<string, string>> = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/webp': 'webp',
  'video/mp4': 'mp4',
  'video/3gpp': '3gp',
  'audio/ogg': 'ogg',
  'audio/mpeg': 'mp3',
  'audio/mp4': 'm4a',
  'audio/aac': 'aac',
  'audio/amr': 'amr',
  'application/pdf': 'pdf',
  'text/plain': 'txt',
}

/** Returns a name of a customer's file that is safe in any folder. */
export const toFileName = (name: string | null, messageId: string, contentType: string | null): string => {
  const ending = fileExtensions[toContentType(contentType).split(';')[0]!]
  const safe = (name ?? '')
    .toWellFormed()
    // oxlint-disable-next-line no-control-regex -- control characters are what must be replaced
    .replaceAll(/[\u0000-\u001f\u007f-\u009f\\/:*?"<>|\u202a-\u202e\u2066-\u2069]/g, '_')
    .replace(/^[.\s]+/, '')
    .trim()
  return safe === '' ? `message-${messageId}${ending === undefined ? '' : `.${ending}`}` : safe
}

/** An attachment with its file name (RFC 6266): in ASCII for old clients, in UTF-8 for all others. */
export const toContentDisposition = (full: string): string => {
  const ascii = full.replaceAll(/[^\x20-\x7e]/g, '_').replaceAll('%', '_')
  const encoded = encodeURIComponent(full).replaceAll(
    /['()*!]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${ascii}"${ascii === full ? '' : `; filename*=UTF-8''${encoded}`}`
}

/** The response of the REST route: the file itself from the media store, or a redirect to where it is. */
export const createMediaResponse = async (
  app: App,
  described: Output,
  headers: Record<string, string>,
  range: string | undefined,
): Promise<Response> => {
  const { 'Content-Type': _, ...kept } = headers
  const mediaUrl = `${app.config.publicUrl}/media/`
  const response =
    described.url.startsWith(mediaUrl) && described.expires_at !== null
      ? await serveMedia(app, described.url.slice(mediaUrl.length), { range })
      : new Response(null, { status: 302, headers: { Location: new URL(described.url).href } })
  for (const [name, value] of Object.entries(kept)) response.headers.set(name, value)
  return response
}

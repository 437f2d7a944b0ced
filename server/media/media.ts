import { readMedia } from '../../storage/media.ts'
import type { App } from '../app.ts'
import { mayUse } from '../inbox/access.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { notFound, Problem } from '../core/problem.ts'
import { openMediaUrl } from './urls.ts'

type Output = OutputOf<'messaging_get_media'>

const UNNAMED = 'application/octet-stream'

/** What came with a message, and where it is read. Staff without access to its channel find nothing. */
export const getMedia: Handler<InputOf<'messaging_get_media'>, Output> = async (ctx, { message_id: id }) => {
  const media = await readMedia(ctx.tx, ctx.actor.workspace.id, id)
  if (!media || !mayUse(ctx.actor, media.channel_id)) throw notFound('message', id)
  const shown = {
    content_type: contentTypeOf(media.content_type),
    file_name: media.file_name,
    size: media.size === null ? null : Number(media.size),
  }
  switch (media.state) {
    case 'kept':
      return { ...shown, ...ctx.mediaUrl(media.message_id) }
    case 'linked':
      return { ...shown, url: media.url!, expires_at: null }
    case 'waiting':
      throw new Problem(
        'conflict',
        'The file is still being fetched from the messaging provider. Ask again in a few seconds.',
        { reason: 'media_pending' },
        { 'Retry-After': '5' },
      )
    case 'too_large':
      throw gone('media_too_large', media.error ?? 'The file is larger than this server keeps.')
    case 'lost':
      throw gone('media_lost', media.error ?? 'The file could not be fetched from the messaging provider.')
    default:
      throw gone('no_media', 'No file came with this message.')
  }
}

const gone = (reason: string, detail: string): Problem => new Problem('not_found', detail, { reason })

/** Customers choose it: what does not look like a type is none. */
const contentTypeOf = (type: string | null): string =>
  type !== null && /^[\w.+-]{1,100}\/[\w.+-]{1,100}(?:; ?[\w.+-]{1,50}=[\w.+-]{1,100})?$/.test(type)
    ? type
    : UNNAMED

/** The bytes behind a sealed address. Throws 404 when it is none of ours, is over, or the file is gone. */
export const serveMedia = async (app: App, token: string): Promise<Response> => {
  const opened = openMediaUrl(app.mediaSealer, token)
  if (!opened)
    throw new Problem(
      'not_found',
      'This address of a file does not work any more. Ask messaging_get_media for a new one.',
      { reason: 'media_url_expired' },
    )
  const { workspaceId, messageId } = opened
  const media = await readMedia(app.db, workspaceId, messageId)
  const blob = media?.state === 'kept' && media.key !== null ? await app.media?.read(media.key) : undefined
  if (!media || !blob) throw gone('media_lost', "The file is not in this server's media folder.")
  const contentType = contentTypeOf(media.content_type)
  return new Response(blob, {
    headers: {
      'Content-Type': contentType,
      'Content-Length': String(blob.size),
      'Content-Disposition': disposition(media.file_name, messageId, contentType),
      // Customers send what they like: it is never shown as a page of ours.
      'X-Content-Type-Options': 'nosniff',
      'Content-Security-Policy': "sandbox; default-src 'none'",
      'Cache-Control': 'private, max-age=300',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Referrer-Policy': 'no-referrer',
    },
  })
}

const endings: Readonly<Record<string, string>> = {
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

/** To be saved under its name (RFC 6266): in plain ASCII for old readers, in UTF-8 for all others. */
const disposition = (name: string | null, messageId: string, contentType: string): string => {
  const ending = endings[contentType.split(';')[0]!]
  // eslint-disable-next-line no-control-regex -- control characters are what must go
  const safe = (name ?? '')
    .toWellFormed()
    .replaceAll(/[\u0000-\u001f\u007f-\u009f\\/:*?"<>|\u202a-\u202e\u2066-\u2069]/g, '_')
    .replace(/^[.\s]+/, '')
    .trim()
  const full = safe === '' ? `message-${messageId}${ending === undefined ? '' : `.${ending}`}` : safe
  const ascii = full.replaceAll(/[^\x20-\x7e]/g, '_').replaceAll('%', '_')
  const encoded = encodeURIComponent(full).replaceAll(
    /['()*!]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${ascii}"${ascii === full ? '' : `; filename*=UTF-8''${encoded}`}`
}

/**
 * The answer of the REST route, which shows the file itself: that of our own store, or the way to where it
 * is.
 */
export const bytesAnswer = async (
  app: App,
  described: Output,
  headers: Record<string, string>,
): Promise<Response> => {
  const { 'Content-Type': _, ...kept } = headers
  const own = `${app.config.publicUrl}/media/`
  const answer =
    described.url.startsWith(own) && described.expires_at !== null
      ? await serveMedia(app, described.url.slice(own.length))
      : new Response(null, { status: 302, headers: { Location: described.url } })
  for (const [name, value] of Object.entries(kept)) answer.headers.set(name, value)
  return answer
}

import { createHash } from 'node:crypto'
import {
  deleteSandboxMedia,
  findSandboxMedia,
  insertSandboxMedia,
  loadSandboxMediaBytes,
} from '../storage/files.ts'
import { type SandboxCall, isNonEmptyText, addMs, okResponse, requireStorable } from './call.ts'
import { badParameterValue, invalidParameter, providerError, parameterRequired } from './errors.ts'
import { newObjectId } from './ids.ts'
import { requireSender } from './messages.ts'
import { isSignedUrlValid, signUrl } from './signed-urls.ts'

const MB = 1024 * 1024
const DAY_MS = 86_400_000
/** Uploads of the business are kept for 30 days, files of customers for 7. */
const UPLOADED_MEDIA_TTL_MS = 30 * DAY_MS
export const INBOUND_MEDIA_TTL_MS = 7 * DAY_MS
const MEDIA_URL_TTL_MS = 300_000

/** The types that can be uploaded, and their maximum sizes in bytes. */
const UPLOAD_KINDS: readonly { types: RegExp; maxBytes: number }[] = [
  { types: /^audio\/(?:aac|amr|mpeg|mp4|ogg|opus)$/, maxBytes: 16 * MB },
  { types: /^video\/(?:mp4|3gp|3gpp)$/, maxBytes: 16 * MB },
  { types: /^image\/(?:jpeg|png)$/, maxBytes: 5 * MB },
  { types: /^image\/webp$/, maxBytes: MB / 2 },
  { types: /^text\/plain$|^application\/(?:pdf|msword|vnd\.ms-(?:excel|powerpoint))$/, maxBytes: 100 * MB },
  { types: /^application\/vnd\.openxmlformats-officedocument\.[\w.]+$/, maxBytes: 100 * MB },
]

/** As the provider's error lists them. */
const ALLOWED_TYPES = [
  'audio/aac',
  'audio/mp4',
  'audio/mpeg',
  'audio/amr',
  'audio/ogg',
  'audio/opus',
  'application/vnd.ms-powerpoint',
  'application/msword',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  'application/pdf',
  'text/plain',
  'application/vnd.ms-excel',
  'image/jpeg',
  'image/png',
  'image/webp',
  'video/mp4',
  'video/3gpp',
]

export const storeMedia = async (
  call: SandboxCall,
  numberId: string,
  file: { mime_type: string; bytes: Uint8Array },
  ttlMs: number,
): Promise<{ id: string; sha256: string; mime_type: string }> => {
  const media = {
    id: newObjectId(),
    number_id: numberId,
    mime_type: file.mime_type,
    sha256: createHash('sha256').update(file.bytes).digest('base64'),
  }
  await insertSandboxMedia(call.db, { ...media, expires_at: addMs(call.now(), ttlMs) }, file.bytes)
  return { id: media.id, sha256: media.sha256, mime_type: media.mime_type }
}

/** Serves `POST /{phone}/media`, a form with `file`, `type` and `messaging_product`. */
export const handleUploadMedia = async (call: SandboxCall): Promise<Response> => {
  const number = await requireSender(call)
  const form = await readForm(call)
  if (form.get('messaging_product') !== 'whatsapp') throw parameterRequired('messaging_product')
  const file = form.get('file')
  if (!(file instanceof File)) throw parameterRequired('file')
  const given = form.get('type')
  const type = (isNonEmptyText(given) ? given : file.type).split(';')[0]!.trim().toLowerCase()
  requireStorable(type)
  const kind = UPLOAD_KINDS.find(({ types }) => types.test(type))
  if (!kind)
    throw invalidParameter(
      `Param file must be a file with one of the following types: ${ALLOWED_TYPES.join(', ')}. ` +
        `Received file of type '${type.slice(0, 100)}'.`,
    )
  if (file.size === 0) throw badParameterValue('Param file is empty.')
  if (file.size > kind.maxBytes)
    throw providerError(131053, `File size is larger than ${kind.maxBytes} bytes, the most for ${type}.`)
  const { id } = await storeMedia(
    call,
    number.id,
    { mime_type: type, bytes: new Uint8Array(await file.arrayBuffer()) },
    UPLOADED_MEDIA_TTL_MS,
  )
  return okResponse({ id })
}

const readForm = async (call: SandboxCall): Promise<FormData> => {
  try {
    return await call.request.formData()
  } catch {
    throw invalidParameter('The body must be multipart/form-data with file, type and messaging_product.')
  }
}

/** Serves `GET /{media}`: a URL of the bytes for five minutes; undefined when the id is not of media. */
export const handleReadMedia = async (call: SandboxCall): Promise<Response | undefined> => {
  const media = await findSandboxMedia(call.db, call.path.id!, call.now())
  if (!media) return undefined
  const url = signUrl(call, `/cdn/media/${media.id}`, MEDIA_URL_TTL_MS)
  // Webhooks carry the digest in base64, this in hexadecimal.
  return okResponse({
    url,
    mime_type: media.mime_type,
    sha256: Buffer.from(media.sha256, 'base64').toString('hex'),
    file_size: media.file_size,
    id: media.id,
    messaging_product: 'whatsapp',
  })
}

export const handleDeleteMedia = async (call: SandboxCall): Promise<Response | undefined> =>
  (await deleteSandboxMedia(call.db, call.path.id!)) ? okResponse({ success: true }) : undefined

/** Serves the bytes of a media URL, which needs the token too. */
export const handleDownloadMedia = async (call: SandboxCall): Promise<Response> => {
  const { id } = call.path
  const media =
    isSignedUrlValid(call, `/cdn/media/${id}`) && (await findSandboxMedia(call.db, id!, call.now()))
      ? await loadSandboxMediaBytes(call.db, id!)
      : undefined
  if (!media)
    throw providerError(100, undefined, {
      status: 404,
      message: 'The media URL has expired. Ask for it again.',
      details: undefined,
    })
  return new Response(media.bytes as Uint8Array<ArrayBuffer>, {
    headers: { 'Content-Type': media.mime_type },
  })
}

import { createHash } from 'node:crypto'
import { deleteMedia, findMedia, insertMedia, mediaBytes } from '../../../storage/sandbox/files.ts'
import { type Call, isText, later, ok, requireClean } from './call.ts'
import { badValue, invalid, refuse, required } from './errors.ts'
import { newObjectId } from './ids.ts'
import { senderOf } from './messages.ts'
import { isFresh, signed } from './signed.ts'

const MB = 1024 * 1024
const DAY_MS = 86_400_000
/** Uploads by the business live 30 days, what customers send 7. */
const UPLOAD_MS = 30 * DAY_MS
export const RECEIVED_MS = 7 * DAY_MS
const URL_MS = 300_000

/** What may be uploaded, and how large, in bytes. */
const kinds: readonly { types: RegExp; most: number }[] = [
  { types: /^audio\/(?:aac|amr|mpeg|mp4|ogg|opus)$/, most: 16 * MB },
  { types: /^video\/(?:mp4|3gp|3gpp)$/, most: 16 * MB },
  { types: /^image\/(?:jpeg|png)$/, most: 5 * MB },
  { types: /^image\/webp$/, most: MB / 2 },
  {
    types:
      /^text\/plain$|^application\/(?:pdf|msword|vnd\.ms-(?:excel|powerpoint)|vnd\.openxmlformats-officedocument\.[\w.]+)$/,
    most: 100 * MB,
  },
]

export const storeMedia = async (
  call: Call,
  numberId: string,
  file: { mime_type: string; bytes: Uint8Array },
  livesMs: number,
): Promise<{ id: string; sha256: string; mime_type: string }> => {
  const media = {
    id: newObjectId(),
    number_id: numberId,
    mime_type: file.mime_type,
    sha256: createHash('sha256').update(file.bytes).digest('base64'),
  }
  await insertMedia(call.db, { ...media, expires_at: later(call.now(), livesMs) }, file.bytes)
  return { id: media.id, sha256: media.sha256, mime_type: media.mime_type }
}

/** `POST /{phone}/media`, a form with `file`, `type` and `messaging_product`. */
export const uploadMedia = async (call: Call): Promise<Response> => {
  const number = await senderOf(call)
  const form = await formOf(call)
  if (form.get('messaging_product') !== 'whatsapp') throw required('messaging_product')
  const file = form.get('file')
  if (!(file instanceof File)) throw required('file')
  const given = form.get('type')
  const type = (isText(given) ? given : file.type).split(';')[0]!.trim().toLowerCase()
  requireClean(type)
  const kind = kinds.find(({ types }) => types.test(type))
  if (!kind)
    throw invalid(
      `Param file must be a file with one of the following types: audio/aac, audio/mp4, audio/mpeg, audio/amr, audio/ogg, audio/opus, application/vnd.ms-powerpoint, application/msword, application/vnd.openxmlformats-officedocument.wordprocessingml.document, application/vnd.openxmlformats-officedocument.presentationml.presentation, application/vnd.openxmlformats-officedocument.spreadsheetml.sheet, application/pdf, text/plain, application/vnd.ms-excel, image/jpeg, image/png, image/webp, video/mp4, video/3gpp. Received file of type '${type.slice(0, 100)}'.`,
    )
  if (file.size === 0) throw badValue('Param file is empty.')
  if (file.size > kind.most)
    throw refuse(131053, `File size is larger than ${kind.most} bytes, the most for ${type}.`)
  const { id } = await storeMedia(
    call,
    number.id,
    { mime_type: type, bytes: new Uint8Array(await file.arrayBuffer()) },
    UPLOAD_MS,
  )
  return ok({ id })
}

const formOf = async (call: Call): Promise<FormData> => {
  try {
    return await call.request.formData()
  } catch {
    throw invalid('The body must be multipart/form-data with file, type and messaging_product.')
  }
}

/** `GET /{media}`: where its bytes are for the next five minutes; undefined when there is no such media. */
export const readMedia = async (call: Call): Promise<Response | undefined> => {
  const media = await findMedia(call.db, call.path.id!, call.now())
  if (!media) return undefined
  const url = signed(call, `/cdn/media/${media.id}`, URL_MS)
  // Webhooks carry the digest in base64, this in hexadecimal.
  return ok({
    url,
    mime_type: media.mime_type,
    sha256: Buffer.from(media.sha256, 'base64').toString('hex'),
    file_size: media.file_size,
    id: media.id,
    messaging_product: 'whatsapp',
  })
}

export const removeMedia = async (call: Call): Promise<Response | undefined> =>
  (await deleteMedia(call.db, call.path.id!)) ? ok({ success: true }) : undefined

/** The bytes behind a media URL; the bearer is asked for here too. */
export const downloadMedia = async (call: Call): Promise<Response> => {
  const { id } = call.path
  const media =
    isFresh(call, `/cdn/media/${id}`) && (await findMedia(call.db, id!, call.now()))
      ? await mediaBytes(call.db, id!)
      : undefined
  if (!media)
    throw refuse(100, undefined, {
      status: 404,
      message: 'The media URL has expired. Ask for it again.',
      details: undefined,
    })
  return new Response(media.bytes as Uint8Array<ArrayBuffer>, {
    headers: { 'Content-Type': media.mime_type },
  })
}

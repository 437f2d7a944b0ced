import { randomBytes } from 'node:crypto'
import { appendUpload, findUpload, insertUpload } from '../../../storage/sandbox/files.ts'
import { type Call, isText, ok } from './call.ts'
import { invalid, noObject, required } from './errors.ts'

const TYPES = ['image/jpeg', 'image/jpg', 'image/png', 'video/mp4', 'application/pdf']
const MOST = 100 * 1024 * 1024

const given = (call: Call, name: string): string | undefined => {
  const value = call.query.get(name) ?? call.body[name]
  return typeof value === 'number' ? String(value) : isText(value) ? value : undefined
}

/** `POST /{app}/uploads`: announces a file. */
export const startUpload = async (call: Call): Promise<Response> => {
  const type = given(call, 'file_type')
  const length = given(call, 'file_length')
  if (type === undefined) throw required('file_type')
  if (length === undefined) throw required('file_length')
  if (!TYPES.includes(type)) throw invalid(`Param file_type must be one of {${TYPES.join(', ')}}.`)
  if (!/^[1-9]\d{0,9}$/.test(length) || Number(length) > MOST)
    throw invalid(`Param file_length must be a number of bytes up to ${MOST}.`)
  const id = `upload:MTphdHRhY2htZW50Og${randomBytes(18).toString('hex')}`
  await insertUpload(call.db, {
    id,
    file_name: given(call, 'file_name')?.slice(0, 500) ?? null,
    file_type: type,
    file_length: Number(length),
  })
  return ok({ id })
}

/** `GET /upload:…`: how far it came. */
export const readUpload = async (call: Call): Promise<Response> => {
  const upload = await findUpload(call.db, call.path.id!)
  if (!upload) throw noObject(call.path.id!)
  return ok({ id: upload.id, file_offset: upload.received })
}

/** `POST /upload:…`: bytes from `file_offset` on; the whole file answers its handle. */
export const continueUpload = async (call: Call): Promise<Response> => {
  const upload = await findUpload(call.db, call.path.id!)
  if (!upload) throw noObject(call.path.id!, call.method)
  const offset = call.request.headers.get('file_offset') ?? ''
  if (!/^\d{1,10}$/.test(offset)) throw required('file_offset')
  if (upload.handle !== null && Number(offset) === upload.received) return ok({ h: upload.handle })
  const bytes = new Uint8Array(await call.request.arrayBuffer())
  const handle = `4::${Buffer.from(upload.file_type).toString('base64')}:ARa${randomBytes(24).toString('base64url')}`
  const now = await appendUpload(call.db, upload.id, Number(offset), bytes, handle)
  if (!now)
    throw invalid(
      `The upload has ${upload.received} of ${upload.file_length} bytes; ${bytes.byteLength} bytes from file_offset ${offset} do not fit.`,
    )
  return ok(now.handle === null ? { id: now.id, file_offset: now.received } : { h: now.handle })
}

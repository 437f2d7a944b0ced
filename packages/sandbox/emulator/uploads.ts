import { randomBytes } from 'node:crypto'
import { appendUpload, findUpload, insertUpload } from '../storage/files.ts'
import { type SandboxCall, isNonEmptyText, okResponse } from './call.ts'
import { invalidParameter, unknownObject, parameterRequired } from './errors.ts'

const TYPES = ['image/jpeg', 'image/jpg', 'image/png', 'video/mp4', 'application/pdf']
const MAX_FILE_BYTES = 100 * 1024 * 1024

const readParameter = (call: SandboxCall, name: string): string | undefined => {
  const value = call.query.get(name) ?? call.body[name]
  return typeof value === 'number' ? String(value) : isNonEmptyText(value) ? value : undefined
}

/** Serves `POST /{app}/uploads`: starts an upload. */
export const handleStartUpload = async (call: SandboxCall): Promise<Response> => {
  const type = readParameter(call, 'file_type')
  const length = readParameter(call, 'file_length')
  if (type === undefined) throw parameterRequired('file_type')
  if (length === undefined) throw parameterRequired('file_length')
  if (!TYPES.includes(type)) throw invalidParameter(`Param file_type must be one of {${TYPES.join(', ')}}.`)
  if (!/^[1-9]\d{0,9}$/.test(length) || Number(length) > MAX_FILE_BYTES)
    throw invalidParameter(`Param file_length must be a number of bytes up to ${MAX_FILE_BYTES}.`)
  const id = `upload:MTphdHRhY2htZW50Og${randomBytes(18).toString('hex')}`
  await insertUpload(call.db, {
    id,
    file_name: readParameter(call, 'file_name')?.slice(0, 500) ?? null,
    file_type: type,
    file_length: Number(length),
  })
  return okResponse({ id })
}

/** Serves `GET /upload:…`: returns how many bytes arrived. */
export const handleReadUpload = async (call: SandboxCall): Promise<Response> => {
  const upload = await findUpload(call.db, call.path.id!)
  if (!upload) throw unknownObject(call.path.id!)
  return okResponse({ id: upload.id, file_offset: upload.received })
}

/** Serves `POST /upload:…`: appends bytes at `file_offset`. The complete file returns its handle. */
export const handleContinueUpload = async (call: SandboxCall): Promise<Response> => {
  const upload = await findUpload(call.db, call.path.id!)
  if (!upload) throw unknownObject(call.path.id!, call.method)
  const offset = call.request.headers.get('file_offset') ?? ''
  if (!/^\d{1,10}$/.test(offset)) throw parameterRequired('file_offset')
  if (upload.handle !== null && Number(offset) === upload.received) return okResponse({ h: upload.handle })
  const bytes = new Uint8Array(await call.request.arrayBuffer())
  const type = Buffer.from(upload.file_type).toString('base64')
  const handle = `4::${type}:ARa${randomBytes(24).toString('base64url')}`
  const updated = await appendUpload(call.db, upload.id, Number(offset), bytes, handle)
  if (!updated)
    throw invalidParameter(
      `The upload has ${upload.received} of ${upload.file_length} bytes; ` +
        `${bytes.byteLength} bytes from file_offset ${offset} do not fit.`,
    )
  return okResponse(
    updated.handle === null ? { id: updated.id, file_offset: updated.received } : { h: updated.handle },
  )
}

import { toBuffer, toString } from 'qrcode'
import { countLinkCharacters } from '../../../catalog/short-links.ts'
import {
  updateSandboxLink,
  deleteSandboxLink,
  findSandboxLink,
  insertSandboxLink,
  listSandboxLinks,
  type SandboxLink,
} from '../storage/links.ts'
import { findSandboxNumber, type SandboxNumber } from '../storage/numbers.ts'
import { type SandboxCall, isNonEmptyText, okResponse } from './call.ts'
import { invalidParameter, providerError, parameterRequired } from './errors.ts'
import { newLinkCode } from './ids.ts'
import { parseFieldList, formatPage, parsePageQuery, pickNodeFields } from './pages.ts'
import { isSignedUrlValid, signUrl } from './signed-urls.ts'

const MAX_MESSAGE_LENGTH = 140
const FORMATS = ['PNG', 'SVG']
const FIELDS = ['code', 'prefilled_message', 'deep_link_url', 'qr_image_url', 'creation_time']
const DEFAULT_FIELDS = ['code', 'prefilled_message', 'deep_link_url']
const QR_URL_TTL_MS = 7 * 86_400_000

const requireNumber = async (call: SandboxCall): Promise<SandboxNumber> => {
  const number = await findSandboxNumber(call.db, call.path.id!)
  if (!number)
    throw providerError(100, undefined, {
      status: 404,
      code: 803,
      type: 'GraphMethodException',
      message: 'Phone number not found',
      details: undefined,
    })
  return number
}

/** The provider's own links are on `wa.me`; the sandbox's lead to this server. */
const deepLink = (call: SandboxCall, code: string): string =>
  `${call.linkBase ?? new URL(call.base).origin}/message/${code}`

const qrUrl = (call: SandboxCall, code: string, format: string): string =>
  signUrl(call, `/cdn/qr/${code}.${format.toLowerCase()}`, QR_URL_TTL_MS)

export const linkNode = (
  call: SandboxCall,
  link: Pick<SandboxLink, 'code' | 'message'>,
  format: string,
): Record<string, unknown> => ({
  code: link.code,
  prefilled_message: link.message,
  deep_link_url: deepLink(call, link.code),
  qr_image_url: qrUrl(call, link.code, format),
})

/** Serves `POST /{phone}/message_qrdls`: a new link, or a new message for the link with `code`. */
export const handleWriteLink = async (call: SandboxCall): Promise<Response> => {
  const number = await requireNumber(call)
  const { prefilled_message: message, code, generate_qr_image: format } = call.body
  if (message === undefined) throw parameterRequired('prefilled_message')
  if (!isNonEmptyText(message) || countLinkCharacters(message) > MAX_MESSAGE_LENGTH) {
    throw providerError(100, undefined, {
      message: `Invalid prefilled_message length. Maximum ${MAX_MESSAGE_LENGTH} characters allowed`,
      details: undefined,
    })
  }
  if (format !== undefined && !FORMATS.includes(String(format)))
    throw invalidParameter(`Param generate_qr_image must be one of {${FORMATS.join(', ')}}.`)
  if (code !== undefined) {
    if (!isNonEmptyText(code) || !(await updateSandboxLink(call.db, number.id, code, message)))
      throw unknownLink()
    return okResponse(withoutQr(linkNode(call, { code, message }, 'PNG')))
  }
  const link = { code: newLinkCode(), number_id: number.id, message }
  await insertSandboxLink(call.db, link)
  return okResponse(
    format === undefined ? withoutQr(linkNode(call, link, 'PNG')) : linkNode(call, link, String(format)),
  )
}

const withoutQr = ({ qr_image_url: _, ...node }: Record<string, unknown>): Record<string, unknown> => node
const unknownLink = () =>
  providerError(100, undefined, { status: 404, message: 'The QR code does not exist', details: undefined })

/** Serves `GET /{phone}/message_qrdls`, and `…/{code}`, which returns a list of one. */
export const handleListLinks = async (call: SandboxCall): Promise<Response> => {
  const number = await requireNumber(call)
  const fields = parseFieldList(call.query, 'WhatsAppBusinessQRDL', FIELDS, DEFAULT_FIELDS)
  const format = fields.get('qr_image_url') ?? 'PNG'
  if (!FORMATS.includes(format))
    throw invalidParameter(`Param format must be one of {${FORMATS.join(', ')}}.`)
  const show = (link: SandboxLink) => pickNodeFields(linkNode(call, link, format), fields)
  const { code } = call.path
  const wanted = parsePageQuery(call.query, 25, 25)
  if (code !== undefined) {
    const rows = await listSandboxLinks(call.db, number.id, { code }, 1)
    if (rows.length === 0) throw unknownLink()
    return okResponse({ data: rows.map(show) })
  }
  const rows = await listSandboxLinks(
    call.db,
    number.id,
    { code: call.query.get('code') ?? undefined, after: wanted.after, before: wanted.before },
    wanted.limit + 1,
  )
  return okResponse(formatPage(rows, wanted, call.request.url, show))
}

export const handleDeleteLink = async (call: SandboxCall): Promise<Response> => {
  const number = await requireNumber(call)
  if (!(await deleteSandboxLink(call.db, number.id, call.path.code!))) throw unknownLink()
  return okResponse({ success: true })
}

/** Renders the image of a link's QR code; the signed URL is the only credential. */
export const handleQrImage = async (call: SandboxCall): Promise<Response> => {
  const [code = '', format = ''] = call.path.file!.split('.')
  const link = isSignedUrlValid(call, `/cdn/qr/${call.path.file}`)
    ? await findSandboxLink(call.db, code)
    : undefined
  if (!link)
    return new Response('URL signature expired', { status: 403, headers: { 'Content-Type': 'text/plain' } })
  const url = deepLink(call, code)
  return format === 'svg'
    ? new Response(await toString(url, { type: 'svg' }), { headers: { 'Content-Type': 'image/svg+xml' } })
    : new Response(new Uint8Array(await toBuffer(url, { width: 512 })), {
        headers: { 'Content-Type': 'image/png' },
      })
}

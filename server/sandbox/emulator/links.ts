import { toBuffer, toString } from 'qrcode'
import { linkLength } from '../../../catalog/short-links.ts'
import {
  changeSandboxLink,
  deleteSandboxLink,
  findSandboxLink,
  insertSandboxLink,
  listSandboxLinks,
  type SandboxLink,
} from '../../../storage/sandbox/links.ts'
import { findNumber, type SandboxNumber } from '../../../storage/sandbox/numbers.ts'
import { type Call, isText, ok } from './call.ts'
import { invalid, refuse, required } from './errors.ts'
import { newLinkCode } from './ids.ts'
import { fieldsOf, page, pageQuery, pick } from './pages.ts'
import { isFresh, signed } from './signed.ts'

const MOST_TEXT = 140
const FORMATS = ['PNG', 'SVG']
const FIELDS = ['code', 'prefilled_message', 'deep_link_url', 'qr_image_url', 'creation_time']
const USUAL = ['code', 'prefilled_message', 'deep_link_url']
const QR_LIVES_MS = 7 * 86_400_000

const numberOf = async (call: Call): Promise<SandboxNumber> => {
  const number = await findNumber(call.db, call.path.id!)
  if (!number)
    throw refuse(100, undefined, {
      status: 404,
      code: 803,
      type: 'GraphMethodException',
      message: 'Phone number not found',
      details: undefined,
    })
  return number
}

/** The provider's own host is `wa.me`; here links lead to this server. */
const deepLink = (call: Call, code: string): string =>
  `${call.linkBase ?? new URL(call.base).origin}/message/${code}`

const qrUrl = (call: Call, code: string, format: string): string =>
  signed(call, `/cdn/qr/${code}.${format.toLowerCase()}`, QR_LIVES_MS)

export const linkNode = (
  call: Call,
  link: Pick<SandboxLink, 'code' | 'message'>,
  format: string,
): Record<string, unknown> => ({
  code: link.code,
  prefilled_message: link.message,
  deep_link_url: deepLink(call, link.code),
  qr_image_url: qrUrl(call, link.code, format),
})

/** `POST /{phone}/message_qrdls`: a new link, or another message for the link with `code`. */
export const writeLink = async (call: Call): Promise<Response> => {
  const number = await numberOf(call)
  const { prefilled_message: message, code, generate_qr_image: format } = call.body
  if (message === undefined) throw required('prefilled_message')
  if (!isText(message) || linkLength(message) > MOST_TEXT) {
    throw refuse(100, undefined, {
      message: `Invalid prefilled_message length. Maximum ${MOST_TEXT} characters allowed`,
      details: undefined,
    })
  }
  if (format !== undefined && !FORMATS.includes(String(format)))
    throw invalid(`Param generate_qr_image must be one of {${FORMATS.join(', ')}}.`)
  if (code !== undefined) {
    if (!isText(code) || !(await changeSandboxLink(call.db, number.id, code, message))) throw noLink()
    return ok(withoutQr(linkNode(call, { code, message }, 'PNG')))
  }
  const link = { code: newLinkCode(), number_id: number.id, message }
  await insertSandboxLink(call.db, link)
  return ok(
    format === undefined ? withoutQr(linkNode(call, link, 'PNG')) : linkNode(call, link, String(format)),
  )
}

const withoutQr = ({ qr_image_url: _, ...node }: Record<string, unknown>): Record<string, unknown> => node
const noLink = () =>
  refuse(100, undefined, { status: 404, message: 'The QR code does not exist', details: undefined })

/** `GET /{phone}/message_qrdls`, and `…/{code}`, which answers a list of one. */
export const listLinks = async (call: Call): Promise<Response> => {
  const number = await numberOf(call)
  const fields = fieldsOf(call.query, 'WhatsAppBusinessQRDL', FIELDS, USUAL)
  const format = fields.get('qr_image_url') ?? 'PNG'
  if (!FORMATS.includes(format)) throw invalid(`Param format must be one of {${FORMATS.join(', ')}}.`)
  const show = (link: SandboxLink) => pick(linkNode(call, link, format), fields)
  const { code } = call.path
  const wanted = pageQuery(call.query, 25, 25)
  if (code !== undefined) {
    const rows = await listSandboxLinks(call.db, number.id, { code }, 1)
    if (rows.length === 0) throw noLink()
    return ok({ data: rows.map(show) })
  }
  const rows = await listSandboxLinks(
    call.db,
    number.id,
    { code: call.query.get('code') ?? undefined, after: wanted.after, before: wanted.before },
    wanted.limit + 1,
  )
  return ok(page(rows, wanted, call.request.url, show))
}

export const deleteLink = async (call: Call): Promise<Response> => {
  const number = await numberOf(call)
  if (!(await deleteSandboxLink(call.db, number.id, call.path.code!))) throw noLink()
  return ok({ success: true })
}

/**
 * The image of a link's QR code, drawn when it is asked for; its URL is enough to read it, until it
 * expires.
 */
export const qrImage = async (call: Call): Promise<Response> => {
  const [code = '', format = ''] = call.path.file!.split('.')
  const link = isFresh(call, `/cdn/qr/${call.path.file}`) ? await findSandboxLink(call.db, code) : undefined
  if (!link)
    return new Response('URL signature expired', { status: 403, headers: { 'Content-Type': 'text/plain' } })
  const url = deepLink(call, code)
  return format === 'svg'
    ? new Response(await toString(url, { type: 'svg' }), { headers: { 'Content-Type': 'image/svg+xml' } })
    : new Response(new Uint8Array(await toBuffer(url, { width: 512 })), {
        headers: { 'Content-Type': 'image/png' },
      })
}

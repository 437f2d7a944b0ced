import { randomBytes } from 'node:crypto'
import { toBuffer, toString } from 'qrcode'
import { readQr } from '../../storage/short-links.ts'
import type { App } from '../app.ts'
import { Problem } from '../core/problem.ts'

export type QrFormat = 'PNG' | 'SVG'

/** Side of the image in pixels, with the quiet zone of four modules that readers want around the code. */
const WIDTH = 512
const MARGIN = 4

export const drawQr = async (url: string, format: QrFormat): Promise<Uint8Array> =>
  format === 'PNG'
    ? await toBuffer(url, { type: 'png', width: WIDTH, margin: MARGIN })
    : Buffer.from(await toString(url, { type: 'svg', width: WIDTH, margin: MARGIN }))

/** 128 random bits: the image is read without a key, by whoever was given its address. */
export const newQrKey = (): string => randomBytes(16).toString('hex')

export const qrUrl = (publicUrl: string, key: string, format: QrFormat): string =>
  `${publicUrl}/qr/${key}.${format.toLowerCase()}`

const types = { PNG: 'image/png', SVG: 'image/svg+xml' } as const

/**
 * The image behind `/qr/<key>.png` or `.svg`. Throws 404 for any other name, and for the image of a link
 * that was deleted.
 */
export const serveQr = async (app: App, file: string): Promise<Response> => {
  const [, key, ending] = /^([0-9a-f]{32})\.(png|svg)$/.exec(file) ?? []
  const found = key === undefined ? undefined : await readQr(app.db, key)
  if (!found || found.qr_format !== ending?.toUpperCase())
    throw new Problem(
      'not_found',
      'There is no QR image at this address. The link that it was of may be deleted.',
    )
  return new Response(Uint8Array.from(found.qr), {
    headers: {
      'Content-Type': types[found.qr_format],
      'Content-Disposition': `inline; filename="short-link.${ending}"`,
      // An image never changes, but it goes with its link. It is made to be shown on pages of others.
      'Cache-Control': 'public, max-age=3600',
      'Cross-Origin-Resource-Policy': 'cross-origin',
      'X-Content-Type-Options': 'nosniff',
      'Content-Security-Policy': "default-src 'none'; sandbox",
    },
  })
}

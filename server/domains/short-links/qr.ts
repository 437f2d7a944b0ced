import { randomBytes } from 'node:crypto'
import { toBuffer, toString } from 'qrcode'

export type QrFormat = 'PNG' | 'SVG'

/** Side of the image in pixels, quiet zone included. */
const WIDTH_PIXELS = 512
/** QR readers need a quiet zone of four modules around the code. */
const MARGIN_MODULES = 4

export const drawQr = async (url: string, format: QrFormat): Promise<Uint8Array> =>
  format === 'PNG'
    ? await toBuffer(url, { type: 'png', width: WIDTH_PIXELS, margin: MARGIN_MODULES })
    : Buffer.from(await toString(url, { type: 'svg', width: WIDTH_PIXELS, margin: MARGIN_MODULES }))

/** 128 random bits, since the image is served without an API key to anyone who has its address. */
export const createQrKey = (): string => randomBytes(16).toString('hex')

export const qrUrl = (publicUrl: string, key: string, format: QrFormat): string =>
  `${publicUrl}/qr/${key}.${format.toLowerCase()}`

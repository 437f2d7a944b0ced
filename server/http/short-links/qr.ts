import { findQrImage } from '../../../storage/messages/short-links.ts'
import type { App } from '../../app.ts'
import { Problem } from '../../kernel/problem.ts'

const CONTENT_TYPES = { PNG: 'image/png', SVG: 'image/svg+xml' } as const

/**
 * Serves the image behind `/qr/<key>.png` or `.svg`. Throws 404 for any other name, and for the image of a
 * link that was deleted.
 */
export const serveQr = async ({ db }: Pick<App, 'db'>, file: string): Promise<Response> => {
  const [, key, extension] = /^([0-9a-f]{32})\.(png|svg)$/.exec(file) ?? []
  const found = key === undefined ? undefined : await findQrImage(db, key)
  if (!found || found.qr_format !== extension?.toUpperCase())
    throw new Problem('not_found', 'There is no QR image at this address. Its link may have been deleted.')
  return new Response(Uint8Array.from(found.qr), {
    headers: {
      'Content-Type': CONTENT_TYPES[found.qr_format],
      'Content-Disposition': `inline; filename="short-link.${extension}"`,
      // An image never changes, but it is deleted with its link. Other sites may embed it.
      'Cache-Control': 'public, max-age=3600',
      'Cross-Origin-Resource-Policy': 'cross-origin',
      'X-Content-Type-Options': 'nosniff',
      'Content-Security-Policy': "default-src 'none'; sandbox",
    },
  })
}

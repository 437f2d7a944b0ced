import { createHash } from 'node:crypto'
import { FastResponse } from 'srvx/node'
import { acceptsGzip, compress, isCompressible, isLongEnough } from './compress.ts'

/** Something that is the same for every request: its headers, and its body, compressed once. */
export type StaticDocument = { serve: (request: Request) => Promise<Response> }

const matches = (header: string | null, etag: string): boolean =>
  header !== null &&
  header.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)

/**
 * Serves a document with an entity tag (RFC 9110, section 8.8.3): 304 to a client that has it. The body is
 * compressed at the first request, and not for each: a client that asks many times would keep a core busy. `stored` is
 * the body as it was compressed before.
 */
export const createStaticDocument = (
  body: string | Uint8Array,
  headers: Record<string, string> & { 'Content-Type': string },
  stored?: Buffer,
): StaticDocument => {
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 22)
  const isCompressed = isCompressible(headers['Content-Type']) && isLongEnough(body)
  let compressed: Promise<Buffer> | undefined = stored && Promise.resolve(stored)
  // A strong tag is of one content coding. Who has the document in the other one has it too.
  const etags = { plain: `"${hash}"`, gzip: `"${hash}.gzip"` }
  const varied = isCompressed ? { ...headers, Vary: 'Accept-Encoding' } : headers
  return {
    serve: async ({ headers: asked }) => {
      const known = Object.values(etags).find((etag) => matches(asked.get('if-none-match'), etag))
      if (known) return new FastResponse(null, { status: 304, headers: { ...varied, ETag: known } })
      // What is sent plain gets its Vary where every answer does (node.ts).
      if (!isCompressed || !acceptsGzip(asked.get('accept-encoding') ?? undefined))
        return new FastResponse(body as Uint8Array<ArrayBuffer>, {
          headers: { ...headers, ETag: etags.plain },
        })
      const bytes = await (compressed ??= compress(body))
      return new FastResponse(bytes as Buffer<ArrayBuffer>, {
        headers: { ...varied, ETag: etags.gzip, 'Content-Encoding': 'gzip' },
      })
    },
  }
}

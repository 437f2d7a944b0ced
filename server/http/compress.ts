import { promisify } from 'node:util'
import { constants, gzip, gzipSync } from 'node:zlib'
import { parseWeights } from './accept.ts'

/** Below this a packet carries the body anyway. */
const MIN_BYTES = 1024
/** Most of what compression can save, at a third of the default level's time. */
const LEVEL = constants.Z_BEST_SPEED + 1

const compressibleTypes =
  /^(?:application\/(?:problem\+)?json|text\/(?:html|css|javascript|markdown|plain))\b/

/** Whether bodies of this type are compressed for clients that accept it. Streams of events never are. */
export const isCompressible = (type: string | undefined): boolean =>
  type !== undefined && compressibleTypes.test(type)

/** Whether a body of this length is worth it. */
export const isLongEnough = (body: string | Uint8Array): boolean => body.length >= MIN_BYTES

/** Reads `Accept-Encoding`; a weight of 0 refuses. */
export const acceptsGzip = (accepted: string | undefined): boolean => {
  if (accepted === undefined) return false
  const weights = parseWeights(accepted)
  return (weights.get('gzip') ?? weights.get('x-gzip') ?? weights.get('*') ?? 0) > 0
}

/** Up to this, handing the body to another thread takes more time than compressing it here (11 kB: 40 µs, not 160). */
const MAX_BYTES_HERE = 32_768

const run = promisify(gzip)

export const compress = async (body: string | Uint8Array): Promise<Buffer> =>
  body.length <= MAX_BYTES_HERE ? gzipSync(body, { level: LEVEL }) : await run(body, { level: LEVEL })

import { PassThrough } from 'node:stream'

/** Returns an output stream for a command line, and the text that was written to it so far. */
export const collectOutput = (): { stream: PassThrough; text: () => string } => {
  const stream = new PassThrough()
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  return { stream, text: () => Buffer.concat(chunks).toString() }
}

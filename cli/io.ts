import { once } from 'node:events'
import type { Writable } from 'node:stream'
import type { Send } from './transport.ts'

/**
 * The parts of the process that a command may use; `process` itself fits, and so do the streams of a test.
 */
export type Io = {
  readonly stdin: NodeJS.ReadableStream & { isTTY?: boolean | undefined }
  readonly stdout: NodeJS.WritableStream & { isTTY?: boolean | undefined; columns?: number | undefined }
  readonly stderr: NodeJS.WritableStream & { isTTY?: boolean | undefined; columns?: number | undefined }
  readonly env: Readonly<Record<string, string | undefined>>
  /** The profile that was named on the command line; `env` has it too. */
  readonly profile?: string
  /** Sends requests instead of the transport of the command line. */
  readonly fetch?: Send
  /** The output fills a pane: it is drawn as on a terminal, but nobody can be prompted. */
  readonly isPane?: boolean
}

/**
 * True when stdin and stdout are terminals: a person reads the output and can be prompted. Standard input takes long to
 * open, so that it is asked last.
 */
export const isInteractive = (io: Io): boolean => io.stdout.isTTY === true && io.stdin.isTTY === true

/** True when a person reads the output. */
export const isDrawn = (io: Io): boolean => io.isPane === true || isInteractive(io)

/** True for a terminal that prints lines and nothing else, as in an editor or for a screen reader. */
export const isDumb = (io: Io): boolean => io.env['TERM'] === 'dumb'

/** False when NO_COLOR is set to anything but the empty string (https://no-color.org). */
export const hasColor = (io: Io): boolean => !io.env['NO_COLOR'] && !isDumb(io)

/** Writes to stdout, and waits until its reader takes more. Throws the error of a pipe that its reader closed. */
export const writeOut = async (io: Io, text: string): Promise<void> => {
  if (io.stdout.write(text)) return
  const { errored } = io.stdout as Writable
  if (errored) throw errored
  await once(io.stdout, 'drain')
}

/** Reads a stream to its end. */
export const readStream = async (stream: NodeJS.ReadableStream): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
  return Buffer.concat(chunks)
}

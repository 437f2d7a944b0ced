/** What a command may touch of the process; `process` itself fits, and so does a test's own. */
export type Io = {
  readonly stdin: NodeJS.ReadableStream & { isTTY?: boolean | undefined }
  readonly stdout: NodeJS.WritableStream & { isTTY?: boolean | undefined; columns?: number | undefined }
  readonly stderr: NodeJS.WritableStream & { isTTY?: boolean | undefined; columns?: number | undefined }
  readonly env: Readonly<Record<string, string | undefined>>
  readonly fetch?: typeof fetch
}

/** A person looks at the answer and can be asked: both ends are terminals. */
export const isInteractive = (io: Io): boolean => io.stdin.isTTY === true && io.stdout.isTTY === true

/** See https://no-color.org: any value but the empty one switches colour off. */
export const hasColor = (io: Io): boolean => !io.env['NO_COLOR'] && io.env['TERM'] !== 'dumb'

/** Everything that is piped in. */
export const readAll = async (stream: NodeJS.ReadableStream): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
  return Buffer.concat(chunks)
}

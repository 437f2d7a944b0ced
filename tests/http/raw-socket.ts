import { connect, type Socket } from 'node:net'

/** What a server sent on one connection before it was closed. `end`: who closed it, or that nobody did. */
export type Exchange = { text: string; end: 'server' | 'quiet' | 'aborted' }

type SocketOptions = {
  /** Closes the connection rudely after so many bytes. */
  abortAfter?: number | undefined
  /** Closes the client's side after the last byte. */
  halfClose?: boolean | undefined
  /** Leaves when it has arrived. */
  enough?: RegExp | undefined
  /** How long to wait for more after the last byte that arrived: long, where an end is known, for a busy machine. */
  quietMs?: number
}

/** Sends bytes (as Latin-1) on a connection of their own, as they are. Returns what comes back. */
export const exchange = (
  url: string,
  bytes: string | Buffer,
  { abortAfter, halfClose = false, enough, quietMs = enough ? 20_000 : 3000 }: SocketOptions = {},
): Promise<Exchange> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(url)
    const socket: Socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    const chunks: Buffer[] = []
    let timer: NodeJS.Timeout
    const finish = (end: Exchange['end']): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ text: Buffer.concat(chunks).toString('latin1'), end })
    }
    const wait = (): void => {
      clearTimeout(timer)
      timer = setTimeout(() => finish('quiet'), quietMs)
    }
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      if (enough?.test(chunk.toString('latin1'))) finish('aborted')
      else wait()
    })
    socket.on('error', () => {})
    socket.on('end', () => finish('server'))
    socket.on('close', () => finish('server'))
    wait()
    const whole = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes
    if (abortAfter !== undefined)
      socket.write(whole.subarray(0, abortAfter), () => setTimeout(() => finish('aborted'), 2))
    else if (halfClose) socket.end(whole)
    else socket.write(whole)
  })

export type RawResponse = { status: number; headers: Map<string, string>; body: string }

/** Reads the responses of a connection, one after the other. Throws at what is no HTTP. */
export const parseResponses = (text: string): RawResponse[] => {
  const responses: RawResponse[] = []
  let rest = text
  while (rest !== '') {
    const head = /^HTTP\/1\.1 (\d{3})[^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n/.exec(rest)
    if (!head) throw new Error(`not a response: ${JSON.stringify(rest.slice(0, 200))}`)
    rest = rest.slice(head[0].length)
    const headers = parseHeaders(head[2]!)
    const status = Number(head[1])
    // A response to HEAD has the length of a body, but none; what comes next is another response.
    const isBare = status < 200 || status === 204 || status === 304 || rest.startsWith('HTTP/1.1 ')
    // Without a length the response is chunked or ends with the connection; nothing that is read can follow.
    const length = isBare ? 0 : Number(headers.get('content-length') ?? Infinity)
    const body = rest.slice(0, length)
    rest = rest.slice(body.length)
    if (status >= 200) responses.push({ status, headers, body })
  }
  return responses
}

const parseHeaders = (lines: string): Map<string, string> =>
  new Map(
    lines
      .split('\r\n')
      .filter(Boolean)
      .map((line) => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
      }),
  )

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A received request with its whole body. */
type Asked = {
  method: string
  path: string
  query: Record<string, string>
  headers: IncomingHttpHeaders
  body: Buffer
}
/** `drop` cuts the connection once the request was read; `silent` never answers. */
export type Answer =
  | { status?: number; headers?: Record<string, string>; body?: unknown }
  | 'drop'
  | 'silent'
  | ((response: ServerResponse) => void)

/** An HTTP server with scripted answers, which records the requests it gets. */
export type Peer = {
  url: string
  asked: Asked[]
  /** The answers to the next requests, one each; when they run out, the answer is a 599. */
  answers: Answer[]
  close: () => Promise<void>
}

const readAll = async (request: IncomingMessage): Promise<Buffer> => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts)
}

const give = (response: ServerResponse, answer: Answer): void => {
  if (answer === 'silent') return
  if (answer === 'drop') return void response.socket!.destroy()
  if (typeof answer === 'function') return answer(response)
  const { status = 200, headers = {}, body } = answer
  const raw = typeof body === 'string' || body instanceof Uint8Array
  response.writeHead(status, { 'Content-Type': raw ? 'text/html' : 'application/json', ...headers })
  response.end(raw ? body : JSON.stringify(body))
}

/** Starts one on a free port of the loopback interface. */
export const startPeer = async (): Promise<Peer> => {
  const asked: Asked[] = []
  const answers: Answer[] = []
  const server = createServer((request, response) => {
    void readAll(request).then(
      (body) => {
        const { pathname, searchParams } = new URL(request.url!, 'http://peer')
        asked.push({
          method: request.method!,
          path: pathname,
          query: Object.fromEntries(searchParams),
          headers: request.headers,
          body,
        })
        give(response, answers.shift() ?? { status: 599, body: 'no answer is left for this request' })
      },
      () => {},
    )
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    answers,
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

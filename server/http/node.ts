import type { IncomingMessage, ServerResponse } from 'node:http'
import { NodeRequest, type NodeResponse, sendNodeResponse } from 'srvx/node'

/**
 * The handler for node:http. A FastResponse with text goes out in one write, head and body together; srvx
 * takes two, and waits for them. Everything else is left to srvx.
 */
export const nodeHandler =
  (fetch: (request: Request) => Response | Promise<Response>, options: { maxRequestBodySize: number }) =>
  async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    try {
      const response = await fetch(new NodeRequest({ req, res, ...options }) as unknown as Request)
      // The sandbox returns a network error when a response is to be lost: the connection is closed.
      if (response.type === 'error') return void res.destroy()
      if (!isFast(response)) return await sendNodeResponse(res, response)
      const { status, headers, body } = response._toNodeResponse()
      if (typeof body !== 'string')
        return await sendNodeResponse(res, new Response(body as never, { status, headers: pairs(headers) }))
      res.writeHead(status, headers as never).end(body)
    } catch {
      if (res.headersSent) res.destroy()
      else res.writeHead(500).end()
    }
  }

const isFast = (response: Response): response is NodeResponse => '_toNodeResponse' in response

const pairs = (flat: readonly string[]): [string, string][] =>
  flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1]!] as [string, string]] : []))

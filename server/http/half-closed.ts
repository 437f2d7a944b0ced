import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** How long after a client closed its side it is asked first, and how long at most until it is asked again. */
const PROBE_MS = { first: 25, max: 5_000 }

/**
 * A client that closes its connection looks, until something is written to it, like one that only closed its side and
 * waits for the response. So an interim response, which clients of HTTP/1.1 skip, is written while the response is not
 * there: the system of a client that is gone refuses it, and the next write then finds the connection broken. HTTP/1.0
 * has no interim responses: its clients count as there.
 */
export const watchHalfClosed = (socket: Socket, findResponse: () => ServerResponse | undefined): void => {
  const probeAfter = (ms: number): void => {
    setTimeout(() => {
      const response = findResponse()
      if (socket.destroyed || !response || response.headersSent || !takesInterim(response)) return
      if (isRead(response.req)) response.writeContinue()
      probeAfter(Math.min(2 * ms, PROBE_MS.max))
    }, ms).unref()
  }
  socket.once('end', () => probeAfter(PROBE_MS.first))
}

const takesInterim = ({ req }: ServerResponse): boolean =>
  req.httpVersionMajor === 1 && req.httpVersionMinor >= 1

/** Whether nothing of a request is still to be read: that would be lost with the connection, and a change with it. */
const isRead = (req: IncomingMessage): boolean =>
  req.complete &&
  (req.readableEnded ||
    (req.headers['transfer-encoding'] === undefined && !Number(req.headers['content-length'])))

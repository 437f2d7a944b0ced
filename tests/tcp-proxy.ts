import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A proxy between a service and its PostgreSQL that emulates failures of a network or a stopped server. */
export type TcpProxy = {
  /** Returns the URL of a database through the proxy. */
  route: (databaseUrl: string) => string
  /** Forwards nothing in either direction, on existing and new connections, until `resume`. */
  silence: () => void
  resume: () => void
  /**
   * Cuts the connection on which a client next sends this text: before it is forwarded, or when the response
   * arrives.
   */
  cutOnce: (text: string, when: 'before' | 'after') => void
  /** The beginning of what was sent on each connection so far, 4 kB at most. */
  beginnings: () => string[]
  /** Cuts all connections at once. */
  cutAll: () => void
  close: () => Promise<void>
}

const MAX_BEGINNING = 4096

/** Starts a proxy in front of the server of this URL. */
export const startTcpProxy = async (target: string): Promise<TcpProxy> => {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const beginnings: { text: string }[] = []
  let silent = false
  let cut: { text: string; when: 'before' | 'after' } | undefined
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    const end = (): void => {
      for (const socket of [client, upstream]) {
        sockets.delete(socket)
        socket.destroy()
      }
    }
    let isCutting = false
    const beginning = { text: '' }
    beginnings.push(beginning)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', end).on('close', end)
    }
    client.on('data', (chunk) => {
      beginning.text += chunk.toString('latin1', 0, MAX_BEGINNING - beginning.text.length)
      if (cut && chunk.includes(cut.text)) {
        if (cut.when === 'before') end()
        else isCutting = true
        cut = undefined
      }
      if (!upstream.destroyed) upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      if (isCutting) end()
      else client.write(chunk)
    })
    if (silent) for (const socket of [client, upstream]) socket.pause()
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const own = server.address() as AddressInfo
  return {
    route: (databaseUrl) =>
      Object.assign(new URL(databaseUrl), { hostname: '127.0.0.1', port: String(own.port) }).href,
    silence: () => {
      silent = true
      for (const socket of sockets) socket.pause()
    },
    resume: () => {
      silent = false
      for (const socket of sockets) socket.resume()
    },
    cutOnce: (text, when) => {
      cut = { text, when }
    },
    beginnings: () => beginnings.map(({ text }) => text),
    cutAll: () => {
      for (const socket of sockets) socket.destroy()
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((closed) => server.close(closed))
    },
  }
}

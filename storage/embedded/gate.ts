import { createServer, type Server, type Socket } from 'node:net'

/**
 * Lets several clients of the PostgreSQL wire protocol share one PGlite session. A client holds the session from its first message until the
 * backend says `ReadyForQuery` outside a transaction, so transactions never interleave. (`@electric-sql/pglite-socket` passes single messages of
 * different clients through in turn, which mixes their unnamed statements.)
 */
type Backend = {
  execProtocolRawStream: (message: Uint8Array, options: { onRawData: (data: Uint8Array) => void }) => Promise<void>
}

const SSL_REQUEST = 80877103
const CANCEL_REQUEST = 80877102
const TERMINATE = 'X'.charCodeAt(0)
const READY = 'Z'.charCodeAt(0)
const IDLE = 'I'.charCodeAt(0)

/** A mutual exclusion: `await turn()` answers the function that ends the turn. */
const turns = () => {
  let last: Promise<void> = Promise.resolve()
  return (): Promise<() => void> => {
    const before = last
    let done!: () => void
    last = new Promise((resolve) => { done = resolve })
    return before.then(() => done)
  }
}

/** `ROLLBACK` as a simple query, for a client that left in the middle of a transaction. */
const rollback = (() => {
  const text = Buffer.from('rollback\0')
  const message = Buffer.alloc(5 + text.length)
  message.write('Q', 0)
  message.writeInt32BE(4 + text.length, 1)
  text.copy(message, 5)
  return new Uint8Array(message)
})()

/** Length of the whole messages at the head of the buffer, or of a start-up packet when there was none yet. */
const wholeMessages = (buffer: Buffer, started: boolean): number => {
  if (!started) return buffer.length >= 4 && buffer.length >= buffer.readInt32BE(0) ? buffer.readInt32BE(0) : 0
  let end = 0
  while (buffer.length - end >= 5 && buffer[end] !== TERMINATE) {
    const next = end + 1 + buffer.readInt32BE(end + 1)
    if (next > buffer.length) break
    end = next
  }
  return end
}

const serve = (socket: Socket, backend: Backend, turn: () => Promise<() => void>): void => {
  let buffer: Buffer = Buffer.alloc(0)
  let started = false
  let release: (() => void) | undefined
  let work: Promise<void> = Promise.resolve()
  let tail: Buffer = Buffer.alloc(0)

  const run = async (message: Uint8Array): Promise<void> => {
    release ??= await turn()
    await backend.execProtocolRawStream(message, {
      onRawData: (data) => {
        const copy = Buffer.from(data)
        tail = Buffer.concat([tail, copy.subarray(-6)]).subarray(-6)
        if (socket.writable) socket.write(copy)
      },
    })
    if (tail.length === 6 && tail[0] === READY && tail[5] === IDLE) {
      release()
      release = undefined
    }
  }

  const pump = async (): Promise<void> => {
    for (;;) {
      const length = wholeMessages(buffer, started)
      if (length === 0) break
      const message = buffer.subarray(0, length)
      buffer = buffer.subarray(length)
      if (!started) {
        const code = message.length >= 8 ? message.readInt32BE(4) : 0
        if (code === SSL_REQUEST) { socket.write('N'); continue }
        if (code === CANCEL_REQUEST) { socket.end(); return }
        started = true
      }
      await run(new Uint8Array(message))
    }
    if (started && buffer[0] === TERMINATE) socket.end()
  }

  socket.on('data', (data: Buffer) => {
    buffer = buffer.length === 0 ? data : Buffer.concat([buffer, data])
    work = work.then(pump).catch(() => { socket.destroy() })
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    work = work.then(async () => {
      if (!release) return
      await backend.execProtocolRawStream(rollback, { onRawData: () => {} })
      release()
    }).catch(() => {})
  })
}

/** Listens on an owner-only unix socket. */
export const openGate = (backend: Backend, path: string): Promise<Server> => {
  const turn = turns()
  const server = createServer((socket) => serve(socket, backend, turn))
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => resolve(server))
  })
}

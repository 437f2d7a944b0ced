import { createServer, type Server, type Socket } from 'node:net'

/**
 * Lets several clients of the PostgreSQL wire protocol share one PGlite session. A client holds the session
 * from its first message until the backend says `ReadyForQuery` outside a transaction, so transactions
 * never interleave. (`@electric-sql/pglite-socket` passes single messages of different clients through in
 * turn, which mixes their unnamed statements.)
 */
type Backend = {
  execProtocolRawStream: (
    message: Uint8Array,
    options: { onRawData: (data: Uint8Array) => void },
  ) => Promise<void>
}

/**
 * Until when the statement that holds the session may last, in milliseconds of `monotonicMs`; 0: as long as
 * it takes. Shared by two threads.
 */
export type Deadline = BigInt64Array<SharedArrayBuffer>

/** Milliseconds on a clock that is never set and that all threads share. */
export const monotonicMs = (): bigint => process.hrtime.bigint() / 1_000_000n

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
    last = new Promise((resolve) => {
      done = resolve
    })
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

/**
 * Length of the whole messages at the head of the buffer, or of a start-up packet when there was none yet.
 */
const wholeMessages = (buffer: Buffer, started: boolean): number => {
  if (!started)
    return buffer.length >= 4 && buffer.length >= buffer.readInt32BE(0) ? buffer.readInt32BE(0) : 0
  let end = 0
  while (buffer.length - end >= 5 && buffer[end] !== TERMINATE) {
    const next = end + 1 + buffer.readInt32BE(end + 1)
    if (next > buffer.length) break
    end = next
  }
  return end
}

/**
 * The `statement_timeout` in a start-up packet, in milliseconds; 0 when there is none. Names and values
 * stand in turn, each ended by a NUL.
 */
const statementTimeoutOf = (startup: Buffer): bigint => {
  const words = startup.toString('utf8', 8).split('\0')
  const at = words.findIndex((word, i) => i % 2 === 0 && word === 'statement_timeout')
  return at >= 0 && /^\d{1,10}$/.test(words[at + 1]!) ? BigInt(words[at + 1]!) : 0n
}

const serve = (
  socket: Socket,
  backend: Backend,
  turn: () => Promise<() => void>,
  deadline: Deadline,
): void => {
  let buffer: Buffer = Buffer.alloc(0)
  let started = false
  let timeout = 0n
  let release: (() => void) | undefined
  let work: Promise<void> = Promise.resolve()
  let tail: Buffer = Buffer.alloc(0)

  const run = async (message: Uint8Array): Promise<void> => {
    release ??= await turn()
    if (timeout > 0n) Atomics.store(deadline, 0, monotonicMs() + timeout)
    await backend
      .execProtocolRawStream(message, {
        onRawData: (data) => {
          const copy = Buffer.from(data)
          tail = Buffer.concat([tail, copy.subarray(-6)]).subarray(-6)
          if (socket.writable) socket.write(copy)
        },
      })
      .finally(() => {
        Atomics.store(deadline, 0, 0n)
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
        if (code === SSL_REQUEST) {
          socket.write('N')
          continue
        }
        if (code === CANCEL_REQUEST) {
          socket.end()
          return
        }
        started = true
        timeout = statementTimeoutOf(message)
      }
      await run(new Uint8Array(message))
    }
    if (started && buffer[0] === TERMINATE) socket.end()
  }

  socket.on('data', (data: Buffer) => {
    buffer = buffer.length === 0 ? data : Buffer.concat([buffer, data])
    work = work.then(pump).catch(() => {
      socket.destroy()
    })
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    work = work
      .then(async () => {
        if (!release) return
        await backend.execProtocolRawStream(rollback, { onRawData: () => {} })
        release()
      })
      .catch(() => {})
  })
}

/**
 * Listens on an owner-only unix socket. `deadline` tells who watches this thread when a statement has had
 * its time.
 */
export const openGate = (backend: Backend, path: string, deadline: Deadline): Promise<Server> => {
  const turn = turns()
  const server = createServer((socket) => serve(socket, backend, turn, deadline))
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => resolve(server))
  })
}

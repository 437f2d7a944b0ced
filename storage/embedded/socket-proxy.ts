import { createServer, type Server, type Socket } from 'node:net'

/**
 * Lets several clients of the PostgreSQL wire protocol share one PGlite session. A client holds the session
 * from its first message until the backend sends `ReadyForQuery` outside a transaction, so transactions
 * never interleave. (`@electric-sql/pglite-socket` forwards single messages of different clients in turn,
 * which mixes their unnamed statements.)
 */
type Backend = {
  execProtocolRawStream: (
    message: Uint8Array,
    options: { onRawData: (data: Uint8Array) => void },
  ) => Promise<void>
}

/**
 * When the running statement times out, in milliseconds of `monotonicMs`; 0 for no timeout. Shared by two
 * threads.
 */
export type Deadline = BigInt64Array<SharedArrayBuffer>

/** Milliseconds of a monotonic clock that all threads share. */
export const monotonicMs = (): bigint => process.hrtime.bigint() / 1_000_000n

const SSL_REQUEST = 80877103
const CANCEL_REQUEST = 80877102
const TERMINATE = 'X'.charCodeAt(0)
const READY_FOR_QUERY = 'Z'.charCodeAt(0)
const IDLE = 'I'.charCodeAt(0)

/** Creates a mutex: `await lock()` returns the function that unlocks it. */
const createMutex = () => {
  let lastUnlocked: Promise<void> = Promise.resolve()
  return (): Promise<() => void> => {
    const previousUnlocked = lastUnlocked
    let unlock!: () => void
    lastUnlocked = new Promise((resolve) => {
      unlock = resolve
    })
    return previousUnlocked.then(() => unlock)
  }
}

/** `ROLLBACK` as a simple query, for a client that disconnects within a transaction. */
const ROLLBACK_MESSAGE = (() => {
  const text = Buffer.from('rollback\0')
  const message = Buffer.alloc(5 + text.length)
  message.write('Q', 0)
  message.writeInt32BE(4 + text.length, 1)
  text.copy(message, 5)
  return new Uint8Array(message)
})()

/** Returns the length of the complete messages at the head of the buffer, or of the start-up packet. */
const completeLength = (buffer: Buffer, started: boolean): number => {
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
 * Returns the `statement_timeout` of a start-up packet, in milliseconds; 0 when absent. The packet lists
 * names and values alternately, each ended by a NUL.
 */
const parseStatementTimeout = (startup: Buffer): bigint => {
  const words = startup.toString('utf8', 8).split('\0')
  const index = words.findIndex((word, i) => i % 2 === 0 && word === 'statement_timeout')
  return index >= 0 && /^\d{1,10}$/.test(words[index + 1]!) ? BigInt(words[index + 1]!) : 0n
}

const serveClient = (
  socket: Socket,
  backend: Backend,
  lock: () => Promise<() => void>,
  deadline: Deadline,
): void => {
  let buffer: Buffer = Buffer.alloc(0)
  let started = false
  let timeout = 0n
  let unlock: (() => void) | undefined
  let pending: Promise<void> = Promise.resolve()
  let tail: Buffer = Buffer.alloc(0)

  const forward = async (message: Uint8Array): Promise<void> => {
    unlock ??= await lock()
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
    if (tail.length === 6 && tail[0] === READY_FOR_QUERY && tail[5] === IDLE) {
      unlock()
      unlock = undefined
    }
  }

  const processMessages = async (): Promise<void> => {
    for (;;) {
      const length = completeLength(buffer, started)
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
        timeout = parseStatementTimeout(message)
      }
      await forward(new Uint8Array(message))
    }
    if (started && buffer[0] === TERMINATE) socket.end()
  }

  socket.on('data', (data: Buffer) => {
    buffer = buffer.length === 0 ? data : Buffer.concat([buffer, data])
    pending = pending.then(processMessages).catch(() => {
      socket.destroy()
    })
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    pending = pending
      .then(async () => {
        if (!unlock) return
        await backend.execProtocolRawStream(ROLLBACK_MESSAGE, { onRawData: () => {} })
        unlock()
      })
      .catch(() => {})
  })
}

/** Listens on a unix socket. Through `deadline`, the monitoring thread learns when a statement times out. */
export const startSocketProxy = (backend: Backend, path: string, deadline: Deadline): Promise<Server> => {
  const lock = createMutex()
  const server = createServer((socket) => serveClient(socket, backend, lock, deadline))
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => resolve(server))
  })
}

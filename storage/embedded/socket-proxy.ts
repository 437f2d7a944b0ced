import { createServer, type Server, type Socket } from 'node:net'
import type { DurableLog } from './durable-log.ts'
import { createSessionQueue, HEAVY_APPLICATION_NAME } from './session-queue.ts'
import { DEADLINE, monotonicMs, READ_ONLY, type SharedState } from './shared-state.ts'

/**
 * Lets several clients of the PostgreSQL wire protocol share one PGlite session. A client holds the session
 * from its first message until the backend sends `ReadyForQuery` outside a transaction, so transactions
 * never interleave (docs/decisions/0001-one-driver-for-both-databases.md: why not `pglite-socket`).
 */
type Backend = {
  execProtocolRawStream: (
    message: Uint8Array,
    options: { onRawData: (data: Uint8Array) => void },
  ) => Promise<void>
}

const SSL_REQUEST = 80877103
const CANCEL_REQUEST = 80877102
const TERMINATE = 'X'.charCodeAt(0)
const SYNC = 'S'.charCodeAt(0)
const QUERY = 'Q'.charCodeAt(0)
const READY_FOR_QUERY = 'Z'.charCodeAt(0)
const IDLE = 'I'.charCodeAt(0)

const createQuery = (statement: string): Uint8Array => {
  const text = Buffer.from(`${statement}\0`)
  const message = Buffer.alloc(5 + text.length)
  message.write('Q', 0)
  message.writeInt32BE(4 + text.length, 1)
  text.copy(message, 5)
  return new Uint8Array(message)
}

/** For a client that disconnects within a transaction. */
const ROLLBACK_MESSAGE = createQuery('rollback')

/** The head of an error message after which the database has stopped; no text of a row contains a NUL. */
const PANIC_SEVERITY = Buffer.from('SPANIC\0VPANIC\0')

/** More is sent before the message is over, so that a large result is not held twice. */
const MAX_OUTPUT_BYTES = 256 * 1024

const ignoreData = { onRawData: () => {} }

/**
 * Returns the length of the complete messages at the head of the buffer, or of the start-up packet. `isHeavy`:
 * up to the end of one statement, so that others get a turn after it, and each has a deadline of its own.
 */
const completeLength = (buffer: Buffer, started: boolean, isHeavy: boolean): number => {
  if (!started)
    return buffer.length >= 4 && buffer.length >= buffer.readInt32BE(0) ? buffer.readInt32BE(0) : 0
  let end = 0
  while (buffer.length - end >= 5 && buffer[end] !== TERMINATE) {
    const type = buffer[end]
    const next = end + 1 + buffer.readInt32BE(end + 1)
    if (next > buffer.length) break
    end = next
    if (isHeavy && (type === SYNC || type === QUERY)) break
  }
  return end
}

/** Returns a parameter of a start-up packet, which lists names and values in turn, each ended by a NUL. */
const findParameter = (startup: Buffer, name: string): string | undefined => {
  const words = startup.toString('utf8', 8).split('\0')
  const index = words.findIndex((word, i) => i % 2 === 0 && word === name)
  return index < 0 ? undefined : words[index + 1]
}

/** Returns the `statement_timeout` of a start-up packet, in milliseconds; 0 when absent. */
const parseStatementTimeout = (startup: Buffer): bigint => {
  const text = findParameter(startup, 'statement_timeout')
  return text !== undefined && /^\d{1,10}$/.test(text) ? BigInt(text) : 0n
}

type PlanMode = 'auto' | 'force_custom_plan'
/** What the start-up packet of a client says. `timeout`: of a statement, in milliseconds; 0 for none. */
type Client = { timeout: bigint; isHeavy: boolean; planMode: PlanMode }

const parseClient = (startup: Buffer): Client => ({
  timeout: parseStatementTimeout(startup),
  isHeavy: findParameter(startup, 'application_name') === HEAVY_APPLICATION_NAME,
  planMode: findParameter(startup, 'plan_cache_mode') === 'force_custom_plan' ? 'force_custom_plan' : 'auto',
})

/** Waits for the session, with the settings of a client. Resolves with the function that gives it back. */
type TakePreparedSession = (client: Client) => Promise<() => void>

type ProxyOptions = {
  shared: SharedState
  /** What answers wait for: a change is not acknowledged before it is on the disk. */
  log: Pick<DurableLog, 'requests' | 'whenDurable'>
  /** Called when the database has stopped, so that only a new thread can go on. */
  onPanic: () => void
}

/**
 * Lets the transactions of the session only read while the disk is full, so that none of them needs more of
 * it: all statements that change something fail at once then, whoever sends them.
 */
const createReadOnlySwitch = (backend: Backend, shared: SharedState): (() => Promise<void>) => {
  let applied = 0n
  return async () => {
    const wanted = Atomics.load(shared, READ_ONLY)
    if (wanted === applied) return
    const value = wanted === 0n ? 'off' : 'on'
    await backend.execProtocolRawStream(
      createQuery(`set default_transaction_read_only = ${value}`),
      ignoreData,
    )
    applied = wanted
  }
}

/** Plans the statements of a client as its connection asks for, in the session that all clients share. */
const createPlanModeSwitch = (backend: Backend): ((wanted: PlanMode) => Promise<void>) => {
  let applied: PlanMode = 'auto'
  return async (wanted) => {
    if (wanted === applied) return
    await backend.execProtocolRawStream(createQuery(`set plan_cache_mode = ${wanted}`), ignoreData)
    applied = wanted
  }
}

/** Sends the data of a message at once: each write wakes the other thread (measured: a fifth of the time). */
const createOutput = (socket: Socket) => {
  let chunks: Buffer[] = []
  let size = 0
  const flush = (): void => {
    if (size > 0 && socket.writable) socket.write(Buffer.concat(chunks))
    chunks = []
    size = 0
  }
  return {
    flush,
    add: (data: Buffer): void => {
      chunks.push(data)
      size += data.length
      if (size > MAX_OUTPUT_BYTES) flush()
    },
  }
}

type Execution = Pick<Client, 'timeout'> &
  Pick<ProxyOptions, 'shared'> & { onRawData: (data: Uint8Array) => void }

/** Has a message executed; meanwhile `shared` tells when it times out. */
const execute = async (
  backend: Backend,
  message: Uint8Array,
  { timeout, shared, onRawData }: Execution,
): Promise<void> => {
  if (timeout > 0n) Atomics.store(shared, DEADLINE, monotonicMs() + timeout)
  try {
    await backend.execProtocolRawStream(message, { onRawData })
  } finally {
    Atomics.store(shared, DEADLINE, 0n)
  }
}

/** Whether these last bytes of an answer say that the session is free, outside of a transaction. */
const isReady = (tail: Buffer): boolean =>
  tail.length === 6 && tail[0] === READY_FOR_QUERY && tail[5] === IDLE

/** Waits for the disk if there was a commit since so many requests. Throws when the disk fails. */
const untilDurable = async ({ log, onPanic }: ProxyOptions, since: number): Promise<void> => {
  if (log.requests() === since) return
  try {
    await log.whenDurable()
  } catch (error) {
    onPanic()
    throw error
  }
}

const serveClient = (
  socket: Socket,
  backend: Backend,
  takeSession: TakePreparedSession,
  options: ProxyOptions,
): void => {
  const { shared, log, onPanic } = options
  let buffer: Buffer = Buffer.alloc(0)
  let started = false
  let client: Client = { timeout: 0n, isHeavy: false, planMode: 'auto' }
  let unlock: (() => void) | undefined
  let pending: Promise<void> = Promise.resolve()
  let tail: Buffer = Buffer.alloc(0)

  const forward = async (message: Uint8Array): Promise<void> => {
    unlock ??= await takeSession(client)
    const output = createOutput(socket)
    const requests = log.requests()
    const onRawData = (data: Uint8Array): void => {
      const copy = Buffer.from(data)
      if (copy.includes(PANIC_SEVERITY)) onPanic()
      tail = Buffer.concat([tail, copy.subarray(-6)]).subarray(-6)
      output.add(copy)
    }
    try {
      await execute(backend, message, { timeout: client.timeout, shared, onRawData })
    } catch (error) {
      output.flush()
      throw error
    }
    // Others have the session while this client waits for the disk.
    if (isReady(tail)) {
      unlock()
      unlock = undefined
    }
    await untilDurable(options, requests)
    output.flush()
  }

  const processMessages = async (): Promise<void> => {
    for (;;) {
      const length = completeLength(buffer, started, client.isHeavy)
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
        client = parseClient(message)
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
        await backend.execProtocolRawStream(ROLLBACK_MESSAGE, ignoreData)
        unlock()
      })
      .catch(() => {})
  })
}

/** Listens on a unix socket. Through `shared`, the main thread learns when a statement times out. */
export const startSocketProxy = (backend: Backend, path: string, options: ProxyOptions): Promise<Server> => {
  const takeTurn = createSessionQueue()
  const switchReadOnly = createReadOnlySwitch(backend, options.shared)
  const switchPlanMode = createPlanModeSwitch(backend)
  const takeSession: TakePreparedSession = async ({ isHeavy, planMode }) => {
    const giveBack = await takeTurn(isHeavy)
    await switchReadOnly()
    await switchPlanMode(planMode)
    return giveBack
  }
  const server = createServer((socket) => serveClient(socket, backend, takeSession, options))
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => resolve(server))
  })
}

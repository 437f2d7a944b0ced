import { sql } from 'kysely'
import type { Db } from '../database.ts'
import type { Session } from './session.ts'
import { waitAtMost } from './wait-at-most.ts'

/**
 * Short texts between the processes that use a PostgreSQL database. They are hints: one may be lost with a
 * connection or a process, so whoever waits for one also looks by itself from time to time.
 */
export type SignalChannel = {
  /** Sends a text of less than 8,000 bytes to every process that listens, this one too. */
  send: (text: string) => Promise<void>
  /** Listens from now on. `onOpen` is called whenever what was sent before may have been missed. */
  listen: (onText: (text: string) => void, onOpen: () => void) => void
  isListening: () => boolean
  close: () => void
}

const CHANNEL = 'wcrm'
const REOPEN_MS = 1_000
/** How often it is checked that the session still exists, and how long it may take to answer. */
const CHECK_MS = 30_000
const RESPONSE_MS = 5_000

/**
 * A transaction of its own: a commit with a notification waits for every other one of the cluster, so that
 * notifying within each change would let the changes commit one after another.
 */
const notify = async (db: Db, text: string): Promise<void> => {
  await sql`select pg_notify(${sql.lit(CHANNEL)}, ${text})`.execute(db)
}

type OnText = (text: string) => void

type OpenSession = (onText: OnText, onClose: () => void) => Session

/** `openSession`: opens a connection for nothing but this. */
export const createSignalChannel = (db: Db, openSession: OpenSession): SignalChannel => {
  let session: Session | undefined
  let timer: NodeJS.Timeout | undefined
  let isListening = false
  let isClosed = false

  const later = (ms: number, work: () => void): void => {
    clearTimeout(timer)
    timer = setTimeout(work, ms).unref()
  }
  const open = (onText: OnText, onOpen: () => void): void => {
    const own = openSession(onText, () => lose())
    const lose = (): void => {
      if (session !== own || isClosed) return
      session = undefined
      isListening = false
      own.destroy()
      later(REOPEN_MS, () => open(onText, onOpen))
    }
    const check = async (statement: string): Promise<void> => {
      const answered = own.sql.unsafe(statement).simple()
      try {
        if (!(await waitAtMost(RESPONSE_MS, answered))) return lose()
        await answered
      } catch {
        return lose()
      }
      if (session !== own) return
      later(CHECK_MS, () => void check('select 1'))
      if (isListening) return
      isListening = true
      onOpen()
    }
    session = own
    void check(`listen ${CHANNEL}`)
  }
  return {
    send: (text) => notify(db, text),
    listen: open,
    isListening: () => isListening,
    close: () => {
      isClosed = true
      isListening = false
      clearTimeout(timer)
      session?.destroy()
    },
  }
}

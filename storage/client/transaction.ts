import type { TransactionSettings } from 'kysely'
import type { Statement, Transaction } from './client.ts'
import type { StatementResult } from './session.ts'
import { statementChannel } from './statement-channel.ts'

/** A connection that nobody else uses. */
type HeldConnection = {
  send: (statement: Statement) => Promise<StatementResult>
  isLost: () => boolean
  /** Gives it back. `isClean`: no transaction is left in its session. */
  release: (isClean: boolean) => void
  /** Statements that set, within a transaction, what a pooler does not let a session keep. */
  setup: string | undefined
}

const COMMIT: Statement = { text: 'commit' }
const ROLLBACK: Statement = { text: 'rollback' }

const toBegin = (
  { isolationLevel, accessMode }: TransactionSettings,
  setup: string | undefined,
): Statement => {
  // The session of a pooler has the default of the server.
  const level = isolationLevel ?? (setup === undefined ? undefined : 'read committed')
  const modes = [level ? `isolation level ${level}` : '', accessMode ?? '']
  const begin = `begin ${modes.filter(Boolean).join(', ')}`.trim()
  return setup === undefined ? { text: begin } : { text: `${begin}; ${setup}`, simple: true }
}

/** Its failure is the failure of another one too. */
const ignoreFailure = <T>(promise: Promise<T>): Promise<T> => {
  promise.catch(() => {})
  return promise
}

export const createTransaction = (
  { send, isLost, release, setup }: HeldConnection,
  settings: TransactionSettings,
): Transaction => {
  let begun: Promise<unknown> | undefined
  /** Resolves when nothing is left to commit or roll back. */
  let ended: Promise<void> | undefined
  let isClean = true
  let isReleased = false
  const end = async (statement: Statement): Promise<void> => {
    const { command } = await send(statement)
    isClean = true
    // Of a transaction in which a statement failed, PostgreSQL answers `commit` with success and the tag ROLLBACK.
    if (statement === COMMIT && command === 'ROLLBACK')
      throw new Error('The transaction was not committed: a statement in it had failed.')
  }
  const finish = async (work: () => Promise<void>): Promise<void> => {
    if (isReleased) return
    isReleased = true
    try {
      await work()
    } finally {
      release(isClean)
    }
  }
  return {
    run: async (statement) => {
      // A last one that is the first one too is a transaction by itself.
      const isOnly = statement.last && !begun && setup === undefined
      if (!isOnly && !begun) {
        isClean = false
        begun = ignoreFailure(send(toBegin(settings, setup)))
      }
      const result = send(statement)
      if (statement.last) ended = isOnly ? Promise.resolve() : ignoreFailure(end(COMMIT))
      const [response] = await Promise.all([result, begun])
      return response
    },
    commit: () =>
      finish(async () => {
        if (ended) await ended
        else if (begun) await statementChannel.tracePromise(() => end(COMMIT), COMMIT)
      }),
    rollback: () =>
      finish(async () => {
        // The statement before the commit failed, so the commit rolls back: nothing is locked once it has its response.
        if (ended) await ended.catch(() => {})
        else if (begun && !isLost()) await end(ROLLBACK)
      }),
  }
}

import { program } from './admin/program.ts'
import { openSession } from './admin/session.ts'
import { show } from './admin/show.ts'
import type { Io } from './io.ts'
import { runTree } from './tree.ts'

/**
 * `wcrm admin`: what is done on the server's own machine, without a key. Gives the exit code: 0 done, 1
 * unexpected, 2 invalid, 3 not found.
 */
export const run = (argv: string[], io: Io): Promise<number> =>
  runTree(
    program(async (verb, flags, argument) => {
      const { session, close } = openSession(io, flags)
      try {
        await show(io, verb, await verb.run(session, flags, argument), flags['json'] === true)
      } finally {
        await close()
      }
    }),
    argv,
    io,
    plain,
  )

/** Faults of the database's whereabouts, in words that help. */
const plain = (error: unknown): unknown => {
  const { code } = error as { code?: string }
  if (code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'CONNECT_TIMEOUT')
    return new Error(`The database does not answer (${code}); check --database-url.`)
  return error
}

import { createAdminProgram } from './admin/program.ts'
import { openAdminSession } from './admin/session.ts'
import { printResult } from './result.ts'
import type { Io } from './io.ts'
import { runCommandTree } from './command-tree.ts'

/**
 * `wcrm admin`: administration on the server's own machine, without an API key. Returns the exit code: 0
 * done, 1 unexpected, 2 invalid, 3 not found, 5 a server is running.
 */
export const run = (argv: string[], io: Io): Promise<number> =>
  runCommandTree(
    createAdminProgram(async (verb, flags, argument) => {
      const { session, close } = openAdminSession(io, flags, verb)
      try {
        await printResult(io, verb, await verb.run(session, flags, argument), flags['json'] === true)
      } finally {
        await close()
      }
    }),
    argv,
    io,
    describeDatabaseError,
  )

/** Explains a failed connection to the database. */
const describeDatabaseError = (error: unknown): unknown => {
  const { code } = error as { code?: string }
  if (code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'CONNECT_TIMEOUT')
    return new Error(`Cannot connect to the database (${code}); check --database-url.`)
  return error
}

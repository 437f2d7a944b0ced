import { createAdminProgram } from './admin/program.ts'
import { openAdminSession } from './admin/session.ts'
import { printResult } from './result.ts'
import type { Io } from './io.ts'
import { runCommandTree } from './command-tree.ts'
import { cliError, isSchemaError, SCHEMA_EXIT_CODE } from './error.ts'
import { describeDatabaseError, toSentence } from './start-errors.ts'

/**
 * `wcrm admin`: administration on the server's own machine, without an API key. Returns the exit code: 0
 * done, 1 unexpected or problems found, 2 invalid, 3 not found, 5 a server is running,
 * or the schema of the database is not that of this version.
 */
export const run = async (argv: string[], io: Io): Promise<number> => {
  let exitCode = 0
  const failure = await runCommandTree(
    createAdminProgram(async (verb, flags, argument) => {
      const { session, close } = openAdminSession(io, flags, verb)
      try {
        const result = await verb.run(session, flags, argument)
        await printResult(io, result, { columns: verb.columns, json: flags['json'] === true })
        exitCode = verb.exitCode?.(result) ?? 0
      } finally {
        await close()
      }
    }),
    argv,
    io,
    convertError,
  )
  return failure === 0 ? exitCode : failure
}

/** Explains a failed connection to the database, and a schema of another version. */
const convertError = (error: unknown): unknown => {
  if (isSchemaError(error))
    return cliError(SCHEMA_EXIT_CODE, {
      type: 'about:blank',
      title: 'The schema does not fit',
      status: 409,
      detail: error.message,
      code: 'conflict',
    })
  const text = describeDatabaseError(error)
  return text === undefined ? error : new Error(toSentence(text))
}

import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { inSavepoint } from '../client/savepoint.ts'

const INVALID_REGULAR_EXPRESSION = '2201B'
/** How long PostgreSQL may take to compile the expressions of a filter; ordinary ones take under 1 ms. */
const COMPILE_TIMEOUT_MS = 250

/**
 * Has the database compile these regular expressions. Returns its message when it rejects one of them, else
 * null. The embedded database knows no timeout of one statement: the caller bounds what it is given.
 */
export const findRegexError = async (heavy: Db, patterns: readonly string[]): Promise<string | null> => {
  const compile = (tx: Db) =>
    sql`select bool_or('' ~ pattern) from unnest(${patterns}::text[]) pattern`.execute(tx)
  try {
    if (heavy.isTransaction) await inSavepoint(heavy, () => compile(heavy))
    else
      await heavy.transaction().execute(async (tx) => {
        await sql`select set_config('statement_timeout', ${String(COMPILE_TIMEOUT_MS)}, true)`.execute(tx)
        await compile(tx)
      })
    return null
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    if (code !== INVALID_REGULAR_EXPRESSION) throw error
    return message.replace(/^invalid regular expression: /, '')
  }
}

import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { inSavepoint } from '../savepoint.ts'

const INVALID_REGULAR_EXPRESSION = '2201B'

/**
 * Returns the first of these patterns that the database rejects, with its message; undefined when all are
 * valid.
 */
export const findRegexError = async (
  tx: Db,
  patterns: readonly string[],
): Promise<{ index: number; message: string } | undefined> => {
  const message = await tryPatterns(tx, patterns)
  if (message === undefined) return undefined
  if (patterns.length === 1) return { index: 0, message }
  // The message does not name the pattern, so each is tried by itself.
  for (const [index, pattern] of patterns.entries()) {
    const ownMessage = await tryPatterns(tx, [pattern])
    if (ownMessage !== undefined) return { index, message: ownMessage }
  }
  return undefined
}

/** Returns the database's message when it rejects one of the patterns. */
const tryPatterns = async (tx: Db, patterns: readonly string[]): Promise<string | undefined> => {
  const run = () => sql`select bool_or('' ~ pattern) from unnest(${patterns}::text[]) pattern`.execute(tx)
  try {
    await (tx.isTransaction ? inSavepoint(tx, run) : run())
    return undefined
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    if (code !== INVALID_REGULAR_EXPRESSION) throw error
    return message.replace(/^invalid regular expression: /, '')
  }
}

import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { inSavepoint } from '../savepoint.ts'

const INVALID_REGULAR_EXPRESSION = '2201B'

/**
 * The first of these patterns that the database does not understand, and what it says of it; undefined when
 * they are all good.
 */
export const regexFault = async (
  tx: Db,
  patterns: readonly string[],
): Promise<{ index: number; fault: string } | undefined> => {
  const fault = await faultOf(tx, patterns)
  if (fault === undefined || patterns.length === 1)
    return fault === undefined ? undefined : { index: 0, fault }
  // The message names no pattern, so each is tried by itself.
  for (const [index, pattern] of patterns.entries()) {
    const own = await faultOf(tx, [pattern])
    if (own !== undefined) return { index, fault: own }
  }
  return undefined
}

const faultOf = async (tx: Db, patterns: readonly string[]): Promise<string | undefined> => {
  const ask = () => sql`select bool_or('' ~ pattern) from unnest(${patterns}::text[]) pattern`.execute(tx)
  try {
    await (tx.isTransaction ? inSavepoint(tx, ask) : ask())
    return undefined
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    if (code !== INVALID_REGULAR_EXPRESSION) throw error
    return message.replace(/^invalid regular expression: /, '')
  }
}

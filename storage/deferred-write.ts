import { type RawBuilder, sql } from 'kysely'
import type { Db } from './database.ts'

/**
 * The last work of a change, to be written in one statement with its answer and events: common table
 * expressions that write, and the name of one of them, if any, which must have written a row.
 */
export type Finale = { parts: RawBuilder<unknown>; mustWrite?: string }

/** A division by zero where the row was not written: the cheapest way for a statement to undo itself. */
const proof = (mustWrite: string) =>
  sql`from (select 1 / count(*) as done from ${sql.raw(mustWrite)}) as proof where done = 1`

/** True for the failure of a finale that did not write what it must. */
export const isUnwritten = (error: unknown): boolean => (error as { code?: string }).code === '22012'

export const partsOf = (finale: Finale | undefined): RawBuilder<unknown> =>
  finale ? sql`${finale.parts},` : sql``
export const proofOf = (finale: Finale | undefined): RawBuilder<unknown> =>
  finale?.mustWrite ? proof(finale.mustWrite) : sql``

/** Runs the last work by itself, for a rehearsal. */
export const runFinale = async (tx: Db, finale: Finale): Promise<void> => {
  await sql`with ${finale.parts} select 1 ${proofOf(finale)}`.execute(tx)
}

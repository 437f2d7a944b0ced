import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../database.ts'

/**
 * The last write of a change, sent in one statement with its events and its stored response: common table
 * expressions that write, and the name of the one, if any, that must have written a row. `eventsOf`: the name of the
 * one without whose rows there are no events.
 */
export type DeferredWrite = { parts: RawBuilder<unknown>; expectRow?: string; eventsOf?: string }

const DIVISION_BY_ZERO = '22012'

/**
 * A `from` clause that makes the statement fail where the expected row was not written. A division by zero
 * is the cheapest way in plain SQL for a statement to undo itself; `expectingRow` turns it into
 * `ExpectationFailed`, and nothing else looks at its code.
 */
export const rowGuard = (write: DeferredWrite | undefined): RawBuilder<unknown> =>
  write?.expectRow === undefined
    ? sql``
    : sql`from (select 1 / count(*) as done from ${sql.raw(write.expectRow)}) as guard where done = 1`

/** The common table expressions of a write, to be followed by others. */
export const deferredParts = (write: DeferredWrite | undefined): RawBuilder<unknown> =>
  write ? sql`${write.parts},` : sql``

const expectationFailed = (expectRow: string, cause: unknown): Error =>
  Object.assign(new Error(`the deferred write "${expectRow}" wrote no row`, { cause }), {
    name: 'ExpectationFailed',
  })

/** True when a deferred write did not write its expected row; the whole change may be retried. */
export const isExpectationFailed = (error: unknown): boolean =>
  error instanceof Error && error.name === 'ExpectationFailed'

/**
 * Awaits the statement that holds this write and its guard, or that of events (`announcedEventInserts`); throws
 * `ExpectationFailed` for a missing row.
 */
export const expectingRow = async <T>(
  write: DeferredWrite | undefined,
  statement: Promise<T>,
): Promise<T> => {
  try {
    return await statement
  } catch (error) {
    if ((error as { code?: string }).code === DIVISION_BY_ZERO)
      throw expectationFailed(write?.expectRow ?? 'written', error)
    throw error
  }
}

/** Runs a deferred write in a statement of its own, as a dry run does. */
export const runDeferredWrite = async (tx: Db, write: DeferredWrite): Promise<void> => {
  await expectingRow(write, sql`with ${write.parts} select 1 ${rowGuard(write)}`.execute(tx))
}

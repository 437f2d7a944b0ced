import { type RawBuilder, sql } from 'kysely'

/** The greatest number that a bigint holds. */
export const MAX_BIGINT = '9223372036854775807'

/** Returns an id as a bigint can store it. One that exceeds a bigint names nothing, as does 0. */
export const toStorableId = (id: string | number): string => {
  const text = String(id)
  return text.length > 19 || (text.length === 19 && text > MAX_BIGINT) ? '0' : text
}

/**
 * An array whose length the planner does not look at. It would plan for short arrays anew each time, because the
 * plan for arrays of any length looks dearer; planning takes longer than the statement.
 */
export const asUnknown = (ids: readonly string[]): RawBuilder<unknown> =>
  sql`(select ${ids}::bigint[])::bigint[]`

import { sql } from 'kysely'
import type { Db } from '../database.ts'
import type { Sql } from './comparisons.ts'
import { type FilterPlan, joinValuesLateral } from './plan.ts'

/*
 * The embedded database has one session, and everybody waits for the statement that runs on it. There, a
 * filter is tested on some contacts at a time, as many as are tested in the time that others may wait.
 */

/** Contacts that one statement tests. A few numbers only: each is a statement of its own to prepare. */
const STEP_SIZES = [8, 32, 128, 512, 2048] as const

/** Chooses how many contacts the next statement tests, by how long the last ones took. */
type StepSize = { contacts: () => number; record: (contacts: number, ms: number) => void }

export const createStepSize = (stepMs: number): StepSize => {
  let size = 1
  return {
    contacts: () => STEP_SIZES[size]!,
    record: (contacts, ms) => {
      // A step that found few contacts left says nothing about larger ones.
      if (contacts < STEP_SIZES[size]!) return
      if (ms > stepMs && size > 0) size--
      else if (ms * (STEP_SIZES[size + 1] ?? Infinity) < stepMs * STEP_SIZES[size]!) size++
    },
  }
}

/** Milliseconds that this statement has run for. */
const elapsedMs = sql`extract(epoch from clock_timestamp() - statement_timestamp())::float8 * 1000`

/** How a list is sorted: SQL of its key, its order, what bounds it, and the rest after a position. */
export type StepOrder = {
  key: Sql
  orderBy: Sql
  bounds: Sql
  after: (position: StepPosition | null) => Sql
}
export type StepPosition = { key: string; id: string }
type StepRow = { id: string; sort_key: string; matches: boolean; seen: string; ms: number }

/**
 * Scans contacts in list order after a position until `limit` of them match, or there are no more. Returns
 * the matches.
 */
export const scanInSteps = async (
  tx: Db,
  plan: FilterPlan,
  order: StepOrder,
  after: StepPosition | null,
  limit: number,
  size: StepSize,
): Promise<string[]> => {
  const ids: string[] = []
  let position = after
  for (;;) {
    const contacts = size.contacts()
    // Prepared: the statement of each step is the same.
    const { rows } = await sql<StepRow>`
      with step as materialized (
        select c.id, c.sort_key, c.n, (${plan.test({ as: 'row' })}) as matches from (
          select c.*, ${order.key} as sort_key, row_number() over (order by ${order.orderBy}) as n
          from contacts c where ${order.bounds} ${order.after(position)}
          order by ${order.orderBy} limit ${sql.lit(contacts)}) as c
        ${joinValuesLateral(plan)})
      select id, sort_key::text as sort_key, matches is true as matches, (select max(n) from step) as seen,
        ${elapsedMs} as ms
      from step where matches or n = (select max(n) from step) order by n`.execute(tx)
    const last = rows.at(-1)
    const tested = Number(last?.seen ?? 0)
    if (last) size.record(tested, Math.max(...rows.map((row) => row.ms)))
    for (const row of rows) if (row.matches) ids.push(row.id)
    if (ids.length >= limit || tested < contacts) return ids.slice(0, limit)
    position = { key: last!.sort_key, id: last!.id }
  }
}

/** Returns those of these contacts that match. */
export const filterInSteps = async (
  tx: Db,
  plan: FilterPlan,
  candidates: readonly string[],
  size: StepSize,
): Promise<string[]> => {
  const found: string[] = []
  for (let from = 0; from < candidates.length;) {
    const part = candidates.slice(from, from + size.contacts())
    const { rows } = await sql<{ ids: string[]; ms: number }>`
      with step as materialized (
        select c.id from unnest(${part}::bigint[]) as u (id)
        join contacts c on c.workspace_id = ${plan.workspaceId} and c.id = u.id
        ${joinValuesLateral(plan)} where ${plan.test({ as: 'row' })})
      select array(select id from step) as ids, ${elapsedMs} as ms`.execute(tx)
    found.push(...rows[0]!.ids)
    size.record(part.length, rows[0]!.ms)
    from += part.length
  }
  return found
}

/** Counts the contacts with ids in a range, and those of them that match. */
export const countStep = async (
  tx: Db,
  plan: FilterPlan,
  [first, end]: readonly [string, string],
): Promise<{ seen: number; matched: number; ms: number }> => {
  const { rows } = await sql<{ seen: string; matched: string; ms: number }>`
    with step as materialized (
      select (${plan.test({ as: 'row' })}) as matches from contacts c ${joinValuesLateral(plan)}
      where c.workspace_id = ${plan.workspaceId} and c.id >= ${first}::bigint and c.id < ${end}::bigint)
    select (select count(*) from step) as seen, (select count(*) from step where matches) as matched,
      ${elapsedMs} as ms`.execute(tx)
  return { seen: Number(rows[0]!.seen), matched: Number(rows[0]!.matched), ms: rows[0]!.ms }
}

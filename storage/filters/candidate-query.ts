import { sql } from 'kysely'
import type { Sql } from './comparisons.ts'
import type { ConversationCondition } from './filter.ts'
import type { PredicateScope } from './predicates.ts'

/**
 * A `select` of ids, as `contact_id`: all contacts that meet a condition, and possibly others. The lower the
 * rank, the fewer rows it is likely to return; `branches`: how many selects it unites. The planner's
 * estimates are too inaccurate for ranking (measured: 16 for 224 rows, 1 for 621).
 */
export type CandidateQuery = {
  rank: number
  ids: Sql
  branches: number
  /** No index that the planner would find by itself returns these. */
  derived?: true
  /** An index has the contacts of this query in the order of their ids. */
  sorted?: boolean
  /** Each id once, and only of contacts that meet the condition. */
  exact?: boolean
  /** It may return contacts that were deleted. */
  deleted?: boolean
  /** Beside `contact_id` it returns `workspace_id` and the values of the contact, `attrs`. */
  attrs?: boolean
  /** An index alone has its ids, of all contacts that meet the condition and of no others. */
  listed?: boolean
}

export const candidateRank = {
  id: 0,
  exact: 1,
  value: 2,
  text: 3,
  label: 4,
  range: 5,
  time: 6,
  state: 7,
  scan: 9,
} as const

const MAX_INTEGER = 2 ** 31 - 1

/** Candidates by a condition on the contact's own columns; exact where it is the whole condition. */
export const contactCandidates = (
  { workspaceId }: PredicateScope,
  rank: number,
  test: Sql,
): CandidateQuery => ({
  rank,
  branches: 1,
  exact: true,
  ids: sql`
    select c.id as contact_id from contacts c where c.workspace_id = ${workspaceId} and ${test}`,
})

export const relatedCandidates = (
  { workspaceId }: PredicateScope,
  rank: number,
  table: Sql,
  tests: readonly Sql[],
): CandidateQuery => ({
  rank,
  branches: 1,
  ids: sql`
    select r.contact_id from ${table} r
    where ${sql.join([sql`r.workspace_id = ${workspaceId}`, ...tests], sql` and `)}`,
})

/**
 * Candidates by free text. The field belongs to the workspace, so that is not looked up in the trigram index too,
 * which would read the list of all its contacts (3 ms of a million): the index has no operator for four bytes.
 */
export const freeTextCandidates = (
  { workspaceId }: PredicateScope,
  fieldId: string,
  tests: readonly Sql[],
): CandidateQuery => ({
  rank: candidateRank.text,
  branches: 1,
  ids: sql`
    select r.contact_id from contact_attributes r
    where r.workspace_id = ${workspaceId}${Number(workspaceId) <= MAX_INTEGER ? sql`::int4` : sql``}
      and ${sql.join([sql`r.field_id = ${fieldId}::bigint and r.free`, ...tests], sql` and `)}`,
})

/** The union of the branches of an `or`; none when one branch has no candidates. */
export const unionCandidates = (branches: readonly (CandidateQuery | undefined)[]): CandidateQuery[] => {
  const all = branches.filter((query) => query !== undefined)
  if (all.length < branches.length || all.length === 0) return []
  return [
    {
      rank: Math.max(...all.map((query) => query.rank)),
      branches: all.reduce((sum, query) => sum + query.branches, 0),
      deleted: all.some((query) => query.deleted),
      ids: sql.join(
        all.map((query) => sql`(${query.ids})`),
        sql` union all `,
      ),
    },
  ]
}

/**
 * The least number of unread messages, at least 1, where conversations are looked for by that and their state alone:
 * the index `conversations_unread` has all of it.
 */
export const leastUnread = (where: readonly ConversationCondition[]): number | undefined => {
  if (!where.every(({ field }) => field === 'state' || field === 'unreadCount')) return undefined
  const bounds = where.flatMap((condition) => {
    if (condition.field !== 'unreadCount') return []
    const { test } = condition
    if (test.op === 'gt') return [Math.floor(Number(test.value)) + 1]
    if (test.op === 'gte' || test.op === 'eq') return [Math.ceil(Number(test.value))]
    return test.op === 'between' ? [Math.ceil(Number(test.from))] : []
  })
  const least = Math.min(Math.max(0, ...bounds), MAX_INTEGER)
  return least > 0 ? least : undefined
}

import { sql } from 'kysely'
import type { Sql } from './comparisons.ts'
import { type FilterPlan, joinValuesLateral, type Lead } from './plan.ts'
import { readsContact } from './predicates.ts'
import { filterStrategy } from './strategy.ts'

/** Whether the contacts of candidates are looked up, by whose columns they can be sorted then. */
export const looksUpContacts = ({ rest }: Lead): boolean => rest.some(readsContact)

/**
 * Returns common table expressions: `lead`, up to `maxCandidates` candidates and one more if there are more;
 * `found`, the ids of all matches, or nothing where `lead` has too many; with `sort_key`, null where no contact was
 * looked up; then also only those `after` a position. Related records are tested without the row of the contact, which only those are looked up in that
 * passed.
 */
export const matchExpressions = (
  plan: FilterPlan,
  { query, narrowed, rest }: Lead,
  sortKey: Sql,
  after: Sql = sql``,
): Sql => {
  const { workspaceId } = plan
  const max = filterStrategy.maxCandidates
  const own = rest.filter(readsContact)
  const related = rest.filter((node) => !own.includes(node))
  const few = sql`(select count(*) from lead) <= ${sql.lit(max)}`
  // Lists all contacts that meet the conditions: a look-up in a hash takes less time than one in a table.
  const listed = sql`
    select c.id, c.workspace_id from contacts c
    where ${few} and ${plan.test({ as: 'row' }, narrowed)} and (c.id in (select contact_id from lead)) is true`
  const candidates = sql`
    select ${query.exact ? sql`` : sql`distinct`} contact_id as id, ${workspaceId}::bigint as workspace_id
      ${query.attrs ? sql`, attrs` : sql``}
    from lead where ${few}`
  const withValues =
    query.attrs && narrowed.length === 0
      ? sql`cross join lateral (select c.attrs) as f`
      : joinValuesLateral(plan)
  const tested =
    related.length === 0
      ? narrowed.length > 0
        ? listed
        : candidates
      : sql`
        select c.id from (${narrowed.length > 0 ? listed : candidates} offset 0) as c ${withValues}
        where ${plan.test({ as: 'row' }, related)}`
  return sql`
    lead as materialized (
      select * from (${query.ids}) as lead limit ${sql.lit(max + 1)}
    ), candidate as materialized (${tested}
    ), found as materialized (
      ${
        own.length === 0
          ? sql`select id, null as sort_key from candidate`
          : sql`
            select c.id, ${sortKey} as sort_key
            from candidate cross join lateral (
              select * from contacts c
              where c.workspace_id = ${workspaceId} and c.id = candidate.id limit 1) as c
            ${joinValuesLateral(plan)}
            where ${plan.test({ as: 'row' }, own)} ${after}`
      })`
}

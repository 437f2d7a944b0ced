import { sql } from 'kysely'
import type { Sql } from './comparisons.ts'
import type { Lead } from './lead.ts'
import { type FilterPlan, joinValuesLateral } from './plan.ts'
import { readsContact } from './predicates.ts'

/** Whether the contacts of candidates are looked up, by whose columns they can be sorted then. */
export const looksUpContacts = ({ rest }: Lead): boolean => rest.some(readsContact)

/**
 * Returns common table expressions. `found`: the ids of all matches, with `sort_key`, null where no contact was
 * looked up. `size`: their number, `n`, and that of the `candidates`, of which one more than the lead allows is read;
 * `found` is then of no use. Related records are tested without the row of the contact, which only those are looked
 * up in that passed; then only those are found that come `after` a position.
 */
export const matchExpressions = (plan: FilterPlan, lead: Lead, sortKey: Sql, after: Sql = sql``): Sql => {
  const { query, narrowed, listed, rest } = lead
  const limited = sql`
    select lead.contact_id ${carriesValues(lead) ? sql`, lead.attrs` : sql``}
    from (${query.ids}) as lead ${testRows(plan, lead)} limit ${sql.lit(lead.maxCandidates + 1)}`
  if (query.exact && !query.deleted && rest.length === 0 && narrowed.length === 0 && !listed)
    return sql`
      found as materialized (select contact_id as id, null as sort_key from (${limited}) as lead),
      size as materialized (select count(*) as n, count(*) as candidates from found)`
  const own = rest.filter(readsContact)
  const exists =
    query.deleted && narrowed.length === 0
      ? sql`
        where (select true from contacts c
          where c.workspace_id = ${plan.workspaceId} and c.id = candidate.id limit 1)`
      : sql``
  const found =
    own.length === 0
      ? sql`
        select id, null as sort_key from (${testCandidates(plan, lead)} offset 0) as candidate ${exists}`
      : sql`
        select c.id, ${sortKey} as sort_key
        from (${testCandidates(plan, lead)} offset 0) as candidate cross join lateral (
          select * from contacts c
          where c.workspace_id = ${plan.workspaceId} and c.id = candidate.id limit 1) as c
        ${joinValuesLateral(plan)}
        where ${plan.test({ as: 'row' }, own)} ${after}`
  return sql`
    lead as materialized (${limited}),
    lead_size as materialized (select count(*) as n from lead),
    found as materialized (${found}),
    size as materialized (
      select count(*) as n, (select n from lead_size) as candidates from found)`
}

/** Whether the values of candidates are kept, so that they need not be looked up to be tested. */
const carriesValues = ({ query, narrowed, listed }: Lead): boolean =>
  query.attrs === true && narrowed.length === 0 && !listed

/** Conditions that are tested on the row of values that a candidate was found by. */
const testRows = (plan: FilterPlan, { onRow }: Lead): Sql =>
  onRow.length === 0
    ? sql``
    : sql`
      cross join lateral (select lead.workspace_id) as c cross join lateral (select lead.attrs) as f
      where ${plan.test({ as: 'row' }, onRow)}`

/**
 * Selects those candidates whose ids an index lists: by a hash of the candidates, or, where the list is much longer
 * than they are many, in the order of both.
 */
const joinListed = ({ query }: Lead, listed: NonNullable<Lead['listed']>, few: Sql): Sql =>
  listed.isLong
    ? sql`
      select ${distinctUnless(listed.query.exact)} l.contact_id as id
      from (select ${distinctUnless(query.exact)} contact_id from lead where ${few} order by 1 offset 0) as l
      join (${listed.query.ids}) as r on r.contact_id = l.contact_id`
    : sql`
      select ${distinctUnless(listed.query.exact)} r.contact_id as id from (${listed.query.ids}) as r
      where ${few} and (r.contact_id in (select contact_id from lead)) is true`

const distinctUnless = (isDistinct: boolean | undefined): Sql => (isDistinct ? sql`` : sql`distinct`)

/** Selects the ids of the candidates that meet all but the conditions on the contact itself. */
const testCandidates = (plan: FilterPlan, lead: Lead): Sql => {
  const { query, narrowed, listed, rest, maxCandidates } = lead
  const few = sql`(select n from lead_size) <= ${sql.lit(maxCandidates)}`
  const candidates = listed
    ? sql`
        select id, ${plan.workspaceId}::bigint as workspace_id from (${joinListed(lead, listed, few)}) as c
        order by 1`
    : narrowed.length > 0
      ? // Lists all contacts that meet the conditions: a look-up in a hash takes less time than one in a table.
        sql`
        select c.id, c.workspace_id from contacts c
        where ${few} and ${plan.test({ as: 'row' }, narrowed)} and (c.id in (select contact_id from lead)) is true`
      : sql`
        select ${distinctUnless(query.exact)} contact_id as id,
          ${plan.workspaceId}::bigint as workspace_id ${carriesValues(lead) ? sql`, attrs` : sql``}
        from lead where ${few} order by 1`
  const related = rest.filter((node) => !readsContact(node))
  const values = carriesValues(lead) ? sql`cross join lateral (select c.attrs) as f` : joinValuesLateral(plan)
  return related.length === 0
    ? candidates
    : sql`
      select c.id from (${candidates} offset 0) as c ${values}
      where ${plan.test({ as: 'row' }, related)}`
}

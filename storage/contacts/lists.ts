import { sql } from 'kysely'
import {
  afterCondition,
  beginOfList,
  boundedScan,
  type ContactListRequest,
  type ContactPosition,
  fetchLimit,
  orderByColumn,
  orderBySortKey,
  pageColumns,
  type PageRequest,
  type PageRow,
  selectCountedPage,
  selectPageRows,
  sortKeys,
} from './pages.ts'
import { attachNames, type ContactRow } from './contacts.ts'
import type { Db } from '../database.ts'
import { CUSTOM_PLAN, QUICK } from '../client/driver.ts'
import { estimateTotal } from '../filters/count.ts'
import type { CandidateQuery } from '../filters/candidate-query.ts'
import type { Lead } from '../filters/lead.ts'
import {
  scanBounds,
  type FilterPlan,
  createFilterPlan,
  joinValuesLateral,
  joinValues,
} from '../filters/plan.ts'
import type { Condition } from '../filters/predicates.ts'
import { looksUpContacts, matchExpressions } from '../filters/lead-query.ts'
import type { Sql } from '../filters/comparisons.ts'
import { createStepSize, filterInSteps, scanInSteps } from '../filters/steps.ts'
import { filterStrategy } from '../filters/strategy.ts'
import type { CachedField } from '../workspace/names-cache.ts'

export type ContactPage = {
  rows: ContactRow[]
  positions: ContactPosition[]
  fields: CachedField[]
  total: { n: number; approximate: boolean } | null
}

/**
 * The rows of a page, one more than the limit where there is a next page; `total`: the number of matches,
 * where the statement counted them; `atLeast`: that there are so many at least; `scanned`: found by a bounded
 * scan in list order.
 */
type PageResult = { rows: PageRow[]; total?: number; atLeast?: number; scanned?: true }

/** Returns a page of the contacts that meet every condition; the first page comes with their number. */
export const listContactPage = async (
  tx: Db,
  workspaceId: string,
  { conditions, stepMs, timeline = 'all', ...rest }: ContactListRequest,
): Promise<ContactPage> => {
  const plan = await createFilterPlan(tx, workspaceId, conditions, stepMs)
  const request: PageRequest = { ...rest, timeline }
  const { after, limit } = request
  const result = await fetchPage(tx, plan, request)
  const { rows } = result
  const fields = await attachNames(tx, workspaceId, rows)
  return {
    rows: rows.slice(0, limit),
    positions: rows.slice(0, limit + 1).map((row) => ({ key: row.sort_key, id: row.id })),
    fields,
    total: after === null ? await computeTotal(tx, plan, result, request) : null,
  }
}

const isLeaf = ({ kind }: Condition): boolean => kind !== 'and' && kind !== 'or' && kind !== 'not'

/**
 * Whether a bounded scan is likely to find a page: the sample says so, or there is one condition alone and
 * many contacts meet it.
 */
const isLikelyToFillPage = (plan: FilterPlan, { limit }: PageRequest): boolean =>
  plan.candidates.length === 0 ||
  plan.sample === undefined ||
  (plan.conditions.length === 1 && isLeaf(plan.conditions[0]!)) ||
  plan.sample.matched * filterStrategy.maxScannedRows >= (limit + 1) * plan.sample.seen

/**
 * Takes the way that reads the fewest rows: through the few ids that can match, along the list order, or
 * through all matches.
 */
const fetchPage = async (tx: Db, plan: FilterPlan, request: PageRequest): Promise<PageResult> => {
  if (plan.conditions.length === 0) return await scanAll(tx, plan, request)
  if (plan.candidateIds?.length === 0) return { rows: [], total: 0 }
  if (plan.stepMs !== undefined) return await findInSteps(tx, plan, request, plan.stepMs)
  for (const lead of plan.leads) {
    const found = await findByLead(tx, plan, request, lead)
    if (found) return found
  }
  if (plan.isCommon || (plan.readsRelated && isLikelyToFillPage(plan, request))) {
    const scanned = await scanForPage(tx, plan, request)
    if (scanned) return scanned
  }
  if (plan.readsRelated) return await sortMatches(tx, plan, request)
  const maxMatches = plan.sample ? filterStrategy.maxExactTotal : filterStrategy.maxSortedMatches
  const sorted = request.after === null ? await sortMatches(tx, plan, request, maxMatches) : undefined
  return sorted?.total !== undefined && sorted.total <= maxMatches ? sorted : await scanAll(tx, plan, request)
}

/**
 * Scans in list order, from the index of that order where there is one; only for conditions on the contact's
 * own columns. The first page of all contacts comes with their count.
 */
const scanAll = async (tx: Db, plan: FilterPlan, request: PageRequest): Promise<PageResult> => {
  const { sort, after, limit } = request
  const { workspaceId } = plan
  const isUnfiltered = plan.conditions.length === 0
  const total =
    isUnfiltered && after === null
      ? sql`(select sum(n) from counters where workspace_id = ${workspaceId} and subject = 'contacts')`
      : sql`null`
  const { rows } = await sql<PageRow>`${sql.raw(isUnfiltered ? QUICK : CUSTOM_PLAN)}
    select ${pageColumns(workspaceId, request)}, ${total} as total
    from (
      select c.*, ${sortKeys[sort.field].key} as sort_key from contacts c
      where ${plan.test({ as: 'row' })} ${afterCondition(request)}
      order by ${orderByColumn(sort)} limit ${fetchLimit(limit)}) as c
    left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
    order by ${orderBySortKey(sort, 'c')}`.execute(tx)
  return isUnfiltered && rows[0]?.total ? { rows, total: Number(rows[0].total) } : { rows }
}

/**
 * Scans a bounded number of rows in list order and tests each by itself: a common condition soon fills a
 * page. Only ids and sort keys are carried along, so that the index of the order may do without the table.
 */
const scanBounded = async (
  tx: Db,
  plan: FilterPlan,
  request: PageRequest,
  maxRows: number = filterStrategy.maxScannedRows,
): Promise<PageResult> => {
  const { sort, limit } = request
  const { rows } = await sql<PageRow>`${sql.raw(CUSTOM_PLAN)}
    with page as materialized (
      select c.id, c.sort_key from (${boundedScan(plan, request, maxRows)}) as c
      ${joinValuesLateral(plan)}
      where ${plan.test({ as: 'row' })} order by ${orderBySortKey(sort, 'c')} limit ${fetchLimit(limit)})
    ${selectPageRows(plan, request, false, sql`null`)}`.execute(tx)
  return { rows, scanned: true }
}

/**
 * Scans for a page along the list; undefined where it is too far down. Contacts of one kind may all be old, such
 * as the recipients of a broadcast: then those with the highest ids are tried, before more is scanned.
 */
const scanForPage = async (
  tx: Db,
  plan: FilterPlan,
  request: PageRequest,
): Promise<PageResult | undefined> => {
  const { maxScannedRows, maxFirstRows } = filterStrategy
  const isFull = ({ rows }: PageResult) => rows.length > request.limit
  const [lead] = plan.candidates
  if (lead?.sorted && request.after === null && request.sort.field === 'createdAt') {
    const first = await scanBounded(tx, plan, request, Math.min(maxFirstRows, maxScannedRows))
    if (isFull(first)) return first
    const along = await scanByIds(tx, plan, request, lead)
    if (along && isFull(along)) return along
  }
  const scanned = await scanBounded(tx, plan, request)
  return isFull(scanned) ? scanned : undefined
}

/**
 * Finds the first page among the candidates with the highest ids, or the lowest where the list begins with the
 * oldest. As a rule ids rise with the time of creation; a contact further along the list may still belong to
 * the page, so those up to the page's last one are tested if their ids are beyond those of the candidates.
 */
const scanByIds = async (
  tx: Db,
  plan: FilterPlan,
  request: PageRequest,
  { ids }: CandidateQuery,
): Promise<PageResult | undefined> => {
  const { limit, sort } = request
  const { maxFirstRows, maxScannedRows } = filterStrategy
  const [order, end, isWithin, isBeyond] = (
    sort.direction === 'desc' ? ['desc', 'min', '>=', '<'] : ['asc', 'max', '<=', '>']
  ).map((text) => sql.raw(text))
  const { rows } = await sql<PageRow>`${sql.raw(CUSTOM_PLAN)}
    with top as materialized (
      select c.id, c.created_at
      from (select contact_id from (${ids}) as found order by contact_id ${order}
        limit ${sql.lit(maxFirstRows)}) as found
      join contacts c on c.workspace_id = ${plan.workspaceId} and c.id = found.contact_id
      ${joinValuesLateral(plan)}
      where ${plan.test({ as: 'row' })} order by c.id ${order} limit ${fetchLimit(limit)}
    ), edge as materialized (
      select ${end}(id) as id, ${end}(created_at) as created_at from top
    ), span as materialized (
      select c.id, c.created_at as sort_key from contacts c
      where c.workspace_id = ${plan.workspaceId} and c.created_at ${isWithin!} (select created_at from edge)
      order by c.created_at ${order}, c.id ${order} limit ${sql.lit(maxScannedRows + 1)}
    ), beyond as materialized (
      select c.id, span.sort_key from span
      join contacts c on c.workspace_id = ${plan.workspaceId} and c.id = span.id
      ${joinValuesLateral(plan)}
      where span.id ${isBeyond!} (select id from edge) and ${plan.test({ as: 'row' })}
    ), page as materialized (
      select id, sort_key from (
        select id, created_at as sort_key from top union all select id, sort_key from beyond) as c
      order by ${orderBySortKey(sort, 'c')} limit ${fetchLimit(limit)})
    ${selectPageRows(plan, request, false, sql`(select count(*) from span)`)}`.execute(tx)
  return Number(rows[0]?.total ?? 0) > maxScannedRows ? undefined : { rows, scanned: true }
}

/** Rows of the list that are read in the time in which a match is looked up in its table. */
const LISTED_PER_LOOK_UP = { createdAt: 26, updatedAt: 26, name: 26, id: 26, phoneNumber: 2 }

/**
 * Finds all matches among the candidates of a lead, counts and sorts them; undefined where there are too many
 * candidates.
 */
const findByLead = async (
  tx: Db,
  plan: FilterPlan,
  request: PageRequest,
  lead: Lead,
): Promise<PageResult | undefined> => {
  const { sort, limit } = request
  const limited = sql`order by ${orderBySortKey(sort, 'c')} limit ${fetchLimit(limit)}`
  const page = looksUpContacts(lead)
    ? sql`page as materialized (select c.id, c.sort_key from found as c ${limited})`
    : sortFound(plan, request, lead, limited)
  const { rows } = await sql<PageRow & { candidates: string }>`${sql.raw(CUSTOM_PLAN)}
    with ${matchExpressions(plan, lead, sortKeys[sort.field].key, afterCondition(request))}, ${page}
    ${selectCountedPage(
      plan,
      request,
      sql`(select n from size) as total, (select candidates from size) as candidates`,
    )}`.execute(tx)
  return Number(rows[0]!.candidates) > lead.maxCandidates
    ? undefined
    : { rows: rows.filter((row) => row.id !== null), total: Number(rows[0]!.total) }
}

/**
 * Sorts matches of which only the ids are known. Their contacts are looked up, or, where they are many, the list is
 * searched for the first of them: that takes less time, unless they are far down. `is true` keeps the planner from a
 * join, which would read all the rows of the scan.
 */
const sortFound = (plan: FilterPlan, request: PageRequest, lead: Lead, limited: Sql): Sql => {
  const { sort, limit } = request
  const far = (condition: Sql) => sql`
    select c.id, c.sort_key from (
      select c.id, ${sortKeys[sort.field].key} as sort_key from found cross join lateral (
        select * from contacts c
        where c.workspace_id = ${plan.workspaceId} and c.id = found.id limit 1) as c
      where ${condition} (select candidates from size) <= ${sql.lit(lead.maxCandidates)}
        ${afterCondition(request)}) as c ${limited}`
  const begin = beginOfList(plan, request)
  if (begin === undefined) return sql`page as materialized (${far(sql``)})`
  return sql`
    near as materialized (
      select c.id, ${sortKeys[sort.field].key} as sort_key from ${begin} as c
      where ${scanBounds(plan, sort.field, sortKeys[sort.field].key)} ${afterCondition(request)}
        and (
          select n * n * ${sql.lit(LISTED_PER_LOOK_UP[sort.field])} > ${fetchLimit(limit)} * (
              select sum(n) from counters where workspace_id = ${plan.workspaceId} and subject = 'contacts')
            and candidates <= ${sql.lit(lead.maxCandidates)}
          from size)
        and (c.id in (select id from found)) is true
      order by ${orderByColumn(sort)} limit ${fetchLimit(limit)}
    ), far as materialized (${far(sql`(select count(*) from near) < ${fetchLimit(limit)} and`)}),
    page as materialized (
      select id, sort_key from far
      union all select id, sort_key from near where (select count(*) from near) = ${fetchLimit(limit)})`
}

/** Counts the contacts in list order up to and including `last`, the last row of a first page. */
const countScanned = async (
  tx: Db,
  plan: FilterPlan,
  { sort }: PageRequest,
  last: PageRow,
): Promise<number> => {
  const { key, cast } = sortKeys[sort.field]
  const operator = sql.raw(sort.direction === 'asc' ? '<=' : '>=')
  const { rows } = await sql<{ n: string }>`${sql.raw(CUSTOM_PLAN)}
    select count(*) as n from contacts c
    where ${scanBounds(plan, sort.field, key)}
      and (${key}, c.id) ${operator} (${last.sort_key}${cast}, ${last.id}::bigint)`.execute(tx)
  return Number(rows[0]!.n)
}

/** Finds a page by short statements: among the few ids that can match, or along the list order. */
const findInSteps = async (
  tx: Db,
  plan: FilterPlan,
  request: PageRequest,
  stepMs: number,
): Promise<PageResult> => {
  const { sort, after, limit } = request
  const { key } = sortKeys[sort.field]
  const size = createStepSize(stepMs)
  const matches = plan.candidateIds && (await filterInSteps(tx, plan, plan.candidateIds, size))
  const order = {
    key,
    orderBy: orderByColumn(sort),
    bounds: scanBounds(plan, sort.field, key),
    after: (position: ContactPosition | null) => afterCondition({ ...request, after: position }),
  }
  const ids = matches ?? (await scanInSteps(tx, plan, order, after, limit + 1, size))
  const { rows } = await sql<PageRow>`
    with page as materialized (
      select c.id, ${key} as sort_key from unnest(${ids}::bigint[]) as u (id)
      join contacts c on c.workspace_id = ${plan.workspaceId} and c.id = u.id
      where true ${afterCondition(request)} order by ${orderByColumn(sort)} limit ${fetchLimit(limit)})
    ${selectPageRows(plan, request, false, sql`null`)}`.execute(tx)
  return matches ? { rows, total: matches.length } : { rows }
}

/**
 * Finds all matches, or `maxMatches + 1` when there are more, and sorts them. One statement returns both the
 * page and the number of matches, so that they are found once.
 */
const sortMatches = async (
  tx: Db,
  plan: FilterPlan,
  request: PageRequest,
  maxMatches?: number,
): Promise<PageResult> => {
  const { sort, limit } = request
  const lead = plan.readsRelated ? plan.candidates[0] : undefined
  const inLead = lead ? sql`c.id in (select contact_id from (${lead.ids}) as lead) and` : sql``
  // A few whole rows are carried along in less time than they are looked up again.
  const whole = maxMatches === filterStrategy.maxSortedMatches
  // As all are counted, the planner must not count on reading no more than a page of them.
  const matchLimit = maxMatches === undefined ? sql`offset 0` : sql`limit ${sql.lit(maxMatches + 1)}`
  const { rows } = await sql<PageRow>`${sql.raw(CUSTOM_PLAN)}
    with page as materialized (
      select found.*, count(*) over () as matches
      from (
        select ${whole ? sql`c.*` : sql`c.id`}, ${sortKeys[sort.field].key} as sort_key
        from contacts c ${joinValues(plan)}
        where ${inLead} ${plan.test({ as: 'set' })} ${afterCondition(request)}
        ${matchLimit}) as found
      order by ${orderBySortKey(sort, 'found')} limit ${fetchLimit(limit)})
    ${selectPageRows(plan, request, whole, whole ? sql`c.matches` : sql`(select matches from page limit 1)`)}`.execute(
    tx,
  )
  return { rows, total: Number(rows[0]?.total ?? 0) }
}

/** Exact where that is cheap (all contacts by their counter, few by counting), otherwise an estimate. */
const computeTotal = async (
  tx: Db,
  plan: FilterPlan,
  { rows, total, scanned, atLeast }: PageResult,
  request: PageRequest,
): Promise<{ n: number; approximate: boolean }> => {
  if (rows.length <= request.limit) return { n: rows.length, approximate: false }
  if (total !== undefined) return { n: total, approximate: false }
  // A sample is better than the scan, which may begin where matches are dense, but not for rare matches.
  const isRare = scanned && plan.sample !== undefined && plan.sample.matched < filterStrategy.minSampleMatches
  const estimate = isRare
    ? (plan.sample!.all * rows.length) / (await countScanned(tx, plan, request, rows.at(-1)!))
    : undefined
  const isPartial = scanned || plan.stepMs !== undefined
  const minimum = atLeast ?? (isPartial ? rows.length : filterStrategy.maxSortedMatches + 1)
  const { count: n, approximate } = await estimateTotal(tx, plan, minimum, estimate)
  return { n, approximate }
}

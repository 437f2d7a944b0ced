import { type RawBuilder, sql } from 'kysely'
import {
  attachNames,
  type ContactRow,
  contactColumns,
  labelIdColumns,
  type TimelineScope,
} from './contacts.ts'
import type { Db } from './database.ts'
import { CUSTOM_PLAN, QUICK } from './driver.ts'
import { estimateTotal } from './filters/count.ts'
import {
  scanBounds,
  type FilterPlan,
  createFilterPlan,
  joinValuesLateral,
  joinValues,
} from './filters/plan.ts'
import type { Condition } from './filters/predicates.ts'
import { createStepSize, filterInSteps, scanInSteps } from './filters/steps.ts'
import { filterStrategy } from './filters/strategy.ts'
import { type CachedField, namesVersionColumn } from './names-cache.ts'

type SortField = 'createdAt' | 'updatedAt' | 'name' | 'phoneNumber' | 'id'
export type ContactSort = { field: SortField; direction: 'asc' | 'desc' }
/** The sort key and id of the last row of a page. */
export type ContactPosition = { key: string; id: string }

/** Sort keys are never null, so that a row comparison continues each of them. */
const sortKeys: Record<SortField, { key: RawBuilder<unknown>; cast: RawBuilder<unknown> }> = {
  createdAt: { key: sql`c.created_at`, cast: sql`::timestamptz` },
  updatedAt: { key: sql`c.updated_at`, cast: sql`::timestamptz` },
  name: { key: sql`c.name_key`, cast: sql`::text collate "C"` },
  phoneNumber: { key: sql`coalesce(c.phone, '') collate "C"`, cast: sql`::text collate "C"` },
  id: { key: sql`c.id`, cast: sql`::bigint` },
}

export type ContactPage = {
  rows: ContactRow[]
  positions: ContactPosition[]
  fields: CachedField[]
  total: { n: number; approximate: boolean } | null
}

type PageRow = ContactRow & { sort_key: string; names_version: string | null; total?: string | null }
export type ContactListRequest = {
  conditions: readonly Condition[]
  sort: ContactSort
  /** The last row of the page before; null: the first page. */
  after: ContactPosition | null
  limit: number
  /** With the names of tags and groups. */
  full: boolean
  timeline?: TimelineScope
  /** How long a statement may take where others wait for it. */
  stepMs?: number | undefined
}
type PageRequest = Omit<Required<ContactListRequest>, 'conditions' | 'stepMs'>
/**
 * The rows of a page, one more than the limit where there is a next page; `total`: the number of matches,
 * where the statement counted them; `scanned`: found by a bounded scan in list order.
 */
type PageResult = { rows: PageRow[]; total?: number; scanned?: true }

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
  if (plan.candidateIds) return await pageOfCandidates(tx, plan, request, plan.candidateIds)
  const isCounted = request.after === null && mustCount(plan)
  if (!isCounted && (plan.isCommon || (plan.readsRelated && isLikelyToFillPage(plan, request)))) {
    const scanned = await scanBounded(tx, plan, request)
    if (scanned.rows.length > request.limit) return scanned
  }
  if (plan.readsRelated) return await sortMatches(tx, plan, request)
  const maxMatches = plan.sample ? filterStrategy.maxExactTotal : filterStrategy.maxSortedMatches
  const sorted = request.after === null ? await sortMatches(tx, plan, request, maxMatches) : undefined
  return sorted?.total !== undefined && sorted.total <= maxMatches ? sorted : await scanAll(tx, plan, request)
}

/** Whether all matches are computed, since they may be few enough for an exact total. */
const mustCount = ({ readsRelated, sample, isCommon, candidateRows = Infinity }: FilterPlan): boolean =>
  readsRelated && sample !== undefined && !isCommon && candidateRows <= filterStrategy.maxLeadRows

/** Finds a page among the few ids that can match: along the list order where the page is likely to be near. */
const pageOfCandidates = async (
  tx: Db,
  plan: FilterPlan,
  request: PageRequest,
  ids: readonly string[],
): Promise<PageResult> => {
  const { sample, areMatches } = plan
  const isNear =
    areMatches &&
    sample !== undefined &&
    (sample.all * (request.limit + 1)) / ids.length < filterStrategy.maxScannedRows / 2
  if (isNear && ids.length >= MIN_SCANNED_MATCHES) {
    const { rows } = await scanBounded(tx, plan, request, ids)
    if (rows.length > request.limit) return { rows, total: ids.length }
  }
  return await sortMatches(tx, plan, request)
}

/** Fewer are looked up in less time. */
const MIN_SCANNED_MATCHES = 500

/**
 * Returns the number of rows to fetch: at least one more than the limit, to detect a next page. The number is
 * a literal in the SQL, because the plan for a parameter sorts all rows. It is one of a few, because every
 * SQL text is a prepared statement of its own.
 */
const fetchLimit = (limit: number) =>
  sql.raw(String(([10, 25, 50].find((step) => limit <= step) ?? limit) + 1))

const orderBySortKey = ({ field, direction }: ContactSort, row: string) =>
  sql.raw(field === 'id' ? `${row}.id ${direction}` : `${row}.sort_key ${direction}, ${row}.id ${direction}`)

const pageColumns = (workspaceId: string, { full, timeline }: PageRequest) => sql`
  ${contactColumns(timeline)}, ${full ? sql`${labelIdColumns},` : sql``} c.sort_key::text as sort_key,
  ${namesVersionColumn(workspaceId)}`

/** The rest of the list after a position. */
const afterCondition = ({ sort, after }: PageRequest) => {
  if (after === null) return sql``
  const { key, cast } = sortKeys[sort.field]
  const operator = sql.raw(sort.direction === 'asc' ? '>' : '<')
  return sql`and (${key}, c.id) ${operator} (${after.key}${cast}, ${after.id}::bigint)`
}

const orderByColumn = (sort: ContactSort) => {
  const direction = sql.raw(sort.direction)
  return sql`${sortKeys[sort.field].key} ${direction}, c.id ${direction}`
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
 * Selects the rows of a page from the common table expression `page`. `whole`: it holds whole rows, else ids
 * and sort keys.
 */
const selectPageRows = (
  plan: FilterPlan,
  request: PageRequest,
  whole: boolean,
  totalColumn: RawBuilder<unknown>,
) => {
  const source = whole
    ? sql`page`
    : sql`(
      select c.*, page.sort_key
      from page join contacts c on c.workspace_id = ${plan.workspaceId} and c.id = page.id)`
  return sql`
  select ${pageColumns(plan.workspaceId, request)}, ${totalColumn} as total
  from ${source} as c
  left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
  order by ${orderBySortKey(request.sort, 'c')}`
}

/**
 * Scans a bounded number of rows in list order and tests each by itself: a common condition soon fills a
 * page. Only ids and sort keys are carried along, so that the index of the order may do without the table.
 * `matches`: the ids of all matches, where they are known.
 */
const scanBounded = async (
  tx: Db,
  plan: FilterPlan,
  request: PageRequest,
  matches?: readonly string[],
): Promise<PageResult> => {
  const { sort, limit } = request
  const { key } = sortKeys[sort.field]
  const { rows } = await sql<PageRow>`${sql.raw(CUSTOM_PLAN)}
    with page as materialized (
      select c.id, c.sort_key from (
        select c.*, ${key} as sort_key from contacts c
        where ${scanBounds(plan, sort.field, key)} ${afterCondition(request)}
        order by ${orderByColumn(sort)} limit ${sql.lit(filterStrategy.maxScannedRows)}) as c
      ${joinValuesLateral(plan)}
      where ${matches ? sql`c.id = any(${matches}::bigint[]) and` : sql``} ${plan.test({ as: 'row' })}
      order by ${orderBySortKey(sort, 'c')} limit ${fetchLimit(limit)})
    ${selectPageRows(plan, request, false, sql`null`)}`.execute(tx)
  return { rows, scanned: true }
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
  const { workspaceId, candidateIds } = plan
  // Each id of a short list is looked up; `= any` beside another list of ids was seen to take minutes.
  const source = candidateIds
    ? sql`unnest(${candidateIds}::bigint[]) as u (id)
        join contacts c on c.workspace_id = ${workspaceId} and c.id = u.id ${joinValuesLateral(plan)}`
    : sql`contacts c ${joinValues(plan)}`
  const lead = plan.readsRelated && !candidateIds ? plan.candidates[0] : undefined
  const inLead = lead ? sql`c.id in (${lead.ids}) and` : sql``
  // A few whole rows are carried along in less time than they are looked up again.
  const whole = maxMatches === filterStrategy.maxSortedMatches
  const pageLimit = fetchLimit(limit)
  const matchLimit = maxMatches === undefined ? sql`` : sql`limit ${sql.lit(maxMatches + 1)}`
  const rowLimit =
    maxMatches === undefined
      ? pageLimit
      : sql`case when (select count(*) from found) > ${sql.lit(maxMatches)} then 1 else ${pageLimit} end`
  const { rows } = await sql<PageRow>`${sql.raw(CUSTOM_PLAN)}
    with found as materialized (
      select ${whole ? sql`c.*` : sql`c.id`}, ${sortKeys[sort.field].key} as sort_key from ${source}
      where ${inLead} ${plan.test({ as: candidateIds ? 'row' : 'set' })} ${afterCondition(request)}
      ${matchLimit}
    ), page as materialized (
      select * from found order by ${orderBySortKey(sort, 'found')} limit ${rowLimit})
    ${selectPageRows(plan, request, whole, sql`(select count(*) from found)`)}`.execute(tx)
  return { rows, total: Number(rows[0]?.total ?? 0) }
}

/** Exact where that is cheap (all contacts by their counter, few by counting), otherwise an estimate. */
const computeTotal = async (
  tx: Db,
  plan: FilterPlan,
  { rows, total, scanned }: PageResult,
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
  const minimum = isPartial ? rows.length : filterStrategy.maxSortedMatches + 1
  const { count: n, approximate } = await estimateTotal(tx, plan, minimum, estimate)
  return { n, approximate }
}

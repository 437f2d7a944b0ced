import { type RawBuilder, sql } from 'kysely'
import { type ContactRow, contactColumns, fullColumns, type TimelineScope } from './contacts.ts'
import { type FilterPlan, scanBounds } from '../filters/plan.ts'
import type { Condition } from '../filters/predicates.ts'
import { filterStrategy } from '../filters/strategy.ts'
import { namesVersionColumn } from '../workspace/names-cache.ts'

/* SQL for the pages of a list of contacts: its order, its position, and what a row has. */

export type SortField = 'createdAt' | 'updatedAt' | 'name' | 'phoneNumber' | 'id'
export type ContactSort = { field: SortField; direction: 'asc' | 'desc' }
/** The sort key and id of the last row of a page. */
export type ContactPosition = { key: string; id: string }

/** Sort keys are never null, so that a row comparison continues each of them. */
export const sortKeys: Record<SortField, { key: RawBuilder<unknown>; cast: RawBuilder<unknown> }> = {
  createdAt: { key: sql`c.created_at`, cast: sql`::timestamptz` },
  updatedAt: { key: sql`c.updated_at`, cast: sql`::timestamptz` },
  name: { key: sql`c.name_key`, cast: sql`::text collate "C"` },
  phoneNumber: { key: sql`coalesce(c.phone, '') collate "C"`, cast: sql`::text collate "C"` },
  id: { key: sql`c.id`, cast: sql`::bigint` },
}

export type PageRow = ContactRow & { sort_key: string; names_version: string | null; total?: string | null }
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
export type PageRequest = Omit<Required<ContactListRequest>, 'conditions' | 'stepMs'>
/**
 * Returns the number of rows to fetch: at least one more than the limit, to detect a next page. The number is
 * a literal in the SQL, because the plan for a parameter sorts all rows. It is one of a few, because every
 * SQL text is a prepared statement of its own.
 */
export const fetchLimit = (limit: number) =>
  sql.raw(String(([10, 25, 50].find((step) => limit <= step) ?? limit) + 1))

export const orderBySortKey = ({ field, direction }: ContactSort, row: string) =>
  sql.raw(field === 'id' ? `${row}.id ${direction}` : `${row}.sort_key ${direction}, ${row}.id ${direction}`)

export const pageColumns = (workspaceId: string, { full, timeline }: PageRequest) => sql`
  ${contactColumns(timeline)}, ${full ? sql`${fullColumns},` : sql``} c.sort_key::text as sort_key,
  ${namesVersionColumn(workspaceId)}`

/** The rest of the list after a position. */
export const afterCondition = ({ sort, after }: PageRequest) => {
  if (after === null) return sql``
  const { key, cast } = sortKeys[sort.field]
  const operator = sql.raw(sort.direction === 'asc' ? '>' : '<')
  return sql`and (${key}, c.id) ${operator} (${after.key}${cast}, ${after.id}::bigint)`
}

export const orderByColumn = (sort: ContactSort) => {
  const direction = sql.raw(sort.direction)
  return sql`${sortKeys[sort.field].key} ${direction}, c.id ${direction}`
}

/**
 * Selects the rows of a page from the common table expression `page`. `whole`: it holds whole rows, else ids
 * and sort keys.
 */
export const selectPageRows = (
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
 * The same from a page of ids and sort keys, with `counts`, columns that come in one row without a contact too where
 * the page is empty.
 */
export const selectCountedPage = (plan: FilterPlan, request: PageRequest, counts: RawBuilder<unknown>) => sql`
  select ${pageColumns(plan.workspaceId, request)}, counts.*
  from (select ${counts}) as counts
  left join (
    select c.*, page.sort_key
    from page join contacts c on c.workspace_id = ${plan.workspaceId} and c.id = page.id) as c on true
  left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
  order by ${orderBySortKey(request.sort, 'c')}`

/** Selects the next `maxRows` contacts of the list, whether they match or not. */
export const boundedScan = (plan: FilterPlan, request: PageRequest, maxRows: number) => {
  const { key } = sortKeys[request.sort.field]
  return sql`
    select c.*, ${key} as sort_key from contacts c
    where ${scanBounds(plan, request.sort.field, key)} ${afterCondition(request)}
    order by ${orderByColumn(request.sort)} limit ${sql.lit(maxRows)}`
}

/**
 * The first rows of the list, in which a page is searched for, as the source of a scan; undefined where the sample
 * shows that no match is among them. Where the sample tells how far they reach, the scan needs no limit, and an index
 * that has the order tests the ids by itself, in half the time.
 */
export const beginOfList = (plan: FilterPlan, request: PageRequest): RawBuilder<unknown> | undefined => {
  const { sort, after } = request
  const { sample } = plan
  const rows = 2 * filterStrategy.maxScannedRows
  if (!sample || sort.field !== 'createdAt' || after !== null)
    return sql`(${boundedScan(plan, request, rows)})`
  const isNewestFirst = sort.direction === 'desc'
  const places = isNewestFirst ? sample.places : sample.places.toReversed()
  const begin = Math.max(1, Math.round((places.length * rows) / Math.max(1, sample.all)))
  if (isFurtherDown(sample.matched, places, begin)) return undefined
  const last = places[begin - 1]
  const operator = isNewestFirst ? sql`>=` : sql`<=`
  return last
    ? sql`(
      select * from contacts
      where workspace_id = ${plan.workspaceId} and created_at ${operator} ${last.createdAt}::timestamptz)`
    : sql`contacts`
}

/** Whether the matches of a sample would hardly all be after these places of the list if they were all over it. */
const isFurtherDown = (matched: number, places: readonly { matched: number }[], begin: number): boolean => {
  const before = places.findIndex((place) => place.matched > 0)
  return (
    matched >= filterStrategy.minSampleMatches &&
    before >= begin &&
    (1 - before / places.length) ** matched < 0.01
  )
}

import { type RawBuilder, sql } from 'kysely'
import { complete, type ContactRow, contactColumns, refColumns } from './contacts.ts'
import type { Db } from './database.ts'
import { CUSTOM_PLAN, QUICK } from './driver.ts'
import { storable } from './ids.ts'
import { type ShownField, versionColumn } from './known.ts'
import { containsPattern, fold, hasTrigram } from './text.ts'

export type ContactConditions = {
  query?: string | undefined
  tagIds?: readonly string[] | undefined
  groupIds?: readonly string[] | undefined
  starred?: boolean | undefined
  dnd?: boolean | undefined
  notInAnyGroup?: boolean | undefined
}

export type SortField = 'createdAt' | 'updatedAt' | 'name' | 'phoneNumber' | 'id'
export type Sort = { field: SortField; direction: 'asc' | 'desc' }
/** The sort key and id of the last row of a page. */
export type Position = { key: string; id: string }

/** Sort keys are never null, so that a row comparison continues each of them. */
const sortKeys: Record<SortField, { key: RawBuilder<unknown>; cast: RawBuilder<unknown> }> = {
  createdAt: { key: sql`c.created_at`, cast: sql`::timestamptz` },
  updatedAt: { key: sql`c.updated_at`, cast: sql`::timestamptz` },
  name: { key: sql`c.name_key`, cast: sql`::text collate "C"` },
  phoneNumber: { key: sql`coalesce(c.phone, '') collate "C"`, cast: sql`::text collate "C"` },
  id: { key: sql`c.id`, cast: sql`::bigint` },
}

/** More ids than this are not carried through a query: the list is walked in its order instead, and each row tested (measured: 3000). */
const PROBE = 3000
const COUNT_CAP = 1000

type Plan = { where: RawBuilder<unknown>; plain: boolean }

const linked = (table: 'contact_tags' | 'contact_groups', column: 'tag_id' | 'group_id', ids: readonly string[]) => sql`
  exists (select 1 from ${sql.raw(table)} l where l.workspace_id = c.workspace_id and l.contact_id = c.id and l.${sql.raw(column)} = any(${ids.map(storable)}::bigint[]))`

/** Reads at most PROBE + 1 links of labels; undefined when there are more. Estimates cannot replace it: 16 for 224 true rows was seen. */
const probe = async (tx: Db, workspaceId: string, table: 'contact_tags' | 'contact_groups', column: 'tag_id' | 'group_id', ids: readonly string[]): Promise<string[] | undefined> => {
  const { rows } = await sql<{ id: string }>`
    select contact_id as id from ${sql.raw(table)} where workspace_id = ${workspaceId}
      and ${sql.raw(column)} = any(${ids.map(storable)}::bigint[]) limit ${PROBE + 1}`.execute(tx)
  // Links are counted, not contacts: of a list cut off in the middle one cannot tell how many contacts are missing.
  return rows.length > PROBE ? undefined : [...new Set(rows.map((row) => row.id))]
}

const textCondition = (query: string): RawBuilder<unknown> => {
  const text = fold(query)
  const digits = /^[\d\s+().\-/]+$/.test(query) ? query.replace(/\D/g, '') : ''
  // `|| ''` keeps short patterns off the trigram index, which they would read whole.
  const column = hasTrigram(text) && (digits === '' || hasTrigram(digits)) ? sql`c.search` : sql`(c.search || '')`
  const found = (part: string) => sql`${column} like ${containsPattern(part)}`
  // A newline stands between name and phone; one in the query must not bridge them.
  const inText = text.includes('\n') ? sql`(${found(text)} and c.name_key like ${containsPattern(text)})` : found(text)
  if (digits === '' || digits === text) return inText
  // Digits of a formatted number are meant for phones: "2-1" is not in the name "Agent 21".
  return sql`(${inText} or (${found(digits)} and c.phone like ${containsPattern(digits)}))`
}

const planOf = async (tx: Db, workspaceId: string, conditions: ContactConditions): Promise<Plan> => {
  const { query, tagIds, groupIds, starred, dnd, notInAnyGroup } = conditions
  const parts: RawBuilder<unknown>[] = [sql`c.workspace_id = ${workspaceId}`]
  const labels = [
    ...(tagIds?.length ? [{ table: 'contact_tags', column: 'tag_id', ids: tagIds } as const] : []),
    ...(groupIds?.length ? [{ table: 'contact_groups', column: 'group_id', ids: groupIds } as const] : []),
  ]
  let narrowed = false
  for (const { table, column, ids } of labels) {
    const few: string[] | undefined = narrowed ? undefined : await probe(tx, workspaceId, table, column, ids)
    narrowed ||= few !== undefined
    parts.push(few ? sql`c.id = any(${few}::bigint[])` : linked(table, column, ids))
  }
  // Written bare, so that the partial indexes on them serve.
  if (starred !== undefined) parts.push(starred ? sql`c.starred` : sql`not c.starred`)
  if (dnd !== undefined) parts.push(dnd ? sql`c.dnd` : sql`not c.dnd`)
  if (notInAnyGroup !== undefined) {
    const any = sql`exists (select 1 from contact_groups l where l.workspace_id = c.workspace_id and l.contact_id = c.id)`
    parts.push(notInAnyGroup ? sql`not ${any}` : any)
  }
  if (query !== undefined) parts.push(textCondition(query))
  return { where: sql.join(parts, sql` and `), plain: parts.length === 1 }
}

export type ContactPage = { rows: ContactRow[]; positions: Position[]; fields: ShownField[]; total: { n: number; approximate: boolean } | null }

type PageRow = ContactRow & { sort_key: string; names_version: string | null; total: string | null }
type Asked = { sort: Sort; after: Position | null; limit: number; full: boolean }

/** A page of contacts, and with the first page how many there are. */
export const pageOfContacts = async (
  tx: Db, workspaceId: string, conditions: ContactConditions, sort: Sort, after: Position | null, limit: number, full: boolean,
): Promise<ContactPage> => {
  const plan = await planOf(tx, workspaceId, conditions)
  const asked: Asked = { sort, after, limit, full }
  const few = after === null && !plan.plain ? await pageOfFew(tx, workspaceId, plan, asked) : undefined
  const rows = few ?? await walk(tx, workspaceId, plan, asked)
  const fields = await complete(tx, workspaceId, rows)
  return {
    rows: rows.slice(0, limit),
    positions: rows.slice(0, limit + 1).map((row) => ({ key: row.sort_key, id: row.id })),
    fields,
    total: after === null ? await totalOf(tx, plan, rows, limit, few !== undefined) : null,
  }
}

/**
 * At least one row more than fits, which tells of a next page. The number stands in the text, because the plan for an unknown limit sorts
 * everything; in a few steps, because every text stays prepared for ever.
 */
const enough = (limit: number) => sql.raw(String(([10, 25, 50].find((step) => limit <= step) ?? limit) + 1))

const orderOf = ({ field, direction }: Sort, row: string) => sql.raw(field === 'id' ? `${row}.id ${direction}` : `${row}.sort_key ${direction}, ${row}.id ${direction}`)

const shown = (workspaceId: string, full: boolean) => sql`
  ${contactColumns}, ${full ? sql`${refColumns},` : sql``} c.sort_key::text as sort_key, ${versionColumn(workspaceId)}`

/** In the order asked for, from the index of that order where there is one. The count of all contacts comes along with a first page that is of all. */
const walk = async (tx: Db, workspaceId: string, plan: Plan, { sort, after, limit, full }: Asked): Promise<PageRow[]> => {
  const { key, cast } = sortKeys[sort.field]
  const order = sql.raw(sort.direction)
  const than = sql.raw(sort.direction === 'asc' ? '>' : '<')
  const { rows } = await sql<PageRow>`${sql.raw(plan.plain ? QUICK : CUSTOM_PLAN)}
    select ${shown(workspaceId, full)},
      ${plan.plain && after === null ? sql`(select sum(n) from counters where workspace_id = ${workspaceId} and subject = 'contacts')` : sql`null`} as total
    from (select c.*, ${key} as sort_key from contacts c where ${plan.where}
      ${after === null ? sql`` : sql`and (${key}, c.id) ${than} (${after.key}${cast}, ${after.id}::bigint)`}
      order by ${key} ${order}, c.id ${order} limit ${enough(limit)}) as c
    left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
    order by ${orderOf(sort, 'c')}`.execute(tx)
  return rows
}

/** Where at most COUNT_CAP contacts match, their page and their number in one statement, which finds them once; undefined where more do. */
const pageOfFew = async (tx: Db, workspaceId: string, plan: Plan, { sort, limit, full }: Asked): Promise<PageRow[] | undefined> => {
  const { rows } = await sql<PageRow>`${sql.raw(CUSTOM_PLAN)}
    with found as materialized (select c.*, ${sortKeys[sort.field].key} as sort_key from contacts c where ${plan.where} limit ${sql.raw(String(COUNT_CAP + 1))})
    select ${shown(workspaceId, full)}, (select count(*) from found) as total
    from (select * from found order by ${orderOf(sort, 'found')} limit case when (select count(*) from found) > ${sql.raw(String(COUNT_CAP))} then 1 else ${enough(limit)} end) as c
    left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
    order by ${orderOf(sort, 'c')}`.execute(tx)
  return Number(rows[0]?.total ?? 0) > COUNT_CAP ? undefined : rows
}

/** Exact where that is cheap: all contacts by their counter, few by counting. Beyond that the planner's estimate, and said to be one. */
const totalOf = async (tx: Db, plan: Plan, rows: readonly PageRow[], limit: number, few: boolean): Promise<{ n: number; approximate: boolean }> => {
  if (rows.length <= limit) return { n: rows.length, approximate: false }
  if (few || plan.plain) return { n: Number(rows[0]!.total), approximate: false }
  const estimate = await sql<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>`explain (format json) select 1 from contacts c where ${plan.where}`.execute(tx)
  return { n: Math.max(COUNT_CAP + 1, estimate.rows[0]!['QUERY PLAN'][0].Plan['Plan Rows']), approximate: true }
}

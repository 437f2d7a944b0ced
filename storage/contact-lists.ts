import { type RawBuilder, sql } from 'kysely'
import { complete, type ContactRow, contactColumns, refColumns, type Timeline } from './contacts.ts'
import type { Db } from './database.ts'
import { CUSTOM_PLAN, QUICK } from './driver.ts'
import { totalOfPlan } from './filters/count.ts'
import { bounds, type Plan, planOf, valuesBeside, valuesJoined } from './filters/plan.ts'
import type { Condition } from './filters/predicates.ts'
import { strategy } from './filters/strategy.ts'
import { type ShownField, versionColumn } from './names-cache.ts'

type SortField = 'createdAt' | 'updatedAt' | 'name' | 'phoneNumber' | 'id'
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

export type ContactPage = {
  rows: ContactRow[]
  positions: Position[]
  fields: ShownField[]
  total: { n: number; approximate: boolean } | null
}

type PageRow = ContactRow & { sort_key: string; names_version: string | null; total?: string | null }
type Asked = { sort: Sort; after: Position | null; limit: number; full: boolean; timeline: Timeline }
/**
 * Rows of a page, one more than fits where there is a next one; how many match where that came along;
 * `walked`: along the order asked for.
 */
type Found = { rows: PageRow[]; total?: number; walked?: true }

/** A page of the contacts that meet every condition, and with the first page how many they are. */
export const pageOfContacts = async (
  tx: Db,
  workspaceId: string,
  conditions: readonly Condition[],
  sort: Sort,
  after: Position | null,
  limit: number,
  full: boolean,
  timeline: Timeline = 'all',
): Promise<ContactPage> => {
  const plan = await planOf(tx, workspaceId, conditions)
  const asked: Asked = { sort, after, limit, full, timeline }
  const found = await pageOf(tx, plan, asked)
  const { rows } = found
  const fields = await complete(tx, workspaceId, rows)
  return {
    rows: rows.slice(0, limit),
    positions: rows.slice(0, limit + 1).map((row) => ({ key: row.sort_key, id: row.id })),
    fields,
    total: after === null ? await totalOf(tx, plan, found, asked) : null,
  }
}

const isLeaf = ({ kind }: Condition): boolean => kind !== 'and' && kind !== 'or' && kind !== 'not'

/**
 * Whether a walk is likely to meet enough: as the sample has it, or because there is one condition alone,
 * and many meet it.
 */
const fillsPage = (plan: Plan, { limit }: Asked): boolean =>
  plan.finds.length === 0 ||
  plan.sample === undefined ||
  (plan.conditions.length === 1 && isLeaf(plan.conditions[0]!)) ||
  plan.sample.matched * strategy.walk >= (limit + 1) * plan.sample.seen

/**
 * The way that reads the fewest rows: through the few ids that can match, along the order asked for, or
 * through all that match.
 */
const pageOf = async (tx: Db, plan: Plan, asked: Asked): Promise<Found> => {
  if (plan.conditions.length === 0) return await walkAll(tx, plan, asked)
  if (plan.few) return await pageOfMatches(tx, plan, asked)
  if (plan.common || (plan.related && fillsPage(plan, asked))) {
    const walked = await walkSome(tx, plan, asked)
    if (walked.rows.length > asked.limit) return walked
  }
  if (plan.related) return await pageOfMatches(tx, plan, asked)
  const few = asked.after === null ? await pageOfMatches(tx, plan, asked, strategy.few) : undefined
  return few?.total !== undefined && few.total <= strategy.few ? few : await walkAll(tx, plan, asked)
}

/**
 * At least one row more than fits, which tells of a next page. The number stands in the text, because the
 * plan for an unknown limit sorts everything; in a few steps, because every text stays prepared for ever.
 */
const enough = (limit: number) => sql.raw(String(([10, 25, 50].find((step) => limit <= step) ?? limit) + 1))

const orderOf = ({ field, direction }: Sort, row: string) =>
  sql.raw(field === 'id' ? `${row}.id ${direction}` : `${row}.sort_key ${direction}, ${row}.id ${direction}`)

const shown = (workspaceId: string, { full, timeline }: Asked) => sql`
  ${contactColumns(timeline)}, ${full ? sql`${refColumns},` : sql``} c.sort_key::text as sort_key, ${versionColumn(workspaceId)}`

/** The rest of the list after a position. */
const afterOf = ({ sort, after }: Asked) => {
  const { key, cast } = sortKeys[sort.field]
  return after === null
    ? sql``
    : sql`and (${key}, c.id) ${sql.raw(sort.direction === 'asc' ? '>' : '<')} (${after.key}${cast}, ${after.id}::bigint)`
}

const keyOrder = (sort: Sort) => {
  const direction = sql.raw(sort.direction)
  return sql`${sortKeys[sort.field].key} ${direction}, c.id ${direction}`
}

/**
 * In the order asked for, from the index of that order where there is one; conditions on columns alone. The
 * count of all contacts comes along with a first page that is of all.
 */
const walkAll = async (tx: Db, plan: Plan, asked: Asked): Promise<Found> => {
  const { sort, after, limit } = asked
  const plain = plan.conditions.length === 0
  const { rows } = await sql<PageRow>`${sql.raw(plain ? QUICK : CUSTOM_PLAN)}
    select ${shown(plan.workspaceId, asked)},
      ${plain && after === null ? sql`(select sum(n) from counters where workspace_id = ${plan.workspaceId} and subject = 'contacts')` : sql`null`} as total
    from (select c.*, ${sortKeys[sort.field].key} as sort_key from contacts c where ${plan.test({ as: 'row' })} ${afterOf(asked)}
      order by ${keyOrder(sort)} limit ${enough(limit)}) as c
    left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
    order by ${orderOf(sort, 'c')}`.execute(tx)
  return plain && rows[0]?.total ? { rows, total: Number(rows[0].total) } : { rows }
}

/** The rows of a page, which a common table expression of this name holds: whole, or as ids and sort keys. */
const rowsOfPage = (plan: Plan, asked: Asked, whole: boolean, more: RawBuilder<unknown>) => sql`
  select ${shown(plan.workspaceId, asked)}, ${more}
  from ${whole ? sql`page` : sql`(select c.*, page.sort_key from page join contacts c on c.workspace_id = ${plan.workspaceId} and c.id = page.id)`} as c
  left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
  order by ${orderOf(asked.sort, 'c')}`

/**
 * In the order asked for, each row tested by itself, for a bounded number of rows: a condition that is
 * common soon fills a page. Ids and sort keys alone are carried along, so that the index of the order may
 * do without the table.
 */
const walkSome = async (tx: Db, plan: Plan, asked: Asked): Promise<Found> => {
  const { sort, limit } = asked
  const { rows } = await sql<PageRow>`${sql.raw(CUSTOM_PLAN)}
    with page as materialized (
      select c.id, c.sort_key from (
        select c.*, ${sortKeys[sort.field].key} as sort_key from contacts c where ${bounds(plan, sort.field, sortKeys[sort.field].key)} ${afterOf(asked)}
        order by ${keyOrder(sort)} limit ${sql.lit(strategy.walk)}) as c
      ${valuesBeside(plan)}
      where ${plan.test({ as: 'row' })} order by ${orderOf(sort, 'c')} limit ${enough(limit)})
    ${rowsOfPage(plan, asked, false, sql`null as total`)}`.execute(tx)
  return { rows, walked: true }
}

/** Among how many contacts, in the order asked for, a first page lies. */
const walkedFor = async (tx: Db, plan: Plan, { sort }: Asked, last: PageRow): Promise<number> => {
  const { key, cast } = sortKeys[sort.field]
  const { rows } = await sql<{ n: string }>`${sql.raw(CUSTOM_PLAN)}
    select count(*) as n from contacts c where ${bounds(plan, sort.field, key)} and (${key}, c.id) ${sql.raw(sort.direction === 'asc' ? '<=' : '>=')} (${last.sort_key}${cast}, ${last.id}::bigint)`.execute(
    tx,
  )
  return Number(rows[0]!.n)
}

/**
 * Computes every match, or `most` and one, then sorts them: their page and their number in one statement,
 * which finds them once.
 */
const pageOfMatches = async (tx: Db, plan: Plan, asked: Asked, most?: number): Promise<Found> => {
  const { sort, limit } = asked
  // Each id of a short list is looked up; `= any` beside another list of ids was seen to take minutes.
  const among = plan.few
    ? sql`unnest(${plan.few}::bigint[]) as u (id) join contacts c on c.workspace_id = ${plan.workspaceId} and c.id = u.id ${valuesBeside(plan)}`
    : sql`contacts c ${valuesJoined(plan)}`
  const lead = plan.related && !plan.few ? plan.finds[0] : undefined
  const found = lead ? sql`c.id in (${lead.ids}) and` : sql``
  // A few whole rows are sooner carried along than looked up again.
  const whole = most !== undefined
  const page = enough(limit)
  const { rows } = await sql<PageRow>`${sql.raw(CUSTOM_PLAN)}
    with found as materialized (
      select ${whole ? sql`c.*` : sql`c.id`}, ${sortKeys[sort.field].key} as sort_key from ${among}
      where ${found} ${plan.test({ as: plan.few ? 'row' : 'set' })} ${afterOf(asked)} ${most === undefined ? sql`` : sql`limit ${sql.lit(most + 1)}`}
    ), page as materialized (
      select * from found order by ${orderOf(sort, 'found')} limit ${most === undefined ? page : sql`case when (select count(*) from found) > ${sql.lit(most)} then 1 else ${page} end`})
    ${rowsOfPage(plan, asked, whole, sql`(select count(*) from found) as total`)}`.execute(tx)
  return { rows, total: Number(rows[0]?.total ?? 0) }
}

/**
 * Exact where that is cheap: all contacts by their counter, few by counting. Beyond that an estimate, and
 * said to be one.
 */
const totalOf = async (
  tx: Db,
  plan: Plan,
  { rows, total, walked }: Found,
  asked: Asked,
): Promise<{ n: number; approximate: boolean }> => {
  if (rows.length <= asked.limit) return { n: rows.length, approximate: false }
  if (total !== undefined) return { n: total, approximate: false }
  // A sample tells more than the walk, which may begin where matches are dense, but not of what is rare.
  const rare = walked && plan.sample !== undefined && plan.sample.matched < strategy.telling
  const guess = rare
    ? (plan.sample!.all * rows.length) / (await walkedFor(tx, plan, asked, rows.at(-1)!))
    : undefined
  const { count: n, approximate } = await totalOfPlan(
    tx,
    plan,
    walked ? rows.length : strategy.few + 1,
    guess,
  )
  return { n, approximate }
}

import { sql } from 'kysely'
import { orderByColumn, sortKeys } from './pages.ts'
import type { Db } from '../database.ts'
import { CUSTOM_PLAN } from '../client/driver.ts'
import type { Sql } from '../filters/comparisons.ts'
import { matchExpressions } from '../filters/lead-query.ts'
import type { LabelKind } from '../labels/labels.ts'
import { createFilterPlan, type FilterPlan, joinValues, scanBounds } from '../filters/plan.ts'
import type { Condition } from '../filters/predicates.ts'
import { createStepSize, filterInSteps, scanInSteps, type StepPosition } from '../filters/steps.ts'

/**
 * The ids of all contacts that meet every condition, in order, as texts of PostgreSQL arrays of `size` ids: a million
 * ids are 2,000 texts of 4 kB each, which go back to the database as they are.
 */
export const listMatchBatches = async (
  tx: Db,
  workspaceId: string,
  conditions: readonly Condition[],
  { size, stepMs }: { size: number; stepMs: number | undefined },
): Promise<string[]> => {
  const plan = await createFilterPlan(tx, workspaceId, conditions, stepMs)
  if (plan.candidateIds?.length === 0) return []
  if (plan.stepMs !== undefined) return toBatches(await findInSteps(tx, plan, plan.stepMs), size)
  for (const lead of plan.leads) {
    const found = sql`select id from found where (select candidates from size) <= ${sql.lit(lead.maxCandidates)}`
    const expressions = sql`${matchExpressions(plan, lead, sql`null`)},`
    const { batches, candidates } = await selectBatches(tx, { expressions, found, size, counts: sql`size` })
    if (candidates <= lead.maxCandidates) return batches
  }
  const found = sql`select c.id from contacts c ${joinValues(plan)} where ${plan.test({ as: 'set' })}`
  return (await selectBatches(tx, { expressions: sql``, found, size })).batches
}

type Selection = { expressions: Sql; found: Sql; size: number; counts?: Sql }

const selectBatches = async (
  tx: Db,
  { expressions, found, size, counts }: Selection,
): Promise<{ batches: string[]; candidates: number }> => {
  const { rows } = await sql<{ ids: string | null; candidates: string | null }>`${sql.raw(CUSTOM_PLAN)}
    with ${expressions} batches as (
      select array_agg(id order by id)::text as ids, no
      from (select id, (row_number() over (order by id) - 1) / ${sql.lit(size)} as no from (${found}) as f) as numbered
      group by no)
    select b.ids, ${counts ? sql`(select candidates from ${counts})` : sql`0`} as candidates
    from (select 1) as one left join batches b on true order by b.no`.execute(tx)
  return {
    batches: rows.flatMap(({ ids }) => ids ?? []),
    candidates: Number(rows[0]!.candidates),
  }
}

const findInSteps = async (tx: Db, plan: FilterPlan, stepMs: number): Promise<string[]> => {
  const size = createStepSize(stepMs)
  if (plan.candidateIds)
    return (await filterInSteps(tx, plan, plan.candidateIds, size)).toSorted((a, b) => Number(a) - Number(b))
  const { key, cast } = sortKeys.id
  const order = {
    key,
    orderBy: orderByColumn({ field: 'id', direction: 'asc' }),
    bounds: scanBounds(plan, 'id', key),
    after: (position: StepPosition | null): Sql =>
      position === null ? sql`` : sql`and ${key} > ${position.key}${cast}`,
  }
  return await scanInSteps(tx, plan, order, null, Number.POSITIVE_INFINITY, size)
}

/** Divides ids into texts of arrays of `size` ids. */
export const toBatches = (ids: readonly string[], size: number): string[] =>
  Array.from(
    { length: Math.ceil(ids.length / size) },
    (_, n) => `{${ids.slice(n * size, (n + 1) * size).join()}}`,
  )

/** Returns the ids of a batch. */
export const toIds = (batch: string): string[] => batch.slice(1, -1).split(',')

/** Returns how many ids batches have. */
export const countIds = (batches: readonly string[]): number =>
  batches.reduce((sum, batch) => sum + toIds(batch).length, 0)

/** Batches of one statement that reads what becomes of each record: of a million, none is to take seconds. */
const BATCHES_AT_ONCE = 40

/** Adds up what `count` returns for some batches at a time. */
export const sumOfBatches = async (
  batches: readonly string[],
  count: (batches: readonly string[]) => Promise<number>,
): Promise<number> => {
  let sum = 0
  for (let at = 0; at < batches.length; at += BATCHES_AT_ONCE)
    sum += await count(batches.slice(at, at + BATCHES_AT_ONCE))
  return sum
}

const labelTables = {
  tag: { links: sql.table('contact_tags'), column: sql.ref('l.tag_id') },
  group: { links: sql.table('contact_groups'), column: sql.ref('l.group_id') },
} as const

/** Counts those contacts of these batches that have at least so many of the labels. */
export const countLabelled = async (
  tx: Db,
  workspaceId: string,
  kind: LabelKind,
  {
    labelIds,
    batches,
    atLeast,
  }: { labelIds: readonly string[]; batches: readonly string[]; atLeast: number },
): Promise<number> => {
  const { links, column } = labelTables[kind]
  return await sumOfBatches(batches, async (some) => {
    const { rows } = await sql<{ n: string }>`
      with matches as materialized (select unnest(b::bigint[]) as id from unnest(${some}::text[]) as b)
      select count(*) as n from (
        select l.contact_id from matches m
        join ${links} l on l.workspace_id = ${workspaceId} and l.contact_id = m.id
        where ${column} = any(${labelIds}::bigint[])
        group by l.contact_id having count(*) >= ${atLeast}) as c`.execute(tx)
    return Number(rows[0]!.n)
  })
}

/** What contacts are to have: of `values`, by the ids of their fields, null is no value. */
export type WantedFields = {
  dnd: boolean | undefined
  starred: boolean | undefined
  values: ReadonlyMap<string, unknown>
}

/** Counts the contacts of batches that have all of it already. */
export const countWithFields = async (
  tx: Db,
  workspaceId: string,
  { dnd, starred, values }: WantedFields,
  batches: readonly string[],
): Promise<number> => {
  const conditions = [
    ...(dnd === undefined ? [] : [sql`c.dnd = ${dnd}`]),
    ...(starred === undefined ? [] : [sql`c.starred = ${starred}`]),
    ...[...values].map(([id, value]) =>
      value === null
        ? sql`f.attrs -> ${id} is null`
        : sql`f.attrs -> ${id} = ${JSON.stringify(value)}::text::jsonb`,
    ),
  ]
  return await sumOfBatches(batches, async (some) => {
    const { rows } = await sql<{ n: string }>`
      with matches as materialized (select unnest(b::bigint[]) as id from unnest(${some}::text[]) as b)
      select count(*) as n from matches m
      join contacts c on c.workspace_id = ${workspaceId} and c.id = m.id
      left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id
      where ${sql.join(conditions, sql` and `)}`.execute(tx)
    return Number(rows[0]!.n)
  })
}

/** Locks those of these contacts that exist, in the order of their ids, which it returns. */
export const lockContacts = async (tx: Db, workspaceId: string, ids: readonly string[]): Promise<string[]> =>
  (
    await sql<{ id: string }>`
    select id from contacts where workspace_id = ${workspaceId} and id = any(${ids}::bigint[])
    order by id for update`.execute(tx)
  ).rows.map(({ id }) => id)

/** Returns the names of those of these contacts that exist. */
export const listContactNames = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<{ id: string; name: string | null }[]> =>
  await tx
    .selectFrom('contacts')
    .select(['id', 'name'])
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', sql<string>`any(${ids}::bigint[])`)
    .orderBy('id')
    .execute()

import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { CUSTOM_PLAN } from '../driver.ts'
import { knownOf } from '../names-cache.ts'
import type { Filter } from './filter.ts'
import { type Find, findsOf, rank } from './finds.ts'
import {
  type Condition,
  type Form,
  labelConditions,
  predicate,
  type Scope,
  type Sql,
  timeTest,
} from './predicates.ts'
import { strategy } from './strategy.ts'

/** How the contacts that meet all conditions are to be found. */
export type Plan = {
  workspaceId: string
  conditions: readonly Condition[]
  /** Every contact that matches is among these; undefined: there are too many, or no index tells. */
  few: readonly string[] | undefined
  /** What a look at some contacts told; undefined where none was taken. */
  sample: Sample | undefined
  /** The sample shows that many match. */
  common: boolean
  /** Ways to ids that hold every match, the shortest first as far as that is known. */
  finds: readonly Find[]
  /** Some condition looks beyond the contact's own columns. */
  related: boolean
  /** Some condition reads `f`. */
  values: boolean
  /** The test of a contact `c` with its values `f`. */
  test: (form: Form) => Sql
}

const RELATED = new Set<Condition['kind']>(['attributes', 'tags', 'groups', 'conversations', 'broadcasts'])

const nodesOf = (node: Condition): Condition[] =>
  node.kind === 'and' || node.kind === 'or'
    ? [node, ...node.of.flatMap(nodesOf)]
    : node.kind === 'not'
      ? [node, ...nodesOf(node.of)]
      : [node]

const saysNothing = (node: Condition): boolean => node.kind === 'and' && node.of.every(saysNothing)

/**
 * Settles how to find them: looks up what the conditions name, and probes the most promising of them for
 * how many contacts they leave.
 */
export const planOf = async (tx: Db, workspaceId: string, given: readonly Condition[]): Promise<Plan> => {
  const conditions = given.filter((node) => !saysNothing(node))
  const nodes = conditions.flatMap(nodesOf)
  const asksEmail = nodes.some((node) => node.kind === 'text' && node.field === 'email')
  const scope = {
    workspaceId,
    labels: await labelsOf(tx, workspaceId, nodes),
    emailFieldId: asksEmail
      ? (await knownOf(tx, workspaceId, null)).fields.find((field) => field.key === 'email')?.id
      : undefined,
  }
  const related = asksEmail || nodes.some((node) => RELATED.has(node.kind))
  const values = nodes.some((node) => node.kind === 'attributes')
  const plan: Plan = {
    workspaceId,
    conditions,
    related,
    values,
    few: undefined,
    sample: undefined,
    common: false,
    finds: [],
    test: (form) =>
      sql.join(
        [
          sql`c.workspace_id = ${workspaceId}`,
          ...conditions.map((node) => predicate({ ...scope, form }, node)),
        ],
        sql` and `,
      ),
  }
  // Plain lists have an index for all that they may ask.
  if (nodes.every(({ kind }) => kind === 'query' || kind === 'flag')) return plan
  const rows: Scope = { ...scope, form: { as: 'row' } }
  const leads = conditions
    .flatMap(partsOf)
    .flatMap((part): Lead[] =>
      findsOf(rows, part)
        .slice(0, 1)
        .map((find) => ({ part, find })),
    )
    .toSorted((a, b) => a.find.rank - b.find.rank)
  const finds = leads.map(({ find }) => find)
  // The few that hold an exact value need no sample.
  if (finds[0] && finds[0].rank <= rank.exact && related)
    return { ...plan, finds, few: await probe(tx, finds) }
  // What is common is not worth a probe, which would gather all of it from a trigram index before it gives
  // the first.
  const sample = await sampleOf(
    tx,
    plan,
    leads.slice(0, strategy.leads).map(({ part }) => predicate(rows, part)),
  )
  const common = related
    ? sample.matched >= strategy.telling && estimateOf(sample) >= strategy.probe
    : sample.matched > 0 && estimateOf(sample) >= strategy.few
  const byLength = finds
    .map((find, n) => ({ find, met: sample.parts[n] ?? Infinity }))
    .toSorted((a, b) => a.met - b.met)
    .map(({ find }) => find)
  return {
    ...plan,
    finds: byLength,
    sample,
    common,
    few: common || !related ? undefined : await probe(tx, byLength),
  }
}

/** A condition that must hold, and the most promising way to what it leaves. */
type Lead = { part: Condition; find: Find }

/** Conditions that must all hold, one by one. */
const partsOf = (node: Condition): Condition[] => (node.kind === 'and' ? node.of.flatMap(partsOf) : [node])

/** `f`, the values of each `c`, one look-up each; nothing where no condition reads them. */
export const valuesBeside = (plan: Plan): Sql =>
  plan.values
    ? sql`left join lateral (select attrs from contact_facts f where f.workspace_id = c.workspace_id and f.contact_id = c.id limit 1) as f on true`
    : sql``

/** The same where many are read at once; `range`: of those with ids from the first to before the second. */
export const valuesJoined = (plan: Plan, range?: readonly [string, string]): Sql => {
  if (!plan.values) return sql``
  const bounded = range
    ? sql`and f.contact_id >= ${range[0]}::bigint and f.contact_id < ${range[1]}::bigint`
    : sql``
  return sql`left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id ${bounded}`
}

/** Of the contacts looked at: how many match, and how many meet each of some parts of the filter. */
export type Sample = { all: number; seen: number; matched: number; parts: readonly number[] }

/** Tests a thousand contacts in forty places, spread evenly over the ids. */
export const sampleOf = async (tx: Db, plan: Plan, parts: readonly Sql[] = []): Promise<Sample> => {
  const counts = parts.map((test) => sql`count(*) filter (where ${test})`)
  const {
    rows: [row],
  } = await sql<{ all: string; seen: string; matched: string; parts: string[] }>`${sql.raw(CUSTOM_PLAN)}
    with ends as materialized (
      select (select id from contacts where workspace_id = ${plan.workspaceId} order by id limit 1) as first, (select id from contacts where workspace_id = ${plan.workspaceId} order by id desc limit 1) as last)
    select count(*) as seen, count(*) filter (where ${plan.test({ as: 'row' })}) as matched,
      array[${sql.join(counts)}]::bigint[] as parts,
      (select coalesce(sum(n), 0) from counters where workspace_id = ${plan.workspaceId} and subject = 'contacts') as all
    from ends cross join generate_series(0, ${sql.lit(strategy.places - 1)}) as place
    cross join lateral (select * from contacts c where c.workspace_id = ${plan.workspaceId} and c.id >= ends.first + (ends.last - ends.first) / ${sql.lit(strategy.places)} * place
      order by c.id limit ${sql.lit(Math.ceil(strategy.sample / strategy.places))}) as c
    ${valuesBeside(plan)}`.execute(tx)
  return {
    all: Number(row!.all),
    seen: Number(row!.seen),
    matched: Number(row!.matched),
    parts: row!.parts.map(Number),
  }
}

export const estimateOf = ({ all, seen, matched }: Sample): number =>
  Math.round((all * matched) / Math.max(1, seen))

type LabelNode = Extract<Filter, { kind: 'tags' | 'groups' }>

/**
 * The ids of the tags and groups that each node means, in one statement. A node without conditions means
 * them all, and has none here.
 */
const labelsOf = async (
  tx: Db,
  workspaceId: string,
  nodes: readonly Condition[],
): Promise<Map<Filter, readonly string[]>> => {
  const asked = nodes.filter(
    (node): node is LabelNode => (node.kind === 'tags' || node.kind === 'groups') && node.where.length > 0,
  )
  // Ids alone need no look: one that is gone is on no contact.
  const plain = asked.flatMap((node) => {
    const [only, ...more] = node.where
    const test = only!.field === 'id' && more.length === 0 ? only!.test : undefined
    return test?.op === 'eq'
      ? [[node, [test.value]] as const]
      : test?.op === 'in'
        ? [[node, test.values] as const]
        : []
  })
  const labels = new Map<Filter, readonly string[]>(plain)
  const rest = asked.filter((node) => !labels.has(node))
  if (rest.length === 0) return labels
  const lists = rest.map(
    (node) =>
      sql`array(select l.id from ${node.kind === 'tags' ? sql`tags` : sql`groups`} l where l.workspace_id = ${workspaceId} and ${labelConditions(node.where)})`,
  )
  const { rows } = await sql<{ found: string[]; n: number }>`
    select * from (values ${sql.join(lists.map((list, n) => sql`(${sql.lit(n)}, ${list})`))}) as v (n, found)`.execute(
    tx,
  )
  for (const { n, found } of rows) labels.set(rest[n]!, found)
  return labels
}

/**
 * The ids of all contacts that some condition leaves, where they are few: reads at most one more than that
 * from the most promising conditions. Nothing else tells: the planner's estimates were seen to be wrong by
 * a factor of hundreds.
 */
const probe = async (tx: Db, finds: readonly Find[]): Promise<string[] | undefined> => {
  for (const { ids } of finds.slice(0, strategy.probes)) {
    // Rows are counted, not contacts: of a list cut off in the middle one cannot tell how many contacts are
    // missing.
    const {
      rows: [row],
    } = await sql<{ ids: string[] | null }>`${sql.raw(CUSTOM_PLAN)}
      select case when count(*) <= ${sql.lit(strategy.probe)} then coalesce(array_agg(contact_id), '{}') end as ids from (select contact_id from (${ids}) as found limit ${sql.lit(strategy.probe + 1)}) as leaf`.execute(
      tx,
    )
    if (row!.ids) return [...new Set(row!.ids)]
  }
  return undefined
}

/** Conditions on the column that a list is sorted by bound the walk along it. */
export const bounds = (plan: Plan, field: string, column: Sql): Sql =>
  sql.join(
    [
      sql`c.workspace_id = ${plan.workspaceId}`,
      ...plan.conditions.flatMap((node) => timeBounds(node, field, column)),
    ],
    sql` and `,
  )

const timeBounds = (node: Condition, field: string, column: Sql): Sql[] => {
  if (node.kind === 'and') return node.of.flatMap((child) => timeBounds(child, field, column))
  return node.kind === 'time' && node.field === field && node.test.op !== 'ne' && node.test.op !== 'isNull'
    ? [timeTest(column, node.test)]
    : []
}

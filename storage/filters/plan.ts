import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { CUSTOM_PLAN } from '../driver.ts'
import { loadNames } from '../names-cache.ts'
import type { ContactFilter } from './filter.ts'
import { type CandidateQuery, candidateQueries, candidateRank } from './candidates.ts'
import { type Sql, timeTest } from './comparisons.ts'
import {
  type Condition,
  type PredicateForm,
  labelConditions,
  toPredicate,
  type PredicateScope,
} from './predicates.ts'
import { filterStrategy } from './strategy.ts'

/** How to find the contacts that meet all conditions. */
export type FilterPlan = {
  workspaceId: string
  conditions: readonly Condition[]
  /** Contains the ids of all matches; undefined when there are too many, or no index finds them. */
  candidateIds: readonly string[] | undefined
  /** Undefined when no sample was read. */
  sample: Sample | undefined
  /** The sample shows that many match. */
  isCommon: boolean
  /** How long a statement may take where others wait for it; undefined: as long as its timeout. */
  stepMs: number | undefined
  /** Queries whose ids hold every match, the most selective first as far as that is known. */
  candidates: readonly CandidateQuery[]
  /** Some condition reads more than the contact's own columns. */
  readsRelated: boolean
  /** Some condition reads `f`. */
  readsValues: boolean
  /** The test of a contact `c` with its values `f`. */
  test: (form: PredicateForm) => Sql
}

/** Branches of an `or` whose ids a short statement reads. */
const MAX_SHORT_BRANCHES = 3

const RELATED = new Set<Condition['kind']>(['attributes', 'tags', 'groups', 'conversations', 'broadcasts'])

const listNodes = (node: Condition): Condition[] =>
  node.kind === 'and' || node.kind === 'or'
    ? [node, ...node.of.flatMap(listNodes)]
    : node.kind === 'not'
      ? [node, ...listNodes(node.of)]
      : [node]

const isTautology = (node: Condition): boolean => node.kind === 'and' && node.of.every(isTautology)

/**
 * Plans how to find the contacts that meet all conditions: resolves the labels that they name, and probes how
 * many contacts the most selective conditions match.
 */
export const createFilterPlan = async (
  tx: Db,
  workspaceId: string,
  given: readonly Condition[],
  stepMs?: number,
): Promise<FilterPlan> => {
  const conditions = given.filter((node) => !isTautology(node))
  const nodes = conditions.flatMap(listNodes)
  const readsEmail = nodes.some((node) => node.kind === 'text' && node.field === 'email')
  const scope = {
    workspaceId,
    labels: await resolveLabelIds(tx, workspaceId, nodes),
    emailFieldId: readsEmail
      ? (await loadNames(tx, workspaceId, null)).fields.find((field) => field.key === 'email')?.id
      : undefined,
  }
  const readsRelated = readsEmail || nodes.some((node) => RELATED.has(node.kind))
  const readsValues = nodes.some((node) => node.kind === 'attributes')
  const plan: FilterPlan = {
    workspaceId,
    conditions,
    readsRelated,
    readsValues,
    stepMs: undefined,
    candidateIds: undefined,
    sample: undefined,
    isCommon: false,
    candidates: [],
    test: (form) =>
      sql.join(
        [
          sql`c.workspace_id = ${workspaceId}`,
          ...conditions.map((node) => toPredicate({ ...scope, form }, node)),
        ],
        sql` and `,
      ),
  }
  // Lists without a filter have an index for every condition.
  if (nodes.every(({ kind }) => kind === 'query' || kind === 'flag')) return plan
  const targets = listProbeTargets(scope, conditions)
  const candidates = targets.map(({ query }) => query)
  // Where a statement must be short, only an index that finds few ids may be read, and no sample.
  if (stepMs !== undefined) {
    const [best] = candidates
    const isShort = best && best.rank < candidateRank.range && best.branches <= MAX_SHORT_BRANCHES
    return {
      ...plan,
      stepMs,
      candidates,
      candidateIds: isShort ? await probeCandidates(tx, [best]) : undefined,
    }
  }
  // The few contacts with an exact value need no sample.
  if (candidates[0] && candidates[0].rank <= candidateRank.exact && readsRelated)
    return { ...plan, candidates, candidateIds: await probeCandidates(tx, candidates) }
  // A common condition is not worth a probe, which would gather all its rows from a trigram index before it
  // returns the first.
  const sample = await sampleContacts(
    tx,
    plan,
    targets
      .slice(0, filterStrategy.maxRankedConditions)
      .map(({ condition }) => toPredicate({ ...scope, form: { as: 'row' } }, condition)),
  )
  const isCommon = readsRelated
    ? sample.matched >= filterStrategy.minSampleMatches &&
      estimateMatches(sample) >= filterStrategy.maxCandidates
    : sample.matched > 0 && estimateMatches(sample) >= filterStrategy.maxSortedMatches
  const bySelectivity = candidates
    .map((query, n) => ({ query, met: sample.parts[n] ?? Infinity }))
    .toSorted((a, b) => a.met - b.met)
    .map(({ query }) => query)
  return {
    ...plan,
    candidates: bySelectivity,
    sample,
    isCommon,
    candidateIds: isCommon || !readsRelated ? undefined : await probeCandidates(tx, bySelectivity),
  }
}

/** A condition that must hold, and its most selective candidate query. */
type ProbeTarget = { condition: Condition; query: CandidateQuery }

/** Returns the conditions that must hold and have a candidate query, the most selective first. */
const listProbeTargets = (
  scope: Omit<PredicateScope, 'form'>,
  conditions: readonly Condition[],
): ProbeTarget[] =>
  conditions
    .flatMap(splitConjunction)
    .flatMap((condition): ProbeTarget[] =>
      candidateQueries({ ...scope, form: { as: 'row' } }, condition)
        .slice(0, 1)
        .map((query) => ({ condition, query })),
    )
    .toSorted((a, b) => a.query.rank - b.query.rank)

/** Returns the conditions that must all hold, one by one. */
const splitConjunction = (node: Condition): Condition[] =>
  node.kind === 'and' ? node.of.flatMap(splitConjunction) : [node]

/** Joins `f`, the values of each `c`, by one look-up each; nothing where no condition reads them. */
export const joinValuesLateral = (plan: FilterPlan): Sql =>
  plan.readsValues
    ? sql`left join lateral (
        select attrs from contact_facts f
        where f.workspace_id = c.workspace_id and f.contact_id = c.id limit 1) as f on true`
    : sql``

/** The same for many contacts at once; `range`: those with ids from the first to before the second. */
export const joinValues = (plan: FilterPlan, range?: readonly [string, string]): Sql => {
  if (!plan.readsValues) return sql``
  const bounded = range
    ? sql`and f.contact_id >= ${range[0]}::bigint and f.contact_id < ${range[1]}::bigint`
    : sql``
  return sql`left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id ${bounded}`
}

/**
 * `all`: the contacts of the workspace. Of those in the sample (`seen`), how many match, and how many meet
 * each of some parts of the filter.
 */
export type Sample = { all: number; seen: number; matched: number; parts: readonly number[] }

/** Tests a thousand contacts in forty places that are spread evenly over the ids. */
export const sampleContacts = async (
  tx: Db,
  plan: FilterPlan,
  parts: readonly Sql[] = [],
  size: number = filterStrategy.sampleContacts,
): Promise<Sample> => {
  const { workspaceId } = plan
  const places = filterStrategy.samplePlaces
  const counts = parts.map((test) => sql`count(*) filter (where ${test})`)
  const {
    rows: [row],
  } = await sql<{ all: string; seen: string; matched: string; parts: string[] }>`${sql.raw(CUSTOM_PLAN)}
    with ends as materialized (
      select (select id from contacts where workspace_id = ${workspaceId} order by id limit 1) as first,
        (select id from contacts where workspace_id = ${workspaceId} order by id desc limit 1) as last)
    select count(*) as seen, count(*) filter (where ${plan.test({ as: 'row' })}) as matched,
      array[${sql.join(counts)}]::bigint[] as parts,
      (select coalesce(sum(n), 0) from counters
        where workspace_id = ${workspaceId} and subject = 'contacts') as all
    from ends cross join generate_series(0, ${sql.lit(places - 1)}) as place
    cross join lateral (
      select * from contacts c
      where c.workspace_id = ${workspaceId}
        and c.id >= ends.first + (ends.last - ends.first) / ${sql.lit(places)} * place
      order by c.id limit ${sql.lit(Math.ceil(size / places))}) as c
    ${joinValuesLateral(plan)}`.execute(tx)
  return {
    all: Number(row!.all),
    seen: Number(row!.seen),
    matched: Number(row!.matched),
    parts: row!.parts.map(Number),
  }
}

export const estimateMatches = ({ all, seen, matched }: Sample): number =>
  Math.round((all * matched) / Math.max(1, seen))

type LabelNode = Extract<ContactFilter, { kind: 'tags' | 'groups' }>

/**
 * Resolves the tags and groups that each node selects to ids, in one statement. A node without conditions
 * selects all of them and has no entry.
 */
const resolveLabelIds = async (
  tx: Db,
  workspaceId: string,
  nodes: readonly Condition[],
): Promise<Map<ContactFilter, readonly string[]>> => {
  const labelNodes = nodes.filter(
    (node): node is LabelNode => (node.kind === 'tags' || node.kind === 'groups') && node.where.length > 0,
  )
  // Ids need no look-up: a deleted tag is on no contact.
  const byId = labelNodes.flatMap((node) => {
    const [only, ...more] = node.where
    const test = only!.field === 'id' && more.length === 0 ? only!.test : undefined
    return test?.op === 'eq'
      ? [[node, [test.value]] as const]
      : test?.op === 'in'
        ? [[node, test.values] as const]
        : []
  })
  const labels = new Map<ContactFilter, readonly string[]>(byId)
  const unresolved = labelNodes.filter((node) => !labels.has(node))
  if (unresolved.length === 0) return labels
  const lists = unresolved.map(
    (node) =>
      sql`array(
        select l.id from ${node.kind === 'tags' ? sql`tags` : sql`groups`} l
        where l.workspace_id = ${workspaceId} and ${labelConditions(node.where)})`,
  )
  const { rows } = await sql<{ found: string[]; n: number }>`
    select * from (values ${sql.join(lists.map((list, n) => sql`(${sql.lit(n)}, ${list})`))})
      as v (n, found)`.execute(tx)
  for (const { n, found } of rows) labels.set(unresolved[n]!, found)
  return labels
}

/**
 * Returns the ids of the first candidate query that finds few; undefined when all find too many. Reads at
 * most one id more than the limit from each. The planner's estimates cannot replace this: they were measured
 * to be wrong by a factor of hundreds.
 */
const probeCandidates = async (
  tx: Db,
  candidates: readonly CandidateQuery[],
): Promise<string[] | undefined> => {
  const { maxCandidates } = filterStrategy
  for (const { ids } of candidates.slice(0, filterStrategy.maxProbes)) {
    // Counts rows, not contacts: the number of contacts in the rows beyond the limit is unknown.
    const {
      rows: [row],
    } = await sql<{ ids: string[] | null }>`${sql.raw(CUSTOM_PLAN)}
      select case when count(*) <= ${sql.lit(maxCandidates)}
        then coalesce(array_agg(contact_id), '{}') end as ids
      from (select contact_id from (${ids}) as found limit ${sql.lit(maxCandidates + 1)}) as leaf`.execute(tx)
    if (row!.ids) return [...new Set(row!.ids)]
  }
  return undefined
}

/** SQL for the conditions on the column that a list is sorted by, which bound a scan along it. */
export const scanBounds = (plan: FilterPlan, field: string, column: Sql): Sql =>
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

import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { CUSTOM_PLAN } from '../client/driver.ts'
import { loadNames } from '../workspace/names-cache.ts'
import { type ContactFilter, relatedKinds } from './filter.ts'
import { type CandidateQuery, candidateRank } from './candidate-query.ts'
import { candidateQueries } from './candidates.ts'
import { type Sql, timeTest } from './comparisons.ts'
import { exactCandidates, type LabelSizes } from './exact-candidates.ts'
import { type Lead, MORE_IF_LABELLED, type ProbeTarget, toLead } from './lead.ts'
import { findMatchingValues } from './distinct-values.ts'
import {
  type Condition,
  type PredicateForm,
  labelConditions,
  toPredicate,
  type PredicateScope,
} from './predicates.ts'
import { areFew, estimateMatches, type Sample, sampleContacts } from './sample.ts'
import { isNever, simplifyAll } from './simplify.ts'
import { filterStrategy } from './strategy.ts'
import { fold, hasTrigram } from '../values/text.ts'

/** How to find the contacts that meet all conditions. */
export type FilterPlan = {
  workspaceId: string
  conditions: readonly Condition[]
  /** Contains the ids of all matches, where statements must be short; empty where nothing can match. */
  candidateIds: readonly string[] | undefined
  /** What to begin with in turn, until one has few candidates; the most selective first. */
  leads: readonly Lead[]
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
  /** The test of a contact `c` with its values `f`: of all conditions, or of some. */
  test: (form: PredicateForm, of?: readonly Condition[]) => Sql
}

/** Branches of an `or` whose ids a short statement reads. */
const MAX_SHORT_BRANCHES = 3

const listNodes = (node: Condition): Condition[] =>
  node.kind === 'and' || node.kind === 'or'
    ? [node, ...node.of.flatMap(listNodes)]
    : node.kind === 'not'
      ? [node, ...listNodes(node.of)]
      : [node]

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
  const { labels, sizes } = await resolveLabelIds(tx, workspaceId, given.flatMap(listNodes))
  const possible = simplifyAll({ labels }, given)
  const values = await findMatchingValues(tx, workspaceId, possible.flatMap(listNodes))
  const conditions = values.size > 0 ? simplifyAll({ labels, values }, possible) : possible
  const nodes = conditions.flatMap(listNodes)
  const readsEmail = nodes.some((node) => node.kind === 'text' && node.field === 'email')
  const scope = {
    workspaceId,
    labels,
    sizes,
    values,
    emailFieldId: readsEmail
      ? (await loadNames(tx, workspaceId, null)).fields.find((field) => field.key === 'email')?.id
      : undefined,
  }
  const plan: FilterPlan = {
    workspaceId,
    conditions,
    readsRelated: readsEmail || nodes.some((node) => relatedKinds.has(node.kind)),
    readsValues: nodes.some((node) => node.kind === 'attributes'),
    stepMs: undefined,
    candidateIds: undefined,
    leads: [],
    sample: undefined,
    isCommon: false,
    candidates: [],
    test: (form, of = conditions) =>
      sql.join(
        [sql`c.workspace_id = ${workspaceId}`, ...of.map((node) => toPredicate({ ...scope, form }, node))],
        sql` and `,
      ),
  }
  if (conditions.some(isNever)) return { ...plan, stepMs, candidateIds: [] }
  // Lists without a filter have an index for every condition.
  if (nodes.every(({ kind }) => kind === 'flag' || kind === 'query') && !nodes.some(isShortQuery)) return plan
  if (stepMs !== undefined)
    return await planShortSteps(tx, { ...plan, stepMs, candidates: listCandidates(scope, conditions) })
  return await planBySample(tx, plan, scope)
}

/** Text of which no trigram is known. */
const isShortQuery = (node: Condition): boolean => node.kind === 'query' && !hasTrigram(fold(node.text))

/** Where a statement must be short, only an index that finds few ids may be read, and no sample. */
const planShortSteps = async (tx: Db, plan: FilterPlan): Promise<FilterPlan> => {
  const [best] = plan.candidates
  const isShort = best && best.rank < candidateRank.range && best.branches <= MAX_SHORT_BRANCHES
  const { maxCandidates, maxShortCandidates } = filterStrategy
  return isShort
    ? { ...plan, candidateIds: await probeCandidates(tx, best, Math.min(maxCandidates, maxShortCandidates)) }
    : plan
}

/**
 * Ranks the conditions by how many contacts of a sample meet them. Those that few contacts meet are what to
 * begin with.
 */
const planBySample = async (tx: Db, plan: FilterPlan, scope: Scope): Promise<FilterPlan> => {
  const targets = listProbeTargets(scope, plan.conditions)
  const toLeads = (few: readonly ProbeTarget[], sample?: Sample): Lead[] =>
    few.map((target) => toLead(plan.conditions, targets, target, sample !== undefined && areFew(sample)))
  const [first] = targets
  // The few contacts with an exact value need no sample.
  if (first && first.query.rank <= candidateRank.exact)
    return {
      ...plan,
      candidates: targets.map(({ query }) => query),
      leads: toLeads(targets).slice(0, filterStrategy.maxProbes),
    }
  // Nor do those with several values or labels, which seldom are many.
  const whole = targets.find((target) => isQuick(scope, plan.conditions, target))
  if (whole) return { ...plan, candidates: targets.map(({ query }) => query), leads: toLeads([whole]) }
  const ranked = targets.filter(({ size }) => size === undefined).slice(0, filterStrategy.maxRankedConditions)
  const inPart = new Set(ranked.flatMap(({ covered }) => covered))
  const sample = await sampleContacts(tx, {
    ...plan,
    parts: ranked.map(({ covered }) => plan.test({ as: 'row' }, covered)),
    rest: plan.test(
      { as: 'row' },
      plan.conditions.filter((node) => !inPart.has(node)),
    ),
  })
  const perSample = sample.all / Math.max(1, sample.seen)
  for (const [n, target] of ranked.entries()) target.size = sample.parts[n]! * perSample
  const bySelectivity = targets.toSorted((a, b) => (a.size ?? Infinity) - (b.size ?? Infinity))
  const isCommon =
    sample.matched >= filterStrategy.minSampleMatches && estimateMatches(sample) >= countableMatches()
  // A common condition would gather all its rows from a trigram index before it returns the first. Where all
  // conditions are on the contact itself, the planner begins with the most selective one that it knows an index of.
  const known = bySelectivity.find(({ query }) => !query.derived)?.size ?? Infinity
  const leads = toLeads(bySelectivity, sample).filter(
    ({ query, narrowed, rest, size, maxCandidates }) =>
      (size ?? 0) <= maxCandidates &&
      (plan.readsRelated ||
        (query.derived && (size ?? 0) < known) ||
        (rest.length === 0 && narrowed.some(({ kind }) => kind === 'flag'))),
  )
  return {
    ...plan,
    candidates: bySelectivity.map(({ query }) => query),
    sample,
    isCommon,
    leads: isCommon ? [] : leads.slice(0, filterStrategy.maxProbes),
  }
}

/** How much more a sample must show before it is certain that a limit is exceeded. */
const COMMON_FACTOR = 2.5
/** Matches that an estimate must exceed, so that not even a poor one hides a number that must be exact. */
const countableMatches = (): number => COMMON_FACTOR * filterStrategy.maxExactTotal

type Scope = Omit<PredicateScope, 'form'> & { sizes: LabelSizes }

/** Labelled contacts that are intersected in the time of a sample, about. */
const MAX_INTERSECTED = 100_000

/**
 * Whether the query finds all matches without a test, and takes little time even where they turn out to be too many:
 * those with some of several values and labels, or with labels that are known to be few.
 */
const isQuick = (
  { sizes }: Scope,
  conditions: readonly Condition[],
  { covered, query }: ProbeTarget,
): boolean => {
  if (!query.exact || covered.length < conditions.length) return false
  const required = covered.filter((node) => 'quantifier' in node && node.quantifier === 'some')
  if (query.attrs) return required.length > 1
  const total = required.reduce((sum, node) => sum + (sizes.get(node as ContactFilter) ?? Infinity), 0)
  const max = required.length > 1 ? MAX_INTERSECTED : MORE_IF_LABELLED * filterStrategy.maxCandidates
  return query.rank === candidateRank.label && total <= max
}

/** Returns the candidate query of each condition that must hold and has one, the most selective first. */
const listCandidates = (scope: Scope, conditions: readonly Condition[]): CandidateQuery[] =>
  conditions
    .flatMap((condition) => candidateQueries({ ...scope, form: { as: 'row' } }, condition).slice(0, 1))
    .toSorted((a, b) => a.rank - b.rank)

/** The same, with all values and labels that a contact must have in one query. */
const listProbeTargets = (scope: Scope, conditions: readonly Condition[]): ProbeTarget[] => {
  const sizeOf = (node: Condition): number | undefined =>
    'quantifier' in node && node.quantifier === 'some' ? scope.sizes.get(node) : undefined
  const exact = exactCandidates(
    scope,
    conditions.toSorted((a, b) => (sizeOf(a) ?? Infinity) - (sizeOf(b) ?? Infinity)),
  )
  const others = conditions.filter((node) => !exact?.covered.includes(node))
  const targets = others.flatMap((node): ProbeTarget[] =>
    candidateQueries({ ...scope, form: { as: 'row' } }, node)
      .slice(0, 1)
      .map((query) => ({ covered: [node], query })),
  )
  const size = exact?.covered.length === 1 ? sizeOf(exact.covered[0]!) : undefined
  return [...(exact ? [{ ...exact, ...(size === undefined ? {} : { size }) }] : []), ...targets].toSorted(
    (a, b) => a.query.rank - b.query.rank,
  )
}

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

type LabelNode = Extract<ContactFilter, { kind: 'tags' | 'groups' }>

/**
 * Resolves the tags and groups that each node selects to ids, in one statement, with their `sizes` where it is sent.
 * A node without conditions selects all of them and has no entry.
 */
const resolveLabelIds = async (
  tx: Db,
  workspaceId: string,
  nodes: readonly Condition[],
): Promise<{ labels: Map<ContactFilter, readonly string[]>; sizes: Map<ContactFilter, number> }> => {
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
  const sizes = new Map<ContactFilter, number>()
  if (unresolved.length === 0) return { labels, sizes }
  const lists = unresolved.map(({ kind, where }, n) => {
    const [table, prefix] = kind === 'tags' ? [sql`tags`, 'tag:'] : [sql`groups`, 'group:']
    return sql`(${sql.lit(n)}, ${sql.lit(prefix)}, array(
        select l.id from ${table} l
        where l.workspace_id = ${workspaceId} and ${labelConditions(where)}))`
  })
  const { rows } = await sql<{ found: string[]; n: number; size: string }>`
    select v.n, v.found, (
      select coalesce(sum(k.n), 0) from unnest(v.found) as l (id)
      join counters k on k.workspace_id = ${workspaceId} and k.subject = v.prefix || l.id) as size
    from (values ${sql.join(lists)})
      as v (n, prefix, found)`.execute(tx)
  for (const { n, found, size } of rows) {
    labels.set(unresolved[n]!, found)
    sizes.set(unresolved[n]!, Number(size))
  }
  return { labels, sizes }
}

/** Returns the ids of a candidate query; undefined when it finds more than `max`, of which one more is read. */
const probeCandidates = async (
  tx: Db,
  { ids }: CandidateQuery,
  max: number,
): Promise<string[] | undefined> => {
  // Counts rows, not contacts: the number of contacts in the rows beyond the limit is unknown.
  const {
    rows: [row],
  } = await sql<{ ids: string[] | null }>`${sql.raw(CUSTOM_PLAN)}
    select case when count(*) <= ${sql.lit(max)}
      then coalesce(array_agg(contact_id), '{}') end as ids
    from (select contact_id from (${ids}) as found limit ${sql.lit(max + 1)}) as leaf`.execute(tx)
  return row!.ids ? [...new Set(row!.ids)] : undefined
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

import { sql } from 'kysely'
import { loadCounter } from '../workspace/counters.ts'
import type { Db } from '../database.ts'
import { CUSTOM_PLAN } from '../client/driver.ts'
import { matchExpressions } from './lead-query.ts'
import type { Lead } from './lead.ts'
import { type FilterPlan, createFilterPlan, joinValues } from './plan.ts'
import type { Condition } from './predicates.ts'
import { areFewOfFew, estimateMatches, type Sample, sampleContacts } from './sample.ts'
import { countStep, createStepSize, filterInSteps } from './steps.ts'
import { filterStrategy } from './strategy.ts'

export type MatchCount = { count: number; approximate: boolean }

/**
 * Returns the number of contacts that meet every condition: exact when counting takes no longer than
 * `timeBudgetMs`, else an estimate from what was counted by then. Counts in steps, in an order that spreads
 * over all contacts, so that the counted ones are representative. No statement is cancelled, which the
 * embedded database could not do.
 */
export const countMatches = async (
  tx: Db,
  workspaceId: string,
  conditions: readonly Condition[],
  timeBudgetMs: number,
  stepMs?: number,
): Promise<MatchCount> => {
  const deadline = performance.now() + timeBudgetMs
  const hasTime = () => performance.now() < deadline
  const all = await loadCounter(tx, workspaceId, 'contacts')
  const plan = await createFilterPlan(tx, workspaceId, conditions, stepMs)
  if (plan.conditions.length === 0) return { count: all, approximate: false }
  if (plan.candidateIds && plan.stepMs !== undefined) {
    const found = await filterInSteps(tx, plan, plan.candidateIds, createStepSize(plan.stepMs))
    return { count: found.length, approximate: false }
  }
  if (plan.candidateIds) return { count: 0, approximate: false }
  for (const lead of plan.leads) {
    const count = await countByLead(tx, plan, lead)
    if (count !== undefined) return { count, approximate: false }
  }
  const sampled = timeBudgetMs <= 0 ? undefined : await countInSteps(tx, plan, all, hasTime)
  return (
    sampled ?? {
      count: estimateMatches(plan.sample ?? (await sampleMatches(tx, plan, stepSample(plan)))),
      approximate: true,
    }
  )
}

/** Returns the number of matches; undefined where the lead has too many candidates. */
const countByLead = async (tx: Db, plan: FilterPlan, lead: Lead): Promise<number | undefined> => {
  const { rows } = await sql<{ candidates: string; n: string }>`${sql.raw(CUSTOM_PLAN)}
    with ${matchExpressions(plan, lead, sql`null`)}
    select candidates, n from size`.execute(tx)
  return Number(rows[0]!.candidates) > lead.maxCandidates ? undefined : Number(rows[0]!.n)
}

const sampleMatches = (tx: Db, plan: FilterPlan, size?: number): Promise<Sample> =>
  sampleContacts(tx, { ...plan, parts: [], rest: plan.test({ as: 'row' }) }, size)

/** How many contacts a sample has; few where a statement must be short. */
const stepSample = ({ stepMs }: FilterPlan): number | undefined =>
  stepMs === undefined ? undefined : filterStrategy.samplePlaces

/** Returns the first and the last contact id of a workspace; undefined when it has no contacts. */
const findIdRange = async (
  tx: Db,
  workspaceId: string,
): Promise<{ first: bigint; last: bigint } | undefined> => {
  const {
    rows: [row],
  } = await sql<{ first: string | null; last: string | null }>`
    select (select id from contacts where workspace_id = ${workspaceId} order by id limit 1) as first,
      (select id from contacts where workspace_id = ${workspaceId} order by id desc limit 1) as last`.execute(
    tx,
  )
  return row!.first === null ? undefined : { first: BigInt(row!.first), last: BigInt(row!.last!) }
}

/** Returns 0 to `count - 1`, each once and spread over the range: every nth, with n prime to the count. */
const spreadOrder = (count: number): number[] => {
  let stride = Math.max(1, Math.floor(count * 0.618))
  const divides = (a: number, b: number): number => (b === 0 ? a : divides(b, a % b))
  while (divides(stride, count) !== 1) stride++
  return Array.from({ length: count }, (_, i) => (i * stride) % count)
}

/** Returns how many contacts a step counts: where steps must be short, as many as a trial says. */
const chooseStepContacts = async (tx: Db, plan: FilterPlan, first: bigint): Promise<number> => {
  if (plan.stepMs === undefined) return filterStrategy.countStepContacts
  const size = createStepSize(plan.stepMs)
  for (;;) {
    const contacts = size.contacts()
    const { seen, ms } = await countStep(tx, plan, [String(first), String(first + BigInt(contacts))])
    if (seen > 0) size.record(contacts, ms)
    if (size.contacts() <= contacts) return size.contacts()
  }
}

/**
 * Counts step by step while there is time; undefined when no contact was looked at. `hasTime` gets the
 * milliseconds that short steps took in the database.
 */
const countInSteps = async (
  tx: Db,
  plan: FilterPlan,
  all: number,
  hasTime: (spentMs: number) => boolean,
): Promise<MatchCount | undefined> => {
  const range = await findIdRange(tx, plan.workspaceId)
  if (!range) return { count: 0, approximate: false }
  const steps = Math.max(1, Math.ceil(all / (await chooseStepContacts(tx, plan, range.first))))
  const width = (range.last - range.first) / BigInt(steps) + 1n
  let seen = 0
  let count = 0
  let remaining = steps
  let spentMs = 0
  for (const step of spreadOrder(steps)) {
    if (!hasTime(spentMs)) break
    const from = range.first + BigInt(step) * width
    const [first, end] = [String(from), String(from + width)]
    remaining--
    if (plan.stepMs !== undefined) {
      const step = await countStep(tx, plan, [first, end])
      seen += step.seen
      count += step.matched
      spentMs += step.ms
      continue
    }
    const inStep = sql`
      c.workspace_id = ${plan.workspaceId} and c.id >= ${first}::bigint and c.id < ${end}::bigint`
    const {
      rows: [row],
    } = await sql<{ seen: string; matched: string }>`${sql.raw(CUSTOM_PLAN)}
      select (select count(*) from contacts c where ${inStep}) as seen, count(*) as matched
      from contacts c ${joinValues(plan, [first, end])}
      where ${inStep} and ${plan.test({ as: 'set', from: first, to: end })}`.execute(tx)
    seen += Number(row!.seen)
    count += Number(row!.matched)
  }
  if (remaining === 0) return { count, approximate: false }
  return seen === 0
    ? undefined
    : { count: Math.max(count, Math.round((all * count) / seen)), approximate: true }
}

/**
 * How long the short steps of a total may take in the database, together. The wait for others between the
 * steps does not count, so that a total is exact or not whatever else goes on.
 */
const TOTAL_BUDGET_MS = 500

/**
 * Returns the number of matches, at least `minimum`: exact where the workspace has few contacts, or not many of
 * which few match, or, in short steps, where that takes little time; else `estimate`, or an estimate from a sample.
 */
export const estimateTotal = async (
  tx: Db,
  plan: FilterPlan,
  minimum: number,
  estimate?: number,
): Promise<MatchCount> => {
  if (plan.stepMs !== undefined) {
    const all = await loadCounter(tx, plan.workspaceId, 'contacts')
    const { count, approximate } = (await countInSteps(tx, plan, all, (ms) => ms < TOTAL_BUDGET_MS))!
    return { count: approximate ? Math.max(minimum, count) : count, approximate }
  }
  const sample = plan.sample ?? (await sampleMatches(tx, plan))
  if (sample.all <= filterStrategy.maxCountedContacts || areFewOfFew(sample))
    return (await countInSteps(tx, plan, sample.all, () => true))!
  return { count: Math.max(minimum, Math.round(estimate ?? estimateMatches(sample))), approximate: true }
}

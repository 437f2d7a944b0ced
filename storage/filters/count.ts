import { sql } from 'kysely'
import { readCounter } from '../counters.ts'
import type { Db } from '../database.ts'
import { CUSTOM_PLAN } from '../driver.ts'
import { estimateOf, type Plan, planOf, sampleOf, valuesBeside, valuesJoined } from './plan.ts'
import type { Condition } from './predicates.ts'
import { strategy } from './strategy.ts'

export type Count = { count: number; approximate: boolean }

/**
 * How many contacts meet every condition: exactly when that takes no longer than `boxMs`, else as far as
 * that was known by then. Counted in steps of contacts, in an order that spreads over all of them, so that
 * those that were looked at stand for the others. Works on both databases; no statement is cut off.
 */
export const countContacts = async (
  tx: Db,
  workspaceId: string,
  conditions: readonly Condition[],
  boxMs: number,
): Promise<Count> => {
  const until = performance.now() + boxMs
  const all = await readCounter(tx, workspaceId, 'contacts')
  const plan = await planOf(tx, workspaceId, conditions)
  if (plan.conditions.length === 0) return { count: all, approximate: false }
  if (plan.few) return { count: await countFew(tx, plan, plan.few), approximate: false }
  const sampled = boxMs <= 0 ? undefined : await countSteps(tx, plan, all, until)
  return sampled ?? { count: estimateOf(plan.sample ?? (await sampleOf(tx, plan))), approximate: true }
}

const countFew = async (tx: Db, plan: Plan, few: readonly string[]): Promise<number> => {
  const { rows } = await sql<{ n: string }>`${sql.raw(CUSTOM_PLAN)}
    select count(*) as n from unnest(${few}::bigint[]) as u (id) join contacts c on c.workspace_id = ${plan.workspaceId} and c.id = u.id
    ${valuesBeside(plan)} where ${plan.test({ as: 'row' })}`.execute(tx)
  return Number(rows[0]!.n)
}

/** Where the ids of a workspace begin and end. */
const rangeOf = async (tx: Db, workspaceId: string): Promise<{ first: bigint; last: bigint } | undefined> => {
  const {
    rows: [row],
  } = await sql<{ first: string | null; last: string | null }>`
    select (select id from contacts where workspace_id = ${workspaceId} order by id limit 1) as first,
      (select id from contacts where workspace_id = ${workspaceId} order by id desc limit 1) as last`.execute(
    tx,
  )
  return row!.first === null ? undefined : { first: BigInt(row!.first), last: BigInt(row!.last!) }
}

/** Every nth number with n prime to the count: each once, spread from the start. */
const spread = (count: number): number[] => {
  let stride = Math.max(1, Math.floor(count * 0.618))
  const divides = (a: number, b: number): number => (b === 0 ? a : divides(b, a % b))
  while (divides(stride, count) !== 1) stride++
  return Array.from({ length: count }, (_, i) => (i * stride) % count)
}

const countSteps = async (tx: Db, plan: Plan, all: number, until: number): Promise<Count | undefined> => {
  const range = await rangeOf(tx, plan.workspaceId)
  if (!range) return { count: 0, approximate: false }
  const steps = Math.max(1, Math.ceil(all / strategy.step))
  const width = (range.last - range.first) / BigInt(steps) + 1n
  let seen = 0
  let count = 0
  let left = steps
  for (const step of spread(steps)) {
    if (performance.now() >= until) break
    const from = range.first + BigInt(step) * width
    const [first, end] = [String(from), String(from + width)]
    const inStep = sql`c.workspace_id = ${plan.workspaceId} and c.id >= ${first}::bigint and c.id < ${end}::bigint`
    const {
      rows: [row],
    } = await sql<{ seen: string; matched: string }>`${sql.raw(CUSTOM_PLAN)}
      select (select count(*) from contacts c where ${inStep}) as seen, count(*) as matched
      from contacts c ${valuesJoined(plan, [first, end])} where ${inStep} and ${plan.test({ as: 'set', from: first, to: end })}`.execute(
      tx,
    )
    seen += Number(row!.seen)
    count += Number(row!.matched)
    left--
  }
  if (left === 0) return { count, approximate: false }
  return seen === 0
    ? undefined
    : { count: Math.max(count, Math.round((all * count) / seen)), approximate: true }
}

/**
 * How many match, of whom so many are known: exactly where there are few contacts in all, else as guessed,
 * or as a sample tells.
 */
export const totalOfPlan = async (tx: Db, plan: Plan, known: number, guess?: number): Promise<Count> => {
  const sample = plan.sample ?? (await sampleOf(tx, plan))
  if (sample.all <= strategy.countable) return (await countSteps(tx, plan, sample.all, Infinity))!
  return { count: Math.max(known, Math.round(guess ?? estimateOf(sample))), approximate: true }
}

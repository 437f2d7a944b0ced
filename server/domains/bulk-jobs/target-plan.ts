import type { Context } from '../../handler.ts'
import { MAX_PLAN_CHANGE_PERCENT } from '../../../catalog/bulk-jobs.ts'
import type { OperationName } from '../../../catalog/index.ts'
import {
  type Batch,
  insertJob,
  listJobBatches,
  lockPlan,
  type NewJob,
  type PlanRow,
} from '../../../storage/work/bulk-jobs.ts'
import { countIds, toIds } from '../../../storage/contacts/matches.ts'
import { invalidField, Problem } from '../../kernel/problem.ts'
import { createUlid } from '../../ids.ts'
import { digestTarget } from './digest.ts'
import type { RecordKind, Target } from './records.ts'

/*
 * Plans of dry runs: which records they found, so that the call that follows is for exactly those.
 */

/** How long a plan is kept, unless a person decides on its call. */
const PLAN_MS = 60 * 60_000

/** What every job, and every plan, tells of the call that makes it. */
export const toNewJob = (
  ctx: Context,
): Omit<NewJob, 'state' | 'operation' | 'input' | 'total' | 'plan_id' | 'digest' | 'expires_at'> => ({
  workspace_id: ctx.actor.workspace.id,
  staff_id: ctx.actor.staff.id,
  key_id: ctx.actor.key.id,
  door: ctx.call.trace!.door,
  client: ctx.call.trace!.client,
  request_id: ctx.call.trace!.requestId,
  created_at: ctx.now,
})

type NewPlan = {
  operation: OperationName
  input: Target
  batches: readonly string[]
  /** See `Batch`. */
  digests?: readonly (string | null)[]
}

/** Keeps the records of a dry run for an hour. Returns the id of the plan. */
export const keepPlan = (ctx: Context, { operation, input, batches, digests }: NewPlan): string => {
  const planId = `plan_${createUlid()}`
  const plan = {
    ...toNewJob(ctx),
    operation,
    input: {},
    total: countIds(batches),
    state: 'planned',
    plan_id: planId,
    digest: digestTarget(operation, input),
  } as const
  const until = new Date(Date.parse(ctx.now) + PLAN_MS).toISOString()
  ctx.pending.afterDryRun = async (db, expiresAt = until) => {
    await insertJob(db, { ...plan, expires_at: expiresAt }, batches, digests)
  }
  return planId
}

const planProblem = (detail: string, reason: 'plan_unknown' | 'plan_changed'): Problem =>
  new Problem('conflict', `${detail} Nothing was changed; make a new dry run.`, { reason })

/** Throws 400 where a plan is given with ids. */
export const refusePlan = (
  { idField }: Pick<RecordKind<never, unknown>, 'idField'>,
  { plan_id: planId }: Target,
): void => {
  if (planId !== undefined)
    throw invalidField('plan_id', 'not_allowed', 'is only allowed with a filter', {
      fix: `Remove it, or send the filter of the dry run in place of ${idField}.`,
    })
}

/** Returns the plan, locked. Throws 409 unless it is a plan of this call, of the same staff member. */
const takePlan = async (
  ctx: Context,
  operation: OperationName,
  input: Target,
  planId: string,
): Promise<PlanRow> => {
  const plan = await lockPlan(ctx.tx, ctx.actor.workspace.id, planId)
  const isOver = plan && Date.parse(ctx.now) > Date.parse(plan.expires_at ?? plan.created_at)
  if (!plan || plan.staff_id !== ctx.actor.staff.id || (isOver && plan.state === 'planned'))
    throw planProblem('There is no such plan of yours: it was carried out, or has expired.', 'plan_unknown')
  if (plan.state !== 'planned')
    throw planProblem(`The plan was carried out, by job ${plan.id}.`, 'plan_unknown')
  if (!digestTarget(operation, input).equals(plan.digest!))
    throw invalidField('plan_id', 'mismatch', 'is the plan of another call', {
      fix: 'Send the input of the dry run with it, unchanged.',
    })
  return plan
}

/** Throws 409 `plan_changed` where too many records of the plan do not match any more. */
const requireSimilar = (
  { plural }: Pick<RecordKind<never, unknown>, 'plural'>,
  planned: readonly string[],
  matches: readonly string[],
): void => {
  const now = new Set(matches.flatMap(toIds))
  let [total, gone] = [0, 0]
  for (const batch of planned)
    for (const id of toIds(batch)) {
      total++
      if (!now.has(id)) gone++
    }
  if (gone * 100 > total * MAX_PLAN_CHANGE_PERCENT)
    throw planProblem(
      `${gone} of the ${total} ${plural} of the plan do not match the filter any more.`,
      'plan_changed',
    )
}

/** The records of a change, as texts of arrays of ids. `planned`: those of its plan, with what is kept of each. */
export type FoundRecords = { batches: readonly string[]; plan?: PlanRow; planned?: readonly Batch[] }

/**
 * Returns the records of the plan that a call names, or else those that it matches now. Throws 409 `plan_unknown` and
 * `plan_changed`.
 */
export const findRecords = async (
  ctx: Context,
  operation: OperationName,
  records: Pick<RecordKind<never, unknown>, 'plural'>,
  input: Target,
  matches: readonly string[],
): Promise<FoundRecords> => {
  if (input.plan_id === undefined) return { batches: matches }
  const plan = await takePlan(ctx, operation, input, input.plan_id)
  const planned = await listJobBatches(ctx.tx, ctx.actor.workspace.id, plan.id)
  const batches = planned.map(({ ids }) => ids)
  requireSimilar(records, batches, matches)
  return { batches, plan, planned }
}

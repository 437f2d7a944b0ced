import type { Context } from '../../handler.ts'
import { MAX_AT_ONCE } from '../../../catalog/bulk-jobs.ts'
import type { EventTypeId } from '../../../catalog/events.ts'
import type { OperationName } from '../../../catalog/index.ts'
import { findJob, insertJob } from '../../../storage/work/bulk-jobs.ts'
import { countIds, toIds } from '../../../storage/contacts/matches.ts'
import { invalidField, Problem } from '../../kernel/problem.ts'
import type { LabelRefs } from '../labels/labels.ts'
import type { BulkOutput } from './output.ts'
import type { RecordKind, Target } from './records.ts'
import { findRecords, toNewJob } from './find-records.ts'
import { ANY_READER, showJob } from './view.ts'

/*
 * Changes of records that are named by ids or by a filter. Those of a filter are found first and fixed: a few are
 * changed at once, many by a job (run.ts).
 */

type Preview = { unchanged: number; created?: { name: string; nearest: string | null }[] }

export type TargetChange<I extends Target, S, E extends EventTypeId> = {
  readonly operation: OperationName
  readonly records: RecordKind<I, S>
  /** Changes records by their ids. */
  readonly apply: (ctx: Context<E>, input: I, ids: LabelRefs) => Promise<BulkOutput<S>>
  /**
   * Counts what is as wanted, of the records in batches, and lists what would be created. Changes nothing. Throws what
   * forbids the change of all of them.
   */
  readonly preview: (ctx: Context, input: I, batches: readonly string[]) => Promise<Preview>
  /** Returns the input of the calls of a job: by ids, so that it means the same when it runs. */
  readonly freeze: (ctx: Context<E>, input: I) => Promise<Record<string, unknown>>
}

const SAMPLES = 20

/** Makes the change for the records that the input names. */
export const changeTarget = async <I extends Target, S, E extends EventTypeId>(
  ctx: Context<E>,
  change: TargetChange<I, S, E>,
  input: I,
): Promise<BulkOutput<S>> => {
  const { records } = change
  const { [records.idField]: ids } = input
  if (ids !== undefined) return await change.apply(ctx, input, ids)
  requireReadable(ctx, records)
  requireExplicitAll(records, input)
  const batches = findRecords(ctx, records, await records.listMatches(ctx, input))
  const total = countIds(batches)
  // Before anything is changed: what would be.
  const preview = ctx.dryRun ? await rehearse(ctx, change, input, batches) : {}
  if (total > MAX_AT_ONCE)
    return {
      ...createEmptyResult(total),
      ...(ctx.dryRun ? preview : await startJob(ctx, change, input, batches)),
    }
  return { ...(await changeAtOnce(ctx, change, input, batches)), ...preview }
}

/** What a filter matches, even how much, is read. Throws 403. */
const requireReadable = (
  { actor }: Context,
  { plural, idField }: Pick<RecordKind<never, unknown>, 'plural' | 'idField'>,
): void => {
  if (actor.key.scopes.includes('mcp:read')) return
  const detail = `A filter needs the scope mcp:read. Name the ${plural} by ${idField}.`
  throw new Problem('insufficient_scope', detail, { scope: 'mcp:read' })
}

/** Throws 400 for an empty filter without `all`, and for `all` beside conditions. */
export const requireExplicitAll = (
  { plural }: Pick<RecordKind<never, unknown>, 'plural'>,
  { filter, all }: Target,
): void => {
  const isEmpty = filter !== undefined && Object.keys(filter).length === 0
  if (isEmpty && !all)
    throw invalidField('filter', 'required', `matches all ${plural}`, {
      fix: `Add conditions, or send \`all: true\` to mean all ${plural}.`,
    })
  if (all && !isEmpty)
    throw invalidField('all', 'not_allowed', 'is only allowed with an empty filter', {
      fix: 'Remove it, or the conditions.',
    })
}

const changeAtOnce = async <I extends Target, S, E extends EventTypeId>(
  ctx: Context<E>,
  change: TargetChange<I, S, E>,
  input: I,
  batches: readonly string[],
): Promise<BulkOutput<S>> => {
  if (batches.length === 0) return { ...createEmptyResult(0), succeeded: 0 }
  return await change.apply(ctx, input, batches.flatMap(toIds))
}

/** The result of a change that has changed nothing yet. */
const createEmptyResult = (total: number): BulkOutput<never> => ({
  requested: total,
  succeeded: 0,
  failed: 0,
  failures: [],
  stopped_early: false,
  matched: total,
})

const startJob = async <I extends Target, S, E extends EventTypeId>(
  ctx: Context<E>,
  change: TargetChange<I, S, E>,
  input: I,
  batches: readonly string[],
): Promise<Pick<BulkOutput<S>, 'job'>> => {
  const job = {
    ...toNewJob(ctx),
    operation: change.operation,
    input: await change.freeze(ctx, input),
    total: countIds(batches),
    state: 'running',
  } as const
  const id = await insertJob(ctx.tx, job, batches)
  ctx.pending.wakes = ['bulk-jobs']
  return { job: showJob(ctx.actor, (await findJob(ctx.tx, ctx.actor.workspace.id, ANY_READER, id))!) }
}

/** What a dry run tells of records that a filter found. */
const rehearse = async <I extends Target, S, E extends EventTypeId>(
  ctx: Context<E>,
  change: TargetChange<I, S, E>,
  input: I,
  batches: readonly string[],
): Promise<Partial<BulkOutput<S>>> => {
  const total = countIds(batches)
  const { unchanged, created } = await change.preview(ctx, input, batches)
  return {
    would_change: total - unchanged,
    unchanged,
    samples: await change.records.listSamples(ctx, spread(batches, total)),
    ...(created ? { would_create: created } : {}),
  }
}

/** Returns some of the ids, evenly spread. */
const spread = (batches: readonly string[], total: number): string[] => {
  const count = Math.min(SAMPLES, total)
  const size = batches.length === 0 ? 1 : toIds(batches[0]!).length
  const positions = Array.from({ length: count }, (_, n) => Math.floor((n * total) / count))
  return positions.map((position) => toIds(batches[Math.floor(position / size)]!)[position % size]!)
}

import type { Context } from '../../handler.ts'
import { MAX_PLAN_CHANGE_PERCENT } from '../../../catalog/bulk-jobs.ts'
import type { NewJob } from '../../../storage/work/bulk-jobs.ts'
import { toIds } from '../../../storage/contacts/matches.ts'
import { Problem } from '../../kernel/problem.ts'
import type { RecordKind } from './records.ts'

/** What every job, and every plan, tells of the call that makes it. */
export const toNewJob = ({
  actor,
  call: { trace },
  now,
}: Pick<Context, 'actor' | 'call' | 'now'>): Pick<
  NewJob,
  'workspace_id' | 'staff_id' | 'key_id' | 'door' | 'client' | 'request_id' | 'created_at'
> => ({
  workspace_id: actor.workspace.id,
  staff_id: actor.staff.id,
  key_id: actor.key.id,
  door: trace!.door,
  client: trace!.client,
  request_id: trace!.requestId,
  created_at: now,
})

/** Throws 409 `plan_changed` where too many records of a plan do not match any more. */
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
    throw new Problem(
      'conflict',
      `${gone} of the ${total} ${plural} of the plan do not match the filter any more. Nothing was changed; make a ` +
        'new dry run.',
      { reason: 'plan_changed' },
    )
}

/**
 * Returns the records that a call is for, as texts of arrays of ids: those of the plan that it carries out, or those
 * that match now. A plan of it keeps them. Throws 409 `plan_changed`.
 */
export const findRecords = (
  { call, pending }: Pick<Context, 'call' | 'pending'>,
  records: Pick<RecordKind<never, unknown>, 'plural'>,
  matches: readonly string[],
): readonly string[] => {
  pending.found = call.found ?? matches.map((ids) => ({ ids, digests: null }))
  const batches = pending.found.map(({ ids }) => ids)
  if (call.found) requireSimilar(records, batches, matches)
  return batches
}

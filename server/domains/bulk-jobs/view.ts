import type { z } from 'zod'
import type { Job } from '../../../catalog/bulk-jobs.ts'
import type { EventData } from '../../../catalog/events.ts'
import type { JobReader, JobRow } from '../../../storage/work/bulk-jobs.ts'
import { catalog } from '../../../catalog/index.ts'
import { getIdField } from './records.ts'
import type { Actor } from '../../kernel/context.ts'
import { isManager, listVisibleChannels } from '../../visibility/policy.ts'
import { showJobInput } from '../../visibility/records.ts'

/** The job runner, which reads the jobs of everybody. */
export const ANY_READER: JobReader = { staffId: null }

const conversationOperations = catalog
  .filter(({ name, jobs }) => jobs && getIdField(name) === 'conversation_ids')
  .map(({ name }) => name)

/**
 * Whose jobs a key may read and change: managers all, other staff and agents those of their own staff member. Staff who
 * see some channels only are not told how many conversations others have changed.
 */
export const toReader = (actor: Actor): JobReader => {
  const { staff, key } = actor
  const channelIds = listVisibleChannels(actor)
  return {
    staffId: !isManager(actor) || key.agent ? staff.id : null,
    channelIds,
    ...(channelIds === null ? {} : { own: { staffId: staff.id, operations: conversationOperations } }),
  }
}

export const showJob = (actor: Actor, row: JobRow): z.input<typeof Job> => {
  const perSecond = row.done > 0 ? row.done / Math.max(0.001, Number(row.ran_ms) / 1000) : null
  return {
    id: row.id,
    state: row.state,
    operation: row.operation,
    input: showJobInput(actor, row.input),
    total: row.total,
    done: row.done,
    changed: row.changed,
    failed: row.failed,
    per_second: perSecond === null ? null : Math.round(perSecond * 10) / 10,
    seconds_left:
      row.state === 'running' && perSecond !== null ? Math.ceil((row.total - row.done) / perSecond) : null,
    problem: row.problem,
    created_by: { id: row.staff_id, name: row.staff_name },
    created_at: row.created_at,
    finished_at: row.finished_at,
    undo_of_job_id: row.undo_of,
    undone_by_job_id: row.undone_by,
  }
}

export const toEventJob = (row: JobRow): EventData<'job.finished/1'> => ({
  job: {
    id: row.id,
    state: row.state,
    operation: row.operation,
    total: row.total,
    done: row.done,
    changed: row.changed,
    failed: row.failed,
    undo_of_job_id: row.undo_of,
  },
})

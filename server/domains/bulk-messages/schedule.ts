import type { Context, Handler } from '../../handler.ts'
import { MAX_DAYS_AHEAD } from '../../../catalog/broadcasts.ts'
import { loadBroadcast } from '../../../storage/broadcasts/broadcasts.ts'
import { rescheduleSend } from '../../../storage/broadcasts/sends.ts'
import { setJobState } from '../../../storage/work/bulk-jobs.ts'
import { requireBroadcast, showBroadcast } from '../broadcasts/broadcasts.ts'
import { lockOwnJob, requireOwnRight } from '../bulk-jobs/operations.ts'
import { parseFilterDate } from '../filters/dates.ts'
import { invalidField, Problem } from '../../kernel/problem.ts'

/*
 * When a broadcast starts. Its job runs from the beginning and waits for that, as it waits for hours (run.ts).
 */

const DAY_MS = 24 * 60 * 60_000

/** Returns an instant as the clocks of the workspace show it, with its offset and zone (RFC 9557). */
export const showStart = ({ actor }: Context, at: string): string =>
  Temporal.Instant.from(at).toZonedDateTimeISO(actor.workspace.timezone).toString()

/** Returns when a broadcast starts, ISO 8601 UTC. Throws 400 for the past, and what is too far ahead. */
export const parseStart = (ctx: Context, text: string): string => {
  const { now, actor } = ctx
  const date = parseFilterDate(text, now, actor.workspace.timezone)
  if ('detail' in date) throw invalidField('scheduled_at', 'invalid_date', date.detail, { fix: date.fix })
  const ahead = Date.parse(date.instant) - Date.parse(now)
  if (ahead <= 0)
    throw invalidField('scheduled_at', 'not_future', `must be later than now, ${showStart(ctx, now)}`, {
      fix: 'Send a future time, or leave it out to start at once.',
    })
  if (ahead > MAX_DAYS_AHEAD * DAY_MS)
    throw invalidField('scheduled_at', 'too_late', `must be at most ${MAX_DAYS_AHEAD} days ahead`, {
      fix: 'Send an earlier time.',
    })
  return date.instant
}

const startedProblem = ({ status }: { status: string }): Problem =>
  new Problem('conflict', `The broadcast is ${status}; only one that is scheduled starts at another time.`, {
    reason: 'already_started',
  })

export const rescheduleBroadcast: Handler<'messaging_reschedule_broadcast'> = async (
  ctx,
  { broadcast_id: id, scheduled_at: text },
) => {
  const workspaceId = ctx.actor.workspace.id
  const at = parseStart(ctx, text)
  const { job_id: jobId, ...before } = await requireBroadcast(ctx, id)
  if (jobId === null) throw startedProblem(before)
  const job = await lockOwnJob(ctx, jobId)
  requireOwnRight(ctx, job, 'messaging_reschedule_broadcast')
  const isChanged = await rescheduleSend(ctx.tx, workspaceId, before.id, at)
  const after = (await loadBroadcast(ctx.tx, workspaceId, before.id))!
  if (!isChanged) throw startedProblem(after)
  // One that runs looks at the new time at once.
  await setJobState(ctx.tx, job, { state: job.state })
  ctx.pending.wakes = ['bulk-sends']
  ctx.auditChange({ scheduled_at: before.scheduled_at }, { scheduled_at: at })
  return { broadcast: showBroadcast(ctx.actor, after), starts_at: showStart(ctx, at) }
}

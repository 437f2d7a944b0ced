import { asksForConsumer } from '../../agent-policy.ts'
import type { OutputOf, Context, Handler } from '../../handler.ts'
import {
  countEventConsumers,
  deleteEventConsumer,
  type EventConsumerRow,
  findEventConsumer,
  listEventConsumers,
  lockEventConsumer,
  lockEventConsumers,
  moveEventConsumer,
} from '../../../storage/events/consumers.ts'
import type { Db } from '../../../storage/database.ts'
import { type EventPosition, findEventPosition, isListed } from '../../../storage/events/events.ts'
import { createPage } from '../../kernel/paging.ts'
import { notFound, Problem } from '../../kernel/problem.ts'

const MAX_CONSUMERS = 100

const showConsumer = (row: EventConsumerRow): OutputOf<'events_ack'>['consumer'] => ({
  name: row.name,
  event_id: row.event_id,
  acknowledged_at: row.acknowledged_at,
  complete: !row.is_incomplete,
  created_at: row.created_at,
})

/**
 * Returns the position after which a consumer reads on: undefined for the beginning of the log, null when there is no
 * such consumer. Throws 409 when events that it has not acknowledged are deleted.
 */
export const findConsumerStart = async (
  db: Db,
  workspaceId: string,
  name: string,
): Promise<EventPosition | undefined | null> => {
  const row = await findEventConsumer(db, workspaceId, name)
  if (!row) return null
  if (row.is_incomplete)
    throw new Problem(
      'conflict',
      `Events after ${row.event_id} were deleted before the consumer ${name} acknowledged them. Bring what it ` +
        'keeps up to date by other means; then read without consumer, from the oldest event, and acknowledge it.',
      { reason: 'events_deleted' },
    )
  return await findEventPosition(db, workspaceId, row.event_id)
}

/**
 * Throws 409 where an agent would be asked for a consumer: somebody made it after its policy was applied. The same call
 * is asked for then.
 */
const refuseOthersConsumer = ({ actor, dryRun }: Context, row: EventConsumerRow): void => {
  if (dryRun || !actor.key.agent || actor.approvedBy || !asksForConsumer(actor, row)) return
  throw new Problem(
    'conflict',
    `Somebody made the consumer ${row.name} meanwhile. Retry: a person is asked.`,
    {
      reason: 'still_running',
    },
  )
}

export const acknowledgeEvents: Handler<'events_ack'> = async (
  ctx,
  { consumer: name, event_id: id, rewind },
) => {
  const { tx, now } = ctx
  const workspaceId = ctx.actor.workspace.id
  const position = await findEventPosition(tx, workspaceId, id)
  if (!position) throw notFound('event', id)
  // A webhook can be there before the log shows its event: an earlier one would be left out.
  if (!(await isListed(tx, workspaceId, position)))
    throw new Problem(
      'conflict',
      `The event ${id} is not in the log yet: changes from before it are still being made. Try again in a moment.`,
      { reason: 'event_not_listed' },
    )
  let before = await lockEventConsumer(tx, workspaceId, name)
  if (!before) {
    await lockEventConsumers(tx, workspaceId)
    before = await lockEventConsumer(tx, workspaceId, name)
  }
  if (before) refuseOthersConsumer(ctx, before)
  if (!before && (await countEventConsumers(tx, workspaceId)) >= MAX_CONSUMERS)
    throw new Problem(
      'conflict',
      `The workspace has ${MAX_CONSUMERS} consumers, which is the maximum. Delete one that is not used any more.`,
      { reason: 'too_many_consumers' },
    )
  const moved = await moveEventConsumer(tx, workspaceId, name, position, {
    rewind,
    now,
    agentStaffId: ctx.actor.key.agent ? ctx.actor.staff.id : null,
  })
  ctx.auditChange({ event_id: before?.event_id ?? null }, { event_id: (moved ?? before)?.event_id ?? id })
  const row = moved ?? (await findEventConsumer(tx, workspaceId, name))
  return { consumer: showConsumer(row!), changed: moved !== undefined }
}

export const listConsumers: Handler<'events_list_consumers'> = async ({ tx, actor, cursors }, input) =>
  await createPage({
    cursors,
    input,
    load: (after, limit) => listEventConsumers(tx, actor.workspace.id, after?.[0], limit),
    count: () => countEventConsumers(tx, actor.workspace.id),
    toPosition: ({ name }) => [name],
    toItem: showConsumer,
  })

export const deleteConsumer: Handler<'events_delete_consumer'> = async (ctx, { consumer: name }) => {
  const row = await findEventConsumer(ctx.tx, ctx.actor.workspace.id, name)
  if (!row || !(await deleteEventConsumer(ctx.tx, ctx.actor.workspace.id, name)))
    throw new Problem('not_found', `No consumer with the name ${name}.`)
  ctx.auditChange({ event_id: row.event_id }, null)
  return { name, deleted: true }
}

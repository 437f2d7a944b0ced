import type { Db } from '../../../storage/database.ts'
import { insertAnnouncedEvents } from '../../../storage/events/writes.ts'
import { type EventRow, insertEvents } from '../../../storage/events/events.ts'
import {
  claimUnannounced,
  listSubjects,
  putCreationsFirst,
  renumber,
} from '../../../storage/events/unannounced.ts'
import { createEmit } from '../../kernel/emit.ts'
import { createEmitCreated } from './message-status.ts'

/**
 * Returns events with those before them that tell of the contacts and conversations which they name and sends in
 * progress created. They stay from then on, whatever becomes of the send.
 */
const withAnnouncements = async (
  tx: Db,
  workspaceId: string,
  events: readonly EventRow[],
): Promise<readonly EventRow[]> => {
  const [first] = events
  if (!first) return events
  const created: EventRow[] = []
  const flow = { tx, workspaceId, now: first.occurred_at, emit: createEmit(created, first.occurred_at) }
  for (const { messageId, call, conversation } of await claimUnannounced(
    tx,
    workspaceId,
    listSubjects(events),
  ))
    await createEmitCreated(flow, messageId)(call, conversation)
  return putCreationsFirst(created.length === 0 ? events : renumber([...created, ...events]))
}

/** The same for a call whose last statement refuses to write them: from its second attempt on. */
export const announceOnRetry = async (
  tx: Db,
  workspaceId: string,
  events: readonly EventRow[],
  attempt: number,
): Promise<readonly EventRow[]> => (attempt === 1 ? events : await withAnnouncements(tx, workspaceId, events))

/**
 * Inserts the events of a change in its transaction, after which the caller locks no contact, conversation or message.
 * Returns whether any of them needs a webhook delivery.
 */
export const writeEvents = async (
  tx: Db,
  workspaceId: string,
  events: readonly EventRow[],
): Promise<boolean> => {
  if (events.length === 0) return false
  const needsDelivery = await insertAnnouncedEvents(tx, workspaceId, events)
  return (
    needsDelivery ?? (await insertEvents(tx, workspaceId, await withAnnouncements(tx, workspaceId, events)))
  )
}

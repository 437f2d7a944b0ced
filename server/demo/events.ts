import { consumer, loggedEvent } from '../../catalog/event-log.ts'
import type { Db } from '../../storage/database.ts'
import { moveEventConsumer } from '../../storage/events/consumers.ts'
import { findEventPosition, insertEvents } from '../../storage/events/events.ts'

/** Inserts the event that the examples of the catalog name, and the consumer that has read up to it. */
export const createDemoConsumer = async (tx: Db, workspaceId: string, now: string): Promise<void> => {
  await insertEvents(tx, workspaceId, [{ ...loggedEvent, occurred_at: now }])
  const position = await findEventPosition(tx, workspaceId, loggedEvent.id)
  await moveEventConsumer(tx, workspaceId, consumer.name, position!, {
    rewind: false,
    now,
    agentStaffId: null,
  })
}

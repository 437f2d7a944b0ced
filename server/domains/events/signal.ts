import type { Db } from '../../../storage/database.ts'
import type { EventRow } from '../../../storage/events/events.ts'
import type { App } from '../../app.ts'
import { writeEvents } from '../messaging/announce.ts'

/** Of what a change wrote: its workspace, and whether its events need webhook deliveries. */
export type EventNews = { readonly workspaceId: string; readonly needsDelivery: boolean }

/**
 * Wakes what waits for the events of a change, in every process, once they are committed: the streams of its
 * workspace, and the delivery of webhooks where an endpoint subscribes to one of the events.
 */
export const notifyEvents = (
  { signals }: Pick<App, 'signals'>,
  { workspaceId, needsDelivery }: EventNews,
): void => {
  signals.send('events', workspaceId)
  if (needsDelivery) signals.send('job', 'webhook-deliveries')
}

/** Inserts the events of several workspaces. Returns what is to be announced after the commit. */
export const insertAllEvents = async (
  tx: Db,
  byWorkspace: Iterable<readonly [workspaceId: string, events: readonly EventRow[]]>,
): Promise<EventNews[]> => {
  const news: EventNews[] = []
  for (const [workspaceId, events] of byWorkspace)
    if (events.length > 0)
      news.push({ workspaceId, needsDelivery: await writeEvents(tx, workspaceId, events) })
  return news
}

import type { Db } from '../../storage/database.ts'
import type { EventRow } from '../../storage/events.ts'
import type { App } from '../core/app.ts'
import { writeEvents } from '../messaging/announce.ts'

/** Of what a change wrote: its workspace, and whether it owes events to webhook endpoints. */
export type EventNews = { readonly workspaceId: string; readonly isOwed: boolean }

/**
 * Wakes what waits for the events of a change, in every process, once they are committed: the streams of its
 * workspace, and the delivery of webhooks where an endpoint is owed something.
 */
export const notifyEvents = ({ signals }: Pick<App, 'signals'>, { workspaceId, isOwed }: EventNews): void => {
  signals.send('events', workspaceId)
  if (isOwed) signals.send('job', 'webhook-deliveries')
}

/** Inserts the events of several workspaces. Returns what is to be announced after the commit. */
export const insertAllEvents = async (
  tx: Db,
  byWorkspace: Iterable<readonly [workspaceId: string, events: readonly EventRow[]]>,
): Promise<EventNews[]> => {
  const news: EventNews[] = []
  for (const [workspaceId, events] of byWorkspace)
    if (events.length > 0) news.push({ workspaceId, isOwed: await writeEvents(tx, workspaceId, events) })
  return news
}

import type { Db } from '../../../storage/database.ts'
import {
  type ChannelHealth,
  type ChannelsOf,
  lockChannelHealth,
  writeChannelHealth,
} from '../../../storage/channels/health.ts'
import type { EventRow } from '../../../storage/events/events.ts'
import { businessTime } from '../../clock.ts'
import type { App } from '../../app.ts'
import { createEmit } from '../../kernel/emit.ts'
import { withRetries } from '../../kernel/retry.ts'
import { insertAllEvents, notifyEvents } from '../events/signal.ts'
import type { ChangeContext } from '../../change-context.ts'
import { changeHealth, type HealthFact } from './change.ts'

/** Which channels something is about. */
export type HealthTarget = ChannelsOf

type GetContext = (workspaceId: string) => ChangeContext<'channel.status_changed/1'>

/** The health of a channel as events and lists show it. */
export const showHealth = (row: {
  status: ChannelHealth['health']
  reason: string | null
  provider_code: number | null
  messaging_limit: string | null
  since: string | null
  until: string | null
}) => ({
  status: row.status,
  reason: row.reason,
  provider_code: row.provider_code,
  messaging_limit: row.messaging_limit,
  since: row.since,
  until: row.until,
})

/**
 * Changes the health of channels in this transaction, and emits an event for each that shows the change.
 * Returns the channels, as they were.
 */
export const applyHealthFacts = async (
  tx: Db,
  contextOf: GetContext,
  of: ChannelsOf,
  factsOf: (channel: ChannelHealth) => readonly HealthFact[],
  realNow: string,
): Promise<ChannelHealth[]> => {
  const channels = await lockChannelHealth(tx, of)
  for (const before of channels) {
    const context = contextOf(before.workspace_id)
    const change = changeHealth(before, factsOf(before), { now: context.now, realNow })
    if (!change) continue
    const { row, tells } = change
    await writeChannelHealth(tx, row)
    if (tells)
      context.emit('channel.status_changed/1', {
        channel: {
          id: row.id,
          name: row.name,
          status: row.status,
          previous_status: before.status,
          quality_rating: row.quality_rating,
          health: { ...showHealth({ ...row, status: row.health }), quality: row.quality_rating },
        },
      })
  }
  return channels
}

/**
 * The same in a transaction of its own: what a call, a check or the time has told. Returns how often the
 * channels were disconnected of late, this time included.
 */
export const recordHealth = async (
  app: App,
  of: ChannelsOf,
  factsOf: (channel: ChannelHealth) => readonly HealthFact[],
): Promise<number> => {
  const { news, strikes } = await withRetries(() =>
    app.db.transaction().execute(async (tx) => {
      const events = new Map<string, EventRow[]>()
      const contextOf: GetContext = (workspaceId) => {
        const rows = events.get(workspaceId) ?? []
        events.set(workspaceId, rows)
        const now = businessTime(app, workspaceId)
        return { tx, workspaceId, now, emit: createEmit(rows, now) }
      }
      const channels = await applyHealthFacts(tx, contextOf, of, factsOf, app.now())
      return {
        news: await insertAllEvents(tx, events),
        strikes: Math.max(0, ...channels.map((channel) => channel.strikes)) + 1,
      }
    }),
  )
  for (const each of news) notifyEvents(app, each)
  return strikes
}

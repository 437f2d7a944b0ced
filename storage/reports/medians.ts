import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { isOnChannels, isWithin, type TimeRange, type VisibleChannels } from './reports.ts'
import { endedBy } from './staff-figures.ts'

/** Medians in seconds; null without a first response, or without a close. */
export type Medians = { firstResponse: number | null; close: number | null }

type MedianRow = { member: string | null; median: string | null }

/**
 * Loads the medians of first responses and closes in a range, by the member (also `0` and `-1` of staff figures), and
 * of all together under the key `null`. What counts as a first response is what `loadTimeFigures` counts.
 */
export const loadMedians = async (
  tx: Db,
  workspaceId: string,
  range: TimeRange,
  channels: VisibleChannels,
): Promise<Map<string | null, Medians>> => {
  const onChannels = (column: string) => isOnChannels(column, workspaceId, channels)
  const [responses, closes] = await Promise.all([
    sql<MedianRow>`
      select member, extract(epoch from percentile_cont(0.5) within group (order by waited)) as median from (
        select ${sql.raw(endedBy('r'))} as member, r.ended_at - r.since as waited from reply_waits r
        where r.workspace_id = ${workspaceId} and r.kind = 'first_response' and ${isWithin('r.ended_at', range)}
          ${onChannels('r.conversation_id')}
          and not exists (select from conversation_episodes e where e.workspace_id = ${workspaceId}
            and e.conversation_id = r.conversation_id and e.n = r.episode and e.first_response_at is null)
      ) as u group by grouping sets ((member), ())`.execute(tx),
    sql<MedianRow>`
      select member, extract(epoch from percentile_cont(0.5) within group (order by lasted)) as median from (
        select coalesce(closed_by, 0) as member, closed_at - opened_at as lasted from conversation_episodes
        where workspace_id = ${workspaceId} and ${isWithin('closed_at', range)} ${onChannels('conversation_id')}
      ) as u group by grouping sets ((member), ())`.execute(tx),
  ])
  const toSeconds = ({ rows }: { rows: MedianRow[] }) =>
    new Map(rows.map(({ member, median }) => [member, median === null ? null : Number(median)]))
  const [firsts, lasts] = [toSeconds(responses), toSeconds(closes)]
  return new Map(
    [...new Set([...firsts.keys(), ...lasts.keys()])].map((member) => [
      member,
      { firstResponse: firsts.get(member) ?? null, close: lasts.get(member) ?? null },
    ]),
  )
}

import { sql } from 'kysely'
import type { Db, TableRow } from '../database.ts'
import { fold } from '../values/text.ts'

export type DemoBroadcast = {
  name: string
  status: TableRow<'broadcasts'>['status']
  template_name: string
  channel_id: string | null
  scheduled_at: string
  started_at: string | null
  created_at: string
}

/** Returns the broadcast of this name; inserts it when there is none. */
export const findOrInsertBroadcast = async (
  db: Db,
  workspaceId: string,
  broadcast: DemoBroadcast,
): Promise<{ id: string; started_at: string | null }> => {
  const nameKey = fold(broadcast.name)
  const existing = await db
    .selectFrom('broadcasts')
    .select(['id', 'started_at'])
    .where('workspace_id', '=', workspaceId)
    .where('name_key', '=', nameKey)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  if (existing) return existing
  return await db
    .insertInto('broadcasts')
    .values({ ...broadcast, workspace_id: workspaceId, name_key: nameKey })
    .returning(['id', 'started_at'])
    .executeTakeFirstOrThrow()
}

/**
 * Makes a share of the contacts that were there when it began recipients of a broadcast, which was sent to the share
 * `reached` of them; whoever was active since has answered. By its id, each contact is treated at random.
 */
export const insertRecipients = async (
  tx: Db,
  workspaceId: string,
  broadcast: { id: string; share: number; reached: number; started_at: string | null },
  now: string,
): Promise<void> => {
  const { id, share, reached, started_at: startedAt } = broadcast
  const percentile = (n: number) =>
    sql`mod(hashint8(c.id * 10 + ${n}::bigint + ${id}::bigint * 1000003)::bigint + 2147483648, 100)`
  await sql`
    insert into broadcast_recipients (workspace_id, broadcast_id, contact_id, status, responded, opted_out,
      sent_at, delivered_at, read_at, failed_at, responded_at)
    select ${workspaceId}::bigint, ${id}::bigint, contact_id,
      case when sent is null then 'pending' when n < 6 then 'failed' when n < 12 then 'sent'
        when n < 40 then 'delivered' else 'read' end,
      replied is not null, n > 97, sent,
      case when n >= 12 then least(sent + n * interval '6 seconds', ${now}::timestamptz) end,
      case when n >= 40 then read end,
      case when n < 6 then least(sent + interval '9 seconds', ${now}::timestamptz) end, replied
    from (
      select *, case when n >= 40 and last_activity_at > read then last_activity_at end as replied
      from (
        select *, least(sent + n * interval '1 minute', ${now}::timestamptz) as read
        from (
          select c.id as contact_id, c.last_activity_at, ${percentile(1)} as n,
            case when ${percentile(2)} < ${reached * 100}::float8
              then least(${startedAt}::timestamptz + c.id % 60 * interval '1 minute', ${now}::timestamptz) end as sent
          from contacts c
          where c.workspace_id = ${workspaceId} and not c.dnd
            and c.created_at <= coalesce(${startedAt}::timestamptz, ${now}::timestamptz)
            and ${percentile(3)} < ${share * 100}::float8
        ) as chosen
      ) as sending
    ) as recipients`.execute(tx)
}

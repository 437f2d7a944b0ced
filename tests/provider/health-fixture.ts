import { sql } from 'kysely'
import type { TestServer } from '../servers.ts'

type ChannelEvent = {
  status: string
  previous_status: string
  health: { status: string; reason: string | null }
}

/** The channels of the events that tell of their state, oldest first. */
export const listChannelEvents = async ({ db }: TestServer, workspaceId: string): Promise<ChannelEvent[]> => {
  const rows = await db
    .selectFrom('events')
    .select('data')
    .where('workspace_id', '=', workspaceId)
    .where('type', '=', 'channel.status_changed/1')
    .orderBy('id')
    .execute()
  return rows.map(({ data }) => (data as { channel: ChannelEvent }).channel)
}

/** Lets the time pass until the account is checked, and problems that pass by themselves have passed. */
export const letChecksBeDue = async ({ db }: TestServer, workspaceId: string): Promise<void> => {
  await sql`
    insert into provider_account_checks (workspace_id, account_id, next_at)
    select workspace_id, account_id, '2020-01-01' from channels
    where workspace_id = ${workspaceId} and is_default
    on conflict (workspace_id, account_id) do update set next_at = excluded.next_at`.execute(db)
  await sql`
    update channel_health set until = '2020-01-01'
    where workspace_id = ${workspaceId} and until is not null`.execute(db)
}

import { createStaff, createWorkspace } from '../../storage/workspace/admin.ts'
import { migrate } from '../../storage/migrations/migrate.ts'
import { openStorage } from '../../storage/open.ts'
import { createBenchDatabase, createFullKey, runStatements } from './databases.ts'

/** `agentKey`: the key of an agent with access to three of eight channels. `channels`: the busiest first. */
export type InboxDataset = {
  databaseUrl: string
  workspaceId: string
  key: string
  agentKey: string
  channels: string[]
}

/**
 * Statements for half as many contacts as conversations, over a year and eight channels; each conversation
 * has tags and a last message. Few are open, few of those unassigned or waiting. Closed conversations that
 * wait, and open ones on the last channel, are rare: one in some thousands.
 */
const buildStatements = (workspaceId: string, conversations: number, staffId: string): string[] => [
  `insert into channels (workspace_id, type, name, status, created_at)
    select ${workspaceId}, case when n = 3 then 'web' else 'chatapp' end, 'Channel ' || n, 'connected', now()
    from generate_series(1, 8) as n`,
  `insert into tags (workspace_id, name, name_key, created_at)
    select ${workspaceId}, 'Tag ' || n, 'tag ' || n, now() from generate_series(1, 50) as n`,
  `insert into groups (workspace_id, name, name_key, created_at)
    select ${workspaceId}, 'Group ' || n, 'group ' || n, now() from generate_series(1, 20) as n`,
  `insert into contacts (workspace_id, phone, name, name_key, search, created_at, updated_at,
    last_activity_at)
    select ${workspaceId}, phone, name, lower(name), lower(name) || e'\\n' || phone, now(), now(), now()
    from (
      select (15550000000 + n)::text as phone,
        (array['Ada', 'Grace', 'Alan', 'Edsger', 'Barbara', 'Donald', 'Niklaus', 'Radia', 'Vint', 'Tim']
          )[1 + (hashint4(n) & 7)]
        || ' ' || (array['Lovelace', 'Hopper', 'Turing', 'Dijkstra', 'Liskov', 'Knuth', 'Wirth', 'Perlman',
          'Cerf', 'Lee'])[1 + (hashint4(n * 7) & 7)]
        || ' ' || substr(md5(n::text), 1, 6) as name
      from generate_series(1, ${conversations / 2}) as n) as u`,
  `insert into contact_groups (workspace_id, group_id, contact_id)
    select c.workspace_id, g.id, c.id
    from contacts c join groups g on g.workspace_id = c.workspace_id and g.id % 20 = c.id % 20`,
  `with h as (select array_agg(id order by id) as ids from channels),
    lowest as (select min(id) as id from contacts)
  insert into conversations (workspace_id, contact_id, channel_id, state, assigned_staff_id, reply_status,
    unread_count, created_at, updated_at, last_activity_at, last_inbound_at)
    select ${workspaceId}, lowest.id + n % ${conversations / 2},
      h.ids[1 + least(7, width_bucket(r, array[0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.9995]))],
      case when open then 'open' else 'closed' end,
      case when r2 < 0.2 and open then null else ${staffId} end,
      case when open then case when r2 < 0.5 then 'incoming_no_reply' else 'outgoing_no_response' end
        when r2 < 0.0003 then 'incoming_no_reply' end,
      n % 3, at, at, at, at
    from (select n, abs(hashint4(n)) / 2147483648.0 as r, abs(hashint4(n + 1000000000)) / 2147483648.0 as r2,
      abs(hashint4(-n)) / 2147483648.0 < 0.05 as open,
      '2026-10-01'::timestamptz - interval '1 year' * (abs(hashint4(n * 2 + 1)) / 2147483648.0) as at
        from generate_series(1, ${conversations}) as n) as u, h, lowest`,
  `insert into conversation_tags (workspace_id, conversation_id, tag_id)
    select v.workspace_id, v.id, t.id
    from conversations v join tags t on t.workspace_id = v.workspace_id and t.id % 50 = v.id % 150`,
  `insert into messages (workspace_id, conversation_id, channel_id, direction, type, status, text, created_at)
    select workspace_id, id, channel_id, 'inbound', 'TEXT', 'received',
      repeat('Is my order on its way? ', 1 + (id % 8)::int), last_activity_at from conversations`,
  `update conversations v set last_message_id = m.id from messages m
    where m.workspace_id = v.workspace_id and m.conversation_id = v.id`,
  `vacuum full conversations`,
  `vacuum (analyze)`,
  `checkpoint`,
]

/** Creates a database with this many conversations in one workspace. */
export const fillInboxDatabase = async (adminUrl: string, conversations: number): Promise<InboxDataset> => {
  const databaseUrl = await createBenchDatabase(adminUrl, `inbox_${conversations}`)
  const storage = await openStorage({ databaseUrl }, { connections: 2, noTimeout: true })
  const now = new Date().toISOString()
  try {
    await migrate(storage.db)
    const { id: workspaceId } = await createWorkspace(storage.db, { name: 'Bench' }, now)
    const owner = await createStaff(storage.db, workspaceId, { name: 'Owner', role: 'owner' }, [], now)
    await runStatements(databaseUrl, buildStatements(workspaceId, conversations, owner.id))
    const channels = (
      await storage.db
        .selectFrom('channels')
        .select('id')
        .where('workspace_id', '=', workspaceId)
        .orderBy('id')
        .execute()
    ).map((row) => row.id)
    const agent = await createStaff(
      storage.db,
      workspaceId,
      { name: 'Agent', role: 'agent', channel_ids: channels.slice(1, 4) },
      [],
      now,
    )
    const [key, agentKey] = [
      await createFullKey(storage.db, workspaceId, owner.id, now),
      await createFullKey(storage.db, workspaceId, agent.id, now),
    ]
    return { databaseUrl, workspaceId, key, agentKey, channels }
  } finally {
    await storage.close()
  }
}

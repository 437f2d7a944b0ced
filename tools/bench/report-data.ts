import { createStaff, createWorkspace } from '../../storage/workspace/admin.ts'
import { migrate } from '../../storage/migrations/migrate.ts'
import { openStorage } from '../../storage/open.ts'
import { createBenchDatabase, createFullKey, runStatements } from './databases.ts'

export type ReportDataset = { databaseUrl: string; workspaceId: string; key: string }

const DAYS = 31

/**
 * Statements for a history that lies within the days of the report, the largest that a report can have:
 * conversations over the last 31 days, a tenth of them reopened, 5 % still open; five messages each in
 * chronological order, two of five from customers; waits with deadlines; half as many contacts as
 * conversations. `w`: the id of the workspace.
 */
const buildStatements = (w: string, messages: number, conversations: number, staff: number): string[] => [
  `create temp table s as select array_agg(id order by id) as ids from staff where workspace_id = ${w}`,
  `insert into channels (workspace_id, type, name, status, created_at)
    select ${w}, 'chatapp', 'Channel ' || n, 'connected', now() from generate_series(1, 4) as n`,
  `insert into sla_policies (workspace_id, name, first_response_seconds, next_response_seconds,
    resolution_seconds, created_at) values (${w}, 'Promise', 3600, 3600, 86400, now())`,
  `insert into contacts (workspace_id, phone, name, name_key, search, created_at, updated_at)
    select ${w}, 15550000000 + n, 'Contact ' || n, 'contact ' || n,
      'contact ' || n || e'\\n' || (15550000000 + n),
      now() - interval '60 days' * (n::float / ${conversations / 2}), now()
    from generate_series(1, ${conversations / 2}) as n`,
  `insert into counters (workspace_id, subject, shard, n) values (${w}, 'contacts', 0, ${conversations / 2})`,
  `create temp table v as select n, now() - interval '${DAYS} days' * (1 - n::float / ${conversations}) as at,
    abs(hashint4(n)) / 2147483648.0 as r, abs(hashint4(n + 7)) / 2147483648.0 as r2,
    1 + abs(hashint4(n * 3)) % ${staff} as s, n % 20 = 0 as open, n % 10 = 1 as twice
    from generate_series(1, ${conversations}) as n`,
  `insert into conversations (workspace_id, contact_id, channel_id, state, episode, assigned_staff_id,
    assigned_at, reply_status, created_at, updated_at, last_activity_at, last_inbound_at, window_expires_at)
    select ${w}, (select min(id) from contacts) + v.n % ${conversations / 2},
      (select min(id) from channels) + v.n % 4,
      case when open then 'open' else 'closed' end,
      case when twice then 2 else 1 end,
      case when v.r2 < 0.1 then null else s.ids[v.s] end,
      case when v.r2 < 0.1 then null else at end,
      case when open then case when r < 0.4 then 'incoming_no_reply' else 'outgoing_no_response' end end,
      at, at, at, at, at + interval '24 hours'
    from v, s order by v.n`,
  `create temp table c as select min(id) - 1 as base from conversations where workspace_id = ${w}`,
  `insert into conversation_episodes (workspace_id, conversation_id, n, opened_at, closed_at, closed_by,
    close_reason, first_response_at, resolution_due_at)
    select ${w}, c.base + v.n, e, at + interval '1 hour' * (e - 1) * (1 + r * 4),
      case when e = 1 and twice or not open
        then at + interval '1 hour' * e * (1 + r * 4) * case when e = 1 then 0.9 else 1 end end,
      case when not open or e = 1 and twice then s.ids[v.s] end,
      case when r < 0.5 and not open then 'solved' end,
      at + interval '20 minutes' * (1 + r), at + interval '4 hours'
    from v, s, c, generate_series(1, 2) as e where e = 1 or twice order by v.n, e`,
  `insert into reply_waits (workspace_id, conversation_id, since, kind, episode, due_at, ended_at, ended_by)
    select ${w}, c.base + v.n, at + interval '1 minute' * k * 90,
      case when k = 0 then 'first_response' else 'next_response' end, 1,
      at + interval '1 minute' * k * 90 + interval '1 hour',
      case when k = 0 or not open or r >= 0.4 then at + interval '1 minute' * (k * 90 + 10 + r * 60) end,
      s.ids[v.s]
    from v, s, c, generate_series(0, 1) as k order by v.n, k`,
  `insert into messages (workspace_id, conversation_id, channel_id, direction, type, status, text, staff_id,
    created_at, sent_at, delivered_at, read_at, provider_id, reference)
    select ${w}, base + n, (select min(id) from channels) + n % 4,
      case when k in (0, 3) then 'inbound' else 'outbound' end, 'TEXT',
      case when k in (0, 3) then 'received'
        else (array['sent', 'delivered', 'delivered', 'read', 'read', 'read', 'read', 'failed']
          )[1 + (abs(hashint4(n * 5 + k)) & 7)] end,
      repeat('Is my order on its way? ', 1 + n % 8),
      case when k in (0, 3) or r2 < 0.05 then null else ids[s] end,
      m, m, m, m, 'wamid.' || md5(n::text || k),
      case when k not in (0, 3) then md5(k::text || n) end
    from (select v.*, c.base, s.ids, k, at + interval '1 minute' * k * (10 + r * 60) as m
      from v, c, s, generate_series(0, ${messages / conversations - 1}) as k) as u order by m`,
  `vacuum (analyze)`,
  `checkpoint`,
]

/** Creates a database with this history in one workspace. */
export const fillReportDatabase = async (
  adminUrl: string,
  { messages, conversations, staff }: { messages: number; conversations: number; staff: number },
): Promise<ReportDataset> => {
  const databaseUrl = await createBenchDatabase(adminUrl, 'reports')
  const storage = await openStorage({ databaseUrl }, { connections: 2, noTimeout: true })
  const now = new Date().toISOString()
  try {
    await migrate(storage.db)
    const { id: workspaceId } = await createWorkspace(
      storage.db,
      { name: 'Bench', timezone: 'Asia/Kolkata' },
      now,
    )
    const owner = await createStaff(storage.db, workspaceId, { name: 'Owner', role: 'owner' }, [], now)
    for (let n = 1; n < staff; n++)
      await createStaff(storage.db, workspaceId, { name: `Agent ${n}`, role: 'agent' }, [], now)
    await runStatements(databaseUrl, buildStatements(workspaceId, messages, conversations, staff))
    const key = await createFullKey(storage.db, workspaceId, owner.id, now)
    return { databaseUrl, workspaceId, key }
  } finally {
    await storage.close()
  }
}

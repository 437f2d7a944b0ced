import { availableParallelism } from 'node:os'
import { createStaff, createWorkspace } from '../../storage/workspace/admin.ts'
import { migrate } from '../../storage/migrations/migrate.ts'
import { openStorage } from '../../storage/open.ts'
import { createBenchDatabase, runStatements } from './databases.ts'

const CONVERSATIONS = 100_000
const CHANNELS = 8
const STAFF = 5
/** Messages that a statement makes. */
const RANGE = 100_000

/** Integers from 0 to below `below`, the same in each run: small ones more often where `power` is above 1. */
const pick = (salt: number, below: number, power = 1): string =>
  `floor(${below} * power(abs(hashint4((n + ${salt}::bigint * 1000003)::integer)) / 2147483648.0, ${power}))::bigint`

/**
 * Messages of a range of ids over the year before `until`, in order. Half begin with `Your order`, the others with
 * `Hello`; all have five words of 50,000 and end in `thanks`. One in 100 has `refund`, one in 300
 * `invoice`, ten of all `zebra`, and one in three `christmas` until three months ago. Channel 8 has one in 2,000.
 */
const messagesOf = (workspaceId: string, from: number, to: number, total: number, until: string): string => `
  insert into messages (workspace_id, id, conversation_id, channel_id, direction, type, status, text, staff_id,
    created_at)
  select ${workspaceId}, n, v.id, v.channel_id, case when n % 3 = 0 then 'outbound' else 'inbound' end, 'TEXT',
    case when n % 3 = 0 then 'read' else 'received' end,
    case when n % 2 = 0 then 'Your order ' else 'Hello ' end
      || case when n % 100 = 0 then 'refund ' else '' end
      || case when n % 300 = 0 then 'invoice ' else '' end
      || case when n % ${Math.ceil(total / 10)} = 2 then 'zebra ' else '' end
      || case when n % 3 = 1 and n < ${Math.round(total * 0.75)} then 'christmas ' else '' end
      || ${[1, 2, 3, 4, 5].map((salt) => `'w' || ${pick(salt, 50_000, 3)} || ' '`).join(' || ')} || 'thanks',
    case when n % 3 = 0 then 1 + n % ${STAFF} end,
    '${until}'::timestamptz - interval '1 year' * ((${total} - n)::float8 / ${total})
  from generate_series(${from}, ${to}) as n
    join conversations v on v.workspace_id = ${workspaceId} and v.id = 1 + ${pick(9, CONVERSATIONS)}`

const indexOf = (from: number, to: number): string => `
  insert into message_search
  select r.* from (select m from messages m where m.id between ${from} and ${to} offset 0) as given
    cross join lateral message_search_row(given.m) as r`

const NO_TRIGGERS = `set session_replication_role = replica`

/** Runs statements of ranges over as many connections as there are processors. */
const runRanges = async (
  url: string,
  total: number,
  statement: (from: number, to: number) => string,
): Promise<void> => {
  const ranges = Array.from({ length: Math.ceil(total / RANGE) }, (_, n) => n)
  const work = async (): Promise<void> => {
    for (let n = ranges.shift(); n !== undefined; n = ranges.shift())
      await runStatements(url, [NO_TRIGGERS, statement(n * RANGE + 1, Math.min((n + 1) * RANGE, total))])
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
}

const buildFrame = (workspaceId: string): string[] => [
  `insert into channels (workspace_id, type, name, status, created_at)
    select ${workspaceId}, 'web', 'Channel ' || n, 'connected', now() from generate_series(1, ${CHANNELS}) as n`,
  `insert into contacts (workspace_id, name, name_key, search, created_at, updated_at, last_activity_at)
    select ${workspaceId}, 'Contact ' || n, 'contact ' || n, 'contact ' || n, now(), now(), now()
    from generate_series(1, ${CONVERSATIONS}) as n`,
  `insert into conversations (workspace_id, contact_id, channel_id, state, created_at, updated_at, last_activity_at)
    select ${workspaceId}, n, case when n % 2000 = 0 then 8 else 1 + n % 7 end, 'open', now(), now(), now()
    from generate_series(1, ${CONVERSATIONS}) as n`,
]

/** Creates a database with this many messages in one workspace, all of them indexed. Returns its URL. */
export const fillMessageDatabase = async (
  adminUrl: string,
  total: number,
): Promise<{ databaseUrl: string; workspaceId: string }> => {
  const databaseUrl = await createBenchDatabase(adminUrl, `messages_${total}`)
  const storage = await openStorage({ databaseUrl }, { connections: 2, noTimeout: true })
  const now = new Date().toISOString()
  try {
    await migrate(storage.db)
    const { id: workspaceId } = await createWorkspace(storage.db, { name: 'Bench' }, now)
    for (let n = 1; n <= STAFF; n++)
      await createStaff(storage.db, workspaceId, { name: `Staff ${n}`, role: 'owner' }, [], now)
    await runStatements(databaseUrl, [NO_TRIGGERS, ...buildFrame(workspaceId)])
    await runRanges(databaseUrl, total, (from, to) => messagesOf(workspaceId, from, to, total, now))
    await runStatements(databaseUrl, [
      `drop index message_search_keys`,
      `drop index message_search_newest`,
      `vacuum (analyze) messages`,
    ])
    await runRanges(databaseUrl, total, indexOf)
    await runStatements(databaseUrl, [
      `set maintenance_work_mem = '2GB'`,
      `create index message_search_keys on message_search using gin (keys) with (gin_pending_list_limit = 512)`,
      `create index message_search_newest on message_search (workspace_id, created_at desc, message_id desc)
        where keys <> '{}'`,
      `select setval('messages_id_seq', ${total})`,
      `update message_search_progress set indexed_to = ${total}`,
      `vacuum (analyze)`,
      `checkpoint`,
    ])
    return { databaseUrl, workspaceId }
  } finally {
    await storage.close()
  }
}

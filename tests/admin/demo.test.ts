import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { createDemo } from '../../server/demo/demo.ts'
import { createWorkspace, lockWorkspaces } from '../../storage/workspace/admin.ts'
import type { Db } from '../../storage/database.ts'
import { createDatabase, databases, onMigratedDatabase, withStorage } from '../databases.ts'
import { startCommand } from '../process.ts'
import { DEMO_NOW, invariants } from './demo-invariants.ts'

/** Requires that every invariant holds, and that each query would find a violation. */
const requireInvariants = async (db: Db): Promise<void> => {
  const findViolations = async (query: string): Promise<string[]> =>
    (
      await sql.raw<{ id: string }>(`select id from (${query}) as violations (id) limit 3`).execute(db)
    ).rows.map((row) => row.id)
  for (const { name, violations } of invariants) assert.deepEqual(await findViolations(violations), [], name)
  for (const { name, violations, violate } of invariants) {
    const tx = await db.startTransaction().execute()
    await sql.raw(violate).execute(tx)
    const { rows } = await sql.raw(`select id from (${violations}) as violations (id) limit 1`).execute(tx)
    await tx.rollback().execute()
    assert.equal(rows.length, 1, `the query finds no violation of: ${name}`)
  }
}

const readRows = async <T>(db: Db, query: string): Promise<T[]> => [
  ...(await sql.raw<T>(query).execute(db)).rows,
]

/** On each of the last 30 days, customers write, and staff reply and close conversations. */
const requireDailyActivity = async (db: Db): Promise<void> => {
  const days = await readRows<{ day: number; received: number; sent: number; closed: number }>(
    db,
    `select day,
      (select count(*)::int from messages
        where direction = 'inbound' and created_at::date = d) as received,
      (select count(*)::int from messages
        where direction = 'outbound' and staff_id is not null and created_at::date = d) as sent,
      (select count(*)::int from conversation_episodes where closed_at::date = d) as closed
    from (
      select day, ('${DEMO_NOW}'::date - day) as d from generate_series(0, 29) as day
    ) as days`,
  )
  for (const { day, ...counts } of days)
    for (const [name, count] of Object.entries(counts)) assert.ok(count > 0, `none ${name} ${day} days ago`)
}

/** The values of a column that the demo workspace must have, all of them and no others. */
const COLUMN_VALUES: readonly [select: string, expected: readonly unknown[]][] = [
  ['distinct type as x from messages', ['AUDIO', 'DOCUMENT', 'IMAGE', 'LOCATION', 'TEMPLATE', 'TEXT']],
  ['distinct status as x from messages', ['delivered', 'failed', 'read', 'received', 'sent', 'system']],
  [
    "distinct reply_status as x from conversations where state = 'open'",
    ['incoming_no_reply', 'outgoing_no_response'],
  ],
  ['distinct sender as x from message_reactions', ['customer']],
  ['distinct delivery_failed as x from conversations', [false, true]],
  ['distinct status as x from templates', ['APPROVED', 'PAUSED', 'PENDING', 'REJECTED']],
  [
    "distinct category as x from templates where status = 'APPROVED'",
    ['AUTHENTICATION', 'MARKETING', 'UTILITY'],
  ],
  ['distinct visibility as x from quick_messages', ['company', 'private', 'team']],
  ['distinct type as x from quick_messages', ['DOCUMENT', 'IMAGE', 'TEMPLATE', 'TEXT', 'VIDEO']],
  ['distinct staff_id is not null as x from quick_message_favorites', [true]],
]

/** Conditions of which each must hold for some open conversation. */
const OPEN_CONVERSATIONS: readonly string[] = [
  'assigned_staff_id is null and assigned_team_id is null',
  'assigned_staff_id is not null',
  'assigned_team_id is not null',
  'reminder_at is not null',
  'sla_breached',
  `window_expires_at > '${DEMO_NOW}'`,
  `window_expires_at < '${DEMO_NOW}'`,
  `last_inbound_at < '${DEMO_NOW}'::timestamptz - interval '24 hours'
    and free_entry_at > '${DEMO_NOW}'::timestamptz - interval '72 hours'`,
  'unread_count > 1',
  'exists (select 1 from conversation_tags t where t.conversation_id = v.id)',
  `last_activity_at > '${DEMO_NOW}'::timestamptz - interval '1 hour'`,
]

/** Queries that must return no rows. */
const ABSENT: readonly (readonly [description: string, query: string])[] = [
  [
    'open conversations on a disconnected channel',
    `select 1 from conversations v join channels h on h.id = v.channel_id
      where state = 'open' and h.status <> 'connected'`,
  ],
  [
    'a rejection reason without rejection, or the reverse',
    `select 1 from templates
      where (rejection_reason is not null) <> (status in ('REJECTED', 'PAUSED'))`,
  ],
  [
    'templates of an account without a channel',
    `select 1 from templates t
      where not exists (select 1 from channels h where h.account_id = t.account_id)`,
  ],
  [
    'quick messages with a team that are not visible to a team, or the reverse',
    "select 1 from quick_messages where (team_id is not null) <> (visibility = 'team')",
  ],
  ['short links, without a public address of the server', 'select 1 from short_links'],
  ['placeholders that were not filled', "select 1 from messages where text ~ '[{}]'"],
]

const requireEveryFeature = async (db: Db): Promise<void> => {
  await requireDailyActivity(db)
  for (const [select, expected] of COLUMN_VALUES) {
    const rows = await readRows<{ x: unknown }>(db, `select ${select} order by 1`)
    assert.deepEqual(
      rows.map((row) => row.x),
      expected,
      select,
    )
  }
  for (const condition of OPEN_CONVERSATIONS) {
    const rows = await readRows(db, `select id from conversations v where state = 'open' and ${condition}`)
    assert.ok(rows.length > 0, condition)
  }
  const reopened = await readRows(db, "select 1 from conversations where episode > 1 and state = 'closed'")
  assert.ok(reopened.length > 0)
  for (const [description, query] of ABSENT) assert.deepEqual(await readRows(db, query), [], description)
  // The template of the documentation: one variable in its body, and nothing else to fill.
  const [template] = await readRows<{ components: { type: string; text: string }[] }>(
    db,
    `select components from templates
      where name = 'order_update' and language = 'en_US' and category = 'UTILITY' and status = 'APPROVED'`,
  )
  assert.deepEqual(
    template!.components.map(({ type, text }) => [type, text.match(/\{\{\d+\}\}/g)]),
    [['BODY', ['{{1}}']]],
  )
}

/** As the command of the administration: on a busy machine a statement takes longer than one of a server may. */
const onDatabase = (database: string, work: (db: Db) => Promise<void>): Promise<void> =>
  onMigratedDatabase(database, work, { noTimeout: true })

for (const database of databases)
  describe(`admin demo: generated conversations (${database})`, () => {
    it('a demo after an attempt that was cut off is consistent, has every feature and the ids of its examples', () =>
      onDatabase(database, async (db) => {
        await sql`alter table approvals add constraint cut_off check (false)`.execute(db)
        await assert.rejects(createDemo(db, DEMO_NOW), /cut_off/)
        await sql`alter table approvals drop constraint cut_off`.execute(db)
        const demo = await createDemo(db, DEMO_NOW)
        assert.equal(demo?.workspaceId, '1')
        for (const table of ['contacts', 'conversations', 'messages', 'saved_filters', 'exports'])
          assert.deepEqual(
            await readRows(db, `select min(id)::text as first from ${table}`),
            [{ first: '1' }],
            table,
          )
        await requireInvariants(db)
        await requireEveryFeature(db)
      }))
  })

describe('The demo workspace of several servers', { skip: !databases.includes('postgresql') }, () => {
  /** The transactions that wait for the lock under which the demo is created. */
  const listWaiting = async (db: Db): Promise<string[]> =>
    (
      await sql<{ id: string }>`
        select a.pid || ' ' || a.xact_start as id from pg_locks l join pg_stat_activity a on a.pid = l.pid
        where l.relation = 'workspaces'::regclass and not l.granted`.execute(db)
    ).rows.map(({ id }) => id)

  it('is waited for by those that start while another one creates it, for longer than a statement waits', async () => {
    const database = await createDatabase('postgresql')
    try {
      const flags = ['--port', '0', '--json', ...database.flags]
      const start = () => startCommand<{ workspace_id?: string }>(['serve', ...flags])
      await withStorage(
        database.direct,
        async ({ db }) => {
          const tx = await db.startTransaction().execute()
          await lockWorkspaces(tx)
          const starting = start()
          let failure: unknown
          starting.catch((error: unknown) => (failure = error))
          const seen = new Set<string>()
          while (seen.size < 2 && !failure) for (const id of await listWaiting(db)) seen.add(id)
          await createWorkspace(tx, { name: 'Of the other server' }, DEMO_NOW)
          await tx.commit().execute()
          const server = await starting
          assert.equal(server.said.workspace_id, undefined)
          assert.equal(await server.stop(), 0)
        },
        { noTimeout: true },
      )
    } finally {
      await database.remove()
    }
  })
})

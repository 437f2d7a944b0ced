import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { parsePhone } from '../../server/domains/contacts/phone.ts'
import { createCallers } from '../../server/demo/calls.ts'
import { createPhone, generateContacts, type GenerateOptions } from '../../server/demo/contacts.ts'
import { createDemo } from '../../server/demo/demo.ts'
import type { Db } from '../../storage/database.ts'
import { createWorkspace } from '../../storage/workspace/admin.ts'
import { useAdminDatabases } from './admin-commands.ts'

const databases = useAdminDatabases()

const NOW = '2026-11-01T10:00:00.000Z'

const callers = createCallers()

const generate = (db: Db, id: string, options: GenerateOptions) =>
  generateContacts(
    (work) => db.transaction().execute((tx) => work(callers(tx, { id, name: '', timezone: 'UTC' }))),
    options,
  )

/** Creates a workspace with 300 generated contacts. Returns its id, and the contacts as text. */
const generateWorkspace = async (
  db: Db,
  name: string,
  seed: number,
): Promise<{ id: string; contacts: string[] }> => {
  const { id } = await createWorkspace(db, { name }, NOW)
  await generate(db, id, { contacts: 300, seed, now: NOW })
  const { rows } = await sql<{ row: string }>`
    select row(name, phone, email, created_at, updated_at, last_activity_at)::text as row
    from contacts where workspace_id = ${id} order by id`.execute(db)
  return { id, contacts: rows.map(({ row }) => row) }
}

/** Counters that differ from the number of rows that they count. */
const findWrongCounters = async (db: Db): Promise<unknown[]> =>
  (
    await sql`
      select subject from (
        select workspace_id, 'contacts' as subject, count(*) as n from contacts group by 1
        union all
        select workspace_id, 'tag:' || tag_id, count(*) from contact_tags group by 1, 2
        union all
        select workspace_id, 'group:' || group_id, count(*) from contact_groups group by 1, 2
      ) as actual
      full join (
        select workspace_id, subject, sum(n) as n from counters group by 1, 2
      ) as counted using (workspace_id, subject)
      where actual.n is distinct from counted.n`.execute(db)
  ).rows

/** Returns the number `n` of a query's only row. */
const readNumber = async (db: Db, query: string): Promise<number> =>
  Number((await sql.raw<{ n: string }>(query).execute(db)).rows[0]!.n)

const readStatuses = async (db: Db, table: string): Promise<string[]> =>
  (
    await sql<{ status: string }>`select distinct status from ${sql.table(table)} order by 1`.execute(db)
  ).rows.map(({ status }) => status)

/** Queries of rows that contradict each other or the time of the demo; there must be none. */
const CONTRADICTIONS = [
  `select count(*) as n from contacts
    where updated_at < created_at or created_at > '${NOW}' or last_activity_at > '${NOW}'`,
  `select sum(unread_count) as n from conversations where state <> 'open'`,
  // A reply is activity of the contact and of a conversation.
  `select count(*) as n from contacts c
    left join (
      select contact_id, max(last_activity_at) as at from conversations group by 1
    ) as v on v.contact_id = c.id
    where c.last_activity_at is distinct from v.at`,
  // Nothing happens before the contact, the broadcast or the message, or in the future.
  `select count(*) as n from broadcast_recipients r
    join broadcasts b on b.id = r.broadcast_id
    join contacts c on c.id = r.contact_id
    where r.sent_at < b.started_at or r.sent_at < c.created_at or r.delivered_at < r.sent_at
      or r.read_at < r.delivered_at or r.responded_at < r.read_at or r.responded_at > c.last_activity_at
      or greatest(r.sent_at, r.delivered_at, r.read_at, r.failed_at) > '${NOW}'
      or c.dnd or r.responded <> (r.responded_at is not null)`,
]

/** Queries whose number must be greater than zero. */
const PRESENT = [
  `select count(*) as n from contacts where starred`,
  `select count(*) as n from contact_attributes where bool_value`,
  `select sum(unread_count) as n from conversations where state = 'open'`,
  `select count(*) as n from broadcast_recipients where responded`,
]

describe('admin demo: generated contacts', () => {
  it('phones are valid and unique', () => {
    const phones = new Set<string>()
    for (const n of [...Array.from({ length: 3000 }, (_, i) => i), 999_999, 4_999_999]) {
      const { phone } = createPhone(n)
      assert.deepEqual(parsePhone(phone), { digits: phone })
      assert.ok(!phones.has(phone), phone)
      phones.add(phone)
    }
  })

  it('the same seed generates the same contacts, and counters match', async () => {
    const storage = await databases.open(databases.newFolder())
    const first = await generateWorkspace(storage.db, 'one', 1)
    const sameSeed = await generateWorkspace(storage.db, 'two', 1)
    const otherSeed = await generateWorkspace(storage.db, 'three', 2)
    assert.deepEqual(first.contacts, sameSeed.contacts)
    assert.notDeepEqual(first.contacts, otherSeed.contacts)
    const { created } = await generate(storage.db, first.id, { contacts: 50, seed: 1, now: NOW })
    assert.equal(created, 50)
    assert.deepEqual([...(await findWrongCounters(storage.db))], [])
    await storage.close()
  })

  it('the demo workspace has contacts', async () => {
    const storage = await databases.open(databases.newFolder())
    const { db } = storage
    const { workspaceId } = (await createDemo(db, NOW))!
    for (const [query, expected] of [
      [
        `select count(distinct type) as n from custom_fields where workspace_id = ${workspaceId} and used`,
        16,
      ],
      [`select count(distinct role) as n from staff`, 4],
      [`select max(n) as n from (select count(*) as n from conversations group by contact_id) as c`, 2],
      [
        `select count(*) as n from saved_filters f
          join staff s on s.id = f.owner_staff_id and s.role in ('owner', 'manager')`,
        3,
      ],
      ...CONTRADICTIONS.map((query) => [query, 0] as const),
    ] as const)
      assert.equal(await readNumber(db, query), expected, query)
    const connected = await readNumber(
      db,
      `select count(*) as n from channels where type = 'chatapp' and status = 'connected'`,
    )
    assert.ok(connected >= 2)
    for (const query of PRESENT) assert.ok((await readNumber(db, query)) > 0, query)
    assert.deepEqual(await readStatuses(db, 'broadcasts'), ['cancelled', 'completed', 'running', 'scheduled'])
    assert.deepEqual(await readStatuses(db, 'broadcast_recipients'), [
      'delivered',
      'failed',
      'pending',
      'read',
      'sent',
    ])
    await storage.close()
  })
})

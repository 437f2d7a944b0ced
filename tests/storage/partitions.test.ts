import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import type { Db } from '../../storage/database.ts'
import { openStorage } from '../../storage/open.ts'
import {
  createPartitions,
  dropPartitionsBefore,
  listPartitions,
  type PartitionedTable,
} from '../../storage/migrations/partitions.ts'
import { encodeUlidTime } from '../../storage/events/ulid-time.ts'
import { deleteDeliveriesBefore } from '../../storage/webhooks/deliveries.ts'
import { createDatabase, databases, onMigratedDatabase, withStorage } from '../databases.ts'

const DAY_MS = 86_400_000
const tail = '0000000000000000'
const eventId = (ms: number): string => `evt_${encodeUlidTime(ms)}${tail}`
const inDays = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString()

const insertEvent = async (db: Db, ms: number): Promise<void> => {
  await sql`insert into events (workspace_id, id, type, occurred_at, data)
    values (1, ${eventId(ms)}, 'group.created/1', ${new Date(ms).toISOString()}, '{}')`.execute(db)
}
const insertAudit = async (db: Db, ms: number): Promise<void> => {
  await sql`insert into audit_log (workspace_id, id, staff_id, key_id, door, operation, outcome, dry_run,
      confirmed, request_id)
    values (1, ${String(BigInt(ms) << 18n)}, 1, 1, 'rest', 'crm_create_group', 'done', false, false,
      'req_1')`.execute(db)
}
const insertAttempt = async (db: Db, ms: number): Promise<void> => {
  await sql`insert into webhook_attempts (workspace_id, delivery_id, number, started_at, duration_ms, trigger)
    values (1, ${`dlv_${encodeUlidTime(ms)}${tail}`}, 1, now(), 1, 'scheduled')`.execute(db)
}

/** The partition of each row, without its date, oldest id first. */
const placesOf = async (db: Db, table: PartitionedTable): Promise<string[]> => {
  const column = table === 'webhook_attempts' ? 'delivery_id' : 'id'
  const { rows } = await sql<{ place: string }>`
    select regexp_replace(tableoid::regclass::text, '_\\d{8}$', '_dated') as place from ${sql.table(table)}
    order by ${sql.ref(column)}`.execute(db)
  return rows.map(({ place }) => place.slice(table.length + 1))
}

/** Whether each partition begins where the one before it ends. */
const isGapless = async (db: Db, table: PartitionedTable): Promise<boolean> =>
  (await listPartitions(db, table)).every(
    ({ lower }, i, all) => lower === (i === 0 ? 'MINVALUE' : all[i - 1]!.upper),
  )

for (const database of databases) {
  describe(`Partitions (${database})`, () => {
    it('begin with one for all that is older; what none covers is in the default one', async () => {
      await onMigratedDatabase(database, async (db) => {
        const times = [Date.now() - 500 * DAY_MS, Date.now() - 1000, Date.now() + 900 * DAY_MS]
        for (const ms of times)
          for (const insert of [insertEvent, insertAudit, insertAttempt]) await insert(db, ms)
        await sql`insert into events (workspace_id, id, type, occurred_at, data)
          values (1, 'evt_of another kind', 'group.created/1', now(), '{}')`.execute(db)
        assert.deepEqual(await placesOf(db, 'events'), ['first', 'first', 'default', 'default'])
        assert.deepEqual(await placesOf(db, 'audit_log'), ['first', 'first', 'default'])
        assert.deepEqual(await placesOf(db, 'webhook_attempts'), ['first', 'first', 'default'])
      })
    })

    it('are made ahead, once by several servers, and take their rows from the default one', async () => {
      const { location, remove } = await createDatabase(database)
      const storages = [await openStorage(location)]
      if (database !== 'embedded') storages.push(await openStorage(location), await openStorage(location))
      const { db } = storages[0]!
      try {
        const later = Date.parse(inDays(400))
        await insertEvent(db, later)
        await insertAudit(db, Date.now())
        assert.deepEqual(await placesOf(db, 'events'), ['default'])
        const created = await Promise.all(
          storages.map((storage) => createPartitions(storage.db, 'events', inDays(400), 30)),
        )
        assert.equal(
          Math.max(...created),
          created.reduce((sum, n) => sum + n, 0),
        )
        assert.deepEqual(await placesOf(db, 'events'), ['dated'])
        assert.deepEqual(await placesOf(db, 'audit_log'), ['first'])
        assert.ok(await isGapless(db, 'events'))
        const last = (await listPartitions(db, 'events')).at(-1)!
        // Weeks, two of them ahead of that of `now`.
        assert.equal(last.to - last.from!, 7 * DAY_MS)
        assert.ok(last.to - later > 14 * DAY_MS && last.to - later <= 21 * DAY_MS)
        assert.equal(await createPartitions(db, 'events', inDays(400), 30), 0)
        // With a shorter retention, those of the future are replaced by shorter ones, unless rows are in them.
        assert.ok((await createPartitions(db, 'events', inDays(390), 7)) === 0)
        assert.ok(await isGapless(db, 'events'))
      } finally {
        for (const storage of storages) await storage.close()
        await remove()
      }
    })

    it('of the future become shorter when the retention does', async () => {
      await onMigratedDatabase(database, async (db) => {
        const lengths = async () =>
          (await listPartitions(db, 'audit_log')).slice(-2).map(({ from, to }) => (to - from!) / DAY_MS)
        assert.ok((await lengths()).every((days) => days > 1))
        // Shortly before the end of the first one, whatever day it is today.
        const [first] = await listPartitions(db, 'audit_log')
        const now = new Date(first!.to - DAY_MS / 24).toISOString()
        assert.ok((await createPartitions(db, 'audit_log', now, 5)) > 0)
        assert.deepEqual(await lengths(), [1, 1])
        assert.ok(await isGapless(db, 'audit_log'))
      })
    })

    it('are dropped when all their rows are too old, and no delivery needs one', async () => {
      await onMigratedDatabase(database, async (db) => {
        await sql`insert into workspaces (id, name, created_at) values (1, 'One', now())`.execute(db)
        await createPartitions(db, 'events', inDays(40), 30)
        for (const days of [-100, 0, 30, 40]) await insertEvent(db, Date.parse(inDays(days)))
        const needed = eventId(Date.parse(inDays(0)))
        await sql`insert into webhook_deliveries (workspace_id, id, endpoint_id, event_id, event_type, created_at)
          values (1, 'dlv_1', 'whe_1', ${needed}, 'group.created/1', now())`.execute(db)
        const drop = (days: number) => dropPartitionsBefore(db, 'events', inDays(days))
        assert.equal(await drop(-1), 0)
        await drop(8)
        assert.deepEqual(await placesOf(db, 'events'), ['first', 'first', 'dated', 'dated'])
        await sql`update webhook_deliveries set status = 'delivered' where id = 'dlv_1'`.execute(db)
        assert.ok((await drop(8)) >= 1)
        assert.deepEqual(await placesOf(db, 'events'), ['dated', 'dated'])
        // What is too old for every partition is stored all the same.
        await insertEvent(db, Date.parse(inDays(-100)))
        assert.deepEqual(await placesOf(db, 'events'), ['default', 'dated', 'dated'])
        assert.ok((await drop(80)) >= 1)
        assert.deepEqual(await placesOf(db, 'events'), ['default'])
        assert.ok((await createPartitions(db, 'events', inDays(90), 30)) > 0)
      })
    })

    it('of attempts are kept while a delivery of theirs is', async () => {
      await onMigratedDatabase(database, async (db) => {
        await sql`insert into workspaces (id, name, created_at) values (1, 'One', now())`.execute(db)
        const ms = Date.now()
        await insertAttempt(db, ms)
        await sql`insert into webhook_deliveries
          (workspace_id, id, endpoint_id, event_id, event_type, status, created_at)
          values (1, ${`dlv_${encodeUlidTime(ms)}${tail}`}, 'whe_1', ${eventId(ms)}, 'group.created/1', 'delivered',
            now())`.execute(db)
        await dropPartitionsBefore(db, 'webhook_attempts', inDays(8))
        assert.deepEqual(await placesOf(db, 'webhook_attempts'), ['first'])
        assert.equal(await deleteDeliveriesBefore(db, inDays(1), 10), 1)
        await dropPartitionsBefore(db, 'webhook_attempts', inDays(8))
        assert.deepEqual(await placesOf(db, 'webhook_attempts'), [])
      })
    })

    it('are read alone by id, also of a delivery', async () => {
      await onMigratedDatabase(database, async (db) => {
        const explain = async (query: string) =>
          (await sql.raw<Record<string, string>>(`explain ${query}`).execute(db)).rows
            .map((row) => row['QUERY PLAN'])
            .join('\n')
        const id = eventId(Date.now())
        const plan = await explain(`select * from events where workspace_id = 1 and id = '${id}'`)
        assert.match(plan, /on events_first/)
        assert.doesNotMatch(plan, /on events_(\d{8}|default)/)
        const attempts = await explain(
          `select * from webhook_attempts where workspace_id = 1 and delivery_id = '${id.replace('evt', 'dlv')}'`,
        )
        assert.doesNotMatch(attempts, /on webhook_attempts_(\d{8}|default)/)
        await sql`set enable_seqscan = off`.execute(db)
        // Newest first: a page is merged from the ends of the indexes.
        const page = await explain(`select * from audit_log where workspace_id = 1 order by id desc limit 25`)
        assert.doesNotMatch(page, /Sort {2}\(|Seq Scan/)
      })
    })
  })
}

describe('Partitions in use', { skip: !databases.includes('postgresql') }, () => {
  it('are not dropped while a transaction reads them, and hold up nobody for long', async () => {
    const { location, remove } = await createDatabase('postgresql')
    try {
      await withStorage(location, async ({ db }) => {
        await insertAudit(db, Date.now())
        await db.transaction().execute(async (reader) => {
          await sql`select count(*) from audit_log`.execute(reader)
          const dropped = dropPartitionsBefore(db, 'audit_log', inDays(60))
          await insertAudit(db, Date.now() + 1)
          assert.equal(await dropped, 0)
        })
        assert.deepEqual(await placesOf(db, 'audit_log'), ['first', 'first'])
        assert.ok((await dropPartitionsBefore(db, 'audit_log', inDays(60))) > 0)
        assert.deepEqual(await placesOf(db, 'audit_log'), [])
      })
    } finally {
      await remove()
    }
  })
})

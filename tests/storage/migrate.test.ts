import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import type { Db } from '../../storage/database.ts'
import { compareSchema, describePending, listMigrations, migrate } from '../../storage/migrations/migrate.ts'
import { createIndexConcurrently } from '../../storage/migrations/concurrently.ts'
import { type DeclaredMigration, type MigrationList, migrations } from '../../storage/migrations/list.ts'
import { createDatabase, databases, onEmptyDatabase, onMigratedDatabase, withStorage } from '../databases.ts'

const NEWEST = listMigrations().at(-1)!

/** A migration of the next version. */
const change = (statement: string, more: Partial<DeclaredMigration> = {}): DeclaredMigration => ({
  up: async (db) => void (await sql.raw(statement).execute(db)),
  ...more,
})

const ADD = 'alter table tags add column x text'

/** The migrations of this version and the next ones. */
const withNext = (...next: DeclaredMigration[]): MigrationList => ({
  ...migrations,
  ...Object.fromEntries(next.map((migration, n) => [`9${n}00-next`, migration])),
})

const listColumns = async (db: Db): Promise<string[]> =>
  (
    await sql<{ name: string }>`
      select column_name as name from information_schema.columns
      where table_name = 'tags' and column_name in ('x', 'y') order by 1`.execute(db)
  ).rows.map(({ name }) => name)

for (const database of databases) {
  describe(`Schema and version (${database})`, () => {
    it('is refused by name when a newer version made it, unless that lets this one run', async () => {
      await onMigratedDatabase(database, async (db) => {
        assert.equal((await compareSchema(db)).state, 'same')
        const compatible = withNext(change(ADD, { oldest: NEWEST }))
        assert.equal((await compareSchema(db, compatible)).state, 'older')
        assert.deepEqual(await migrate(db, { list: compatible }), ['9000-next'])
        assert.equal((await compareSchema(db)).state, 'ahead')
        assert.deepEqual(await migrate(db), [])
        const both = withNext(
          change(ADD, { oldest: NEWEST }),
          change('alter table tags add column y text', { oldest: '9000-next' }),
        )
        await migrate(db, { list: both })
        assert.equal((await compareSchema(db, compatible)).state, 'ahead')
        assert.equal((await compareSchema(db)).state, 'newer')
        await assert.rejects(migrate(db), {
          code: 'SCHEMA_NEWER',
          message:
            /does not know: 9000-next to 9100-next \(2\)\. .* Start the version that migrated it\..*restore/,
        })
        // Migrations that this version alone has: neither version continues the other.
        const sibling = { ...compatible, '9050-other': change('select 1') }
        assert.equal((await compareSchema(db, sibling)).state, 'newer')
        await assert.rejects(migrate(db, { list: sibling }), /It lacks 9050-other/)
        assert.deepEqual(await listColumns(db), ['x', 'y'])
      })
    })

    it('keeps what was applied before a migration that fails, and nothing of that one', async () => {
      await onMigratedDatabase(database, async (db) => {
        const broken = change(`do $$ begin alter table tags add column y text; raise 'broken'; end $$`)
        await assert.rejects(migrate(db, { list: withNext(change(ADD), broken) }), /broken/)
        assert.deepEqual(await listColumns(db), ['x'])
        const repaired = withNext(change(ADD), change('alter table tags add column y text'))
        assert.deepEqual(await migrate(db, { list: repaired }), ['9100-next'])
      })
    })

    it('leaves an empty database empty when the first migration of all fails', async () => {
      await onEmptyDatabase(database, async (db) => {
        await assert.rejects(migrate(db, { list: withNext(change('select 1 / 0')) }), /division by zero/)
        assert.equal((await compareSchema(db)).state, 'none')
        assert.equal((await migrate(db)).length, listMigrations().length)
      })
    })

    it('builds indexes concurrently, outside of transactions, and says what is pending', async () => {
      await onMigratedDatabase(database, async (db) => {
        const list = withNext(
          {
            up: (on) => createIndexConcurrently(on, 'tags_next', 'tags (workspace_id, name)'),
            transaction: 'none',
            oldest: NEWEST,
          },
          change(ADD),
        )
        assert.deepEqual(await describePending(db, list), [
          { name: '9000-next', servers: 'those that run go on' },
          { name: '9100-next', servers: 'stop those that run' },
        ])
        // As an attempt leaves it that was cut off.
        await sql`create index tags_next on tags (workspace_id)`.execute(db)
        await sql`update pg_index set indisvalid = false where indexrelid = 'tags_next'::regclass`.execute(db)
        await migrate(db, { list })
        const { rows } = await sql<{ valid: boolean; columns: number }>`
          select indisvalid as valid, indnkeyatts as columns from pg_index
          where indexrelid = 'tags_next'::regclass`.execute(db)
        assert.deepEqual([...rows], [{ valid: true, columns: 2 }])
      })
    })
  })
}

describe('Migrations at once', { skip: !databases.includes('postgresql') }, () => {
  /** Runs `work` with storages of two processes on one database. */
  const withTwo = async (work: (one: Db, two: Db) => Promise<void>): Promise<void> => {
    const { location, remove } = await createDatabase('postgresql')
    try {
      await withStorage(location, ({ db: one }) =>
        withStorage(location, ({ db: two }) => work(one, two), { noTimeout: true }),
      )
    } finally {
      await remove()
    }
  }

  it('are applied once, by one of the processes; the others wait', async () => {
    await withTwo(async (one, two) => {
      const list = withNext(change(`select pg_sleep(0.2)`), change(ADD))
      const done = await Promise.all([migrate(one, { list }), migrate(two, { list }), migrate(two, { list })])
      assert.deepEqual(done.flat().sort(), ['9000-next', '9100-next'])
      assert.deepEqual(await listColumns(one), ['x'])
    })
  })

  it('wait for a limited time, and say for what', async () => {
    await withTwo(async (one, two) => {
      const [started, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const said: string[] = []
      const slow: DeclaredMigration = {
        up: async () => {
          started.resolve()
          await ended.promise
        },
      }
      const list = withNext(slow)
      const first = migrate(one, { list })
      await started.promise
      await assert.rejects(migrate(two, { list, waitMs: 2_400, say: (text) => said.push(text) }), {
        code: 'SCHEMA_BUSY',
        message: /^Another process migrates the database, for 2 s\. /,
      })
      assert.deepEqual(said, ['Another process migrates the database; waiting for up to 2 s.'])
      ended.resolve()
      assert.deepEqual(await first, ['9000-next'])
      assert.deepEqual(await migrate(two, { list }), [])
    })
  })

  it('give up on a lock that a long transaction holds before others queue, and try again', async () => {
    await withTwo(async (one, two) => {
      const list = withNext(change(ADD))
      const said: string[] = []
      const migrated = await two.transaction().execute(async (tx) => {
        await sql`select count(*) from tags`.execute(tx)
        const promise = migrate(one, { list, say: (text) => said.push(text) })
        while (!said.some((text) => text.startsWith('A migration waits'))) await sql`select 1`.execute(tx)
        return { promise }
      })
      assert.deepEqual(await migrated.promise, ['9000-next'])
      assert.deepEqual(await listColumns(one), ['x'])
    })
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { executeAndCommit } from '../../storage/driver.ts'
import { databases, onMigratedDatabase } from '../databases.ts'

describe('Statements that share a connection', { skip: !databases.includes('postgresql') }, () => {
  it('never get the rows of one another when their plans become invalid', async () => {
    await onMigratedDatabase('postgresql', async (db) => {
      await sql`create table shared (text text)`.execute(db)
      await sql`insert into shared values ('row')`.execute(db)
      const query = (n: number) =>
        n % 3 === 0
          ? sql<{ own: number }>`/* quick */ select *, ${n}::int as own from shared`
          : sql<{ own: number }>`/* quick */ select ${n}::int as own, 'other' as kind`
      const runAll = () =>
        Promise.allSettled(
          Array.from({ length: 60 }, async (_, n) => (await query(n).execute(db)).rows[0]?.own),
        )
      await runAll()
      await sql`alter table shared add column more text`.execute(db)
      for (const [n, result] of (await runAll()).entries())
        if (result.status === 'fulfilled') assert.equal(result.value, n)
        else assert.equal(result.reason.code, 'CONNECTION_CLOSED')
      assert.deepEqual(
        (await runAll()).map((result) => (result as PromiseFulfilledResult<number>).value),
        Array.from({ length: 60 }, (_, n) => n),
      )
    })
  })
})

const isPooled = process.env.WCRM_TEST_POOLER_URL !== undefined

describe(
  'A transaction whose last statement has a plan that became invalid',
  {
    skip: isPooled ? 'there are no plans that are kept' : !databases.includes('postgresql'),
  },
  () => {
    it('is carried out as a whole or not at all', async () => {
      await onMigratedDatabase('postgresql', async (db) => {
        await sql`create table whole (text text)`.execute(db)
        const insertBoth = async (name: string): Promise<void> => {
          const tx = await db.startTransaction().execute()
          try {
            await sql`insert into whole (text) values (${name})`.execute(tx)
            await executeAndCommit(tx, sql`insert into whole (text) values (${name}) returning *`)
            await tx.commit().execute()
          } catch (error) {
            await tx.rollback().execute()
            throw error
          }
        }
        await insertBoth('before')
        await sql`alter table whole add column more text`.execute(db)
        await assert.rejects(insertBoth('meanwhile'), { code: 'CONNECTION_CLOSED' })
        await insertBoth('after')
        const { rows } = await sql<{ text: string }>`select text from whole order by text`.execute(db)
        assert.deepEqual(
          rows.map(({ text }) => text),
          ['after', 'after', 'before', 'before'],
        )
      })
    })
  },
)

describe('A transaction whose last statement fails', { skip: !databases.includes('postgresql') }, () => {
  it('has given up its locks when it is rolled back, and its connection is used again', async () => {
    await onMigratedDatabase('postgresql', async (db) => {
      const lock = sql<{ locked: boolean; pid: number }>`
        select pg_try_advisory_xact_lock(7) as locked, pg_backend_pid() as pid`
      const pids = new Set<number>()
      for (let n = 0; n < 20; n++) {
        const tx = await db.startTransaction().execute()
        const { rows } = await lock.execute(tx)
        assert.ok(rows[0]!.locked, 'the transaction before still has the lock')
        pids.add(rows[0]!.pid)
        await assert.rejects(executeAndCommit(tx, sql`select 1 / 0`), { code: '22012' })
        await tx.rollback().execute()
      }
      assert.equal(pids.size, 1)
    })
  })
})

for (const database of databases) {
  describe(`A statement after one that failed between its rows (${database})`, () => {
    /** Sends rows 1 to 3, then fails. */
    const failing = sql`select 1 / (4 - n) from generate_series(1, 10) as n`
    const following = sql<{ n: number }>`select n from generate_series(1, ${2}::int) as n`

    it('gets its own rows alone, one after the other', async () => {
      await onMigratedDatabase(database, async (db) => {
        for (let round = 0; round < 3; round++) {
          await assert.rejects(failing.execute(db), { code: '22012' })
          await assert.rejects(failing.execute(db), { code: '22012' })
          assert.deepEqual((await following.execute(db)).rows, [{ n: 1 }, { n: 2 }])
          assert.deepEqual((await following.execute(db)).rows, [{ n: 1 }, { n: 2 }])
        }
      })
    })

    it('gets them when it was sent before the other failed', async () => {
      await onMigratedDatabase(database, async (db) => {
        const failures = Array.from({ length: 40 }, () =>
          assert.rejects(failing.execute(db), { code: '22012' }),
        )
        const results = await Promise.all(Array.from({ length: 40 }, () => following.execute(db)))
        await Promise.all(failures)
        for (const { rows } of results) assert.deepEqual(rows, [{ n: 1 }, { n: 2 }])
      })
    })
  })
}

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

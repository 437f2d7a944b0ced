import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
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

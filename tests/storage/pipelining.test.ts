import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { executeAndCommit } from '../../storage/client/driver.ts'
import { createPool } from '../../storage/client/pool.ts'
import { createSessionOpener } from '../../storage/client/session.ts'
import { createDatabase, databases, onMigratedDatabase, withStorage } from '../databases.ts'

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

  it('never get the columns of one whose plan became invalid, which is described anew', async () => {
    await onMigratedDatabase('postgresql', async (db) => {
      await sql`create table shared (text text)`.execute(db)
      await sql`insert into shared values ('row')`.execute(db)
      const known = () => sql`/* quick */ select *, ${1}::int as known from shared`.execute(db)
      for (let round = 0; round < 6; round++) {
        // On both connections.
        await Promise.all([known(), known()])
        await sql`alter table shared alter column text type ${sql.raw(round % 2 ? 'text' : 'varchar(9)')}`.execute(
          db,
        )
        const fresh = sql`/* quick */ select ${round}::int as ${sql.id(`fresh ${round}`)}, 'other' as kind`
        const results = await Promise.allSettled([known(), known(), fresh.execute(db), fresh.execute(db)])
        const own = [
          { text: 'row', known: 1 },
          { text: 'row', known: 1 },
        ]
        const others = Array.from({ length: 2 }, () => ({ [`fresh ${round}`]: round, kind: 'other' }))
        for (const [i, expected] of [...own, ...others].entries()) {
          const result = results[i]!
          if (result.status === 'fulfilled') assert.deepEqual(result.value.rows, [expected])
          else assert.equal(result.reason.code, 'CONNECTION_CLOSED')
        }
      }
    })
  })
})

describe('Statements that a pool makes transactions', { skip: !databases.includes('postgresql') }, () => {
  it('are committed by themselves on a connection that has just been opened', async () => {
    const { direct, remove } = await createDatabase('postgresql')
    const { databaseUrl } = direct as { databaseUrl: string }
    const openSession = createSessionOpener(databaseUrl, false)
    const pool = createPool({
      max: 1,
      limits: { responseMs: 0, acquireMs: 0 },
      openSession: (onClose) => openSession({}, onClose),
      setup: `set local statement_timeout = '60s'`,
    })
    try {
      await withStorage(direct, async ({ db }) => {
        await sql`create table written (n int)`.execute(db)
        const holder = await db.startTransaction().execute()
        await sql`select pg_advisory_xact_lock(7)`.execute(holder)
        const written = pool.run({
          text: 'with lock as materialized (select pg_advisory_xact_lock(7)) insert into written select 1 from lock',
        })
        const isWaiting = sql`select from pg_locks where locktype = 'advisory' and not granted`
        while ((await isWaiting.execute(db)).rows.length === 0);
        const failed = assert.rejects(pool.run({ text: 'select 1 / 0' }), { code: '22012' })
        await new Promise((sent) => setImmediate(sent))
        await holder.rollback().execute()
        await Promise.all([written, failed])
        assert.equal((await sql`select from written`.execute(db)).rows.length, 1)
      })
    } finally {
      await pool.close()
      await remove()
    }
  })
})

describe(
  'A transaction whose last statement has a plan that became invalid',
  {
    skip: !databases.includes('postgresql'),
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

for (const database of databases) {
  describe(`A transaction in which a failed statement was ignored (${database})`, () => {
    it('does not end as if it had been committed', async () => {
      await onMigratedDatabase(database, async (db) => {
        await sql`create table kept (n int)`.execute(db)
        const insertAfterFailure = (last: (tx: Parameters<typeof executeAndCommit>[0]) => Promise<unknown>) =>
          db.transaction().execute(async (tx) => {
            await sql`insert into kept values (1)`.execute(tx)
            await sql`select 1 / 0`.execute(tx).catch(() => {})
            await last(tx)
          })
        await assert.rejects(
          insertAfterFailure(async () => {}),
          /not committed/,
        )
        await assert.rejects(
          insertAfterFailure((tx) => executeAndCommit(tx, sql`select 1`).catch(() => {})),
          /not committed/,
        )
        assert.deepEqual((await sql`select n from kept`.execute(db)).rows, [])
      })
    })
  })
}

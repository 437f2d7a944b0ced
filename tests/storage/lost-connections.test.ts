import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { type Db } from '../../storage/database.ts'
import { openStorage } from '../../storage/open.ts'
import { startServer } from '../servers.ts'
import { databases } from '../databases.ts'

const CONNECTIONS = 2

const transaction = async (db: Db, query: ReturnType<typeof sql>): Promise<void> => {
  const tx = await db.startTransaction().execute()
  try {
    await sql`select 1`.execute(tx)
    await query.execute(tx)
    await tx.commit().execute()
  } catch (error) {
    await tx
      .rollback()
      .execute()
      .catch(() => {})
    throw error
  }
}

describe('PostgreSQL that ends every connection', { skip: !databases.includes('postgresql') }, () => {
  it('fails the running statements but none that start later or wait for a connection', async () => {
    const { location, db: admin, close } = await startServer('postgresql')
    const { db, close: closeIt } = await openStorage(location, {
      // One more is for expensive reads.
      connections: CONNECTIONS + 1,
    })
    try {
      const running = Array.from({ length: CONNECTIONS }, () =>
        transaction(db, sql`/* runs */ select pg_sleep(60)`),
      )
      const waiting = Array.from({ length: 4 }, () => transaction(db, sql`select 2`))
      const all = Promise.allSettled([...running, ...waiting])
      const busy = sql<{
        n: number
      }>`select count(*)::integer as n from pg_stat_activity
        where datname = current_database() and query like '/* runs%'`
      while ((await busy.execute(admin)).rows[0]!.n < CONNECTIONS);
      await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and query like '/* runs%'`.execute(admin)
      assert.deepEqual(
        (await all).slice(0, CONNECTIONS).map((r) => r.status),
        ['rejected', 'rejected'],
      )
      for (let n = 0; n < 2 * CONNECTIONS; n++)
        await Promise.all([transaction(db, sql`select 3`), sql`select 4`.execute(db)])
    } finally {
      await closeIt()
      await close()
    }
  })
})

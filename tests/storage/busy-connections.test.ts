import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { QUICK } from '../../storage/client/driver.ts'
import { openStorage, type Storage } from '../../storage/open.ts'
import { createDatabase, databases } from '../databases.ts'
import { serveStorage } from '../servers.ts'
import { waitUntil } from '../wait-until.ts'

/** Takes every connection of transactions. */
const holdAll = async ({ db }: Storage) => {
  const held = []
  for (;;)
    try {
      held.push(await db.startTransaction().execute())
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'ACQUIRE_TIMEOUT')
      return held
    }
}

describe(
  'A server whose transactions hold all of their connections',
  {
    skip: !databases.includes('postgresql'),
  },
  () => {
    it('stays ready', async () => {
      const { location, remove } = await createDatabase('postgresql')
      const storage = await openStorage(location, { acquireTimeout: 2_000 })
      const server = await serveStorage(storage, 'postgresql')
      try {
        const held = await holdAll(storage)
        assert.ok(held.length > 0)
        assert.equal((await fetch(`${server.url}/readyz`)).status, 200)
        for (const tx of held) await tx.rollback().execute()
      } finally {
        await server.close()
        await storage.close()
        await remove()
      }
    })
  },
)

describe(
  'A server whose short statements wait for the lock of a table',
  { skip: !databases.includes('postgresql') },
  () => {
    it('stays ready', async () => {
      const { location, remove } = await createDatabase('postgresql')
      const [storage, other] = [await openStorage(location), await openStorage(location)]
      const server = await serveStorage(storage, 'postgresql')
      try {
        const tx = await other.db.startTransaction().execute()
        await sql`lock table contacts in access exclusive mode`.execute(tx)
        const reads = Array.from({ length: 8 }, () =>
          sql`${sql.raw(QUICK)} select from contacts limit 1`.execute(storage.db),
        )
        await waitUntil('both connections of short statements wait', async () => {
          const { rows } = await sql<{ n: string }>`
            select count(*) as n from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'`.execute(other.db)
          return Number(rows[0]!.n) > 1
        })
        assert.equal((await fetch(`${server.url}/readyz`)).status, 200)
        await tx.rollback().execute()
        await Promise.allSettled(reads)
      } finally {
        await server.close()
        await storage.close()
        await other.close()
        await remove()
      }
    })
  },
)

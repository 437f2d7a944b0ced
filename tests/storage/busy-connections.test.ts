import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openStorage, type Storage } from '../../storage/open.ts'
import { createDatabase, databases } from '../databases.ts'
import { serveStorage } from '../servers.ts'

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
      const storage = await openStorage(location, { acquireTimeout: 200 })
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

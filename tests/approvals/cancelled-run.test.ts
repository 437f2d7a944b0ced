import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { everyDatabase } from '../doors.ts'
import { createAgentScene, markApproved } from './scene.ts'

// On a database of its own: it locks the keys of all workspaces.
everyDatabase(
  'Approved calls that are cancelled',
  (server, database) => {
    // The embedded database has one session, which no other can keep waiting.
    if (database === 'embedded') return
    it('a request that an erasure cancels while a server prepares its call does not run', async () => {
      const scene = await createAgentScene(server())
      const { id } = (await scene.ask(...scene.reply('Yes.'))).body.approval
      const { db } = server()
      const readLease = async () =>
        (await db.selectFrom('approvals').select('lease_until').where('id', '=', id).executeTakeFirst())
          ?.lease_until
      await markApproved({ db, workspace: scene.workspace }, id)
      const before = await readLease()
      const tx = await db.startTransaction().execute()
      // The server waits here, after it has taken the lease.
      await sql`lock table api_keys in access exclusive mode`.execute(tx)
      const working = scene.work()
      while ((await readLease()) === before) await setImmediate()
      await sql`update approvals set status = 'cancelled', ended_at = now() where id = ${id}`.execute(tx)
      await tx.commit().execute()
      await working
      assert.deepEqual(await scene.sandbox.sent(scene.phone), [])
      assert.equal((await scene.person('approvals_get', { approval_id: id })).body.status, 'cancelled')
    })
  },
  { dedicated: true },
)

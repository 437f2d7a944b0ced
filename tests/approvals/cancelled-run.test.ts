import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { lockAsking } from '../../storage/agents/approvals.ts'
import { holdErasures } from '../../storage/privacy/erasures.ts'
import { everyDatabase } from '../doors.ts'
import { finishErasures } from '../person.ts'
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
        (
          await db
            .selectFrom('runs')
            .select('lease')
            .where('kind', '=', 'approved_calls')
            .where('subject', '=', id)
            .executeTakeFirst()
        )?.lease
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

    /** An agent that asks to delete a contact, who is erased meanwhile. */
    const createErasedScene = async () => {
      const scene = await createAgentScene(server())
      const { db } = server()
      const isWaitedFor = async (): Promise<boolean> =>
        (await sql`select from pg_locks where not granted and locktype = 'advisory'`.execute(db)).rows
          .length > 0
      return {
        ...scene,
        askToDelete: () => scene.ask('crm_delete_contact', { contact_id: scene.contactId }),
        erase: () => scene.person('crm_erase_contact', { contact_id: scene.contactId }, { confirm: 'erase' }),
        /** Returns when the call waits for a transaction, or has ended. */
        untilItWaits: async (calling: Promise<unknown>): Promise<void> => {
          let hasEnded = false
          void calling.finally(() => (hasEnded = true))
          while (!hasEnded && !(await isWaitedFor())) await setImmediate()
        },
        listLeft: async () => {
          await finishErasures(server(), scene.workspace.id)
          const { rows } = await sql`
            select status, preview from approvals
            where workspace_id = ${scene.workspace.id} and (status = 'pending' or preview is not null)`.execute(
            db,
          )
          return rows
        },
      }
    }

    it('an erasure between the rehearsal of a call and its request leaves no request', async () => {
      const scene = await createErasedScene()
      const tx = await server().db.startTransaction().execute()
      await lockAsking(tx, scene.workspace.id, scene.agent.keyId)
      const asking = scene.askToDelete()
      await scene.untilItWaits(asking)
      const erased = await scene.erase()
      await tx.commit().execute()
      assert.equal(erased.status, 202)
      // On a busy machine it may have waited for too long.
      assert.notEqual((await asking).status, 202)
      assert.deepEqual(await scene.listLeft(), [])
    })

    it('an erasure waits for requests that are being stored, and cancels them', async () => {
      const scene = await createErasedScene()
      const { id } = (await scene.askToDelete()).body.approval
      const tx = await server().db.startTransaction().execute()
      await holdErasures(tx, scene.workspace.id)
      await sql`
        insert into approvals (workspace_id, key_id, staff_id, operation, input, digest, door, request_id, asked_for,
          preview, view, contact_id, channel_ids, requested_at, expires_at)
        select workspace_id, key_id, staff_id, operation, input, 'other'::bytea, door, request_id, asked_for,
          preview, view, contact_id, channel_ids, requested_at, expires_at
        from approvals where workspace_id = ${scene.workspace.id} and id = ${id}`.execute(tx)
      const erasing = scene.erase()
      await scene.untilItWaits(erasing)
      await tx.commit().execute()
      assert.equal((await erasing).status, 202)
      assert.deepEqual(await scene.listLeft(), [])
    })
  },
  { dedicated: true },
)

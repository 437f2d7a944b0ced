import assert from 'node:assert/strict'
import { it } from 'node:test'
import { revokeKey, updateKey } from '../../storage/access/admin-keys.ts'
import type { Db } from '../../storage/database.ts'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { type BulkScene, createBulkScene, phoneOf, runSends, TEMPLATE } from './scene.ts'

/** Two messages in a second: of eight recipients, some still wait when the first one has its message. */
const SLOW = { per_second: 2 }
const RECIPIENTS = 8

const createScene = async (server: Parameters<typeof createBulkScene>[0]): Promise<BulkScene> => {
  const scene = await createBulkScene(server)
  for (let n = 0; n < RECIPIENTS; n++)
    await scene.add({ phone: `+${phoneOf(scene.workspace.id, n, '4930')}`, name: `Ada ${n}` })
  return scene
}

/** Waits until a message of a broadcast arrived. */
const findFirst = async ({ sandbox }: BulkScene): Promise<void> => {
  while ((await sandbox.sent()).length === 0);
}

let clock: number | undefined

everyDatabase(
  'A broadcast on its way',
  (server) => {
    const changes = {
      'its key was revoked': revokeKey,
      'its key lost the scope': (db: Db, workspaceId: string, id: string) =>
        updateKey(db, workspaceId, id, { scopes: ['mcp:read'] }),
    }
    for (const [name, change] of Object.entries(changes))
      it(`stops within a second after ${name}`, async () => {
        const scene = await createScene(server())
        const { id: workspaceId, owner, key } = scene.workspace
        const sender = await key(owner.staffId)
        const input = { filter: {}, all: true, template: TEMPLATE, ...SLOW }
        const send = callAs(server(), sender.key)
        const { body } = await send('messaging_send_bulk', input, { confirm: 'send' })
        await findFirst(scene)
        await change(server().db, workspaceId, sender.keyId, new Date().toISOString())
        await runSends(server())
        const sent = (await scene.sandbox.sent()).length
        assert.ok(sent <= 4, `${sent} of ${RECIPIENTS} messages were sent`)
        const jobs = await server()
          .db.selectFrom('bulk_jobs')
          .select(['id', 'state'])
          .where('workspace_id', '=', workspaceId)
          .execute()
        assert.deepEqual(jobs, [{ id: body.job.id, state: 'failed' }])
      })

    it('sends nothing after the hours of its recipients', async () => {
      clock = Date.parse('2026-07-01T17:59:00.000Z')
      const scene = await createScene(server())
      const { body } = await scene.send({ ...SLOW, hours: { from: '09:00', to: '20:00' } })
      await findFirst(scene)
      clock += 60_000
      await runSends(server())
      const sent = (await scene.sandbox.sent()).length
      assert.ok(sent <= 4, `${sent} of ${RECIPIENTS} messages were sent`)
      const { waiting } = await scene.run('messaging_get_broadcast', { broadcast_id: body.broadcast.id })
      assert.deepEqual(waiting, { reason: 'hours', until: '2026-07-02T07:00:00.000Z' })
      await scene.run('jobs_cancel', { job_id: body.job.id })
      clock = undefined
    })

    it('holds up no other one', async () => {
      const [slow, quick] = [await createScene(server()), await createScene(server())]
      const { body } = await slow.send(SLOW)
      await findFirst(slow)
      await quick.send()
      while ((await quick.sandbox.sent()).length < RECIPIENTS);
      const { state } = await slow.run('jobs_get', { job_id: body.job.id })
      assert.equal(state, 'running')
      await slow.run('jobs_cancel', { job_id: body.job.id })
      await runSends(server())
    })
  },
  { now: () => new Date(clock ?? Date.now()).toISOString(), dedicated: true },
)

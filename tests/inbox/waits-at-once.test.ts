import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createBridgeScene } from '../channels/bridge.ts'
import { everyDatabase } from '../doors.ts'

everyDatabase(
  'Waits for replies',
  (server) => {
    it('all count where several begin in one second', async () => {
      const scene = await createBridgeScene(server())
      const { workspace, inbound, reply, deliver } = scene
      const second = Math.floor(Date.parse(server().app.now()) / 1000) * 1000 - 3_600_000
      const listWaits = async () =>
        (
          await server()
            .db.selectFrom('reply_waits')
            .select('since')
            .where('workspace_id', '=', workspace.id)
            .orderBy('since')
            .execute()
        ).map(({ since }) => Date.parse(since) - second)
      const waits: number[][] = []
      for (const [n, ms] of [999, 999, 0, 0].entries()) {
        const { body } = await inbound({
          id: `m${n}`,
          from: { id: 'v' },
          text: 'Hello',
          at: new Date(second + ms).toISOString(),
        })
        waits.push(await listWaits())
        assert.equal((await reply(body.conversation_id)).status, 201)
        await deliver()
      }
      await scene.bridge.close()
      assert.deepEqual(waits, [[999], [999, 1000], [0, 999, 1000], [0, 1, 999, 1000]])
    })
  },
  { ownJobs: true },
)

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { everyDatabase } from '../doors.ts'
import { createBridgeScene, openDelivery, postAs } from './bridge.ts'

/** The bodies of docs/channels.md: what its commands post, and what it says is answered and delivered. */
const guide = readFileSync('docs/channels.md', 'utf8')
const posted = [...guide.matchAll(/\/channels\/3\/(\w+) [^]*?-d '(.*)'/g)].map(([, what, json]) => ({
  what: what as 'inbound' | 'statuses',
  body: JSON.parse(json!) as Record<string, unknown>,
}))
const [answered, delivered] = [...guide.matchAll(/```json\n(.*)\n```/g)].map(
  ([, json]) => JSON.parse(json!) as Record<string, unknown>,
)

everyDatabase(
  'docs/channels.md',
  (server) => {
    it('shows what is posted, answered and delivered', async () => {
      assert.deepEqual(
        posted.map(({ what }) => what),
        ['inbound', 'statuses'],
      )
      const scene = await createBridgeScene(server(), 'web')
      const received = await postAs(server(), scene.channel, 'inbound', posted[0]!.body)
      assert.equal(received.status, 201, JSON.stringify(received.body))
      assert.deepEqual(Object.keys(received.body), Object.keys(answered!))
      const reply = await scene.reply(received.body.conversation_id, { text: delivered!['text'] })
      await scene.deliver()
      const body = openDelivery(scene.bridge.received[0]!, scene.channel.secret)
      assert.deepEqual(Object.keys(body), Object.keys(delivered!))
      for (const member of ['to', 'from'])
        assert.deepEqual(Object.keys(body[member]), Object.keys(delivered![member] as object))
      const status = { ...posted[1]!.body, message_id: reply.body.message.id }
      const answer = await postAs(server(), scene.channel, 'statuses', status)
      assert.deepEqual(answer.body, { message_id: reply.body.message.id, status: 'read', changed: true })
      await scene.bridge.close()
    })
  },
  { ownJobs: true },
)

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { everyDatabase } from '../doors.ts'
import { findColumnsWith, finishErasures } from '../person.ts'
import { createBridgeScene } from './bridge.ts'

const MARKER = 'wobblethorpe'

everyDatabase(
  'The erasure of a person of a channel of one’s own',
  (server) => {
    it('leaves nothing of them, nor the reply that waits for the bridge', async () => {
      const scene = await createBridgeScene(server())
      try {
        const from = {
          id: `${MARKER}-visitor`,
          name: `Ada ${MARKER}`,
          email: `${MARKER}@example.com`,
          phone: '+1 555 987 3140',
        }
        const inbound = (n: number) => scene.inbound({ id: `${MARKER}-${n}`, from, text: `From ${MARKER}` })
        const { status, body } = await inbound(1)
        assert.equal(status, 201, JSON.stringify(body))
        const external = { text: `Dear ${MARKER}`, external_id: `${MARKER}-order` }
        const reply = await scene.reply(body.conversation_id, external)
        assert.ok(reply.status < 300, reply.text)
        const texts = [MARKER, '15559873140']
        const held = await findColumnsWith(server().db, texts)
        for (const name of [
          'channel_customers.customer_id',
          'channel_deliveries.body',
          'messages.provider_id',
        ])
          assert.ok(held.includes(name), `${name} is not among ${held.join(', ')}`)
        await scene.run('crm_erase_contact', { contact_id: body.contact_id })
        await finishErasures(server(), scene.workspace.id)
        assert.deepEqual(await findColumnsWith(server().db, texts), [])
        await scene.deliver()
        assert.equal(scene.bridge.received.length, 0)
        const again = await scene.reply(body.conversation_id)
        assert.ok(again.status >= 400, again.text)
        // The bridge's customer writes again: a stranger.
        const { body: later } = await inbound(2)
        assert.notEqual(later.contact_id, body.contact_id)
        assert.notEqual(later.conversation_id, body.conversation_id)
      } finally {
        await scene.bridge.close()
      }
    })
  },
  { dedicated: true },
)

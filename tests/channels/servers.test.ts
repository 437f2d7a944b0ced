import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { databases } from '../databases.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { summarizeReply } from '../messaging/fixtures.ts'
import { makeWorkspace, startSharedServers } from '../servers.ts'
import { startReceiver } from '../webhooks/receiver.ts'
import { createOwnChannel, post } from './bridge.ts'

everyDoor('A reply on a channel of one’s own', (test) => {
  test('is delivered as soon as it is committed', async ({ server, workspace, door, call }) => {
    let taken: (body: string) => void = () => {}
    const arrived = new Promise<string>((resolve) => {
      taken = resolve
    })
    const bridge = await startReceiver(({ body }) => {
      taken(body)
      return {}
    })
    const channel = await createOwnChannel(server, workspace.id, bridge.url)
    const hello = { id: '1', from: { id: 'v' }, text: 'Hello' }
    const { conversation_id: id } = await post(server, channel, 'inbound', hello)
    const input = { conversation_id: id, text: 'Hi' }
    const rehearsal = await call('messaging_send_reply', { ...input, dry_run: true })
    assert.equal(rehearsal.status, 201, rehearsal.text)
    // Only a human can confirm through MCP.
    const send = door.confirms ? call : callAs(server, workspace.owner.key)
    const reply = await send('messaging_send_reply', input, { confirm: 'send' })
    assert.deepEqual([reply.status, reply.body.message.status], [201, 'pending'], reply.text)
    assert.equal(JSON.parse(await arrived).id, reply.body.message.id)
    const run = doAs(server, workspace.owner.key)
    const read = () => run('messaging_get_message', { message_id: reply.body.message.id })
    while ((await read()).status !== 'sent') await new Promise((resolve) => setImmediate(resolve))
    assert.equal(bridge.received.length, 1)
    await bridge.close()
  })
})

everyDatabase(
  'Without a messaging provider',
  (server) => {
    it('channels of one’s own work, and no other does', async () => {
      const workspace = await makeWorkspace(server())
      const bridge = await startReceiver()
      const channel = await createOwnChannel(server(), workspace.id, bridge.url)
      const hello = { id: '1', from: { id: 'v' }, text: 'Hello' }
      const { conversation_id: id } = await post(server(), channel, 'inbound', hello)
      const call = callAs(server(), workspace.owner.key)
      const confirm = { confirm: 'send' }
      // To staff who do not see its channel, a conversation is like one that does not exist.
      const stranger = callAs(server(), (await workspace.staff({ channel_ids: [] })).key)
      for (const dry_run of [true, false]) {
        const reply = await call(
          'messaging_send_reply',
          { conversation_id: id, text: 'Hi', dry_run },
          confirm,
        )
        assert.equal(reply.status, 201, reply.text)
        const none = await call(
          'messaging_send_reply',
          { conversation_id: '99', text: 'Hi', dry_run },
          confirm,
        )
        assert.deepEqual(summarizeReply(none).slice(0, 2), [503, 'service_unconfigured'])
        const hidden = await stranger(
          'messaging_send_reply',
          { conversation_id: id, text: 'Hi', dry_run },
          confirm,
        )
        assert.deepEqual(summarizeReply(hidden), summarizeReply(none))
      }
      const run = doAs(server(), workspace.owner.key)
      const last = async () => (await run('inbox_get_conversation', { conversation_id: id })).last_message
      while ((await last()).status !== 'sent') await new Promise((resolve) => setImmediate(resolve))
      await bridge.close()
    })
  },
  { provider: { provider: 'none' } },
)

describe('Several servers', () => {
  it('deliver each reply once, a few at a time', { skip: !databases.includes('postgresql') }, async () => {
    const { servers, close } = await startSharedServers(3)
    let [open, most] = [0, 0]
    const bridge = await startReceiver(async () => {
      most = Math.max(most, ++open)
      await new Promise((resolve) => setTimeout(resolve, 20))
      open--
      return {}
    })
    try {
      const [first] = servers
      const workspace = await makeWorkspace(first!)
      const channel = await createOwnChannel(first!, workspace.id, bridge.url)
      const replies = await Promise.all(
        Array.from({ length: 40 }, async (_, n) => {
          const hello = { id: `${n}`, from: { id: `v${n}` }, text: 'Hello' }
          const { conversation_id: id } = await post(servers[n % 3]!, channel, 'inbound', hello)
          const run = doAs(servers[(n + 1) % 3]!, workspace.owner.key)
          return (await run('messaging_send_reply', { conversation_id: id, text: `Hi ${n}` })).message.id
        }),
      )
      const run = doAs(first!, workspace.owner.key)
      const rows = async () => (await run('inbox_search_conversations', { limit: 100 })).data
      while ((await rows()).some(({ last_message }: any) => last_message.status !== 'sent'))
        for (const { app } of servers) app.jobs.job('channel-deliveries').wake()
      const ids = bridge.received.map(({ headers }) => headers['webhook-id'])
      assert.deepEqual(ids.toSorted(), replies.toSorted())
      assert.ok(most <= 8, `${most} requests at once`)
    } finally {
      await bridge.close()
      await close()
    }
  })
})

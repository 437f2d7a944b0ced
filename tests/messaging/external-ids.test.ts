import assert from 'node:assert/strict'
import { doAs } from '../calls.ts'
import { everyDoor } from '../doors.ts'
import { createSandboxDriver, generatePhone } from './fixtures.ts'

const confirm = { confirm: 'send' }

everyDoor('External ids of messages', (test) => {
  test('are stored with a send, found by, and taken once', async ({ server, workspace, call, door }) => {
    const sandbox = createSandboxDriver(server, workspace)
    const run = doAs(server, workspace.owner.key)
    const phone = generatePhone()
    await sandbox.say({ from: `+${phone}`, name: 'Ada', text: 'Is my order on its way?' })
    const [conversation] = (await run('inbox_search_conversations')).data
    const input = { conversation_id: conversation.id, text: 'It is.', external_id: 'order/7' }

    const rehearsed = await call('messaging_send_reply', { ...input, dry_run: true })
    assert.deepEqual([rehearsed.status, rehearsed.body.message.external_id], [201, 'order/7'])
    assert.equal((await call('messaging_get_message', { external_id: 'order/7' })).status, 404)
    // MCP cannot confirm: another door sends.
    const send = door.confirms
      ? call
      : async (op: string, body: object) => ({ status: 201, body: await run(op, { ...body }) })
    const options = { ...confirm, idempotencyKey: `external-${door.name}-${workspace.id}` }
    const sent = await send('messaging_send_reply', input, options)
    assert.deepEqual([sent.status, sent.body.message.external_id], [201, 'order/7'])
    const { id } = sent.body.message
    if (door.confirms) assert.equal((await call('messaging_send_reply', input, options)).body.message.id, id)
    const read = await call('messaging_get_message', { external_id: 'order/7' })
    assert.deepEqual([read.status, read.body.id, read.body.text], [200, id, 'It is.'])
    assert.equal((await call('messaging_get_message', { message_id: id })).body.external_id, 'order/7')

    const again = await call('messaging_send_reply', { ...input, text: 'Once more.', dry_run: true })
    assert.deepEqual([again.status, again.body.reason], [409, 'external_id_taken'])
    assert.match(
      again.body.detail,
      new RegExp(`^Message ${id} has the external id order/7\\. Nothing was sent\\.`),
    )
    if (door.confirms)
      assert.equal((await call('messaging_send_reply', { ...input, text: 'Again.' }, confirm)).status, 409)
    assert.equal((await sandbox.sent(phone)).length, 1)
    const events = (await run('events_list', { types: ['message.sent/1'] })).data
    assert.deepEqual(
      events.map(({ data }: any): unknown => data.message.external_id),
      ['order/7'],
    )
    // Staff without access to the channel are told of no message.
    const limited = doAs(server, (await workspace.staff({ channel_ids: ['999999'] })).key)
    await assert.rejects(limited('messaging_get_message', { external_id: 'order/7' }), /No message with the/)
  })
})

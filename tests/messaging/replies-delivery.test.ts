import assert from 'node:assert/strict'
import { it } from 'node:test'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { createChannel, updateStaff } from '../../storage/workspace/admin.ts'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { listEmittedEventTypes } from './fixtures.ts'
import { createReplyScene } from './replies.ts'

everyDatabase('Replies: delivery', (server) => {
  const createScene = () => createReplyScene(server())

  it('a reply is sent once when the response of the provider is lost', async () => {
    const { workspace, reply, sandbox, phone, id, run } = await createScene()
    await sandbox.fault({ to: `+${phone}`, drop_answer: true, times: 2 })
    const key = `lost-reply-${workspace.id}`
    assert.equal((await reply({ text: 'Once' }, { idempotencyKey: key })).status, 504)
    assert.deepEqual(
      (await run('inbox_list_messages', { conversation_id: id, limit: 1 })).data.map(
        (m: { status: string }) => m.status,
      ),
      ['pending'],
    )
    const retried = await reply({ text: 'Once' }, { idempotencyKey: key })
    assert.equal(retried.status, 201, retried.text)
    assert.equal((await sandbox.sent(phone)).length, 1)
    assert.equal(
      (await listEmittedEventTypes(server(), workspace)).filter((type) => type === 'message.sent/1').length,
      1,
    )
    assert.equal((await reply({ text: 'Once' }, { idempotencyKey: key })).text, retried.text)
  })

  it('a reply is sent once when a status arrives before the retry', async () => {
    const { workspace, reply, sandbox, phone, run } = await createScene()
    await sandbox.fault({ to: `+${phone}`, drop_answer: true })
    const key = `quick-reply-${workspace.id}`
    assert.equal((await reply({ text: 'Once' }, { idempotencyKey: key })).status, 504)
    await server().settle()
    const retried = await reply({ text: 'Once' }, { idempotencyKey: key })
    assert.deepEqual([retried.status, retried.body.message.status], [201, 'delivered'])
    assert.equal(
      (await run('messaging_get_message', { message_id: retried.body.message.id })).status,
      'delivered',
    )
    assert.equal((await sandbox.sent(phone)).length, 1)
    assert.deepEqual(
      (await listEmittedEventTypes(server(), workspace)).filter((type) =>
        /^message\.(sent|delivered)/.test(type),
      ),
      ['message.sent/1', 'message.delivered/1'],
    )
  })

  it('a repeat after the staff member lost the channel tells nothing, whoever finds the outcome', async () => {
    const { workspace, id, channelId, phone, sandbox } = await createScene()
    const { staffId } = await workspace.staff({ role: 'agent' })
    const other = await createChannel(
      server().db,
      workspace.id,
      { type: 'custom', name: 'Other', identifier: 'other', status: 'connected' },
      server().app.now(),
    )
    const send = async (channels: string[], name: string) => {
      await updateStaff(server().db, workspace.id, staffId, { channel_ids: channels }, undefined)
      const { key } = await workspace.key(staffId)
      return await callAs(server(), key)(
        'messaging_send_reply',
        { conversation_id: id, text: name },
        { confirm: 'send', idempotencyKey: `${name}-${workspace.id}` },
      )
    }
    await sandbox.fault({ to: `+${phone}`, drop_answer: true, times: 2 })
    assert.equal((await send([channelId], 'by-repeat')).status, 504)
    assert.equal((await send([channelId], 'by-worker')).status, 504)
    const repeated = [await send([other.id], 'by-repeat')]
    await reconcileProviderCalls(server().app)
    repeated.push(await send([other.id], 'by-repeat'), await send([other.id], 'by-worker'))
    for (const { status, body } of repeated)
      assert.deepEqual([status, body.reason], [409, 'visibility_changed'])
    assert.equal((await send([channelId], 'by-worker')).status, 201)
  })

  it('a rejection by the provider leaves no message', async () => {
    const { workspace, reply, sandbox, phone, id, run } = await createScene()
    const before = await run('inbox_get_conversation', { conversation_id: id })
    const key = `rejected-reply-${workspace.id}`
    await sandbox.fault({ to: `+${phone}`, code: 131026 })
    const rejected = await reply({ text: 'Hi' }, { idempotencyKey: key })
    assert.deepEqual(
      [rejected.status, rejected.body.code, rejected.body.provider_code],
      [502, 'upstream_error', 131026],
    )
    assert.ok(!rejected.text.includes(phone))
    assert.deepEqual(await run('inbox_get_conversation', { conversation_id: id }), before)
    assert.equal((await run('inbox_list_messages', { conversation_id: id })).data.length, 1)
    assert.equal(
      (await reply({ text: 'Hi' }, { idempotencyKey: key })).status,
      201,
      'the idempotency key can be used again',
    )
    for (const code of [131056, 130429]) {
      await sandbox.fault({ to: `+${phone}`, code })
      const throttled = await reply(
        { text: 'Later' },
        { idempotencyKey: `throttled-reply-${code}-${workspace.id}` },
      )
      assert.deepEqual([throttled.status, throttled.body.code], [503, 'upstream_unavailable'])
      assert.ok(Number(throttled.headers['retry-after']) > 0)
      assert.equal(
        (await reply({ text: 'Later' }, { idempotencyKey: `throttled-reply-${code}-${workspace.id}` }))
          .status,
        201,
      )
    }
    assert.equal((await sandbox.sent(phone)).length, 3)
  })

  it('concurrent calls send one message for each idempotency key', async () => {
    const { workspace, reply, sandbox, phone } = await createScene()
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        reply({ text: `Reply ${n % 10}` }, { idempotencyKey: `many-reply-${workspace.id}-${n % 10}` }),
      ),
    )
    assert.ok(
      replies.every(({ status }) => status === 201 || status === 409),
      JSON.stringify(replies.map((a) => a.status)),
    )
    assert.equal((await sandbox.sent(phone)).length, 10)
  })
})

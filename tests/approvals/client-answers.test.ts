import assert from 'node:assert/strict'
import { it } from 'node:test'
import { defaultPolicy } from '../../catalog/policy.ts'
import { doorsOf, everyDatabase } from '../doors.ts'
import { insertSandboxTemplates, ORDER_UPDATE } from '../messaging/send-template.ts'
import { callConfirming, createAgentScene } from './scene.ts'

everyDatabase("A no of the person behind an agent's client", (server) => {
  it('holds under any idempotency key and at every door', async () => {
    const scene = await createAgentScene(server())
    await scene.setPolicy({ approval: 'client' })
    const at = { url: server().url, key: scene.agent.key }
    const call = scene.reply('No?')
    const no = async () => await callConfirming(at, call, undefined, { action: 'decline' })
    const first = await no()
    assert.deepEqual([first.questions, first.code], [1, 'declined'])
    for (const again of [await no(), await callConfirming(at, call)])
      assert.deepEqual([again.questions, again.code], [0, 'declined'])
    for (const door of doorsOf(server().url, scene.agent.key)) {
      const { status, body, text } = await door.call(...call)
      assert.deepEqual([status, body.code], [403, 'declined'], `${door.name}: ${text}`)
    }
    const yes = await callConfirming(at, scene.reply('Another.'))
    assert.deepEqual([yes.questions, yes.result?.message?.status], [1, 'sent'])
    assert.equal((await scene.as(await scene.rotate())(...call)).body.code, 'declined')
    const other = await scene.workspace.key(scene.manager.staffId, { agent: true })
    assert.equal((await scene.as(other.key)(...call)).status, 202)
    assert.equal((await scene.sandbox.sent(scene.phone)).length, 1)
  })

  it('to a call that refers to a saved reply holds for what was sent', async () => {
    const scene = await createAgentScene(server())
    const { body: quick } = await scene.ask('messaging_create_quick_message', { code: 'no', text: 'No.' })
    await scene.setPolicy({ approval: 'client' })
    const at = { url: server().url, key: scene.agent.key }
    const input = { conversation_id: scene.id, quick_message_id: quick.id as string }
    const no = async () =>
      await callConfirming(at, ['messaging_send_reply', input], undefined, { action: 'decline' })
    const asked = [await no(), await no()].map(({ questions, code }) => [questions, code])
    assert.deepEqual(asked, [
      [1, 'declined'],
      [0, 'declined'],
    ])
  })

  it('is asked for where a bound is not met, and not where all are', async () => {
    const scene = await createAgentScene(server())
    await insertSandboxTemplates(server(), scene.workspace, {})
    const verbs = { ...defaultPolicy.verbs, send: 'allow' as const }
    await scene.setPolicy({ approval: 'client', verbs, bounds: { templates: ['another'] } })
    const at = { url: server().url, key: scene.agent.key }
    const input = { contact_id: scene.contactId, template: ORDER_UPDATE }
    const sent = await callConfirming(at, ['messaging_send_template', input])
    assert.deepEqual([sent.questions, sent.result?.message?.status], [1, 'sent'])
    const free = await callConfirming(at, scene.reply('Free.'))
    assert.deepEqual([free.questions, free.result?.message?.status], [0, 'sent'])
  })
})

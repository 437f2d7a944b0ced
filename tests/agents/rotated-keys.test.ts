import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createAgentScene, markApproved } from '../approvals/scene.ts'
import { doorsOf, everyDatabase } from '../doors.ts'

const DAY_MS = 86_400_000

/*
 * A key that replaces another one is the same agent's, and both are valid for a day unless said otherwise: neither is a
 * way round what the other was refused, has used up or waits for.
 */
everyDatabase('The keys of an agent whose key was replaced', (server) => {
  const allow = { verbs: { send: 'allow' as const } }

  it('have the same requests and the same nos, at every door', async () => {
    const scene = await createAgentScene(server())
    const keys = { idempotencyKey: 'waits-for-a-person-1' }
    const no = (await scene.ask(...scene.reply('No.'))).body.approval.id
    await scene.person('approvals_decline', { approval_id: no })
    const { id } = (await scene.ask(...scene.reply('Wait.'), keys)).body.approval
    const both = [scene.agent.key, await scene.rotate(DAY_MS)]
    const newer = scene.as(both[1]!)
    const later = (await newer(...scene.reply('Asked by the new one.'))).body.approval.id
    const doors = both.flatMap((key) => doorsOf(server().url, key))
    for (const [n, door] of doors.entries()) {
      const name = `${door.name}, key ${n < doors.length / 2 ? 'before' : 'after'}`
      assert.equal((await door.call(...scene.reply('No.'))).body.code, 'declined', name)
      for (const options of [{}, keys]) {
        const { status, body, text } = await door.call(...scene.reply('Wait.'), options)
        assert.deepEqual([status, body.approval?.id], [202, id], `${name}: ${text}`)
      }
      const { body } = await door.call('approvals_list', { status: 'pending' })
      assert.deepEqual(
        body.data?.map((row: { id: string }) => row.id),
        [later, id],
        name,
      )
      assert.equal((await door.call('approvals_get', { approval_id: id })).body.status, 'pending', name)
      const events = await door.call('events_list', { types: ['approval.requested'], limit: 50 })
      assert.equal(events.body.data?.length, 3, `${name}: ${events.text}`)
    }
    await scene.person('approvals_approve', { approval_id: id })
    await scene.work()
    for (const { name, call } of doors) {
      const { status, text } = await call(...scene.reply('Wait.'), keys)
      assert.equal(status, 201, `${name}: ${text}`)
    }
    assert.equal((await scene.sandbox.sent(scene.phone)).length, 1)
  })

  it('have one count of messages and one of contacts', async () => {
    const scene = await createAgentScene(server())
    await scene.setPolicy({ ...allow, bounds: { sends_per_hour: 3 } })
    assert.equal((await scene.ask(...scene.reply('First.'))).status, 201)
    const callers = [scene.ask, scene.as(await scene.rotate(DAY_MS))]
    const statuses = await Promise.all(
      [1, 2, 3].flatMap((n) => callers.map(async (ask) => (await ask(...scene.reply(`Text ${n}`))).status)),
    )
    assert.deepEqual(statuses.toSorted(), [201, 201, 202, 202, 202, 202])
    const ids: string[] = []
    for (let n = 0; n < 4; n++)
      ids.push(
        (await scene.person('crm_upsert_contact', { phone: `+1555017${1000 + n}`, name: 'V' })).body.id,
      )
    await server().db.updateTable('api_keys').set({ contacts_per_day: 4 }).where('agent', '=', true).execute()
    server().app.keyCache.keys.clear()
    const seen: number[] = []
    for (const [n, id] of ids.entries())
      seen.push((await callers[n % 2]!('crm_get_contact', { contact_id: id })).status)
    // One is the contact who was written to.
    assert.deepEqual(seen, [200, 200, 200, 429])
  })

  it('go on with what either began', async () => {
    const scene = await createAgentScene(server())
    const ask = (text: string) => scene.ask(...scene.reply(text))
    const { id } = (await ask('Approved before.')).body.approval
    const newer = scene.as(await scene.rotate())
    await markApproved({ db: server().db, workspace: scene.workspace }, id)
    await scene.work()
    assert.equal((await scene.person('approvals_get', { approval_id: id })).body.status, 'done')
    await scene.setPolicy(allow)
    const options = { idempotencyKey: 'sent-before-the-change' }
    const sent = await newer(...scene.reply('Once.'), options)
    assert.equal(sent.status, 201)
    assert.equal((await scene.sandbox.sent(scene.phone)).length, 2)
  })
})

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { doorsOf, everyDatabase } from '../doors.ts'
import { insertSandboxTemplates, ORDER_UPDATE } from '../messaging/send-template.ts'
import { createAgentScene, markApproved } from './scene.ts'

everyDatabase('What a person decides on', (server) => {
  it('of several records are their names', async () => {
    const scene = await createAgentScene(server())
    await insertSandboxTemplates(server(), scene.workspace, { name: 'one' }, { name: 'two' })
    const { data } = (await scene.person('messaging_list_templates', {})).body
    const ids = (data as { id: string }[]).map(({ id }) => id)
    const { approval } = (await scene.ask('messaging_archive_templates', { ids })).body
    const { summary } = (await scene.person('approvals_get', { approval_id: approval.id })).body
    for (const name of ['one', 'two'])
      assert.ok(
        summary.some((line: string) => line.startsWith(`Template: ${name}, en_US`)),
        summary.join('\n'),
      )
  })
})

everyDatabase('A planned call that a person decides', (server) => {
  const createPlanned = async () => {
    const scene = await createAgentScene(server())
    const { id } = (await scene.person('crm_create_group', { name: 'Old' })).body.group
    const input = { group_id: id as string }
    const [rest] = doorsOf(server().url, scene.agent.key)
    const dry = await rest!.call('crm_delete_group', { ...input, dry_run: true }, { plan: 'show' })
    const ask = (plan: string) => rest!.call('crm_delete_group', input, { plan })
    const grow = () =>
      scene.person('crm_add_contacts_to_group', { group_id: id, contact_ids: [scene.contactId] })
    const isThere = async () =>
      (await scene.person('crm_list_groups', {})).body.data.some((group: { id: string }) => group.id === id)
    return { ...scene, token: dry.body.plan.token as string, ask, grow, isThere }
  }

  it('does that, or is refused when it is approved', async () => {
    for (const isChanged of [false, true]) {
      const scene = await createPlanned()
      const asked = await scene.ask(scene.token)
      assert.equal(asked.status, 202, asked.text)
      if (isChanged) await scene.grow()
      const approved = await scene.person('approvals_approve', { approval_id: asked.body.approval.id })
      // The present plan is as the agent sees it.
      const told = [approved.body.reason, approved.body.plan]
      assert.deepEqual(told, [isChanged ? 'plan_changed' : undefined, undefined], approved.text)
      await scene.work()
      assert.equal(await scene.isThere(), isChanged)
    }
  })

  it('is refused when it runs, where the change came after the approval', async () => {
    const scene = await createPlanned()
    const { id } = (await scene.ask(scene.token)).body.approval
    await scene.grow()
    await markApproved({ db: server().db, workspace: scene.workspace }, id)
    await scene.work()
    const { outcome } = (await scene.person('approvals_get', { approval_id: id, wait_seconds: 10 })).body
    assert.equal(outcome?.reason, 'plan_changed')
    assert.equal(await scene.isThere(), true)
  })

  it('is not even asked where the plan does not hold, or is none', async () => {
    const scene = await createPlanned()
    const wrong = await scene.ask('no-plan')
    assert.deepEqual([wrong.status, wrong.body.code], [400, 'invalid_input'], wrong.text)
    await scene.grow()
    const late = await scene.ask(scene.token)
    assert.deepEqual([late.status, late.body.reason], [409, 'plan_changed'], late.text)
    assert.equal((await scene.person('approvals_list', {})).body.data.length, 0)
  })
})

everyDatabase('What is told of approvals', (server) => {
  it('events of those on hidden channels do not exist, as the requests do not', async () => {
    const scene = await createAgentScene(server())
    const { approval } = (await scene.ask(...scene.reply('Yes.'))).body
    await scene.person('approvals_decline', { approval_id: approval.id })
    const listTypes = async (channelIds: string[] | null): Promise<string[]> => {
      const { key } = await scene.workspace.staff({ role: 'manager', channel_ids: channelIds })
      const { data } = (await scene.as(key)('events_list', { limit: 100 })).body
      return (data as { type: string }[])
        .map(({ type }) => type)
        .filter((type) => type.startsWith('approval.'))
    }
    const both = ['approval.requested', 'approval.decided']
    const named = (types: string[]) => types.map((type) => type.split('/')[0])
    assert.deepEqual(named(await listTypes(null)), both)
    assert.deepEqual(named(await listTypes([scene.channelId])), both)
    assert.deepEqual(await listTypes(['999999999']), [])
  })

  it('a key that is paused while it waits learns nothing more', async () => {
    const scene = await createAgentScene(server())
    const { id } = (await scene.ask(...scene.reply('Yes.'))).body.approval
    const waiting = scene.ask('approvals_get', { approval_id: id, wait_seconds: 20 })
    await scene.pause(server().app.now())
    await scene.person('approvals_decline', { approval_id: id, note: 'Secret.' })
    const { status, body } = await waiting
    assert.deepEqual([status, body.reason], [403, 'key_paused'])
  })

  it('the message that a reply quotes, and the channel of a new conversation by its name', async () => {
    const scene = await createAgentScene(server())
    const { data } = (await scene.person('inbox_list_messages', { conversation_id: scene.id })).body
    const [op, input] = scene.reply('Yes.')
    const quoted = data.find((message: { direction: string }) => message.direction === 'inbound')
    const { approval } = (await scene.ask(op, { ...input, reply_to_id: quoted.id })).body
    const { summary } = (await scene.person('approvals_get', { approval_id: approval.id })).body
    assert.ok(summary.includes(`In reply to message ${quoted.id}: ${quoted.text}`), summary.join('\n'))
    await insertSandboxTemplates(server(), scene.workspace, {})
    const created = await scene.person('crm_upsert_contact', { phone: '+15550162001', name: 'Grace' })
    const asked = await scene.ask('messaging_send_template', {
      contact_id: created.body.contact.id,
      template: ORDER_UPDATE,
    })
    const detail = (await scene.person('approvals_get', { approval_id: asked.body.approval.id })).body
    assert.ok(
      detail.summary.some((line: string) => line.startsWith('Channel: Main line')) &&
        detail.summary.includes('Reply window: none; the message begins a conversation'),
      detail.summary.join('\n'),
    )
  })
})

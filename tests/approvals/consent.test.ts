import assert from 'node:assert/strict'
import { it } from 'node:test'
import { defaultPolicy } from '../../catalog/policy.ts'
import { createChannel } from '../../storage/workspace/admin.ts'
import { doorsOf, everyDatabase } from '../doors.ts'
import { insertSandboxTemplates, ORDER_UPDATE } from '../messaging/send-template.ts'
import { generatePhone } from '../messaging/fixtures.ts'
import { callConfirming, createAgentScene, markApproved } from './scene.ts'

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
    const { data: own } = (await scene.ask('events_list', { types: both })).body
    const other = await scene.workspace.key(scene.manager.staffId, { agent: true })
    const { data: others } = (await scene.as(other.key)('events_list', { types: both })).body
    assert.deepEqual([own.length, others.length], [2, 0])
    assert.deepEqual(await listTypes(['999999999']), [])
    const readSummary = async (channelIds: string[] | null): Promise<string[] | undefined> => {
      const { key } = await scene.workspace.staff({ role: 'manager', channel_ids: channelIds })
      const { data } = (await scene.as(key)('events_list', { types: ['approval.requested'] })).body
      return data[0].data.approval.summary
    }
    assert.ok((await readSummary(null))!.includes('Text: Yes.'))
    assert.equal(await readSummary([scene.channelId]), undefined)
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

everyDatabase('A no, and what waits', (server) => {
  it('hold for the same call at the door at which the client asks', async () => {
    const scene = await createAgentScene(server())
    await insertSandboxTemplates(server(), scene.workspace, {})
    const { body: quick } = await scene.ask('messaging_create_quick_message', { code: 'hi', text: 'Hi.' })
    await scene.setPolicy({ approval: 'client' })
    const at = { url: server().url, key: scene.agent.key }
    for (const [op, input] of [
      ['messaging_send_template', { contact_id: scene.contactId, template: ORDER_UPDATE }],
      ['messaging_send_reply', { conversation_id: scene.id, quick_message_id: quick.id as string }],
    ] as const) {
      const { body, text } = await scene.ask(op, input as never)
      const { id } = body.approval ?? assert.fail(text)
      const waiting = await callConfirming(at, [op, input])
      assert.deepEqual([waiting.questions, waiting.result?.approval?.id], [0, id], op)
      await scene.person('approvals_decline', { approval_id: id })
      const declined = await callConfirming(at, [op, input])
      assert.deepEqual([declined.questions, declined.code], [0, 'declined'], op)
    }
    assert.equal((await scene.sandbox.sent(scene.phone)).length, 0)
  })

  it('follow the key that takes the place of the one that asked, with the messages of the hour', async () => {
    const scene = await createAgentScene(server())
    const verbs = { ...defaultPolicy.verbs, send: 'allow' as const }
    await scene.setPolicy({ verbs, bounds: { sends_per_hour: 1 } })
    assert.equal((await scene.ask(...scene.reply('One.'))).status, 201)
    const two = (await scene.ask(...scene.reply('Two.'))).body.approval
    await scene.person('approvals_decline', { approval_id: two.id })
    const three = (await scene.ask(...scene.reply('Three.'))).body.approval
    const ask = scene.as(await scene.rotate())
    assert.equal((await ask(...scene.reply('Two.'))).body.code, 'declined')
    assert.equal((await ask(...scene.reply('Four.'))).status, 202)
    assert.equal((await ask('approvals_get', { approval_id: three.id })).body.status, 'pending')
    await scene.person('approvals_approve', { approval_id: three.id })
    await scene.work()
    const { status } = (await scene.person('approvals_get', { approval_id: three.id, wait_seconds: 10 })).body
    assert.deepEqual([status, (await scene.sandbox.sent(scene.phone)).length], ['done', 2])
  })

  it('repeats under one idempotency key at the same time make one message or one request', async () => {
    const scene = await createAgentScene(server())
    const verbs = { ...defaultPolicy.verbs, send: 'allow' as const }
    await scene.setPolicy({ verbs, bounds: { sends_per_hour: 1 } })
    const options = { idempotencyKey: 'at-the-same-time-1' }
    // While the first is under way, its send is counted and its answer is not stored.
    await scene.sandbox.fault({ to: `+${scene.phone}`, latency_ms: 700, times: 1 })
    const sent = await Promise.all([1, 2, 3, 4].map(() => scene.ask(...scene.reply('Once.'), options)))
    assert.deepEqual(
      sent.filter(({ status }) => status === 202).map(({ body }) => body),
      [],
    )
    const others = { idempotencyKey: 'at-the-same-time-2' }
    const asked = await Promise.all(
      ['A', 'B', 'C', 'D'].map((text) => scene.ask(...scene.reply(text), others)),
    )
    const codes = asked.map(({ status, body }) => body.reason ?? status).toSorted()
    assert.deepEqual(codes, [202, ...Array<string>(3).fill('idempotency_key_reused')])
    assert.equal((await scene.sandbox.sent(scene.phone)).length, 1)
  })

  it('a call that ran under its idempotency key does not run when its request is approved', async () => {
    const scene = await createAgentScene(server())
    const options = { idempotencyKey: 'ran-meanwhile-01' }
    const { id } = (await scene.ask(...scene.reply('Once.'), options)).body.approval
    await server()
      .db.updateTable('approvals')
      .set({ idempotency_key: 'another-key-0001' })
      .where('workspace_id', '=', scene.workspace.id)
      .execute()
    const [op, input] = scene.reply('Once.')
    const { key } = await scene.workspace.key(scene.manager.staffId)
    const own = { confirm: 'send', idempotencyKey: 'another-key-0001' } as const
    assert.equal((await scene.as(key)(op, input, own)).status, 201)
    await scene.person('approvals_approve', { approval_id: id })
    await scene.work()
    const { outcome } = (await scene.person('approvals_get', { approval_id: id, wait_seconds: 10 })).body
    assert.deepEqual(
      [outcome?.reason, (await scene.sandbox.sent(scene.phone)).length],
      ['already_decided', 1],
    )
  })
})

everyDatabase('A template to a phone', (server) => {
  it('goes out on the channel whose template was shown, though the customer wrote on another', async () => {
    const scene = await createAgentScene(server())
    const toBody = (text: string) => ({
      components: [{ type: 'BODY', text, example: { body_text: [['Ada', '17']] } }],
    })
    const ids = { account_id: `76${scene.workspace.id}`, provider_phone_number_id: `86${scene.workspace.id}` }
    const second = await createChannel(
      server().db,
      scene.workspace.id,
      { type: 'chatapp', name: 'Second', identifier: '15550100008', status: 'connected', ...ids },
      server().app.now(),
    )
    await insertSandboxTemplates(
      server(),
      scene.workspace,
      toBody('Hello {{1}}, your order {{2}} is on its way.'),
      { ...toBody('Hello {{1}}, pay {{2}} now.'), account_id: ids.account_id },
    )
    const phone = generatePhone()
    await scene.sandbox.say({ from: `+${phone}`, name: 'Bob', channel_id: second.id, text: 'Hi' })
    const hidden = await scene.workspace.key(scene.workspace.owner.staffId, { phones: false })
    const policy = structuredClone({ ...defaultPolicy, approval: 'client' as const })
    const asking = { agent: true, phones: false }
    const [agent, other] = [
      await scene.workspace.key(scene.manager.staffId, asking),
      await scene.workspace.key(scene.manager.staffId, { ...asking, policy }),
    ]
    const input = { phone: `+${phone}`, template: ORDER_UPDATE }
    const { id } = (await scene.as(agent.key)('messaging_send_template', input)).body.approval
    const { summary } = (await scene.as(hidden.key)('approvals_get', { approval_id: id })).body
    assert.ok(
      summary.some((line: string) => line.startsWith('Channel: Main line')),
      summary.join('\n'),
    )
    const approved = await scene.as(hidden.key)('approvals_approve', { approval_id: id })
    assert.equal(approved.status, 200, approved.text)
    await scene.work()
    const at = { url: server().url, key: other.key }
    const template = { ...ORDER_UPDATE, body: ['Bob', '18'] }
    const confirmed = await callConfirming(at, ['messaging_send_template', { ...input, template }])
    assert.match(confirmed.question, /^Channel: Main line[^]*Hello Bob, your order 18/m)
    const { data } = (await scene.person('inbox_search_conversations', { query: 'Bob' })).body
    const sent = data.map((one: { channel: { name: string }; last_message: { text: string } }) => [
      one.channel.name,
      one.last_message.text,
    ])
    assert.deepEqual(sent.toSorted(), [
      ['Main line', 'Hello Bob, your order 18 is on its way.'],
      ['Second', 'Hi'],
    ])
    assert.equal((await scene.sandbox.sent(phone)).length, 2)
  })
})

everyDatabase('What the question of a client shows', (server) => {
  it('is the file of a saved reply, and a plan of the call holds', async () => {
    const scene = await createAgentScene(server())
    const { body: quick } = await scene.ask('messaging_create_quick_message', {
      code: 'menu',
      type: 'IMAGE',
      text: 'Our menu',
      media_url: 'https://files.example.com/menu.jpg',
    })
    await scene.setPolicy({ approval: 'client' })
    const input = { conversation_id: scene.id, quick_message_id: quick.id as string }
    const [, ops] = doorsOf(server().url, scene.agent.key)
    const dry = await ops!.call('messaging_send_reply', { ...input, dry_run: true }, { plan: 'show' })
    const at = { url: server().url, key: scene.agent.key }
    const sent = await callConfirming(at, ['messaging_send_reply', { ...input, plan: dry.body.plan.token }])
    assert.match(
      sent.question,
      /^File: https:\/\/files\.example\.com\/menu\.jpg[^]*fetched when the message is sent/m,
    )
    assert.deepEqual([sent.code, sent.result?.message?.status], [undefined, 'sent'])
  })

  it('is what can be tapped in a saved reply, which is sent as it was shown', async () => {
    const scene = await createAgentScene(server())
    const { body: quick } = await scene.person('messaging_create_quick_message', {
      code: 'delivery',
      type: 'INTERACTIVE',
      text: 'May we come?',
      interactive: { kind: 'buttons', buttons: [{ title: 'Yes' }, { title: 'No' }], footer: 'The shop' },
      visibility: 'company',
    })
    await scene.setPolicy({ approval: 'client' })
    const at = { url: server().url, key: scene.agent.key }
    const input = { conversation_id: scene.id, quick_message_id: quick.id as string }
    const sent = await callConfirming(at, ['messaging_send_reply', input])
    assert.match(sent.question, /^Text: May we come\?\nTo tap:\n> \[Yes\]\n> \[No\]\n> Footer: The shop$/m)
    assert.deepEqual([sent.code, sent.result?.message?.status], [undefined, 'sent'])
    const posted = (await scene.sandbox.sent(scene.phone)).at(-1)!
    assert.equal((posted['interactive'] as { type: string }).type, 'button')
  })

  it('to an approver of one channel, is the whole text of a template', async () => {
    const scene = await createAgentScene(server())
    await insertSandboxTemplates(server(), scene.workspace, {})
    const limited = await scene.workspace.staff({ role: 'manager', channel_ids: [scene.channelId] })
    const input = { contact_id: scene.contactId, template: ORDER_UPDATE }
    const { id } = (await scene.ask('messaging_send_template', input)).body.approval
    const { summary } = (await scene.as(limited.key)('approvals_get', { approval_id: id })).body
    for (const line of ['Text: Hello Ada, your order 17 is on its way.', 'Recipients: 1'])
      assert.ok(summary.includes(line), summary.join('\n'))
  })

  it('names both contacts that a call merges, and the tag that it deletes', async () => {
    const scene = await createAgentScene(server())
    const { body } = await scene.person('crm_upsert_contact', {
      phone: '+15550100977',
      name: 'Grace',
      tags: ['Press'],
    })
    const summaryOf = async (op: 'crm_merge_contacts' | 'crm_delete_tag', input: object) => {
      const { id } = (await scene.ask(op, input as never)).body.approval
      return ((await scene.person('approvals_get', { approval_id: id })).body.summary as string[]).join('\n')
    }
    const pair = { contact_id: scene.contactId, other_contact_id: body.contact.id }
    const merge = await summaryOf('crm_merge_contacts', pair)
    assert.match(merge, new RegExp(`^Customer: .*Ada.*contact ${scene.contactId}$`, 'm'))
    assert.match(merge, new RegExp(`^Other contact: .*Grace.*15550100977.*id ${body.contact.id}$`, 'm'))
    const tag = body.contact.tags[0].id as string
    assert.match(await summaryOf('crm_delete_tag', { tag_id: tag }), /^Tag: .*Press.*1 contacts/m)
  })

  it('names what a call empties', async () => {
    const scene = await createAgentScene(server())
    const { body } = await scene.person('webhooks_create_endpoint', { url: 'https://hooks.example.com/a' })
    const summaryOf = async (op: 'crm_update_contact' | 'webhooks_update_endpoint', input: object) => {
      const { id } = (await scene.ask(op, input as never)).body.approval
      return (await scene.person('approvals_get', { approval_id: id })).body.summary as string[]
    }
    const contact = { contact_id: scene.contactId, name: null, email: '', dnd: false }
    const ofContact = await summaryOf('crm_update_contact', contact)
    for (const line of ['name: (emptied)', 'email: (emptied)'])
      assert.ok(ofContact.includes(line), ofContact.join('\n'))
    const endpoint = { endpoint_id: body.endpoint.id, description: '', custom_headers: {} }
    const ofEndpoint = await summaryOf('webhooks_update_endpoint', endpoint)
    for (const line of ['description: (emptied)', 'custom_headers: (emptied)'])
      assert.ok(ofEndpoint.includes(line), ofEndpoint.join('\n'))
  })
})

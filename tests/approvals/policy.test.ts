import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { catalog, type Operation } from '../../catalog/index.ts'
import { defaultPolicy, type KeyPolicy } from '../../catalog/policy.ts'
import { changeKey, revokeKey } from '../../storage/access/admin-keys.ts'
import { callAs } from '../calls.ts'
import { databases } from '../databases.ts'
import { doorsOf, everyDatabase } from '../doors.ts'
import { insertSandboxTemplates, ORDER_UPDATE } from '../messaging/send-template.ts'
import { makeWorkspace, startSharedServers } from '../servers.ts'
import { buildExampleInputs, loadWorkspaceRows, seedWorld, withoutPlans, type World } from '../world.ts'
import { callConfirming, createAgentScene, markApproved } from './scene.ts'
import { measureStaleness } from '../staleness.ts'

const writes = catalog.filter(({ scope }) => scope !== 'mcp:read' && scope !== 'approvals:write')
const isAsked = ({ asks, confirm }: Operation): boolean => confirm !== undefined || asks === true

/** What asking writes: the request, its event, and the deliveries of that. */
const OF_ASKING = [
  'approvals',
  'events',
  'webhook_deliveries',
  'contact_views',
  'contact_budgets',
  'idempotency',
]

everyDatabase("The default policy of agents' keys", (server, database) => {
  let world: World
  let agent: string
  before(async () => {
    const workspace = await makeWorkspace(server(), { name: 'Policy' })
    world = await seedWorld(server(), workspace, 'Policyworld', '0155')
    const made = await workspace.key(workspace.owner.staffId, { agent: true, phones: true })
    agent = made.key
    // Every operation is asked for.
    await changeKey(server().db, workspace.id, made.keyId, {
      policy: { ...defaultPolicy, open_approvals: 1000 },
    })
  })

  const loadRows = async (): Promise<Record<string, string[]>> => {
    const rows = await loadWorkspaceRows(server().db, world.workspace.id)
    // What would be done for whom is kept with the request, as a plan.
    return Object.fromEntries(
      Object.entries(withoutPlans(rows)).filter(([table]) => !OF_ASKING.includes(table)),
    )
  }

  for (const op of writes.filter(isAsked))
    it(`${op.name} changes nothing and is asked at every door, whatever the agent confirms`, async () => {
      // A person's dry run shows which input would go through.
      const [ops] = doorsOf(server().url, world.workspace.owner.key).slice(1)
      let good: Record<string, unknown> | undefined
      for (const input of buildExampleInputs(world, op)) {
        const { status } = await ops!.call(op.name, { ...input, dry_run: true })
        if (status < 300) good ??= input
      }
      const rows = await loadRows()
      const doors = doorsOf(server().url, agent)
      for (const door of database === databases[0] ? doors : doors.slice(1, 2)) {
        for (const input of good ? [good] : buildExampleInputs(world, op).slice(0, 1)) {
          const reply = await door.call(op.name, input, {
            ...(op.confirm && door.confirms ? { confirm: op.confirm } : {}),
            idempotencyKey: `policy-${op.name}-${door.name}`,
          })
          if (good) assert.equal(reply.status, 202, `${door.name}: ${reply.text}`)
          else assert.ok(reply.status >= 400 && reply.status < 500, `${door.name}: ${reply.text}`)
        }
      }
      assert.deepEqual(await loadRows(), rows, `${op.name} of an agent changed rows`)
    })

  it('undoing an opt-out, own data as an event, a field shown to all and what others send are asked', async () => {
    const scene = await createAgentScene(server())
    const contact = { contact_id: scene.contactId }
    await scene.person('crm_update_contact', { ...contact, dnd: true })
    const field = { key: 'rank', label: 'Rank', type: 'text', visibility: 'manager_only' }
    const { id } = (await scene.person('crm_create_custom_field', field)).body
    const hook = { url: 'https://hooks.example.com/in', event_types: ['group.created/1'] }
    const { endpoint } = (await scene.person('webhooks_create_endpoint', hook)).body
    const test = { endpoint_id: endpoint.id, event_type_id: 'group.created/1' }
    const reply = await scene.ask('messaging_create_quick_message', {
      code: 'iban',
      text: 'Pay to the usual one.',
    })
    const filter = { name: { startsWith: 'Ada' } }
    const saved = await scene.ask('crm_create_saved_filter', { name: 'Adas', filter })
    const asked = [
      ['crm_update_contact', { ...contact, dnd: false }],
      ['crm_update_contact', { ...contact, dnd: false, name: 'Ada B.' }],
      ['crm_update_contacts', { contact_ids: [scene.contactId], dnd: false }],
      ['crm_record_consent', { ...contact, state: 'granted', proof: 'Form of 3 May' }],
      ['crm_update_custom_field', { custom_field_id: id, visibility: 'visible_to_all' }],
      ['webhooks_send_test', { ...test, payload: { order: 'refund' } }],
      ['messaging_update_quick_message', { quick_message_id: reply.body.id, text: 'Pay to another one.' }],
      ['messaging_update_quick_message', { quick_message_id: reply.body.id, code: 'iban-old' }],
      ['crm_update_saved_filter', { saved_filter_id: saved.body.saved_filter.id, filter: {} }],
      ['crm_update_saved_filter', { saved_filter_id: saved.body.saved_filter.id, name: 'Others' }],
    ] as const
    let keys = 0
    for (const door of doorsOf(server().url, scene.agent.key))
      for (const [op, input] of asked) {
        const dryRun = await door.call(op, { ...input, dry_run: true })
        assert.ok(dryRun.status < 300, `${door.name} ${op}: ${dryRun.text}`)
        const { status, body, text } = await door.call(op, input, { idempotencyKey: `${op}-${keys++}` })
        assert.deepEqual(
          [status, body.approval?.asked_for],
          [202, ['operation']],
          `${door.name} ${op}: ${text}`,
        )
      }
    assert.equal((await scene.person('crm_get_contact', contact)).body.dnd, true)
    // What takes nothing from anybody runs, and so does what a policy allows by its name.
    assert.equal(
      (await scene.ask('crm_update_contact', { ...contact, dnd: true, starred: true })).status,
      200,
    )
    const withdrawn = { ...contact, state: 'withdrawn', proof: 'Wrote STOP' }
    assert.equal((await scene.ask('crm_record_consent', withdrawn)).status, 200)
    await scene.setPolicy({ operations: { crm_update_contact: 'allow' } })
    const allowed = await scene.ask('crm_update_contact', { ...contact, dnd: false, starred: false })
    assert.deepEqual([allowed.status, allowed.body.dnd], [200, false])
  })

  it('a merge by a person is undone by a person', async () => {
    const scene = await createAgentScene(server())
    const [kept, other] = await Promise.all(
      ['+15550100061', '+15550100062'].map(async (phone) => {
        const { body } = await scene.person('crm_upsert_contact', { phone })
        return body.id as string
      }),
    )
    const merge = { contact_id: kept!, other_contact_id: other! }
    const merged = await scene.person('crm_merge_contacts', merge, { confirm: 'delete' })
    assert.equal(merged.status, 200, merged.text)
    const asked = await scene.ask('crm_undo_contact_merge', { merged_contact_id: other! })
    assert.equal(asked.status, 202, asked.text)
    assert.equal((await scene.person('crm_get_contact', { contact_id: other! })).body.id, kept)
  })

  it('what it has come to deny is not approved, and waits until it is declined or allowed again', async () => {
    const scene = await createAgentScene(server())
    const { id } = (await scene.ask(...scene.reply('On Monday.'))).body.approval
    await scene.setPolicy({ verbs: { send: 'deny' } })
    for (const door of doorsOf(server().url, scene.workspace.owner.key)) {
      const { status, body, text } = await door.call('approvals_approve', { approval_id: id })
      assert.deepEqual([status, body.reason], [403, 'denied_by_policy'], `${door.name}: ${text}`)
    }
    assert.equal((await scene.person('approvals_get', { approval_id: id })).body.status, 'pending')
    await scene.setPolicy(null)
    assert.equal((await scene.person('approvals_approve', { approval_id: id })).status, 200)
  })

  it('what a key asked for that has ended is not approved', async () => {
    const scene = await createAgentScene(server())
    const { id } = (await scene.ask(...scene.reply('On Monday.'))).body.approval
    await revokeKey(server().db, scene.workspace.id, scene.agent.keyId, server().app.now())
    for (const door of doorsOf(server().url, scene.workspace.owner.key)) {
      const { status, body, text } = await door.call('approvals_approve', { approval_id: id })
      assert.deepEqual([status, body.reason], [403, 'key_ended'], `${door.name}: ${text}`)
    }
    assert.equal((await scene.person('approvals_decline', { approval_id: id })).status, 200)
  })

  it('everything else runs, and what is denied is a 403 even when confirmed', async () => {
    const scene = await createAgentScene(server())
    const note = { conversation_id: scene.id, text: 'Noted.' }
    assert.equal((await scene.ask('inbox_add_note', note)).status, 201)
    await scene.setPolicy({ verbs: { send: 'deny' }, operations: { inbox_add_note: 'deny' } })
    for (const [op, input] of [scene.reply('No.'), ['inbox_add_note', note] as const]) {
      const { status, body } = await scene.ask(op, input, { confirm: 'send' })
      assert.deepEqual([status, body.code, body.reason], [403, 'forbidden', 'denied_by_policy'], op)
    }
    assert.equal((await scene.person('inbox_add_note', note)).status, 201)
    const byHand = await scene.person(...scene.reply('By hand.'), { confirm: 'send' })
    assert.equal(byHand.status, 201)
  })
})

everyDatabase("Answers of the person behind an agent's client", (server) => {
  it('count under approval: client alone, and not once it is person', async () => {
    const scene = await createAgentScene(server())
    const at = { url: server().url, key: scene.agent.key }
    const countSent = async (): Promise<number> => (await scene.sandbox.sent(scene.phone)).length
    await scene.setPolicy({ approval: 'client' })
    const sent = await callConfirming(at, scene.reply('Confirmed.'))
    assert.deepEqual([sent.questions, sent.result?.message?.status, await countSent()], [1, 'sent', 1])
    // The state of the question is genuine, and the answer comes too late.
    const late = await callConfirming(at, scene.reply('Late.'), () => scene.setPolicy(null))
    assert.deepEqual([late.questions, late.result?.approval?.status, await countSent()], [1, 'pending', 1])
    const never = await callConfirming(at, scene.reply('Never.'))
    assert.deepEqual([never.questions, never.result?.approval?.status, await countSent()], [0, 'pending', 1])
  })

  it('to a message count it as one of the hour', async () => {
    const scene = await createAgentScene(server())
    const bounds = { sends_per_hour: 1 }
    await scene.setPolicy({ approval: 'client', bounds })
    const at = { url: server().url, key: scene.agent.key }
    assert.equal((await callConfirming(at, scene.reply('One.'))).result?.message?.status, 'sent')
    await scene.setPolicy({ verbs: { send: 'allow' }, bounds })
    const { status, body } = await scene.ask(...scene.reply('Two.'))
    assert.deepEqual([status, body.approval?.asked_for], [202, ['sends_per_hour']])
  })
})

everyDatabase('What a person saw is what runs', (server) => {
  const mayChangeReplies = { operations: { messaging_update_quick_message: 'allow' as const } }
  /** A saved reply of the agent, which changes it after it has asked: its policy allows that by its name. */
  const createSavedReply = async () => {
    const scene = await createAgentScene(server())
    await scene.setPolicy(mayChangeReplies)
    const { body } = await scene.ask('messaging_create_quick_message', {
      code: 'arrives',
      text: 'Hi {{contact.name}}, it arrives today.',
    })
    const change = async (): Promise<void> => {
      const input = { quick_message_id: body.id as string, text: 'Pay at example.com.' }
      assert.equal((await scene.ask('messaging_update_quick_message', input)).status, 200)
      await scene.ask('crm_update_contact', { contact_id: scene.contactId, name: 'Pay here' })
    }
    const input = { conversation_id: scene.id, quick_message_id: body.id as string }
    const listSent = async () =>
      (await scene.sandbox.sent(scene.phone)).map((message) => (message['text'] as { body: string }).body)
    return { ...scene, change, input, listSent }
  }
  const shown = 'Hi Ada, it arrives today.'

  it('a saved reply and the name of the contact that are changed after an approval was asked', async () => {
    const scene = await createSavedReply()
    const options = { idempotencyKey: 'saved-reply-0001' }
    const { approval } = (await scene.ask('messaging_send_reply', scene.input, options)).body
    await scene.change()
    const detail = (await scene.person('approvals_get', { approval_id: approval.id })).body
    assert.ok(detail.summary.includes(`Text: ${shown}`), detail.summary.join('\n'))
    assert.equal((await scene.person('approvals_approve', { approval_id: approval.id })).status, 200)
    await scene.work()
    assert.deepEqual(await scene.listSent(), [shown])
    const repeated = await scene.ask('messaging_send_reply', scene.input, options)
    assert.deepEqual([repeated.status, repeated.body.message?.text], [201, shown], repeated.text)
  })

  /** A template to a contact, which then reads otherwise, and whose latest conversation is on another channel. */
  const createTemplateScene = async () => {
    const scene = await createAgentScene(server())
    const toComponents = (place: string) => [
      { type: 'HEADER', format: 'TEXT', text: 'For {{1}}' },
      { type: 'BODY', text: 'Hello {{1}}, your order {{2}} is on its way.' },
      { type: 'FOOTER', text: 'Bean & Co.' },
      {
        type: 'BUTTONS',
        buttons: [
          { type: 'URL', text: 'Follow it', url: `https://${place}/{{1}}`, example: ['https://a.example/1'] },
          { type: 'PHONE_NUMBER', text: 'Call us', phone_number: '+15550100' },
        ],
      },
    ]
    await insertSandboxTemplates(server(), scene.workspace, { components: toComponents('shop.example') })
    const change = async (): Promise<void> => {
      await server()
        .db.updateTable('templates')
        .set({ components: JSON.stringify(toComponents('evil.example')) })
        .where('workspace_id', '=', scene.workspace.id)
        .execute()
    }
    const template = { ...ORDER_UPDATE, header: { text: 'Ada' }, buttons: [{ index: 0, text: '17' }] }
    const input = { contact_id: scene.contactId, template }
    const countSent = async () => (await scene.sandbox.sent(scene.phone)).length
    return { ...scene, change, input, countSent }
  }

  for (const isApproved of [false, true])
    it(`a template that is changed ${isApproved ? 'after' : 'before'} the approval is not sent`, async () => {
      const scene = await createTemplateScene()
      const { approval } = (await scene.ask('messaging_send_template', scene.input)).body
      const detail = (await scene.person('approvals_get', { approval_id: approval.id })).body
      assert.equal(detail.input.channel_id, scene.channelId)
      const parts = [
        'Text: Hello Ada, your order 17 is on its way.',
        'Header: For Ada',
        'Footer: Bean & Co.',
        'Button 1 (URL): Follow it',
        'Button 1 (URL) leads to: https://shop.example/17',
        'Button 2 (PHONE_NUMBER): Call us',
        'Button 2 (PHONE_NUMBER) leads to: phone_number +15550100',
      ]
      assert.deepEqual(detail.summary.slice(-parts.length - 2, -2), parts, detail.summary.join('\n'))
      await scene.change()
      if (isApproved) await markApproved({ db: server().db, workspace: scene.workspace }, approval.id)
      else {
        const refused = await scene.person('approvals_approve', { approval_id: approval.id })
        assert.equal(refused.body.reason, 'template_changed', refused.text)
      }
      await scene.work()
      const wait = isApproved ? { wait_seconds: 10 } : {}
      const { outcome } = (await scene.person('approvals_get', { approval_id: approval.id, ...wait })).body
      assert.equal(await scene.countSent(), 0)
      assert.equal(outcome?.reason, isApproved ? 'template_changed' : undefined)
    })

  it('a template that is changed while the client asks is asked again', async () => {
    const scene = await createTemplateScene()
    await scene.setPolicy({ approval: 'client' })
    const at = { url: server().url, key: scene.agent.key }
    const sent = await callConfirming(at, ['messaging_send_template', scene.input], scene.change)
    assert.deepEqual([sent.questions, await scene.countSent()], [2, 1])
  })

  it('a saved reply that is changed while the client asks', async () => {
    const scene = await createSavedReply()
    await scene.setPolicy({ ...mayChangeReplies, approval: 'client' })
    const at = { url: server().url, key: scene.agent.key }
    const sent = await callConfirming(at, ['messaging_send_reply', scene.input], scene.change)
    assert.equal(sent.questions, 1)
    assert.deepEqual(await scene.listSent(), [shown])
  })
})

let clock = Date.parse('2026-10-05T12:00:00.000Z')

everyDatabase(
  'An idempotency key of a call that an agent made before',
  (server) => {
    it('is no way round the policy, while its record is kept and when it has expired', async () => {
      const scene = await createAgentScene(server())
      const options = { idempotencyKey: 'used-before-0001' }
      const note = { conversation_id: scene.id, text: 'x' }
      assert.equal((await scene.ask('inbox_add_note', note, options)).status, 201)
      const remove = () => scene.ask('crm_delete_contact', { contact_id: scene.contactId }, options)
      // Asked, refused for the key that another call has, or too late for a decision.
      const stopped = [202, 400, 403, 409]
      assert.ok(stopped.includes((await remove()).status))
      for (const hours of [23.99, 1]) {
        clock += hours * 3_600_000
        assert.ok(stopped.includes((await remove()).status), `after ${hours} more hours`)
      }
      assert.equal((await scene.person('crm_get_contact', { contact_id: scene.contactId })).status, 200)
    })
  },
  { now: () => new Date(clock).toISOString() },
)

describe(
  "Changes of agents' keys on another server",
  { skip: databases.includes('postgresql') ? false : 'WCRM_TEST_POSTGRES_URL is not set' },
  () => {
    it('a policy, a pause and its end are in force within a second', async () => {
      const { servers, close } = await startSharedServers(2)
      try {
        const scene = await createAgentScene(servers[0]!)
        const other = callAs(servers[1]!, scene.agent.key)
        /** Changes the key, and returns for how long it counts as before. */
        const measure = async (
          fields: { policy: KeyPolicy } | { paused_at: string | null },
          isInForce: (reply: Awaited<ReturnType<typeof other>>) => boolean,
        ): Promise<number> => {
          assert.ok(!isInForce(await other('workspace_whoami')))
          await changeKey(servers[0]!.db, scene.workspace.id, scene.agent.keyId, fields)
          return await measureStaleness(async () => isInForce(await other('workspace_whoami')))
        }
        const denying = { ...defaultPolicy, verbs: { ...defaultPolicy.verbs, send: 'deny' as const } }
        const times = [
          await measure({ policy: denying }, ({ body }) => body.key.policy.verbs.send === 'deny'),
          await measure({ paused_at: servers[0]!.app.now() }, ({ body }) => body.reason === 'key_paused'),
          await measure({ paused_at: null }, ({ status }) => status === 200),
        ]
        assert.ok(Math.max(...times) < 1000, times.join(', '))
        assert.equal((await other(...scene.reply('No.'))).body.reason, 'denied_by_policy')
      } finally {
        await close()
      }
    })
  },
)

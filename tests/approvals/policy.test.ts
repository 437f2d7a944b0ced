import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { catalog, findOperation, type Operation } from '../../catalog/index.ts'
import { defaultPolicy, type KeyPolicy } from '../../catalog/policy.ts'
import { changeKey } from '../../storage/admin-keys.ts'
import { createChannel } from '../../storage/admin.ts'
import { callAs } from '../calls.ts'
import { databases } from '../databases.ts'
import { doorsOf, everyDatabase, wholeAnswer } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { insertSandboxTemplates, ORDER_UPDATE } from '../messaging/send-template.ts'
import { makeWorkspace, startSharedServers } from '../servers.ts'
import { buildExampleInputs, loadWorkspaceRows, seedWorld, type World } from '../world.ts'
import { createAgentScene } from './scene.ts'

const operations: readonly Operation[] = catalog
const writes = operations.filter(({ scope }) => scope !== 'mcp:read' && scope !== 'approvals:write')
const isAsked = ({ name, confirm }: Operation): boolean =>
  confirm !== undefined || /^webhooks_((create|update|enable|disable)_endpoint|set_subscriptions)$/.test(name)

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
    agent = (await workspace.key(workspace.owner.staffId, { agent: true, phones: true })).key
  })

  const loadRows = async (): Promise<Record<string, string[]>> => {
    const rows = await loadWorkspaceRows(server().db, world.workspace.id)
    return Object.fromEntries(Object.entries(rows).filter(([table]) => !OF_ASKING.includes(table)))
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

everyDatabase("Bounds of agents' keys", (server) => {
  const allow = { verbs: { send: 'allow' as const } }

  it('allowed within the bounds, without a verb; asked outside of them', async () => {
    const scene = await createAgentScene(server())
    const ask = async (text: string): Promise<unknown> => {
      const { status, body } = await scene.ask(...scene.reply(text))
      return status === 202 ? body.approval.asked_for : status
    }
    await scene.setPolicy(allow)
    assert.equal(await ask('one'), 201)
    await scene.setPolicy({ ...allow, bounds: { window_open: true } })
    assert.equal(await ask('two'), 201)
    await scene.setPolicy({ ...allow, bounds: { assigned: true } })
    assert.deepEqual(await ask('three'), ['assigned'])
    await scene.person('inbox_assign_conversation', {
      conversation_id: scene.id,
      staff_id: scene.manager.staffId,
    })
    assert.equal(await ask('four'), 201)
    await scene.setPolicy({ ...allow, bounds: { sends_per_hour: 2 } })
    assert.deepEqual(
      [await ask('five'), await ask('six'), await ask('seven')],
      [201, 201, ['sends_per_hour']],
    )
    const day = new Date(server().app.now()).getUTCDay()
    const today = (['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const)[day]!
    await scene.setPolicy({ ...allow, bounds: { hours: { days: [today], from: '00:00', to: '24:00' } } })
    assert.equal(await ask('eight'), 201)
    await scene.setPolicy({ ...allow, bounds: { hours: { days: [], from: '00:00', to: '24:00' } } })
    assert.deepEqual(await ask('nine'), ['hours'])
  })

  /** A channel on which the contact wrote last; its conversation is assigned to the agent's manager. */
  const createLatest = async (scene: Awaited<ReturnType<typeof createAgentScene>>) => {
    const { db, app } = server()
    const fields = { type: 'web', name: 'Web', status: 'connected', url: 'https://example.com/hook' } as const
    const { id: channelId } = await createChannel(db, scene.workspace.id, fields, app.now())
    const { contactId } = scene
    const { id } = await plantConversation(server(), scene.workspace.id, { contactId, channelId })
    const assignment = { conversation_id: id, staff_id: scene.manager.staffId }
    assert.equal((await scene.person('inbox_assign_conversation', assignment)).status, 200)
    return { id, channelId }
  }

  it('of a template are those of the conversation that it is sent in', async () => {
    const scene = await createAgentScene(server())
    await insertSandboxTemplates(server(), scene.workspace, {})
    const { channelId } = await createLatest(scene)
    await scene.setPolicy({ ...allow, bounds: { assigned: true } })
    const input = { contact_id: scene.contactId, template: ORDER_UPDATE }
    const { status, body } = await scene.ask('messaging_send_template', input)
    assert.deepEqual([status, body.approval?.asked_for], [202, ['assigned']])
    const detail = await scene.person('approvals_get', { approval_id: body.approval.id })
    assert.equal(detail.body.input.channel_id, scene.channelId)
    assert.notEqual(channelId, scene.channelId)
    const assignment = { conversation_id: scene.id, staff_id: scene.manager.staffId }
    await scene.person('inbox_assign_conversation', assignment)
    const other = { ...input, template: { ...ORDER_UPDATE, body: ['Ada', '18'] } }
    assert.equal((await scene.ask('messaging_send_template', other)).status, 201)
  })

  it('tell nothing of conversations on channels that the staff may not see', async () => {
    const scene = await createAgentScene(server())
    const hidden = await createLatest(scene)
    const limits = { name: 'Lim', role: 'agent' as const, channel_ids: [scene.channelId] }
    const limited = await scene.workspace.staff(limits)
    const { key, keyId } = await scene.workspace.key(limited.staffId, { agent: true })
    for (const bounds of [{ window_open: true }, { assigned: true }] as const) {
      await changeKey(server().db, scene.workspace.id, keyId, {
        policy: { ...defaultPolicy, ...allow, bounds },
      })
      server().app.keyCache.keys.clear()
      const [there, missing] = await Promise.all(
        [hidden.id, '999999999'].map((id) =>
          scene.as(key)('messaging_send_reply', { conversation_id: id, text: 'x', dry_run: true }),
        ),
      )
      assert.deepEqual(
        [there!.status, there!.headers['approval']],
        [missing!.status, missing!.headers['approval']],
      )
      assert.equal(there!.status, 404)
    }
  })

  it('a paused key may do nothing, and whoami shows the policy', async () => {
    const scene = await createAgentScene(server())
    await scene.setPolicy(allow)
    assert.equal((await scene.ask('workspace_whoami')).body.key.policy.verbs.send, 'allow')
    await scene.pause(server().app.now())
    for (const door of doorsOf(server().url, scene.agent.key)) {
      const { status, text } = await door.call('workspace_whoami')
      assert.equal(status, 403, `${door.name}: ${text}`)
      assert.match(text, /key_paused/)
    }
  })
})

/** Calls a tool over MCP, with a client that answers yes to each question. Returns the result and their count. */
const callConfirming = async (
  { url, key }: { url: string; key: string },
  [name, input]: readonly [string, Record<string, unknown>],
  beforeAnswer: () => Promise<void> = async () => {},
): Promise<{ result: any; questions: number }> => {
  const client = new Client(
    { name: 'tests', version: '1' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: 'auto' } },
  )
  let questions = 0
  client.setRequestHandler('elicitation/create', async () => {
    questions++
    await beforeAnswer()
    return { action: 'accept', content: { confirm: 'send' } }
  })
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp?toolsets=all`), {
    requestInit: { headers: { Authorization: `Bearer ${key}` } },
  })
  await client.connect(transport)
  try {
    const { structuredContent } = await client.callTool({
      name,
      arguments: { ...wholeAnswer(findOperation(name)!), ...input },
    })
    return { result: structuredContent, questions }
  } finally {
    await client.close()
  }
}

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
})

everyDatabase('What a person saw is what runs', (server) => {
  /** A saved reply of the agent, which changes it after it has asked. */
  const createSavedReply = async () => {
    const scene = await createAgentScene(server())
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
    await insertSandboxTemplates(server(), scene.workspace, {})
    const change = async (): Promise<void> => {
      await server()
        .db.updateTable('templates')
        .set({ components: JSON.stringify([{ type: 'BODY', text: 'Pay {{1}} at {{2}} now.' }]) })
        .where('workspace_id', '=', scene.workspace.id)
        .execute()
    }
    const input = { contact_id: scene.contactId, template: ORDER_UPDATE }
    const countSent = async () => (await scene.sandbox.sent(scene.phone)).length
    return { ...scene, change, input, countSent }
  }

  for (const isApproved of [false, true])
    it(`a template that is changed ${isApproved ? 'after' : 'before'} the approval is not sent`, async () => {
      const scene = await createTemplateScene()
      const { approval } = (await scene.ask('messaging_send_template', scene.input)).body
      const detail = (await scene.person('approvals_get', { approval_id: approval.id })).body
      assert.equal(detail.input.channel_id, scene.channelId)
      if (!isApproved) await scene.change()
      const approved = await scene.person('approvals_approve', { approval_id: approval.id })
      assert.equal(approved.body.reason, isApproved ? undefined : 'template_changed', approved.text)
      if (isApproved) await scene.change()
      await scene.work()
      assert.equal(await scene.countSent(), 0)
      const { outcome } = (await scene.person('approvals_get', { approval_id: approval.id })).body
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
    await scene.setPolicy({ approval: 'client' })
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
        /** Changes the key, and returns for how long calls began that were answered as before. */
        const measure = async (
          fields: { policy: KeyPolicy } | { paused_at: string | null },
          isInForce: (reply: Awaited<ReturnType<typeof other>>) => boolean,
        ): Promise<number> => {
          assert.ok(!isInForce(await other('workspace_whoami')))
          await changeKey(servers[0]!.db, scene.workspace.id, scene.agent.keyId, fields)
          const changedAt = performance.now()
          for (let last = 0; ;) {
            const began = performance.now() - changedAt
            if (isInForce(await other('workspace_whoami'))) return last
            last = began
            assert.ok(began < 10_000, 'the change is not in force')
          }
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

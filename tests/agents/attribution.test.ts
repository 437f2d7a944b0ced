import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { drawThread } from '../../cli/thread.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor, type Scene } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { createSandboxDriver, generatePhone } from '../messaging/fixtures.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

/* Who did it: staff, key, AI agent, approver; on messages, notes, events and in the audit trail. */

/** An agent's key that may do everything by itself. */
const hireMara = async (workspace: TestWorkspace) => {
  const staff = await workspace.staff({ name: 'Grace', role: 'admin' })
  const mara = await workspace.key(staff.staffId, {
    agent: true,
    name: 'Mara',
    policy: { verbs: { send: 'allow', delete: 'allow' }, operations: {}, bounds: {}, approval: 'person' },
  })
  const actor = {
    staff: { id: staff.staffId, name: 'Grace' },
    key: { id: mara.keyId, name: 'Mara' },
    agent: true,
    approved_by: null,
  }
  return { staff, mara, actor }
}

const startConversation = async ({
  server,
  workspace,
}: Pick<Scene, 'server' | 'workspace'>): Promise<string> => {
  const phone = generatePhone()
  await createSandboxDriver(server, workspace).say({ from: `+${phone}`, name: 'Ada', text: 'Hello' })
  const { data } = await doAs(server, workspace.owner.key)('inbox_search_conversations', { query: phone })
  return data[0].id
}

everyDoor('Attribution', (test) => {
  test('messages and notes name who wrote them, with which key', async ({ server, workspace, call, as }) => {
    const { staff, mara, actor } = await hireMara(workspace)
    const id = await startConversation({ server, workspace })
    const input = { conversation_id: id, text: 'It is on its way' }
    const sent = await callAs(server, mara.key)('messaging_send_reply', input, { confirm: 'send' })
    assert.deepEqual([sent.status, sent.body.message?.actor], [201, actor], sent.text)
    const noted = await as(mara.key)('inbox_add_note', { conversation_id: id, text: 'Asked the warehouse' })
    assert.deepEqual(noted.body.message.actor, actor)
    await doAs(server, staff.key)('inbox_add_note', { conversation_id: id, text: 'Thanks' })
    const { data } = (await call('inbox_list_messages', { conversation_id: id })).body
    const person = { ...actor, key: { id: staff.keyId, name: null }, agent: false }
    // MCP lists show less.
    if ('actor' in data[0])
      assert.deepEqual(
        data.map((message: { actor: unknown }) => message.actor),
        [person, actor, actor, null],
      )
    assert.deepEqual(
      (await call('messaging_get_message', { message_id: sent.body.message.id })).body.actor,
      actor,
    )
  })
})

/** Marks what the key did as approved, which is the work of approvals. */
const approveAll = async ({ db }: TestServer, { id, owner }: TestWorkspace): Promise<void> => {
  for (const table of ['messages', 'audit_log'])
    await sql`update ${sql.ref(table)} set approved_by = ${owner.staffId}::bigint
      where workspace_id = ${id}::bigint and key_id is not null`.execute(db)
}

everyDatabase('Attribution', (server) => {
  it('events carry who caused them, and deliveries who wrote the message', async () => {
    const workspace = await makeWorkspace(server())
    const { mara, actor } = await hireMara(workspace)
    const id = await startConversation({ server: server(), workspace })
    const run = doAs(server(), mara.key)
    await run('messaging_send_reply', { conversation_id: id, text: 'On its way' })
    await server().settle()
    await run('crm_create_group', { name: 'VIP' })
    const { data } = await doAs(server(), workspace.owner.key)('events_list', { limit: 100 })
    const byType = new Map<string, unknown>(
      data.map((event: { type: string; data: { actor?: unknown } }) => [event.type, event.data.actor]),
    )
    for (const type of ['message.sent/1', 'message.delivered/1', 'group.created/1'])
      assert.deepEqual(byType.get(type), actor, type)
    assert.ok(byType.has('message.received/1') && byType.get('message.received/1') === undefined)
  })

  it('the audit trail names the key and who approved, and tells agents from people', async () => {
    const workspace = await makeWorkspace(server())
    const { mara, actor } = await hireMara(workspace)
    const owner = doAs(server(), workspace.owner.key)
    await owner('crm_create_group', { name: 'People' })
    await doAs(server(), mara.key)('crm_create_group', { name: 'VIP' })
    await approveAll(server(), workspace)
    const approved_by = { id: workspace.owner.staffId, name: 'Owner' }
    const { data } = await owner('audit_list', { agent: true })
    assert.deepEqual(
      data.map((row: { actor: object }) => row.actor),
      [{ staff_id: actor.staff.id, name: 'Grace', ...actor, approved_by }],
    )
    const others = (await owner('audit_list', { agent: false, operation: 'crm_create_group' })).data
    assert.deepEqual(
      others.map((row: { actor: { agent: boolean }; key_id: string }) => [row.actor.agent, row.key_id]),
      [[false, workspace.owner.keyId]],
    )
  })

  it('a reader of the inbox sees what an AI agent wrote, and who approved it', async () => {
    const workspace = await makeWorkspace(server())
    const { mara } = await hireMara(workspace)
    const { id } = await plantConversation(server(), workspace.id, { name: 'Ada' })
    await doAs(server(), mara.key)('inbox_add_note', { conversation_id: id, text: 'First' })
    await approveAll(server(), workspace)
    await doAs(server(), mara.key)('inbox_add_note', { conversation_id: id, text: 'Second' })
    const { data } = await doAs(server(), workspace.owner.key)('inbox_list_messages', { conversation_id: id })
    const drawn = drawThread(data, { width: 80, color: false, time: 'utc' } as never)
    assert.match(drawn, /note by Mara · AI, approved by Owner[^]*First/)
    assert.match(drawn, /note by Mara · AI  [^]*Second/)
  })
})

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { sql } from 'kysely'
import { findOperation } from '../catalog/index.ts'
import { insertTemplate } from './templates/insert-template.ts'
import { doorsOf, everyDatabase, runCli, wholeAnswer } from './doors.ts'
import { makeWorkspace, type TestKey, type TestServer, type TestWorkspace } from './servers.ts'
import { generatePhone } from './messaging/fixtures.ts'

/** A client of one staff member. `call` returns the body of a success or of a problem. */
type StaffClient = {
  call: (op: string, input: Record<string, unknown>) => Promise<any>
  close: () => Promise<void>
}

const createCliClient = async (server: TestServer, key: string): Promise<StaffClient> => {
  const cli = doorsOf(server.url, key).find((door) => door.name === 'cli')!
  return {
    call: async (op, input) => {
      const confirm = findOperation(op)!.confirm
      return (await cli.call(op, input, confirm === undefined ? {} : { confirm })).body
    },
    close: async () => {},
  }
}

/** An MCP client whose user confirms every gated call. */
const createMcpClient = async (server: TestServer, key: string): Promise<StaffClient> => {
  const client = new Client(
    { name: 'tests', version: '1' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: 'auto' } },
  )
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { confirm: 'send' } }))
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${server.url}/mcp?toolsets=all`), {
      requestInit: { headers: { Authorization: `Bearer ${key}` } },
    }),
  )
  return {
    call: async (op, input) => {
      const { isError, structuredContent, content } = await client.callTool({
        name: op,
        arguments: { ...wholeAnswer(findOperation(op)!), ...input },
      })
      return isError ? JSON.parse((content as { text: string }[])[0]!.text) : structuredContent
    },
    close: () => client.close(),
  }
}

/** Returns a function that runs `wcrm sandbox …`, asserts success and returns its JSON. */
const createSandboxCli =
  (server: TestServer, key: string) =>
  async (...words: string[]) => {
    const { exit, stdout, stderr } = await runCli(['sandbox', ...words, '--json'], {
      WCRM_URL: server.url,
      WCRM_API_KEY: key,
      XDG_CONFIG_HOME: '/nonexistent',
    })
    assert.equal(exit, 0, stderr)
    return JSON.parse(stdout)
  }

const insertApprovedTemplate = async (server: TestServer, workspace: TestWorkspace): Promise<void> => {
  const channel = await server.db
    .selectFrom('channels')
    .select('account_id')
    .where('workspace_id', '=', workspace.id)
    .where('is_default', '=', true)
    .executeTakeFirstOrThrow()
  await insertTemplate(
    server.db,
    workspace.id,
    {
      account_id: channel.account_id,
      name: 'order_update',
      language: 'en_US',
      category: 'UTILITY',
      status: 'APPROVED',
      components: [
        { type: 'BODY', text: 'Hello {{1}}, your order is on its way.', example: { body_text: [['Ada']] } },
      ],
    },
    server.app.now(),
  )
  await server.sync(workspace.id)
}

/** Returns the number of events by type. */
const countEvents = async (server: TestServer, workspaceId: string): Promise<Record<string, number>> => {
  const { rows } = await sql<{ type: string; n: number }>`
    select type, count(*)::int as n from events
    where workspace_id = ${workspaceId} group by 1 order by 1`.execute(server.db)
  return Object.fromEntries(rows.map(({ type, n }) => [type, n]))
}

type Day = {
  server: TestServer
  workspace: TestWorkspace
  colleague: TestKey
  owner: StaffClient
  /** The client of the colleague. */
  grace: StaffClient
  sandbox: ReturnType<typeof createSandboxCli>
  /** The customer's number. */
  phone: string
}

/** A customer writes, and one of two staff members claims the conversation. */
const claimConversation = async ({ server, workspace, colleague, owner, grace, sandbox, phone }: Day) => {
  await sandbox('say', '--from', `+${phone}`, '--name', 'Ada', 'Is my order on its way?')
  await server.settle()
  const queue = await owner.call('inbox_search_conversations', {
    assigned: false,
    reply_status: 'incoming_no_reply',
  })
  assert.deepEqual(
    queue.data.map(
      (c: { unread_count: number; contact: { name: string }; last_message: { text: string } }) => [
        c.contact.name,
        c.unread_count,
        c.last_message.text,
      ],
    ),
    [['Ada', 1, 'Is my order on its way?']],
  )
  const { id, window, contact } = queue.data[0]
  assert.deepEqual([window.open, window.kind], [true, 'service'])

  const claim = { conversation_id: id, only_if_unassigned: true }
  assert.equal(
    (await grace.call('inbox_assign_conversation', { ...claim, staff_id: colleague.staffId })).assigned_to,
    'Grace',
  )
  assert.equal(
    (await owner.call('inbox_assign_conversation', { ...claim, staff_id: workspace.owner.staffId })).code,
    'conflict',
  )
  return { id: id as string, contactId: contact.id as string }
}

/** The assignee replies, the customer reads it, and the conversation is closed. */
const replyAndClose = async ({ server, owner, grace, sandbox }: Day, id: string) => {
  const reply = await grace.call('messaging_send_reply', {
    conversation_id: id,
    text: 'It is, it arrives today.',
  })
  assert.deepEqual(
    [reply.message?.status, reply.message?.from.name],
    ['sent', 'Grace'],
    JSON.stringify(reply),
  )
  // The status `read` arrives before `delivered`.
  await sandbox('status', reply.message.id, 'read')
  await sandbox('status', reply.message.id, 'delivered')
  await server.settle()
  const read = await owner.call('messaging_get_message', { message_id: reply.message.id })
  assert.equal(read.status, 'read')
  assert.ok(
    read.delivered_at !== null && read.read_at !== null && read.delivered_at <= read.read_at,
    JSON.stringify(read),
  )
  assert.equal(
    (await grace.call('inbox_close_conversation', { conversation_id: id, reason: 'Delivered' })).changed,
    true,
  )
  assert.equal((await grace.call('inbox_close_conversation', { conversation_id: id })).changed, false)
}

/** A day later the window is closed: a reply is refused and a template is sent. */
const sendAfterWindow = async ({ owner, grace, sandbox }: Day, id: string, contactId: string) => {
  await sandbox('clock', 'advance', '25h')
  const late = await grace.call('messaging_send_reply', {
    conversation_id: id,
    text: 'Did you like it?',
  })
  assert.deepEqual(
    [late.code, late.status, late.window?.open, late.window?.reason],
    ['window_closed', 409, false, 'expired'],
    JSON.stringify(late),
  )
  assert.deepEqual((await owner.call('inbox_get_conversation', { conversation_id: id })).window, late.window)
  const template = await grace.call('messaging_send_template', {
    contact_id: contactId,
    template: { name: 'order_update', language: 'en_US', body: ['Ada'] },
  })
  assert.deepEqual(
    [template.preview, template.conversation_id, template.message?.type],
    ['Hello Ada, your order is on its way.', id, 'TEMPLATE'],
    JSON.stringify(template),
  )
}

/** The customer answers, and everything happened exactly once. */
const checkOutcome = async ({ server, workspace, owner, sandbox, phone }: Day, id: string) => {
  await sandbox('say', '--from', `+${phone}`, 'Thank you!')
  await server.settle()
  const again = await owner.call('inbox_get_conversation', { conversation_id: id })
  assert.deepEqual(
    [
      again.state,
      again.unread_count,
      again.reply_status,
      again.window.open,
      again.last_message.text,
      again.assignee?.name,
    ],
    ['open', 1, 'incoming_no_reply', true, 'Thank you!', 'Grace'],
  )

  // Every update was delivered three times and applied once.
  const history = await owner.call('inbox_list_messages', { conversation_id: id })
  assert.deepEqual(
    history.data.map((m: { text: string }) => m.text),
    [
      'Thank you!',
      'Hello Ada, your order is on its way.',
      'It is, it arrives today.',
      'Is my order on its way?',
    ],
  )
  assert.equal((await sandbox('messages', '--to', `+${phone}`)).data.length, 2)
  assert.deepEqual(await countEvents(server, workspace.id), {
    'contact.created/1': 1,
    'conversation.assigned/1': 1,
    'conversation.closed/1': 1,
    'conversation.created/1': 1,
    'conversation.reopened/1': 1,
    'message.delivered/1': 2,
    'message.read/1': 1,
    'message.received/1': 2,
    'message.sent/1': 2,
  })
  assert.equal((await owner.call('inbox_search_conversations', {})).data.length, 1)
}

everyDatabase('A day of customer service', (server) => {
  for (const [name, hire] of [
    ['the command line', createCliClient],
    ['MCP tools', createMcpClient],
  ] as const)
    it(`claim, reply, statuses, close, closed window and template with ${name}`, async () => {
      const workspace = await makeWorkspace(server())
      const colleague = await workspace.staff({ name: 'Grace', role: 'agent' })
      const [owner, grace] = [await hire(server(), workspace.owner.key), await hire(server(), colleague.key)]
      const sandbox = createSandboxCli(server(), workspace.owner.key)
      const phone = generatePhone()
      await insertApprovedTemplate(server(), workspace)
      // Every update is delivered three times, in any order.
      await sandbox('webhooks', '--duplicates', '2', '--shuffle')

      const day: Day = { server: server(), workspace, colleague, owner, grace, sandbox, phone }
      const { id, contactId } = await claimConversation(day)
      await replyAndClose(day, id)
      await sendAfterWindow(day, id, contactId)
      await checkOutcome(day, id)
      await owner.close()
      await grace.close()
    })
})

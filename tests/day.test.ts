import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { sql } from 'kysely'
import { findOperation } from '../catalog/index.ts'
import { insertTemplate } from '../storage/templates.ts'
import { doorsOf, everyDatabase, runCli } from './doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from './servers.ts'
import { anyPhone } from './messaging/sends.ts'

/** Whoever works through a door: answers what came back, be it a success or a problem. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers freely
type Hands = {
  call: (op: string, input: Record<string, unknown>) => Promise<any>
  close: () => Promise<void>
}

const terminal = async (server: TestServer, key: string): Promise<Hands> => {
  const cli = doorsOf(server.url, key).find((door) => door.name === 'cli')!
  return {
    call: async (op, input) => {
      const confirm = findOperation(op)!.confirm
      return (await cli.call(op, input, confirm === undefined ? {} : { confirm })).body
    },
    close: async () => {},
  }
}

/** A model that calls tools, and a person behind it who confirms what is gated. */
const agent = async (server: TestServer, key: string): Promise<Hands> => {
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
      const { isError, structuredContent, content } = await client.callTool({ name: op, arguments: input })
      return isError ? JSON.parse((content as { text: string }[])[0]!.text) : structuredContent
    },
    close: () => client.close(),
  }
}

/** Runs `wcrm sandbox …`, which must be done. */
const sandboxOf =
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

const plantTemplate = async (server: TestServer, workspace: TestWorkspace): Promise<void> => {
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

/** How often each event was written. */
const eventCounts = async (server: TestServer, workspaceId: string): Promise<Record<string, number>> => {
  const { rows } = await sql<{
    type: string
    n: number
  }>`select type, count(*)::int as n from events where workspace_id = ${workspaceId} group by 1 order by 1`.execute(
    server.db,
  )
  return Object.fromEntries(rows.map(({ type, n }) => [type, n]))
}

// It advances the clock of its server.
everyDatabase(
  'A day of customer service',
  (server) => {
    for (const [name, hire] of [
      ['the command line', terminal],
      ['MCP tools', agent],
    ] as const)
      it(`worked with ${name}`, async () => {
        const workspace = await makeWorkspace(server())
        const colleague = await workspace.staff({ name: 'Grace', role: 'agent' })
        const [hands, other] = [
          await hire(server(), workspace.owner.key),
          await hire(server(), colleague.key),
        ]
        const sandbox = sandboxOf(server(), workspace.owner.key)
        const phone = anyPhone()
        await plantTemplate(server(), workspace)
        // All day long everything is told three times, and in any order.
        await sandbox('webhooks', '--duplicates', '2', '--shuffle')

        await sandbox('say', '--from', `+${phone}`, '--name', 'Ada', 'Is my order on its way?')
        await server().settle()
        const queue = await hands.call('inbox_search_conversations', {
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
          (await other.call('inbox_assign_conversation', { ...claim, staff_id: colleague.staffId }))
            .assigned_to,
          'Grace',
        )
        assert.equal(
          (await hands.call('inbox_assign_conversation', { ...claim, staff_id: workspace.owner.staffId }))
            .code,
          'conflict',
        )

        const reply = await other.call('messaging_send_reply', {
          conversation_id: id,
          text: 'It is, it arrives today.',
        })
        assert.deepEqual(
          [reply.message?.status, reply.message?.from.name],
          ['sent', 'Grace'],
          JSON.stringify(reply),
        )
        // The customer's phone says that it was read before it says that it was delivered.
        await sandbox('status', reply.message.id, 'read')
        await sandbox('status', reply.message.id, 'delivered')
        await server().settle()
        const read = await hands.call('messaging_get_message', { message_id: reply.message.id })
        assert.equal(read.status, 'read')
        assert.ok(
          read.delivered_at !== null && read.read_at !== null && read.delivered_at <= read.read_at,
          JSON.stringify(read),
        )
        assert.equal(
          (await other.call('inbox_close_conversation', { conversation_id: id, reason: 'Delivered' }))
            .changed,
          true,
        )
        assert.equal((await other.call('inbox_close_conversation', { conversation_id: id })).changed, false)

        await sandbox('clock', 'advance', '25h')
        const late = await other.call('messaging_send_reply', {
          conversation_id: id,
          text: 'Did you like it?',
        })
        assert.deepEqual(
          [late.code, late.status, late.window?.open, late.window?.reason],
          ['window_closed', 409, false, 'expired'],
          JSON.stringify(late),
        )
        assert.deepEqual(
          (await hands.call('inbox_get_conversation', { conversation_id: id })).window,
          late.window,
        )
        const template = await other.call('messaging_send_template', {
          contact_id: contact.id,
          template: { name: 'order_update', language: 'en_US', body: ['Ada'] },
        })
        assert.deepEqual(
          [template.preview, template.conversation_id, template.message?.type],
          ['Hello Ada, your order is on its way.', id, 'TEMPLATE'],
          JSON.stringify(template),
        )

        await sandbox('say', '--from', `+${phone}`, 'Thank you!')
        await server().settle()
        const again = await hands.call('inbox_get_conversation', { conversation_id: id })
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

        // Everything was told three times; nothing was done twice.
        const history = await hands.call('inbox_list_messages', { conversation_id: id })
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
        assert.deepEqual(await eventCounts(server(), workspace.id), {
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
        assert.equal((await hands.call('inbox_search_conversations', {})).data.length, 1)
        await hands.close()
        await other.close()
      })
  },
  { dedicated: true },
)

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { createChannel } from '../../storage/workspace/admin.ts'
import { insertTemplate } from '../templates/insert-template.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, runCli } from '../doors.ts'
import { toPattern } from '../printed.ts'
import { createSandboxCli } from './cli-fixture.ts'
import { makeWorkspace, type TestWorkspace } from '../servers.ts'

/** The words of a command as a shell makes them, of plain and quoted ones. */
const splitWords = (command: string): string[] =>
  [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain!,
  )

everyDatabase('Sandbox: command line', (server) => {
  const setUp = async () => {
    const workspace = await makeWorkspace(server())
    const runCommand = createSandboxCli(server(), workspace.owner.key)
    return {
      workspace,
      call: callAs(server(), workspace.owner.key),
      run: doAs(server(), workspace.owner.key),
      /** Runs a command that must succeed. Returns its output. */
      cli: async (...args: string[]) => {
        const { exit, output, problem } = await runCommand(...args)
        assert.equal(exit, 0, JSON.stringify(problem))
        return output
      },
      /** Runs a command that must fail with this exit code and error code. Returns the problem. */
      cliError: async (exit: number, code: string, ...args: string[]) => {
        const result = await runCommand(...args)
        assert.deepEqual(
          [result.exit, result.problem?.code, result.output],
          [exit, code, undefined],
          JSON.stringify(result),
        )
        return result.problem
      },
    }
  }
  type Run = Awaited<ReturnType<typeof setUp>>['run']
  const getOnlyConversation = async (run: Run) => {
    const { data } = await run('inbox_search_conversations', {})
    assert.equal(data.length, 1)
    return data[0]
  }
  const insertApprovedTemplate = async (workspace: TestWorkspace): Promise<string> =>
    await insertTemplate(
      server().db,
      workspace.id,
      {
        account_id: `77${workspace.id}`,
        name: 'order_update',
        language: 'en_US',
        category: 'UTILITY',
        status: 'APPROVED',
        components: [
          {
            type: 'BODY',
            text: 'Hello {{1}}, your order is on its way.',
            example: { body_text: [['Ada']] },
          },
          { type: 'BUTTONS', buttons: [{ type: 'QUICK_REPLY', text: 'Yes' }] },
        ],
      },
      server().app.now(),
    )

  it('say, messages, status and clock: a conversation inside and after the service window', async () => {
    const { workspace, run, call, cli } = await setUp()
    const inbound = await cli(
      'say',
      '--from',
      '+1 555 010 0042',
      '--name',
      'Ada',
      'Is my order',
      'on its way?',
    )
    assert.match(inbound.id, /^wamid\./)
    await server().settle()
    const conversation = await getOnlyConversation(run)
    assert.deepEqual(
      [
        conversation.contact.name,
        conversation.contact.phone,
        conversation.unread_count,
        conversation.last_message.text,
      ],
      ['Ada', '15550100042', 1, 'Is my order on its way?'],
    )
    assert.equal(conversation.window.open, true)

    const { message } = await run('messaging_send_reply', {
      conversation_id: conversation.id,
      text: 'It is.',
    })
    const {
      data: [stored, ...others],
    } = await cli('messages', '--to', '+15550100042')
    assert.deepEqual([stored.text.body, stored.to, others.length], ['It is.', '15550100042', 0])
    await cli('status', message.id, 'read')
    await server().settle()
    assert.equal((await run('messaging_get_message', { message_id: message.id })).status, 'read')

    const before = await cli('clock', 'show')
    const after = await cli('clock', 'advance', '1d 1h')
    assert.equal(after.offset_ms - before.offset_ms, 25 * 3_600_000)
    const late = await call(
      'messaging_send_reply',
      { conversation_id: conversation.id, text: 'Still there?' },
      { confirm: 'send' },
    )
    assert.deepEqual(
      [late.status, late.body.code, late.body.window.reason],
      [409, 'window_closed', 'expired'],
    )
    await insertApprovedTemplate(workspace)
    await server().sync(workspace.id)
    const sent = await run('messaging_send_template', {
      contact_id: conversation.contact.id,
      template: { name: 'order_update', language: 'en_US', body: ['Ada'] },
    })
    assert.equal(sent.preview, 'Hello Ada, your order is on its way.')
    assert.equal((await cli('messages')).data.length, 2)
  })

  it('say: a customer from an ad, and a customer without a phone number', async () => {
    const { run, cli } = await setUp()
    await cli('say', '--from', '+1 555 010 0043', '--ad', 'Saw your ad')
    await server().settle()
    assert.equal((await getOnlyConversation(run)).window.kind, 'free_entry')
    await cli('say', '--user-id', 'US.13491208655302741918', 'No number here')
    await server().settle()
    const { data } = await run('inbox_search_conversations', {})
    assert.deepEqual(
      [data.length, data[0].contact.phone, data[0].last_message.text],
      [2, null, 'No number here'],
    )
  })

  it('say: a tap, an answer, a username, a group, and an answer in the phone app', async () => {
    const { workspace, run, cli, cliError } = await setUp()
    const phone = ['--from', '+1 555 010 0043']
    await cli('say', ...phone, 'Hello')
    await insertApprovedTemplate(workspace)
    await server().sync(workspace.id)
    await server().settle()
    const { contact } = await getOnlyConversation(run)
    const template = { name: 'order_update', language: 'en_US', body: ['Ada'] }
    const { message: asked } = await run('messaging_send_template', { contact_id: contact.id, template })
    const wrong = await cliError(2, 'invalid_input', 'say', ...phone, '--tap', 'No')
    assert.match(wrong.detail, /has no button or row No: it has Yes\./)
    await cli('say', ...phone, '--tap', 'yes')
    await cli('say', ...phone, '--reply-to', asked.id, 'And when?')
    await cli('say', ...phone, '--phone-app', 'Thank you')
    await cli('say', '--user-id', 'US.13491208655302741918', '--username', 'soh_user', 'Who am I?')
    const inGroup = { type: 'text', text: { body: 'All of you' }, group_id: 'G1' }
    await cli('say', ...phone, '--message', JSON.stringify(inGroup))
    await server().settle()
    const { data } = await run('inbox_search_conversations', {})
    const of = (name: string | null) =>
      data.find((one: { contact: { name: string; phone: string } | null }) =>
        name === null ? !one.contact : [one.contact?.name, one.contact?.phone].includes(name),
      )
    const [private1, hidden, group] = [of('15550100043'), of('@soh_user'), of(null)]
    assert.deepEqual(
      [data.length, hidden.last_message.text, group.group.id, group.last_message.text],
      [3, 'Who am I?', 'G1', 'All of you'],
    )
    const { data: messages } = await run('inbox_list_messages', { conversation_id: private1.id })
    assert.deepEqual(
      messages
        .slice(0, 3)
        .map((m: Record<string, unknown>) => [m.text, m.content, m.phone_app, m.reply_to_id]),
      [
        ['Thank you', null, true, null],
        ['And when?', null, undefined, asked.id],
        ['Yes', { kind: 'button', payload: 'Yes', title: 'Yes' }, undefined, asked.id],
      ],
    )
    await cliError(2, 'invalid_input', 'say', ...phone, '--message', '{')
  })

  it('say: a customer with a new number or user id can be answered there', async () => {
    const { run, cli } = await setUp()
    const change = (system: object) => ['--message', JSON.stringify({ type: 'system', system })]
    const [phone, userId] = ['+1 555 010 0043', 'US.13491208655302741918']
    await cli('say', '--from', phone, 'Hello')
    await cli('say', '--from', phone, ...change({ type: 'user_changed_number', wa_id: '15550100044' }))
    await cli('say', '--user-id', userId, 'Hello')
    const newId = { user_id: 'MX.2000000000000002', previous_user_id: userId }
    await cli('say', '--user-id', userId, ...change({ type: 'user_changed_user_id', ...newId }))
    await server().settle()
    const { data } = await run('inbox_search_conversations', {})
    assert.equal(data.length, 2)
    for (const { id } of data) await run('messaging_send_reply', { conversation_id: id, text: 'Hi' })
    assert.deepEqual(
      (await cli('messages')).data.map((m: Record<string, string>) => m.to ?? m.recipient).toSorted(),
      ['15550100044', 'MX.2000000000000002'],
    )
    await cli('say', '--from', '+1 555 010 0044', 'Still me')
    await cli('say', '--user-id', 'MX.2000000000000002', 'Me too')
    await server().settle()
    assert.equal((await run('inbox_search_conversations', {})).data.length, 2)
  })

  it('react, edit and delete: what a customer does to messages, by our ids', async () => {
    const { run, cli, cliError } = await setUp()
    await cli('say', '--from', '+1 555 010 0042', 'Is my ordre on its way?')
    await server().settle()
    const before = await getOnlyConversation(run)
    const { id: inbound } = before.last_message
    const { message: sent } = await run('messaging_send_reply', {
      conversation_id: before.id,
      text: 'It is.',
    })
    await server().settle()
    const getReactions = async (id: string) => {
      await server().settle()
      return (await run('messaging_get_message', { message_id: id })).reactions.map(
        (r: { emoji: string }) => r.emoji,
      )
    }
    assert.deepEqual(await cli('react', sent.id, '👍', '--from', '+1 555 010 0042'), {
      message_id: sent.id,
      emoji: '👍',
    })
    assert.deepEqual(await getReactions(sent.id), ['👍'])
    await cli('react', sent.id, '❤️')
    await cli('react', inbound, '🤦')
    assert.deepEqual([await getReactions(sent.id), await getReactions(inbound)], [['❤️'], ['🤦']])
    assert.deepEqual(await cli('react', sent.id, '--remove'), { message_id: sent.id, emoji: null })
    assert.deepEqual(await getReactions(sent.id), [])
    await cli('edit', inbound, 'Is my order', 'on its way?')
    await server().settle()
    assert.equal(
      (await run('messaging_get_message', { message_id: inbound })).text,
      'Is my order on its way?',
    )
    await cli('react', inbound, '👎', '--from', '+1 555 010 0099')
    assert.deepEqual(await getReactions(inbound), ['🤦'])
    await cli('delete', inbound)
    await server().settle()
    const deleted = await run('messaging_get_message', { message_id: inbound })
    assert.deepEqual([deleted.text, deleted.deleted_at !== null], [null, true])
    const { unread_count: unread, window } = await getOnlyConversation(run)
    assert.deepEqual([unread, window], [0, before.window])

    await cliError(3, 'not_found', 'react', '999999', '👍')
    await cliError(2, 'invalid_input', 'react', sent.id)
    await cliError(2, 'invalid_input', 'react', sent.id, '👍', '--remove')
    await cliError(2, 'invalid_input', 'react', sent.id, '👍', '--from', '12')
    assert.equal((await cliError(5, 'conflict', 'edit', sent.id, 'x')).reason, 'not_inbound')
    assert.equal((await cliError(5, 'conflict', 'delete', sent.id)).reason, 'not_inbound')
  })

  it('a reaction opens no reply window, at the provider either', async () => {
    const { run, call, cli } = await setUp()
    await cli('say', '--from', '+1 555 010 0042', 'Hello')
    await server().settle()
    const { id, last_message: last } = await getOnlyConversation(run)
    await cli('clock', 'advance', '25h')
    await cli('react', last.id, '👍')
    await server().settle()
    const { window } = await getOnlyConversation(run)
    assert.deepEqual([window.open, window.reason], [false, 'expired'])
    const reply = { conversation_id: id, text: 'Still there?' }
    assert.equal((await call('messaging_send_reply', reply, { confirm: 'send' })).body.code, 'window_closed')
  })

  it('review: pause, reject and approve a template', async () => {
    const { workspace, cli, cliError } = await setUp()
    const id = await insertApprovedTemplate(workspace)
    const getReview = async () => {
      await server().settle()
      const { status, rejection_reason } = await server()
        .db.selectFrom('templates')
        .select(['status', 'rejection_reason'])
        .where('workspace_id', '=', workspace.id)
        .where('id', '=', id)
        .executeTakeFirstOrThrow()
      return [status, rejection_reason]
    }
    for (const [decision, reason, ...expected] of [
      ['pause', null, 'PAUSED', null],
      ['pause', 'Customers reported it often.', 'PAUSED', 'Customers reported it often.'],
      ['reject', 'PROMOTIONAL', 'REJECTED', 'The template was rejected: PROMOTIONAL.'],
      ['approve', null, 'APPROVED', null],
    ] as const) {
      await cli('review', id, decision, ...(reason === null ? [] : ['--reason', reason]))
      assert.deepEqual(await getReview(), expected)
    }
    assert.deepEqual(
      (await cli('templates')).data.map((t: { name: string; status: string }) => [t.name, t.status]),
      [['order_update', 'APPROVED']],
    )
    await cliError(3, 'not_found', 'review', '999999', 'approve')
    await cliError(2, 'invalid_input', 'review', id, 'praise')
  })

  it('fault: add and clear; a message whose response was lost is sent once', async () => {
    const { run, call, cli, cliError } = await setUp()
    await cli('say', '--from', '+1 555 010 0044', 'Hello')
    await server().settle()
    const { id } = await getOnlyConversation(run)
    const reply = (text: string, idempotencyKey: string) =>
      call('messaging_send_reply', { conversation_id: id, text }, { confirm: 'send', idempotencyKey })
    await cli('fault', 'add', '--on', 'messages', '--to', '+1 555 010 0044', '--code', '131042')
    assert.deepEqual((await reply('one', 'faulty-reply-1')).status, 502)
    await cli('fault', 'clear')
    assert.equal((await reply('one', 'faulty-reply-1')).status, 201)
    await cli('fault', 'add', '--on', 'messages', '--drop-answer', '--times', '1')
    assert.equal((await reply('two', 'faulty-reply-2')).status >= 500, true)
    assert.equal((await reply('two', 'faulty-reply-2')).status, 201)
    assert.deepEqual(
      (await cli('messages')).data.map((m: { text: { body: string } }) => m.text.body),
      ['one', 'two'],
    )
    await cliError(2, 'invalid_input', 'fault', 'add', '--on', 'messages')
    await cliError(2, 'invalid_input', 'fault', 'add', '--on', 'everything', '--code', '1')
  })

  it('fault: a lost answer is told as the guide shows, and the command that is printed finds it', async () => {
    const { workspace, run, cli } = await setUp()
    const guide = readFileSync('docs/sandbox.md', 'utf8').split('## Faults')[1]!
    const shown = /^\$ npx wcrm (conversations reply .*)\n(Error: [^]*?\n)\$ npx wcrm (.*)\n/m.exec(guide)!
    await cli('say', '--from', '+1 555 010 0077', 'Hello')
    await server().settle()
    const { id } = await getOnlyConversation(run)
    await cli('fault', 'add', '--on', 'messages', '--drop-answer', '--times', '1')
    const type = (command: string) =>
      runCli(splitWords(command.replace(/reply \d+/, `reply ${id}`)), {
        WCRM_URL: server().url,
        WCRM_API_KEY: workspace.owner.key,
        XDG_CONFIG_HOME: '/nonexistent',
      })
    const lost = await type(shown[1]!)
    const output = shown[2]!.replace(/reply \d+/, `reply ${id}`).replace(/req_\w+/, 'req_…')
    assert.match(lost.stderr, toPattern(output))
    assert.deepEqual([lost.exit, lost.stdout], [8, ''])
    const found = await type(shown[3]!)
    assert.deepEqual([found.exit, JSON.parse(found.stdout).message.text], [0, 'Good!'], found.stderr)
    assert.equal((await cli('messages')).data.length, 1)
  })

  it('webhooks: duplicated and shuffled webhooks are applied once', async () => {
    const { run, cli } = await setUp()
    await cli('webhooks', '--duplicates', '3', '--shuffle')
    for (const text of ['one', 'two', 'three', 'four']) await cli('say', '--from', '+1 555 010 0045', text)
    await server().settle()
    await cli('webhooks')
    const { id, unread_count: unread } = await getOnlyConversation(run)
    const { data } = await run('inbox_list_messages', { conversation_id: id })
    assert.deepEqual(
      [unread, data.map((m: { text: string }) => m.text).toSorted()],
      [4, ['four', 'one', 'three', 'two']],
    )
  })

  it('invalid arguments are reported with an exit code and a problem', async () => {
    const { workspace, cliError } = await setUp()
    const invalidPhone = await cliError(2, 'invalid_input', 'say', '--from', '12', 'Hello')
    assert.equal(invalidPhone.errors[0].pointer, '#/from')
    await cliError(2, 'invalid_input', 'say', 'Hello')
    await cliError(2, 'invalid_input', 'say', '--from', '+1 555 010 0046')
    await cliError(3, 'not_found', 'say', '--from', '+1 555 010 0046', '--channel', '999999', 'Hello')
    for (const text of ['tomorrow', '0h', '25', '9999999w'])
      await cliError(2, 'invalid_input', 'clock', 'advance', text)
    await cliError(3, 'not_found', 'status', '999999', 'read')
    await cliError(2, 'invalid_input', 'sing')
    const unconnected = await createChannel(
      server().db,
      workspace.id,
      { type: 'chatapp', name: 'Bare', status: 'connected' },
      server().app.now(),
    )
    assert.equal(
      (
        await cliError(
          5,
          'conflict',
          'say',
          '--from',
          '+1 555 010 0046',
          '--channel',
          unconnected.id,
          'Hello',
        )
      ).reason,
      'no_provider_number',
    )
  })

  it('authorization: scope, live key and role are required', async () => {
    const { workspace } = await setUp()
    const getFailure = async (key: string, ...args: string[]) => {
      const { exit, problem } = await createSandboxCli(server(), key)(...args)
      return [exit, problem?.reason ?? problem?.code]
    }
    const say = ['say', '--from', '+1 555 010 0047', 'Hello']
    assert.deepEqual(await getFailure('wc_live_nobody', ...say), [4, 'unauthenticated'])
    assert.deepEqual(
      await getFailure((await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })).key, ...say),
      [4, 'insufficient_scope'],
    )
    assert.deepEqual(
      await getFailure((await workspace.key(workspace.owner.staffId, { test: true })).key, ...say),
      [4, 'test_key'],
    )
    const agent = await workspace.staff({ role: 'agent' })
    assert.deepEqual(await getFailure(agent.key, 'messages'), [4, 'not_admin'])
  })

  it('workspaces see only their own messages', async () => {
    const [first, second] = [await setUp(), await setUp()]
    await first.cli('say', '--from', '+1 555 010 0048', 'Hello')
    await server().settle()
    const { message } = await first.run('messaging_send_reply', {
      conversation_id: (await getOnlyConversation(first.run)).id,
      text: 'Hi',
    })
    assert.deepEqual((await second.cli('messages')).data, [])
    await second.cliError(3, 'not_found', 'status', message.id, 'read')
    assert.deepEqual((await second.run('inbox_search_conversations', {})).data, [])
  })

  it('REST: unknown paths, wrong methods and invalid bodies return a problem', async () => {
    const { workspace } = await setUp()
    const request = async (method: string, path: string, body?: string) => {
      const response = await fetch(`${server().url}/sandbox${path}`, {
        method,
        headers: { Authorization: `Bearer ${workspace.owner.key}`, 'Content-Type': 'application/json' },
        ...(body === undefined ? {} : { body }),
      })
      const problem = (await response.json()) as { code: string; request_id: string }
      assert.match(problem.request_id, /^req_/)
      return [response.status, problem.code]
    }
    assert.deepEqual(await request('GET', '/nothing'), [404, 'not_found'])
    assert.deepEqual(await request('PUT', '/say', '{}'), [405, 'method_not_allowed'])
    assert.deepEqual(await request('POST', '/say', '{'), [400, 'invalid_input'])
    assert.deepEqual(await request('POST', '/say', '[]'), [400, 'invalid_input'])
    assert.deepEqual(
      await request('POST', '/say', JSON.stringify({ from: '+15550100049', text: 'a\u0000b' })),
      [400, 'invalid_input'],
    )
    assert.deepEqual(
      await request('POST', '/say', JSON.stringify({ from: '+15550100049', text: 'Hello', loud: true })),
      [400, 'invalid_input'],
    )
    assert.deepEqual(await request('GET', '/messages?to=x'), [400, 'invalid_input'])
  })
})

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, it } from 'node:test'
import { renderSandboxManPage } from '../../scripts/man-sandbox.ts'
import { createChannel } from '../../storage/admin.ts'
import { insertTemplate } from '../../storage/templates.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, runCli } from '../doors.ts'
import { startProcess } from '../process.ts'
import { makeWorkspace, startServer, type TestServer, type TestWorkspace } from '../servers.ts'

/** `wcrm sandbox …` with a key: what it printed, as JSON. */
const wcrm =
  (server: TestServer, key: string) =>
  async (...words: string[]) => {
    const { exit, stdout, stderr } = await runCli(['sandbox', ...words, '--json'], {
      WCRM_URL: server.url,
      WCRM_API_KEY: key,
      XDG_CONFIG_HOME: '/nonexistent',
    })
    return {
      exit,
      out: stdout === '' ? undefined : JSON.parse(stdout),
      problem: stderr === '' ? undefined : JSON.parse(stderr),
    }
  }

// It advances the clock of its server.
everyDatabase(
  'The sandbox, driven from the command line',
  (server) => {
    const scene = async () => {
      const workspace = await makeWorkspace(server())
      const run = wcrm(server(), workspace.owner.key)
      return {
        workspace,
        call: callAs(server(), workspace.owner.key),
        act: doAs(server(), workspace.owner.key),
        run,
        /** Runs a command that must be done. */
        done: async (...words: string[]) => {
          const { exit, out, problem } = await run(...words)
          assert.equal(exit, 0, JSON.stringify(problem))
          return out
        },
        /** Runs a command that must be refused with this exit code and code. */
        refused: async (exit: number, code: string, ...words: string[]) => {
          const answer = await run(...words)
          assert.deepEqual(
            [answer.exit, answer.problem?.code, answer.out],
            [exit, code, undefined],
            JSON.stringify(answer),
          )
          return answer.problem
        },
      }
    }
    type Act = Awaited<ReturnType<typeof scene>>['act']
    const conversationOf = async (act: Act) => {
      const { data } = await act('inbox_search_conversations', {})
      assert.equal(data.length, 1)
      return data[0]
    }
    const plantTemplate = async (workspace: TestWorkspace): Promise<string> =>
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
          ],
        },
        server().app.now(),
      )

    it('a customer writes, is answered, and a day later reached by a template', async () => {
      const { workspace, act, call, done } = await scene()
      const said = await done(
        'say',
        '--from',
        '+1 555 010 0042',
        '--name',
        'Ada',
        'Is my order',
        'on its way?',
      )
      assert.match(said.id, /^wamid\./)
      await server().settle()
      const conversation = await conversationOf(act)
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

      const { message } = await act('messaging_send_reply', {
        conversation_id: conversation.id,
        text: 'It is.',
      })
      const {
        data: [taken, ...more],
      } = await done('messages', '--to', '+15550100042')
      assert.deepEqual([taken.text.body, taken.to, more.length], ['It is.', '15550100042', 0])
      await done('status', message.id, 'read')
      await server().settle()
      assert.equal((await act('messaging_get_message', { message_id: message.id })).status, 'read')

      const before = await done('clock', 'show')
      const after = await done('clock', 'advance', '1d 1h')
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
      await plantTemplate(workspace)
      await server().sync(workspace.id)
      const sent = await act('messaging_send_template', {
        contact_id: conversation.contact.id,
        template: { name: 'order_update', language: 'en_US', body: ['Ada'] },
      })
      assert.equal(sent.preview, 'Hello Ada, your order is on its way.')
      assert.equal((await done('messages')).data.length, 2)
    })

    it('a customer comes from an ad, and another without a number', async () => {
      const { act, done } = await scene()
      await done('say', '--from', '+1 555 010 0043', '--ad', 'Saw your ad')
      await server().settle()
      assert.equal((await conversationOf(act)).window.kind, 'free_entry')
      await done('say', '--user-id', 'US.13491208655302741918', 'No number here')
      await server().settle()
      const { data } = await act('inbox_search_conversations', {})
      assert.deepEqual(
        [data.length, data[0].contact.phone, data[0].last_message.text],
        [2, null, 'No number here'],
      )
    })

    it('templates are reviewed', async () => {
      const { workspace, done, refused } = await scene()
      const id = await plantTemplate(workspace)
      const status = async () => {
        await server().settle()
        return (
          await server()
            .db.selectFrom('templates')
            .select('status')
            .where('workspace_id', '=', workspace.id)
            .where('id', '=', id)
            .executeTakeFirstOrThrow()
        ).status
      }
      for (const [decision, expected] of [
        ['pause', 'PAUSED'],
        ['reject', 'REJECTED'],
        ['approve', 'APPROVED'],
      ] as const) {
        await done('review', id, decision, ...(decision === 'reject' ? ['--reason', 'PROMOTIONAL'] : []))
        assert.equal(await status(), expected)
      }
      assert.deepEqual(
        (await done('templates')).data.map((t: { name: string; status: string }) => [t.name, t.status]),
        [['order_update', 'APPROVED']],
      )
      await refused(3, 'not_found', 'review', '999999', 'approve')
      await refused(2, 'invalid_input', 'review', id, 'praise')
    })

    it('faults are ordered and cleared; an answer that is lost is not sent again', async () => {
      const { act, call, done, refused } = await scene()
      await done('say', '--from', '+1 555 010 0044', 'Hello')
      await server().settle()
      const { id } = await conversationOf(act)
      const reply = (text: string, idempotencyKey: string) =>
        call('messaging_send_reply', { conversation_id: id, text }, { confirm: 'send', idempotencyKey })
      await done('fault', 'add', '--on', 'messages', '--to', '+1 555 010 0044', '--code', '131042')
      assert.deepEqual((await reply('one', 'faulty-reply-1')).status, 502)
      await done('fault', 'clear')
      assert.equal((await reply('one', 'faulty-reply-1')).status, 201)
      await done('fault', 'add', '--on', 'messages', '--drop-answer', '--times', '1')
      assert.equal((await reply('two', 'faulty-reply-2')).status >= 500, true)
      assert.equal((await reply('two', 'faulty-reply-2')).status, 201)
      assert.deepEqual(
        (await done('messages')).data.map((m: { text: { body: string } }) => m.text.body),
        ['one', 'two'],
      )
      await refused(2, 'invalid_input', 'fault', 'add', '--on', 'messages')
      await refused(2, 'invalid_input', 'fault', 'add', '--on', 'everything', '--code', '1')
    })

    it('webhooks come repeated and out of order, and nothing is doubled', async () => {
      const { act, done } = await scene()
      await done('webhooks', '--duplicates', '3', '--shuffle')
      for (const text of ['one', 'two', 'three', 'four']) await done('say', '--from', '+1 555 010 0045', text)
      await server().settle()
      await done('webhooks')
      const { id, unread_count: unread } = await conversationOf(act)
      const { data } = await act('inbox_list_messages', { conversation_id: id })
      assert.deepEqual(
        [unread, data.map((m: { text: string }) => m.text).toSorted()],
        [4, ['four', 'one', 'three', 'two']],
      )
    })

    it('says what is wrong', async () => {
      const { workspace, refused } = await scene()
      const phone = await refused(2, 'invalid_input', 'say', '--from', '12', 'Hello')
      assert.equal(phone.errors[0].pointer, '#/from')
      await refused(2, 'invalid_input', 'say', 'Hello')
      await refused(2, 'invalid_input', 'say', '--from', '+1 555 010 0046')
      await refused(3, 'not_found', 'say', '--from', '+1 555 010 0046', '--channel', '999999', 'Hello')
      for (const text of ['tomorrow', '0h', '25', '9999999w'])
        await refused(2, 'invalid_input', 'clock', 'advance', text)
      await refused(3, 'not_found', 'status', '999999', 'read')
      await refused(2, 'invalid_input', 'sing')
      const bare = await createChannel(
        server().db,
        workspace.id,
        { type: 'chatapp', name: 'Bare', status: 'connected' },
        server().app.now(),
      )
      assert.equal(
        (await refused(5, 'conflict', 'say', '--from', '+1 555 010 0046', '--channel', bare.id, 'Hello'))
          .reason,
        'no_provider_number',
      )
    })

    it('asks for the rights it needs', async () => {
      const { workspace } = await scene()
      const exitOf = async (key: string, ...words: string[]) => {
        const { exit, problem } = await wcrm(server(), key)(...words)
        return [exit, problem?.reason ?? problem?.code]
      }
      const say = ['say', '--from', '+1 555 010 0047', 'Hello']
      assert.deepEqual(await exitOf('wc_live_nobody', ...say), [4, 'unauthenticated'])
      assert.deepEqual(
        await exitOf((await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })).key, ...say),
        [4, 'insufficient_scope'],
      )
      assert.deepEqual(
        await exitOf((await workspace.key(workspace.owner.staffId, { test: true })).key, ...say),
        [4, 'test_key'],
      )
      const shy = await workspace.staff({ role: 'agent', hide_phone_numbers: true })
      assert.deepEqual(await exitOf(shy.key, 'messages'), [4, 'phone_hidden'])
      const elsewhere = await workspace.staff({ role: 'agent', channel_ids: [] })
      assert.deepEqual(await exitOf(elsewhere.key, ...say), [5, 'no_channel'])
    })

    it('keeps workspaces apart', async () => {
      const [one, other] = [await scene(), await scene()]
      await one.done('say', '--from', '+1 555 010 0048', 'Hello')
      await server().settle()
      const { message } = await one.act('messaging_send_reply', {
        conversation_id: (await conversationOf(one.act)).id,
        text: 'Hi',
      })
      assert.deepEqual((await other.done('messages')).data, [])
      await other.refused(3, 'not_found', 'status', message.id, 'read')
      assert.deepEqual((await other.act('inbox_search_conversations', {})).data, [])
    })

    it('answers every method and path with a whole problem', async () => {
      const { workspace } = await scene()
      const ask = async (method: string, path: string, body?: string) => {
        const response = await fetch(`${server().url}/sandbox${path}`, {
          method,
          headers: { Authorization: `Bearer ${workspace.owner.key}`, 'Content-Type': 'application/json' },
          ...(body === undefined ? {} : { body }),
        })
        const problem = (await response.json()) as { code: string; request_id: string }
        assert.match(problem.request_id, /^req_/)
        return [response.status, problem.code]
      }
      assert.deepEqual(await ask('GET', '/nothing'), [404, 'not_found'])
      assert.deepEqual(await ask('PUT', '/say', '{}'), [405, 'method_not_allowed'])
      assert.deepEqual(await ask('POST', '/say', '{'), [400, 'invalid_input'])
      assert.deepEqual(await ask('POST', '/say', '[]'), [400, 'invalid_input'])
      assert.deepEqual(
        await ask('POST', '/say', JSON.stringify({ from: '+15550100049', text: 'a\u0000b' })),
        [400, 'invalid_input'],
      )
      assert.deepEqual(
        await ask('POST', '/say', JSON.stringify({ from: '+15550100049', text: 'Hello', loud: true })),
        [400, 'invalid_input'],
      )
      assert.deepEqual(await ask('GET', '/messages?to=x'), [400, 'invalid_input'])
    })
  },
  { dedicated: true },
)

/** Answers the first line that a `wcrm` process prints, and the way to end it. */
const startSandbox = async (dataDir: string) => {
  const child = spawn(
    process.execPath,
    ['bin/wcrm.js', 'sandbox', 'serve', '--port', '0', '--data', dataDir, '--json'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { PATH: process.env.PATH, HOME: '/nonexistent', WCRM_LOG_LEVEL: 'error' },
    },
  )
  const exited = once(child, 'exit')
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return {
    said: JSON.parse(line) as { url: string; token: string; app_secret: string; verify_token: string },
    stop: async () => {
      child.kill('SIGTERM')
      return (await exited)[0] as number
    },
  }
}

const shared = process.env.WCRM_TEST_POSTGRES_URL ? {} : { skip: 'WCRM_TEST_POSTGRES_URL is not set' }

it(
  'A clock that is advanced on one server is advanced on every other within two seconds',
  shared,
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'wcrm-clock-'))
    const server = await startServer('postgresql')
    const { databaseUrl } = server.location as { databaseUrl: string }
    const other = await startProcess(['--database-url', databaseUrl, '--data', dataDir], {
      WCRM_SECRET: 'a secret of at least sixteen',
    })
    try {
      const workspace = await makeWorkspace(server)
      const { out } = await wcrm(server, workspace.owner.key)('clock', 'advance', '3d')
      const offsetThere = async () =>
        (
          (await (
            await fetch(`${other.url}/sandbox/clock`, {
              headers: { Authorization: `Bearer ${workspace.owner.key}` },
            })
          ).json()) as { offset_ms: number }
        ).offset_ms
      for (const end = performance.now() + 2_000; (await offsetThere()) !== out.offset_ms;)
        assert.ok(performance.now() < end, 'the other server is behind')
      assert.equal(out.offset_ms, 3 * 86_400_000)
    } finally {
      await other.kill('SIGTERM')
      await server.close()
      rmSync(dataDir, { recursive: true, force: true })
    }
  },
)

describe('A sandbox in a process of its own', () => {
  it('is driven like the built-in one, keeps its secrets, and ends well', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'wcrm-sandbox-'))
    const sandbox = await startSandbox(dataDir)
    const { url, token, app_secret: appSecret, verify_token: verifyToken } = sandbox.said
    const server = await startServer('embedded', {
      provider: {
        providerUrl: url,
        providerToken: token,
        providerAppSecret: appSecret,
        providerVerifyToken: verifyToken,
      },
    })
    try {
      const workspace = await makeWorkspace(server)
      const [run, act] = [wcrm(server, workspace.owner.key), doAs(server, workspace.owner.key)]
      assert.equal((await run('say', '--from', '+1 555 010 0050', 'Hello')).exit, 0)
      let found: { id: string }[] = []
      for (const end = performance.now() + 10_000; found.length === 0 && performance.now() < end;)
        ({ data: found } = await act('inbox_search_conversations', {}))
      await act('messaging_send_reply', { conversation_id: found[0]!.id, text: 'Hi' })
      assert.equal((await run('messages')).out.data.length, 1)
      assert.equal((await run('clock', 'advance', '2d')).exit, 0)
      const control = (await (
        await fetch(`${url}/control`, { headers: { Authorization: `Bearer ${token}` } })
      ).json()) as { now: string }
      assert.ok(Date.parse(control.now) - Date.now() > 47 * 3_600_000, 'its clock goes with ours')
    } finally {
      await server.close()
      assert.equal(await sandbox.stop(), 0)
    }
    const again = await startSandbox(dataDir)
    assert.deepEqual([again.said.token, again.said.app_secret], [token, appSecret])
    assert.equal(await again.stop(), 0)
    rmSync(dataDir, { recursive: true, force: true })
  })

  it('is not there with the true provider', async () => {
    const stranger = createServer((_, response) => {
      response
        .writeHead(400, { 'Content-Type': 'application/json' })
        .end('{"error":{"message":"Unsupported get request.","code":100}}')
    })
    await new Promise<void>((listening) => stranger.listen(0, '127.0.0.1', listening))
    const provider = {
      providerUrl: `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`,
      providerToken: 't',
      providerAppSecret: 's',
      providerVerifyToken: 'v',
    }
    const server = await startServer('embedded', { provider })
    try {
      const workspace = await makeWorkspace({ db: server.db, app: server.app })
      const { exit, problem } = await wcrm(server, workspace.owner.key)(
        'say',
        '--from',
        '+1 555 010 0051',
        'Hello',
      )
      assert.deepEqual([exit, problem.code], [3, 'not_found'])
      assert.equal((await fetch(`${server.url}/sandbox/provider/control`)).status, 404)
    } finally {
      await server.close()
      stranger.closeAllConnections()
      await new Promise((closed) => stranger.close(closed))
    }
  })
})

it('The man page of the sandbox is as it should be committed', () => {
  assert.equal(
    readFileSync(new URL('../../man/wcrm-sandbox.1', import.meta.url), 'utf8'),
    renderSandboxManPage(),
  )
})

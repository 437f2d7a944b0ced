import assert from 'node:assert/strict'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { runCommandLine } from '../../cli/main.ts'
import { createChannel } from '../../storage/workspace/admin.ts'
import { everyDatabase } from '../doors.ts'
import { makeLoginCode, PUBLIC_URL } from '../oauth/browser.ts'
import { makeWorkspace } from '../servers.ts'
import { visit } from './page.ts'
import { createAgentScene } from './scene.ts'

everyDatabase('The page of an approval', (server) => {
  const createScene = async () => {
    const scene = await createAgentScene(server())
    const signIn = async (url: string, staffId = scene.manager.staffId, workspaceId = scene.workspace.id) => {
      const browser = visit(url)
      await browser.load()
      const code = await makeLoginCode(server(), workspaceId, staffId)
      return { browser, code, page: await browser.submit({ step: 'login', code }) }
    }
    const ask = async (text: string) => (await scene.ask(...scene.reply(text))).body
    const countSent = async () => (await scene.sandbox.sent(scene.phone)).length
    return { ...scene, signIn, ask, countSent }
  }

  it('shows the call whole to whoever signed in, and runs it once', async () => {
    const scene = await createScene()
    const { approval_url: url, approval } = await scene.ask('On <b>Monday</b>\u202e.')
    const stranger = visit(url)
    const first = await stranger.load()
    assert.match(first.headers.get('content-security-policy')!, /default-src 'none'.*frame-ancestors 'none'/)
    assert.doesNotMatch(stranger.getText(), /Monday|Ada/)
    const { browser, page } = await scene.signIn(url)
    assert.equal(page.status, 200)
    assert.match(page.text, /Text: On &lt;b&gt;Monday&lt;\/b&gt;\\u\{202e\}/i)
    assert.match(page.text, /Ada/)
    assert.equal(page.text.includes(scene.phone), false)
    const token = browser.getToken()
    const approved = await browser.submit({ step: 'approve', text: 'On Tuesday.', note: 'Late.' })
    assert.match(approved.text, /Approved/)
    const again = await browser.submit({ step: 'approve', token })
    assert.equal(again.status, 400)
    const get = { approval_id: approval.id, wait_seconds: 20 }
    const ended = (await scene.as(scene.agent.key)('approvals_get', get)).body
    assert.deepEqual([ended.status, ended.edited_text, ended.note], ['done', 'On Tuesday.', 'Late.'])
    assert.equal(await scene.countSent(), 1)
    const later = await scene.signIn(url)
    assert.match(later.page.text, /It was approved, and ran/)
    assert.doesNotMatch(later.page.text, /value="approve"/)
  })

  it('refuses strangers, other forms, used codes and codes without the scope', async () => {
    const scene = await createScene()
    const { approval_url: url } = await scene.ask('Never.')
    const other = await makeWorkspace(server())
    const foreign = await scene.signIn(url, other.owner.staffId, other.id)
    assert.equal(foreign.page.status, 404)
    const { browser, code } = await scene.signIn(url)
    assert.equal((await browser.submit({ step: 'approve', token: 'forged' })).status, 400)
    const second = visit(url)
    await second.load()
    assert.match((await second.submit({ step: 'login', code })).text, /wrong, was used before/)
    const weak = await makeLoginCode(server(), scene.workspace.id, scene.manager.staffId, {
      scopes: ['mcp:read'],
    })
    assert.match((await second.submit({ step: 'login', code: weak })).text, /lacks the scope/)
    const codes = await fetch(`${server().url}/oauth/login-codes`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${scene.agent.key}` },
    })
    assert.equal(codes.status, 403)
    await browser.load()
    assert.match((await browser.submit({ step: 'decline', note: 'Call her.' })).text, /Declined/)
    assert.equal((await scene.ask('Never.')).code, 'declined')
    assert.equal(await scene.countSent(), 0)
  })

  it('shows nothing of what the viewer may not see, and takes no decision too late', async () => {
    const scene = await createScene()
    const { approval_url: url } = await scene.ask('Secret.')
    const other = await createChannel(
      server().db,
      scene.workspace.id,
      { type: 'web', name: 'Shop' },
      server().app.now(),
    )
    const elsewhere = await scene.workspace.staff({ role: 'manager', channel_ids: [other.id] })
    const { page } = await scene.signIn(url, elsewhere.staffId)
    assert.equal(page.status, 404)
    assert.doesNotMatch(page.text, /Secret|Ada/)
    await scene.setPolicy({ expires_after: 60 })
    const late = await scene.ask('Too late.')
    const { browser } = await scene.signIn(late.approval_url)
    await server()
      .db.updateTable('approvals')
      .set({ expires_at: '2020-01-01T00:00:00.000Z' })
      .where('workspace_id', '=', scene.workspace.id)
      .where('id', '=', late.approval.id)
      .execute()
    const refused = await browser.submit({ step: 'approve' })
    assert.equal(refused.status, 400)
    assert.match(refused.text, /Nobody decided in time/)
    assert.equal(await scene.countSent(), 0)
  })

  it('writes out what nobody sees, names it beside the text to edit, and keeps what was written', async () => {
    const scene = await createScene()
    const { db } = server()
    const hidden = 'Mi\u{e0041}na\u202e<i>'
    await db.updateTable('staff').set({ name: hidden }).where('id', '=', scene.manager.staffId).execute()
    await db.updateTable('api_keys').set({ name: hidden }).where('id', '=', scene.agent.keyId).execute()
    server().app.keyCache.keys.clear()
    const { approval_url: url, approval } = await scene.ask('Pay\u200b now\u200b.\u2066')
    const { browser, page } = await scene.signIn(url)
    const withoutField = page.text.replace(/<textarea id="text".*?<\/textarea>/s, '')
    assert.doesNotMatch(withoutField, /[\u{e0041}\u202e\u200b\u2066]/u)
    assert.equal(page.text.split('<bdi>Mi\\u{e0041}na\\u{202e}&lt;i&gt;</bdi>').length - 1, 2, page.text)
    assert.match(
      page.text,
      /characters that nobody sees.*\n<code>\\u\{200b\} \(2 times\), \\u\{2066\}<\/code>/,
    )
    const written = { text: 'Plain\r\ntext.', note: 'Why?' }
    const refused = await browser.submit({ step: 'approve', token: 'old', ...written })
    assert.match(refused.text, /out of date/)
    assert.match(refused.text, />\nPlain\ntext\.<\/textarea>\n+<label for="note".*?>\nWhy\?<\/textarea>/s)
    assert.doesNotMatch(refused.text, /that nobody sees/)
    await browser.submit({ step: 'decline' })
    const later = await scene.signIn(url)
    assert.match(later.page.text, /Decided by Mi\\u\{e0041\}na/)
    assert.equal((await scene.person('approvals_get', { approval_id: approval.id })).body.status, 'declined')
  })

  it('uses the key of an ended sign-in again, which the audit trail goes on naming', async () => {
    const scene = await createScene()
    const decide = async (url: string) => (await scene.signIn(url)).browser.submit({ step: 'decline' })
    for (const text of ['One.', 'Two.']) await decide((await scene.ask(text)).approval_url)
    const { approval_url: url } = await scene.ask('Three.')
    const [first, second] = [await scene.signIn(url), await scene.signIn(url)]
    const listKeys = () =>
      server()
        .db.selectFrom('api_keys')
        .select(['id', 'expires_at', 'revoked_at', 'scopes'])
        .where('workspace_id', '=', scene.workspace.id)
        .where('name', '=', 'Approval page')
        .orderBy('id')
        .execute()
    assert.equal((await listKeys()).length, 2, 'two are in use at a time')
    // Each browser has its own sign-in, and that of an earlier one is over.
    assert.match((await first.browser.submit({ step: 'decline' })).text, /Declined/)
    assert.match((await second.browser.submit({ step: 'decline' })).text, /It was declined|is declined/)
    await decide((await scene.ask('Four.')).approval_url)
    assert.equal((await listKeys()).length, 2)
    const { data } = (await scene.person('audit_list', { staff_id: scene.manager.staffId, limit: 50 })).body
    const signIns = data.filter(({ operation }: any) => operation === 'approvals.sign_in')
    assert.deepEqual(
      [signIns.length, new Set(signIns.map(({ actor }: any) => actor.key.name)), signIns[0].client],
      [5, new Set(['Approval page']), 'node'],
    )
  })

  it('lets nobody stay signed in for longer than the key that made the login code', async () => {
    const scene = await createScene()
    const { approval_url: url } = await scene.ask('Soon.')
    const keyExpiresAt = new Date(Date.parse(server().app.now()) + 60_000).toISOString()
    const browser = visit(url)
    await browser.load()
    const grantable = { keyExpiresAt }
    const code = await makeLoginCode(server(), scene.workspace.id, scene.manager.staffId, grantable)
    assert.match((await browser.submit({ step: 'login', code })).text, /value="approve"/)
    const keys = await server()
      .db.selectFrom('api_keys')
      .select(['expires_at', 'phones', 'agent', 'scopes'])
      .where('workspace_id', '=', scene.workspace.id)
      .where('name', '=', 'Approval page')
      .execute()
    const scopes = ['mcp:read', 'messaging:write', 'approvals:write']
    assert.deepEqual(
      keys.map((key) => ({ ...key, scopes: key.scopes.toSorted() })),
      [{ expires_at: keyExpiresAt, phones: false, agent: false, scopes: scopes.toSorted() }],
    )
  })

  it('answers junk with a refusal', async () => {
    const scene = await createScene()
    const { approval_url: url } = await scene.ask('Junk.')
    const send = async (method: string, init: RequestInit = {}, at = url) =>
      (await fetch(at, { method, redirect: 'manual', ...init })).status
    assert.equal(await send('HEAD'), 200)
    assert.equal(await send('PUT', { body: 'x' }), 405)
    for (const method of ['DELETE', 'PROPFIND', 'OPTIONS', 'REPORT'])
      assert.equal(await send(method), 405, method)
    assert.equal(await send('POST', { body: 'x'.repeat(200_000) }), 413)
    const junk = new Uint8Array([255, 0, 37, 37, 61, 38])
    for (const body of ['', 'token=%ff%00&code=%', '__proto__=1', junk])
      assert.equal(await send('POST', { body }), 400)
    const forged = { Cookie: `wcrm_approval=${'a'.repeat(43)}` }
    assert.equal(await send('POST', { body: 'token=ä&step=approve', headers: forged }), 400)
    const origin = new URL(url).origin
    for (const path of [
      '/approvals/x',
      '/approvals/1/2',
      '/approvals/',
      '/approvals/99999999999999999999',
      '/approvals/00001',
      '/approvals/0',
    ])
      for (const method of ['GET', 'POST', 'PUT'])
        assert.equal(await send(method, {}, origin + path), 404, `${method} ${path}`)
    const { page } = await scene.signIn(`${origin}/approvals/9999999999999999999`)
    assert.ok([400, 404].includes(page.status), String(page.status))
  })

  for (const mode of ['auto', 'legacy'] as const) {
    const connect = async (key: string, open: (url: string) => Promise<'accept' | 'decline'>) => {
      const client = new Client(
        { name: 'tests', version: '1' },
        { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode } },
      )
      const opened: any[] = []
      client.setRequestHandler('elicitation/create', async ({ params }) => {
        opened.push(params)
        return { action: await open((params as { url: string }).url) }
      })
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${server().url}/mcp`), {
          requestInit: { headers: { Authorization: `Bearer ${key}` } },
        }),
      )
      return { client, opened }
    }

    it(`is opened by clients that can (${mode}), whose call then answers how it ended`, async () => {
      const scene = await createScene()
      const { client, opened } = await connect(scene.agent.key, async (url) => {
        const { browser } = await scene.signIn(url)
        assert.match((await browser.submit({ step: 'approve' })).text, /Approved/)
        return 'accept'
      })
      const [name, input] = scene.reply('On its way.')
      const result: any = await client.callTool({ name, arguments: input })
      await client.close()
      assert.deepEqual([opened.length, opened[0].mode], [1, 'url'])
      assert.equal(result.structuredContent.approval, undefined, JSON.stringify(result.structuredContent))
      assert.equal(await scene.countSent(), 1)
    })

    it(`stays open for a person when the client does not go there (${mode})`, async () => {
      const scene = await createScene()
      const { client, opened } = await connect(scene.agent.key, async () => 'decline')
      const [name, input] = scene.reply('Not now.')
      const result: any = await client.callTool({ name, arguments: input })
      await client.close()
      assert.equal(opened.length, 1)
      const { approval, approval_url: url } = result.structuredContent
      assert.equal(approval.status, 'pending')
      const { browser } = await scene.signIn(url)
      assert.match((await browser.submit({ step: 'decline' })).text, /Declined/)
      assert.equal(await scene.countSent(), 0)
    })
  }
})

everyDatabase('The page of an approval, opened by a client of wcrm mcp', (server) => {
  /** Runs `wcrm mcp` with a client of 2025-11-25 that opens pages; `open` answers each request to open one. */
  const callTool = async (
    key: string,
    [name, input]: readonly [string, object],
    open: (url: string) => Promise<string>,
  ) => {
    const [stdin, output, notes] = [new PassThrough(), new PassThrough(), new PassThrough()]
    const env = { WCRM_URL: server().url, WCRM_API_KEY: key, WCRM_KEYCHAIN: 'off' }
    const done = runCommandLine(['mcp'], { stdin: stdin, stdout: output, stderr: notes, env })
    const lines = createInterface({ input: output })[Symbol.asyncIterator]()
    const send = (message: object) => void stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    const receive = async (): Promise<any> => JSON.parse((await lines.next()).value!)
    const capabilities = { elicitation: { url: {} } }
    const clientInfo = { name: 'old', version: '1' }
    send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities, clientInfo } })
    assert.equal((await receive()).result.protocolVersion, '2025-11-25')
    send({ method: 'notifications/initialized' })
    send({ id: 2, method: 'tools/call', params: { name, arguments: input } })
    const asked: any[] = []
    let message = await receive()
    for (; message.method !== undefined; message = await receive()) {
      assert.equal(message.method, 'elicitation/create')
      asked.push(message.params)
      send({ id: message.id, result: { action: await open(message.params.url as string) } })
    }
    stdin.end()
    assert.equal(await done, 0)
    return { result: message.result, asked }
  }

  it('the call answers how it ended, or that it waits for a person still', async () => {
    const scene = await createAgentScene(server())
    const countSent = async () => (await scene.sandbox.sent(scene.phone)).length
    const decide = async (url: string): Promise<string> => {
      const browser = visit(url)
      await browser.load()
      const code = await makeLoginCode(server(), scene.workspace.id, scene.manager.staffId)
      await browser.submit({ step: 'login', code })
      assert.match((await browser.submit({ step: 'approve' })).text, /Approved/)
      return 'accept'
    }
    const sent = await callTool(scene.agent.key, scene.reply('On its way.'), decide)
    assert.deepEqual(
      sent.asked.map(({ mode, elicitationId }) => [mode, typeof elicitationId]),
      [['url', 'string']],
    )
    assert.equal(sent.result.structuredContent.message.text, 'On its way.')
    assert.equal(await countSent(), 1)
    const waits = await callTool(scene.agent.key, scene.reply('Not now.'), async () => 'cancel')
    assert.equal(waits.result.structuredContent.approval.status, 'pending')
    assert.equal(await countSent(), 1)
  })
})

everyDatabase(
  'Wrong login codes on the page of an approval',
  (server) => {
    it('are throttled by network, whichever approval they are for, and a right one is not tried then', async () => {
      const scene = await createAgentScene(server())
      const ask = async (text: string) => (await scene.ask(...scene.reply(text))).body.approval_url as string
      const code = await makeLoginCode(server(), scene.workspace.id, scene.manager.staffId)
      const [first, second] = [visit(await ask('One.')), visit(await ask('Two.'))]
      await first.load()
      await second.load()
      const from = (address: string) => ({ 'X-Forwarded-For': address })
      const guess = { step: 'login', code: 'AAAA-AAAA-AAAA' }
      for (const browser of [first, second, first])
        assert.equal((await browser.submit(guess, from('203.0.113.7'))).status, 400)
      const token = second.getToken()
      const throttled = await second.submit({ step: 'login', code }, from('203.0.113.7'))
      assert.deepEqual([throttled.status, throttled.text.includes('Retry')], [429, false])
      assert.ok(Number(throttled.headers.get('retry-after')) > 0)
      const elsewhere = await second.submit({ step: 'login', code, token }, from('198.51.100.7'))
      assert.match(elsewhere.text, /value="approve"/)
    })
  },
  { limitAuthFailures: 3, trustProxy: '127.0.0.1' },
)

everyDatabase(
  'The page of an approval behind TLS',
  (server) => {
    it('keeps its sign-in to encrypted connections', async () => {
      const { headers } = await fetch(`${server().url}/approvals/1`)
      assert.match(headers.get('set-cookie')!, /; HttpOnly; SameSite=Strict; Max-Age=\d+; Secure$/)
    })
  },
  { publicUrl: PUBLIC_URL },
)

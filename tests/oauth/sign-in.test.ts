import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { updateStaff } from '../../storage/workspace/admin.ts'
import { databases } from '../databases.ts'
import { runCli } from '../doors.ts'
import { makeWorkspace, startWithOptions, type TestServer, type TestWorkspace } from '../servers.ts'
import { noticeSlowClock } from '../slow-clock.ts'
import {
  allow,
  authorizeUrl,
  createBrowser,
  createPkce,
  fetchThrough,
  makeLoginCode,
  offeredScopes,
  PUBLIC_URL,
  registerClient,
} from './browser.ts'

for (const database of databases)
  describe(`signing in an OAuth client, ${database}`, () => {
    let server: TestServer
    let workspace: TestWorkspace
    let clientId: string
    before(async () => {
      server = await startWithOptions(database, { publicUrl: PUBLIC_URL })
      workspace = await makeWorkspace(server, { name: 'Shop <b>&' })
      clientId = (await registerClient(server, { client_name: '<script>alert(1)</script>\u202E' })).body
        .client_id
    })
    after(() => server.close())

    const open = async (more: Record<string, string> = {}) => {
      const browser = createBrowser(server)
      return { browser, page: await browser.open(authorizeUrl(clientId, createPkce().challenge, more)) }
    }
    const codeFor = (grantable?: Parameters<typeof makeLoginCode>[3]) =>
      makeLoginCode(server, workspace.id, workspace.owner.staffId, grantable)

    it('shows who asks, for what and as whom, in pages that nothing else can use', async () => {
      const { browser, page } = await open()
      const consent = await browser.submit(page, { step: 'login', code: await codeFor() })
      for (const { text, headers } of [page, consent]) {
        assert.match(headers.get('content-security-policy')!, /default-src 'none'.*frame-ancestors 'none'/)
        assert.match(
          headers.get('content-security-policy')!,
          /form-action 'self' http:\/\/127\.0\.0\.1:8123;/,
        )
        assert.equal(headers.get('x-frame-options'), 'DENY')
        assert.equal(headers.get('cache-control'), 'no-store')
        assert.ok(!/<script|\u202E|javascript:/.test(text), text)
        assert.match(text, /&lt;script&gt;alert\(1\)/)
      }
      assert.match(consent.text, /Owner.*Shop &lt;b&gt;&amp;/s)
      assert.match(consent.text, /AI agent/)
      assert.deepEqual(offeredScopes(consent).includes('approvals:write'), false)
    })

    it('takes no login code that has expired, where the clock of the server is slow', async (test) => {
      const code = await codeFor()
      await server.db
        .updateTable('login_codes')
        .set({ expires_at: new Date(Date.now() - 1000).toISOString() })
        .where('workspace_id', '=', workspace.id)
        .execute()
      await noticeSlowClock(test, server)
      const { browser, page } = await open()
      assert.equal((await browser.submit(page, { step: 'login', code })).status, 400)
    })

    it('takes a login code once, and not for long', async () => {
      const code = await codeFor()
      assert.ok(
        (await allow(server, authorizeUrl(clientId, createPkce().challenge), code)).searchParams.has('code'),
      )
      const { browser, page } = await open()
      const used = await browser.submit(page, { step: 'login', code })
      assert.equal(used.status, 400)
      assert.match(used.text, /was used before or has expired/)
      const expired = await codeFor()
      await server.db
        .updateTable('login_codes')
        .set({ expires_at: new Date(Date.now() - 1000).toISOString() })
        .where('workspace_id', '=', workspace.id)
        .execute()
      const again = await open()
      assert.equal((await again.browser.submit(again.page, { step: 'login', code: expired })).status, 400)
      // A new code takes the place of the one before.
      const [former, latest] = [await codeFor(), await codeFor()]
      const third = await open()
      assert.equal((await third.browser.submit(third.page, { step: 'login', code: former })).status, 400)
      const typed = latest.toLowerCase().replaceAll('-', ' ')
      const fourth = await open()
      assert.match((await fourth.browser.submit(fourth.page, { step: 'login', code: typed })).text, /It may:/)
    })

    it('gives up after five wrong codes', async () => {
      const { browser, page } = await open()
      let shown = page
      for (let i = 0; i < 5; i++) {
        assert.equal(shown.location, undefined)
        shown = {
          ...(await browser.submit({ ...shown, status: 200 }, { step: 'login', code: 'AAAA-AAAA-AAAA' })),
        }
      }
      const end = await browser.submit({ ...shown, status: 200 }, { step: 'login', code: await codeFor() })
      assert.equal(new URL(end.location!).searchParams.get('error'), 'access_denied')
    })

    it('answers access_denied, with state and iss, to who declines', async () => {
      const { browser, page } = await open({ state: 'ünïcode ✓ '.repeat(40) })
      const consent = await browser.submit(page, { step: 'login', code: await codeFor() })
      const back = new URL((await browser.submit(consent, { step: 'decline' })).location!)
      assert.deepEqual(
        ['error', 'iss', 'state'].map((name) => back.searchParams.get(name)),
        ['access_denied', PUBLIC_URL, 'ünïcode ✓ '.repeat(40)],
      )
    })

    it('grants no more than the key behind the login code has', async () => {
      const { browser, page } = await open()
      const keyExpiresAt = new Date(Date.parse(server.app.now()) + 3_600_000).toISOString()
      const code = await codeFor({ scopes: ['mcp:read', 'inbox:write'], keyExpiresAt })
      const consent = await browser.submit(page, { step: 'login', code })
      assert.deepEqual(offeredScopes(consent), ['mcp:read', 'inbox:write'])
      // A form with more scopes than were offered.
      const back = await browser.submit(consent, { step: 'approve', scope: ['mcp:read', 'crm:write'] })
      assert.ok(new URL(back.location!).searchParams.has('code'))
      const key = await server.db
        .selectFrom('api_keys')
        .select(['scopes', 'agent', 'expires_at', 'name'])
        .where('workspace_id', '=', workspace.id)
        .orderBy('id', 'desc')
        .limit(1)
        .executeTakeFirstOrThrow()
      // Nor for longer; and the name of the key has nothing in it that could pose as text of the product.
      const name = 'OAuth: 127.0.0.1 (scriptalert1script)'
      assert.deepEqual(key, { scopes: ['mcp:read'], agent: true, expires_at: keyExpiresAt, name })
    })

    it('lets nobody in who was disabled after the code was made', async () => {
      const { staffId } = await workspace.staff({ name: 'Gone' })
      const code = await makeLoginCode(server, workspace.id, staffId)
      await updateStaff(server.db, workspace.id, staffId, { enabled: false }, undefined)
      const { browser, page } = await open()
      assert.equal((await browser.submit(page, { step: 'login', code })).status, 400)
    })

    it('takes forms from its own pages in the same browser alone', async () => {
      const { browser, page } = await open()
      const forged = await browser.submit(
        { ...page, text: page.text.replace(/name="token" value="[^"]+"/, 'name="token" value="forged"') },
        { step: 'login', code: await codeFor() },
      )
      assert.equal(forged.status, 400)
      assert.match(forged.text, /out of date/)
      const elsewhere = await createBrowser(server).submit(page, { step: 'login', code: await codeFor() })
      assert.equal(elsewhere.status, 400)
      assert.match(elsewhere.text, /started in another browser/)
    })

    it('prints login codes for people, on the command line', async () => {
      const env = { WCRM_URL: server.url, WCRM_API_KEY: workspace.owner.key, XDG_CONFIG_HOME: '/nonexistent' }
      const printed = await runCli(['login-code'], env)
      assert.equal(printed.exit, 0, printed.stderr)
      const { browser, page } = await open()
      const consent = await browser.submit(page, { step: 'login', code: printed.stdout.trim() })
      assert.match(consent.text, /It may:/)
      const agent = await workspace.key(workspace.owner.staffId, { agent: true })
      const test = await workspace.key(workspace.owner.staffId, { test: true })
      for (const { key } of [agent, test]) {
        const refused = await runCli(['login-code'], { ...env, WCRM_API_KEY: key })
        assert.equal(refused.exit, 4, refused.stdout)
        assert.equal(refused.stdout, '')
      }
    })

    it('is not there unless the public URL is https', async () => {
      for (const options of [{}, { publicUrl: PUBLIC_URL, oauth: 'off' as const }]) {
        const plain = await startWithOptions(database, options)
        const paths = [
          '/.well-known/oauth-protected-resource',
          '/.well-known/oauth-authorization-server',
          '/oauth/authorize',
        ]
        for (const path of paths) assert.equal((await fetch(`${plain.url}${path}`)).status, 404)
        const refused = await fetch(`${plain.url}/mcp`, {
          method: 'POST',
          body: '{}',
          headers: { 'Content-Type': 'application/json' },
        })
        assert.match(refused.headers.get('www-authenticate')!, /^Bearer(?! .*resource_metadata)/)
        const env = {
          WCRM_URL: plain.url,
          WCRM_API_KEY: workspace.owner.key,
          XDG_CONFIG_HOME: '/nonexistent',
        }
        // The pages of approvals take login codes too.
        assert.equal((await runCli(['login-code'], env)).exit, 0)
        await plain.close()
      }
      assert.equal(
        (await fetchThrough(server)(`${PUBLIC_URL}/.well-known/oauth-authorization-server`)).status,
        200,
      )
    })
  })

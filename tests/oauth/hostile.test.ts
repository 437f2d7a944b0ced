import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { hashApiKey } from '../../server/api-keys.ts'
import { databases } from '../databases.ts'
import { makeWorkspace, startWithOptions, type TestServer, type TestWorkspace } from '../servers.ts'
import {
  allow,
  authorizeUrl,
  createBrowser,
  createPkce,
  exchange,
  fetchThrough,
  makeLoginCode,
  postForm,
  PUBLIC_URL,
  registerClient,
} from './browser.ts'
import { type ClientSite, type SiteAnswer, startClientSite } from './documents.ts'

const REDIRECT = 'http://127.0.0.1:8123/callback'

/** What sites answer where a client's document should be, and none of it is one. */
const wrongDocuments: Record<string, (url: string) => SiteAnswer> = {
  '/moved': (url) => ({ status: 302, location: `${url}-there` }),
  '/missing': () => ({ status: 404 }),
  '/page': (url) => ({ type: 'text/html', body: document(url) }),
  '/broken': () => ({ body: '{"client_id":' }),
  '/list': () => ({ body: '[]' }),
  '/null': () => ({ body: 'null' }),
  '/another': () => ({ body: document('https://client.example.com/else') }),
  '/huge': (url) => ({ body: document(url, { padding: 'x'.repeat(20_000) }) }),
  '/secret': (url) => ({ body: document(url, { client_secret: 'abc' }) }),
  '/basic': (url) => ({ body: document(url, { token_endpoint_auth_method: 'client_secret_basic' }) }),
  '/script': (url) => ({ body: document(url, { redirect_uris: [REDIRECT, 'javascript:alert(1)'] }) }),
  '/browser': (url) => ({
    body: document(url, { redirect_uris: [REDIRECT, 'microsoft-edge:https://evil.example.com'] }),
  }),
  '/plain': (url) => ({ body: document(url, { redirect_uris: [REDIRECT, 'http://evil.example.com/'] }) }),
  '/many': (url) => ({ body: document(url, { redirect_uris: [...Array(21).keys()].map(toAddress) }) }),
  '/wrong-types': (url) => ({ body: document(url, { redirect_uris: 7, client_name: {} }) }),
  '/no-uris': (url) => ({ body: document(url, { redirect_uris: [] }) }),
  '/slow': (url) => ({ body: document(url), delayMs: 10_000 }),
}

/** An address of a client; the first is the usual one. */
const toAddress = (n: number): string => `${REDIRECT}${n === 0 ? '' : `/${n}`}`

const document = (url: string, more: Record<string, unknown> = {}): string =>
  JSON.stringify({ client_id: url, client_name: 'Documented', redirect_uris: [REDIRECT], ...more })

for (const database of databases)
  describe(`hostile OAuth clients, ${database}`, () => {
    let server: TestServer
    let workspace: TestWorkspace
    let site: ClientSite
    before(async () => {
      site = await startClientSite((path, { url }) => {
        const answer = Object.hasOwn(wrongDocuments, path) ? wrongDocuments[path]! : undefined
        return answer?.(url(path)) ?? { body: document(url(path)) }
      })
      server = await startWithOptions(database, {
        publicUrl: PUBLIC_URL,
        dedicated: true,
        resolve: async (name) => [name.startsWith('client.') ? '127.0.0.1' : '10.1.2.3'],
      })
      workspace = await makeWorkspace(server)
    })
    after(async () => {
      await server.close()
      await site.close()
    })

    const open = (clientId: string, more: Record<string, string> = {}) =>
      createBrowser(server).open(authorizeUrl(clientId, createPkce().challenge, more))

    it('get a page, not a redirect, when the address that is their id gives no description', async () => {
      for (const path of Object.keys(wrongDocuments)) {
        const page = await open(site.url(path))
        assert.equal(page.status, 400, `${path}: ${page.status} ${page.text}`)
        assert.equal(page.location, undefined, path)
        assert.match(page.text, /This did not work/, path)
      }
    })

    it('are asked for their description once, also when there is none', async () => {
      const count = (path: string) => site.asked.filter((one) => one === path).length
      await open(site.url('/once'))
      await open(site.url('/once'))
      assert.equal(count('/once'), 1)
      const before = count('/missing')
      await open(site.url('/missing'))
      assert.equal(count('/missing'), before)
    })

    it('cannot make the server fetch from a private network', async () => {
      for (const id of [
        'https://internal.example.org/client.json',
        'https://10.0.0.1/client.json',
        'https://169.254.169.254/latest/meta-data',
        'https://localhost/client.json',
        'http://client.example.com/client.json',
        'file:///etc/passwd',
      ])
        assert.equal((await open(id)).status, 400, id)
    })

    it('are answered at their own addresses alone; only the port of a program on the device may differ', async () => {
      const { body: client } = await registerClient(server, {
        redirect_uris: ['http://127.0.0.1/callback', 'https://app.example.com/cb', 'com.example.app:/cb'],
      })
      const statusOf = async (uri: string) => (await open(client.client_id, { redirect_uri: uri })).status
      for (const uri of [
        'http://127.0.0.1:5000/callback',
        'https://app.example.com/cb',
        'com.example.app:/cb',
      ])
        assert.equal(await statusOf(uri), 200, uri)
      for (const uri of [
        'http://127.0.0.1:5000/callback/',
        'http://127.0.0.1:5000/callback?a=1',
        'http://127.0.0.1.evil.example.com/callback',
        'http://127.0.0.1@evil.example.com/callback',
        'http://localhost:5000/callback',
        'https://app.example.com/cb/../x',
        'https://app.example.com:444/cb',
        'https://APP.example.com.evil.com/cb',
        'not a uri',
        '',
      ])
        assert.equal(await statusOf(uri), 400, uri)
    })

    it('name an app on the device, whose address is shown, and nothing that leads off it', async () => {
      for (const uri of [
        'microsoft-edge:https://evil.example.com/cb',
        'GoogleChrome://evil.example.com/cb',
        'x-safari-https://evil.example.com/cb',
        'firefox://open-url?url=https://evil.example.com',
        'view-source:https://evil.example.com',
        'search-ms:query=a&crumb=location:%5C%5Cevil.example.com',
        'smb://evil.example.com/cb',
        'tg://resolve?domain=evil',
        'intent://evil.example.com/cb',
        'wss://evil.example.com/cb',
        'ftp://evil.example.com/cb',
        'mailto:eve@evil.example.com',
      ]) {
        const { status, body } = await registerClient(server, { redirect_uris: ['cursor://x/cb', uri] })
        assert.deepEqual([status, body.error], [400, 'invalid_redirect_uri'], uri)
      }
      const uri = 'operator.app://x/cb?a=1&b'
      const { body: client } = await registerClient(server, { redirect_uris: [uri] })
      const { text } = await open(client.client_id, { redirect_uri: uri })
      assert.ok(text.includes('that opens <strong><bdi>operator.app://x/cb?a=1&amp;b</bdi></strong>.'), text)
    })

    it('cannot sign anybody in where they registered, earlier, what leads off the device', async () => {
      const { body: client } = await registerClient(server, { redirect_uris: ['cursor://x/cb', REDIRECT] })
      assert.equal((await open(client.client_id)).status, 200)
      await sql`update oauth_records set payload = replace(payload, 'cursor://x', 'microsoft-edge:https://evil.example')
        where kind = 'Client' and hash = ${hashApiKey(client.client_id as string)}`.execute(server.db)
      for (const uri of ['microsoft-edge:https://evil.example/cb', REDIRECT]) {
        const page = await open(client.client_id, { redirect_uri: uri })
        assert.deepEqual([page.status, page.location], [400, undefined], uri)
        assert.match(page.text, /invalid_client/)
      }
      const code = await makeLoginCode(server, workspace.id, workspace.owner.staffId)
      await assert.rejects(
        allow(server, authorizeUrl(client.client_id, createPkce().challenge), code),
        /Not a form: 400/,
      )
    })

    it('send nobody away with an error before somebody signs in, but to a program on the device', async () => {
      const uris = ['https://phishing.example.com/cb?a=1', 'com.example.app:/cb', REDIRECT]
      const { body: client } = await registerClient(server, { redirect_uris: uris })
      const wrong: Record<string, string>[] = [
        { prompt: 'none' },
        { response_type: 'token' },
        { code_challenge_method: 'plain' },
        { resource: 'https://other.example/mcp' },
        { request: 'x' },
      ]
      for (const more of wrong)
        for (const uri of uris) {
          const page = await open(client.client_id, { redirect_uri: uri, state: '"><b>', ...more })
          const [, href] = /<a rel="noreferrer" href="([^"]+)"/.exec(page.text) ?? []
          const isLocal = uri === REDIRECT
          assert.deepEqual([page.status < 400, page.location !== undefined], [isLocal, isLocal], uri)
          const to = new URL(isLocal ? page.location! : href!.replaceAll('&amp;', '&'))
          assert.equal(to.href.startsWith(uri), true, to.href)
          const told = to.searchParams.has('error') ? to.searchParams : new URLSearchParams(to.hash.slice(1))
          assert.deepEqual([told.get('state'), told.get('iss')], ['"><b>', PUBLIC_URL])
          assert.ok(page.text.includes(told.get('error')!) || isLocal, page.text)
          assert.equal(page.text.includes('<b>'), false)
        }
    })

    it('need PKCE with S256, a code and no other way', async () => {
      const { body: client } = await registerClient(server, {
        token_endpoint_auth_method: 'client_secret_basic',
      })
      assert.equal(client.token_endpoint_auth_method, 'none')
      assert.equal(client.client_secret, undefined)
      const errorOf = async (more: Record<string, string>) => {
        const page = await open(client.client_id, more)
        if (page.location === undefined) return page.status
        const { searchParams, hash } = new URL(page.location)
        return searchParams.get('error') ?? new URLSearchParams(hash.slice(1)).get('error')
      }
      assert.equal(await errorOf({ code_challenge_method: 'plain' }), 'invalid_request')
      assert.equal(await errorOf({ code_challenge: '' }), 'invalid_request')
      assert.equal(await errorOf({ response_type: 'token' }), 'unsupported_response_type')
      assert.equal(await errorOf({ resource: 'https://other.example/mcp' }), 'invalid_target')
      assert.equal(await errorOf({ prompt: 'none' }), 'login_required')
      assert.equal(await errorOf({ request: 'x' }), 'request_not_supported')
      const granted = await postForm(server, '/oauth/token', {
        grant_type: 'client_credentials',
        client_id: client.client_id,
      })
      assert.equal(granted.status, 400)
    })

    it('cause no internal error, whatever they send', async () => {
      const { body: client } = await registerClient(server)
      const values = [
        '',
        '\0',
        '%00',
        '💥'.repeat(50),
        'x'.repeat(4000),
        '"><script>',
        "'; drop table x; --",
        '\u202E',
        '[]',
        '../../..',
      ]
      const names = [
        'client_id',
        'redirect_uri',
        'state',
        'scope',
        'resource',
        'code_challenge',
        'response_mode',
        'prompt',
        'claims',
        'max_age',
        'id_token_hint',
        'request',
        'ui_locales',
      ]
      const sent: Promise<Response>[] = []
      const get = (url: string, headers: Record<string, string> = {}) =>
        sent.push(fetchThrough(server)(url, { headers: { Accept: 'text/html', ...headers } }))
      for (const [i, name] of names.entries()) {
        const value = values[i % values.length]!
        get(authorizeUrl(client.client_id, createPkce().challenge, { [name]: value }))
        get(`${authorizeUrl(client.client_id, createPkce().challenge)}&${name}=${encodeURIComponent(value)}`)
      }
      for (const value of values) {
        sent.push(postForm(server, '/oauth/token', { grant_type: value, client_id: value, code: value }))
        sent.push(
          postForm(server, '/oauth/token', {
            grant_type: 'refresh_token',
            client_id: client.client_id,
            refresh_token: value,
            resource: value,
          }),
        )
        sent.push(postForm(server, '/oauth/revoke', { token: value, client_id: value }))
        get(`${PUBLIC_URL}/oauth/sign-in/${encodeURIComponent(value)}`)
        get(`${PUBLIC_URL}/oauth/authorize/${encodeURIComponent(value)}`)
        get(`${PUBLIC_URL}/oauth/authorize`, { Cookie: 'wcrm_sign_in=x; wcrm_sign_in.sig=y; =; ;;' })
      }
      const bodies = [
        '',
        'null',
        '[]',
        '{',
        '{"redirect_uris":null}',
        '{"redirect_uris":[1]}',
        '{"redirect_uris":["x"],"jwks":7}',
        JSON.stringify({ redirect_uris: ['https://a.example/\u0000'], client_name: '\u0000' }),
        '"x"',
      ]
      for (const body of bodies)
        for (const type of ['application/json', 'text/plain'])
          sent.push(
            fetchThrough(server)(`${PUBLIC_URL}/oauth/register`, {
              method: 'POST',
              headers: { 'Content-Type': type },
              body,
            }),
          )
      for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD'])
        for (const path of [
          'authorize',
          'token',
          'register',
          'revoke',
          'sign-in/x',
          'login-codes',
          'nothing',
        ])
          sent.push(fetchThrough(server)(`${PUBLIC_URL}/oauth/${path}`, { method }))
      for (const answer of await Promise.all(sent))
        assert.ok(answer.status < 500, `${answer.url}: ${answer.status} ${await answer.text()}`)
      const large = await fetchThrough(server)(`${PUBLIC_URL}/oauth/register`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ client_name: 'x'.repeat(50_000) }),
      })
      assert.equal(large.status, 413)
    })

    it('keep what the discovery document promises', async () => {
      const response = await fetchThrough(server)(`${PUBLIC_URL}/.well-known/oauth-authorization-server`)
      const metadata = (await response.json()) as Record<string, any>
      assert.equal(metadata['issuer'], PUBLIC_URL)
      assert.equal(metadata['client_id_metadata_document_supported'], true)
      assert.deepEqual(metadata['token_endpoint_auth_methods_supported'], ['none'])
      assert.deepEqual(metadata['code_challenge_methods_supported'], ['S256'])
      const { verifier, challenge } = createPkce()
      const clientId = site.url('/kept')
      const loginCode = await makeLoginCode(server, workspace.id, workspace.owner.staffId)
      const url = authorizeUrl(clientId, challenge).replace(
        `${PUBLIC_URL}/oauth/authorize`,
        metadata['authorization_endpoint'],
      )
      const back = await allow(server, url, loginCode)
      const answer = await exchange(server, { clientId, code: back.searchParams.get('code')!, verifier })
      const { access_token: token } = (await answer.json()) as any
      const revoked = await postForm(server, new URL(metadata['revocation_endpoint']).pathname, {
        token,
        client_id: clientId,
      })
      assert.equal(revoked.status, 200)
    })

    it('register at most twenty times an hour from one network', async () => {
      const statuses = []
      for (let i = 0; i < 21; i++) statuses.push((await registerClient(server)).status)
      assert.equal(statuses.at(-1), 429)
    })
  })

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createApiKey } from '../../server/api-keys.ts'
import { toClientNetwork } from '../../server/client-address.ts'
import { databases } from '../databases.ts'
import { makeWorkspace, startServer, type TestServer, type TestWorkspace } from '../servers.ts'

const LIMIT = 5

type Send = (server: TestServer, key: string, address: string) => Promise<Response>

const mcpBody = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} })
const sendTo =
  (path: string, init: RequestInit = {}): Send =>
  (server, key, address) =>
    fetch(`${server.url}${path}`, {
      ...init,
      headers: { ...init.headers, Authorization: `Bearer ${key}`, 'X-Forwarded-For': address },
    })
const json = { 'Content-Type': 'application/json' }

/** Every door that takes a key. */
const doors: Readonly<Record<string, Send>> = {
  rest: sendTo('/v1/me'),
  ops: sendTo('/v1/ops/workspace_whoami', { method: 'POST', headers: json, body: '{}' }),
  mcp: sendTo('/mcp', {
    method: 'POST',
    headers: { ...json, Accept: 'application/json, text/event-stream' },
    body: mcpBody,
  }),
  sandbox: sendTo('/sandbox/messages'),
  stream: sendTo('/v1/events', { headers: { Accept: 'text/event-stream' } }),
  'unknown route': sendTo('/v1/nothing'),
}

const whoami = doors['rest']!

for (const database of databases) {
  describe(`Failed authentications (${database})`, () => {
    let server: TestServer
    let workspace: TestWorkspace
    before(async () => {
      server = await startServer(database, { limitAuthFailures: LIMIT, trustProxy: '127.0.0.1' })
      workspace = await makeWorkspace(server)
    })
    after(() => server.close())

    it('are throttled by address at every door, before the database is asked', async () => {
      for (const [n, [door, send]] of Object.entries(doors).entries()) {
        const address = `203.0.113.${n + 1}`
        for (let i = 0; i < LIMIT; i++) {
          const refused = await send(server, i % 2 ? createApiKey(false) : 'wc_live_mistyped', address)
          assert.equal(refused.status, 401, door)
          await refused.body?.cancel()
        }
        const lookedUp = server.app.keyCache.keys.size
        const throttled = await send(server, createApiKey(false), address)
        assert.equal(throttled.status, 429, door)
        const { code, reason, violated_policies: violated } = (await throttled.json()) as any
        assert.deepEqual(
          [code, reason, violated],
          ['rate_limited', 'too_many_failures', ['failed-authentications']],
        )
        assert.ok(Number(throttled.headers.get('retry-after')) >= 1)
        assert.equal(server.app.keyCache.keys.size, lookedUp)
        const elsewhere = await send(server, createApiKey(false), `198.51.100.${n + 1}`)
        assert.equal(elsewhere.status, 401, door)
      }
      const metrics = await server.app.metrics.registry.metrics()
      assert.match(metrics, /wcrm_authentication_failures_total\{kind="api_key",outcome="throttled"\} [1-9]/)
    })

    it('a key that this server knows to be valid passes, whatever others behind its address do', async () => {
      const address = '203.0.113.100'
      const { key } = await workspace.key(workspace.owner.staffId)
      const unseen = (await workspace.key(workspace.owner.staffId)).key
      assert.equal((await whoami(server, key, address)).status, 200)
      for (let i = 0; i < LIMIT + 1; i++) await whoami(server, 'wc_live_guess', address)
      server.app.keyCache.keys.clear()
      assert.equal((await whoami(server, key, address)).status, 200)
      assert.equal((await whoami(server, unseen, address)).status, 429, 'not seen by this server yet')
      assert.equal((await whoami(server, unseen, '203.0.113.101')).status, 200)
      assert.equal((await whoami(server, unseen, address)).status, 200)
    })

    it('the limit is exact for concurrent guesses, and stops no concurrent valid keys', async () => {
      const guesses = await Promise.all(
        Array.from({ length: 40 }, () => whoami(server, createApiKey(false), '203.0.113.120')),
      )
      assert.equal(guesses.filter((r) => r.status === 401).length, LIMIT)
      assert.equal(guesses.filter((r) => r.status === 429).length, 40 - LIMIT)
      const keys = []
      for (let i = 0; i < LIMIT * 3; i++) keys.push((await workspace.key(workspace.owner.staffId)).key)
      const valid = await Promise.all(keys.map((key) => whoami(server, key, '203.0.113.121')))
      assert.deepEqual([...new Set(valid.map((r) => r.status))], [200])
    })

    it('a request without a key is no attempt', async () => {
      for (let i = 0; i < LIMIT * 2; i++) {
        const headers = { 'X-Forwarded-For': '203.0.113.130' }
        assert.equal((await fetch(`${server.url}/v1/me`, { headers })).status, 401)
      }
    })

    it('URLs of files and signatures of the provider count as well; right ones pass', async () => {
      const get = (path: string) =>
        fetch(`${server.url}${path}`, { headers: { 'X-Forwarded-For': '203.0.113.140' } })
      for (let i = 0; i < LIMIT; i++) assert.equal((await get(`/media/guess${i}`)).status, 404)
      assert.equal((await get('/media/guess')).status, 429)
      const valid = server.app.mediaSealer.seal(`${workspace.id} 1 ${Date.now() + 60_000}`, 'media')
      assert.equal((await get(`/media/${valid}`)).status, 404, 'there is no such file')
      const post = (headers: Record<string, string>) =>
        fetch(`${server.url}/provider/webhook`, {
          method: 'POST',
          headers: { ...headers, 'X-Forwarded-For': '203.0.113.141' },
          body: '{}',
        })
      const wrong = { 'X-Hub-Signature-256': `sha256=${'0'.repeat(64)}` }
      for (let i = 0; i < LIMIT; i++) assert.equal((await post(wrong)).status, 403)
      assert.equal((await post(wrong)).status, 429)
    })
  })
}

describe('Client networks', () => {
  it('an IPv4 address is one, of IPv6 the first 64 bits', () => {
    const cases = {
      '203.0.113.7': '203.0.113.7',
      '::ffff:203.0.113.7': '203.0.113.7',
      '::ffff:cb00:7107': '203.0.113.7',
      '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
      '2001:DB8:1:2::1': '2001:db8:1:2::/64',
      '2001:db8::1': '2001:db8:0:0::/64',
      '::1': '0:0:0:0::/64',
    }
    for (const [address, network] of Object.entries(cases)) assert.equal(toClientNetwork(address), network)
    assert.equal(toClientNetwork(undefined), '')
  })
})

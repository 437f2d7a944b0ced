import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { WEBHOOK_PATH } from '../../server/provider/settings.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { createRawClient, post, type RawClient } from './raw-request.ts'

everyDatabase(
  'HTTP: headers and encodings of answers',
  (server) => {
    let key: string
    let client: RawClient
    before(async () => {
      key = (await makeWorkspace(server())).owner.key
      client = createRawClient(server().url, key)
    })

    type Answer = { status: number; headers: any; bytes: Buffer }
    const read = (path: string, headers: Record<string, string>): Promise<Answer> =>
      new Promise((resolve, reject) => {
        request(
          `${server().url}${path}`,
          { headers: { Authorization: `Bearer ${key}`, ...headers } },
          (response) => {
            buffer(response).then(
              (bytes) => resolve({ status: response.statusCode!, headers: response.headers, bytes }),
              reject,
            )
          },
        )
          .on('error', reject)
          .end()
      })

    it('no cache keeps an answer, and no browser guesses its type', async () => {
      const mcp = post(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }), {
        headers: { Accept: 'application/json, text/event-stream' },
      })
      const cases: [path: string, request?: Parameters<RawClient['raw']>[1]][] = [
        ['/v1/me'],
        ['/v1/me', { method: 'HEAD' }],
        ['/v1/me', { headers: { Authorization: '' } }],
        ['/v1/nowhere'],
        ['/v1/me', { method: 'DELETE' }],
        ['/v1/ops/workspace_whoami', post('{}')],
        ['/v1/ops/workspace_whoami', post('{')],
        ['/mcp', mcp],
        ['/mcp', { ...mcp, headers: { Authorization: '' } }],
        ['/mcp'],
        ['/sandbox/messages'],
        ['/sandbox/nothing'],
        ['/sandbox/provider/v23.0/1'],
        [WEBHOOK_PATH, post('{}')],
        ['/healthz'],
        ['/readyz'],
        ['/metrics'],
        ['/nothing'],
        ['/media/x'],
      ]
      for (const [path, options] of cases) {
        const { headers, status } = await client.raw(path, options)
        const shown = `${options?.method ?? 'GET'} ${path} ${status}`
        assert.match(headers['cache-control'] ?? '', /^no-store\b/, shown)
        assert.equal(headers['x-content-type-options'], 'nosniff', shown)
      }
      for (const path of ['/docs', '/docs/assets/docs.css', '/errors'])
        assert.match((await client.raw(path)).headers['cache-control']!, /no-cache|max-age/)
    })

    it('long answers are compressed for those who accept it', async () => {
      for (const path of ['/openapi.json', '/docs/assets/scalar.js', '/errors']) {
        const plain = await read(path, {})
        assert.ok(plain.bytes.length > 1024, path)
        assert.equal(plain.headers['content-encoding'], undefined)
        assert.equal(plain.headers.vary, 'Accept-Encoding')
        const zipped = await read(path, { 'Accept-Encoding': 'br, gzip;q=0.5' })
        assert.equal(zipped.headers['content-encoding'], 'gzip', path)
        assert.equal(Number(zipped.headers['content-length']), zipped.bytes.length)
        assert.ok(zipped.bytes.length < plain.bytes.length / 2)
        assert.deepEqual(gunzipSync(zipped.bytes), plain.bytes)
      }
      for (const accepted of ['identity', 'gzip;q=0', 'br', '']) {
        const { headers } = await read('/openapi.json', { 'Accept-Encoding': accepted })
        assert.equal(headers['content-encoding'], undefined, accepted)
      }
      const { headers } = await read('/v1/me', { 'Accept-Encoding': 'gzip' })
      assert.equal(headers['content-encoding'], undefined, 'a short one is not')
    })

    it('a client that has a document is told so', async () => {
      for (const path of ['/openapi.json', '/docs/assets/scalar.js']) {
        const { etag } = (await read(path, {})).headers
        const zipped = await read(path, { 'Accept-Encoding': 'gzip' })
        assert.notEqual(zipped.headers.etag, etag, 'a strong tag is of one coding')
        const same = await read(path, { 'If-None-Match': zipped.headers.etag, 'Accept-Encoding': 'gzip' })
        assert.deepEqual(
          [same.status, same.headers.etag, same.headers.vary],
          [304, zipped.headers.etag, 'Accept-Encoding'],
        )
        const again = await read(path, { 'If-None-Match': `"other", W/${etag}`, 'Accept-Encoding': 'gzip' })
        assert.deepEqual([again.status, again.bytes.length, again.headers.etag], [304, 0, etag])
        assert.equal((await read(path, { 'If-None-Match': '"other"' })).status, 200)
      }
    })

    it('have no header of the contract that OpenAPI does not name', async () => {
      const document = JSON.parse((await read('/openapi-2026-10-01.json', {})).bytes.toString())
      const resolve = (part: any) =>
        part.$ref ? document.components[part.$ref.split('/')[2]][part.$ref.split('/')[3]] : part
      const known = Object.keys(document.components.headers)
      const once = { 'Idempotency-Key': `headers-${crypto.randomUUID()}` }
      const field = post('{"key":"headers","label":"Headers","type":"text"}')
      const patch = { method: 'PATCH', body: '{"name":"X"}', headers: once }
      const seen = new Set<string>()
      for (const [status, path, concrete, request] of [
        [200, '/v1/contacts', '/v1/contacts', { method: 'GET' }],
        [404, '/v1/contacts/{contact_id}', '/v1/contacts/999999', { method: 'GET' }],
        [404, '/v1/contacts/{contact_id}', '/v1/contacts/999999', patch],
        [404, '/v1/contacts/{contact_id}', '/v1/contacts/999999', patch],
        [428, '/v1/contacts/{contact_id}', '/v1/contacts/999999', { method: 'DELETE' }],
        [201, '/v1/custom-fields', '/v1/custom-fields', field],
        [409, '/v1/custom-fields', '/v1/custom-fields', field],
        [400, '/v1/custom-fields', '/v1/custom-fields', post('{}')],
      ] as const) {
        const { method = 'GET', headers } = request as { method?: string; headers?: Record<string, string> }
        const reply = await client.raw(concrete, {
          ...request,
          headers: { ...headers, 'Api-Version': '2026-10-01' },
        })
        assert.equal(reply.status, status, `${method} ${path} ${reply.text}`)
        const named = Object.keys(
          resolve(document.paths[path][method.toLowerCase()].responses[status]).headers,
        )
        for (const name of known) {
          if (reply.headers[name.toLowerCase()] === undefined) continue
          seen.add(name)
          assert.ok(named.includes(name), `${method} ${path} ${status}: ${name}`)
        }
      }
      for (const name of ['Idempotency-Key', 'Idempotent-Replayed']) assert.ok(seen.has(name), name)
      const { responses } = document.paths['/v1/messages/{message_id}/media'].get
      assert.ok(resolve(responses[409]).headers['Retry-After'])
    })

    it('an event stream is neither compressed nor held back', async () => {
      const controller = new AbortController()
      const response = await fetch(`${server().url}/v1/events`, {
        headers: { Authorization: `Bearer ${key}`, Accept: 'text/event-stream', 'Accept-Encoding': 'gzip' },
        signal: controller.signal,
      })
      assert.equal(response.headers.get('content-encoding'), null)
      assert.equal(response.headers.get('cache-control'), 'no-store, no-transform')
      const { value } = await response.body!.getReader().read()
      assert.match(new TextDecoder().decode(value), /^retry: /)
      controller.abort()
    })

    it('415: a compressed body, on every route', async () => {
      for (const path of [
        '/v1/groups',
        '/v1/ops/crm_create_group',
        '/mcp',
        '/sandbox/say',
        WEBHOOK_PATH,
        '/docs',
      ]) {
        for (const Authorization of [`Bearer ${key}`, '']) {
          const reply = await client.refused(
            415,
            'unsupported_media_type',
            path,
            post('{"name":"One"}', { headers: { 'Content-Encoding': 'gzip', Authorization } }),
          )
          assert.equal(reply.headers['accept-encoding'], 'identity')
        }
      }
      const plain = post('{"name":"One"}', { headers: { 'Content-Encoding': 'identity' } })
      assert.equal((await client.raw('/v1/groups', plain)).status, 200)
    })

    it('bodies in flight are bounded: of one key with 429, of the server with 503', async () => {
      const { bodyBudget } = server().app
      const { body } = await client.raw('/v1/me')
      const keyId = body.key.id as string
      const group = post('{"name":"In flight"}')
      try {
        bodyBudget.bySender.set(keyId, 48 * 1024 * 1024)
        for (const path of ['/v1/groups', '/v1/ops/crm_create_group', '/mcp']) {
          const refused = await client.refused(429, 'rate_limited', path, group)
          assert.deepEqual(
            [refused.body.reason, refused.body.violated_policies, refused.headers['retry-after']],
            ['bodies_in_flight', ['body-bytes'], '2'],
          )
        }
        bodyBudget.bySender.delete(keyId)
        bodyBudget.total += 96 * 1024 * 1024
        const busy = await client.refused(503, 'upstream_unavailable', '/v1/groups', group)
        assert.deepEqual([busy.body.reason, busy.headers['retry-after']], ['bodies_in_flight', '2'])
        assert.equal((await client.raw('/v1/me')).status, 200, 'what has no body is served')
      } finally {
        bodyBudget.bySender.delete(keyId)
        bodyBudget.total = 0
      }
      assert.equal((await client.raw('/v1/groups', group)).status, 200)
      assert.deepEqual([bodyBudget.total, bodyBudget.bySender.size], [0, 0])
    })
  },
  { dedicated: true },
)

everyDatabase(
  'Metrics',
  (server) => {
    it('are read on this machine, and by nobody through a proxy', async () => {
      const { raw, refused } = createRawClient(server().url, '')
      assert.equal((await raw('/metrics')).status, 200)
      for (const name of ['X-Forwarded-For', 'Forwarded', 'Via'])
        await refused(404, 'not_found', '/metrics', { headers: { [name]: '127.0.0.1' } })
    })

    it('are read at names of this machine alone, not at one that a web page made lead here', async () => {
      const { raw, refused } = createRawClient(server().url, '')
      for (const Host of ['localhost:8787', '127.0.0.2', '[::1]:8787'])
        assert.equal((await raw('/metrics', { headers: { Host } })).status, 200, Host)
      for (const Host of [
        'rebound.example.com:8787',
        'localhost.example.com',
        '127.0.0.1.example.com',
        '10.0.0.1',
      ])
        await refused(404, 'not_found', '/metrics', { headers: { Host } })
    })
  },
  {},
)

everyDatabase(
  'Metrics with a token',
  (server) => {
    it('are read with it alone', async () => {
      const { raw, refused } = createRawClient(server().url, 'wrong')
      await refused(401, 'unauthenticated', '/metrics')
      await refused(401, 'unauthenticated', '/metrics', { headers: { Authorization: '' } })
      const shown = await raw('/metrics', {
        headers: { Authorization: 'Bearer the-token-of-metrics', Via: '1.1 x' },
      })
      assert.match(shown.text, /^# HELP/m)
    })
  },
  { metricsToken: 'the-token-of-metrics' },
)

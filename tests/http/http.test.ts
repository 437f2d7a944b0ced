import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { catalog, listRoutes } from '../../catalog/index.ts'
import { errors } from '../../catalog/errors.ts'
import { WEBHOOK_PATH } from '../../server/provider/settings.ts'
import { everyDatabase } from '../doors.ts'
import { assertProblem } from '../problems.ts'
import { makeWorkspace } from '../servers.ts'
import { createRawClient, post, type RawClient } from './raw-request.ts'
import { getClientAddress, parseProxyList } from '../../server/http/address.ts'
import { createReplyScene } from '../messaging/replies.ts'

everyDatabase('HTTP: routes, methods and pages', (server) => {
  let key: string
  let raw: RawClient['raw']
  let refused: RawClient['refused']
  let badInput: RawClient['badInput']
  before(async () => {
    key = (await makeWorkspace(server())).owner.key
    ;({ raw, refused, badInput } = createRawClient(server().url, key))
  })

  it('405: Allow lists the methods of the path, for every route', async () => {
    const byPath = new Map<string, Set<string>>()
    for (const { path, method } of catalog.flatMap((op) => listRoutes(op))) {
      const concrete = path.replaceAll(/\{\w+\}/g, '7')
      byPath.set(concrete, (byPath.get(concrete) ?? new Set()).add(method))
    }
    byPath.set('/v1/ops/crm_list_tags', new Set(['POST']))
    for (const [path, methods] of byPath) {
      if (methods.has('GET')) methods.add('HEAD')
      const other = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH'].find((m) => !methods.has(m))!
      for (const authorization of [`Bearer ${key}`, '']) {
        const reply = await refused(405, 'method_not_allowed', path, {
          method: other,
          headers: { Authorization: authorization },
        })
        assert.deepEqual(new Set(reply.headers['allow']!.split(', ')), methods, path)
      }
    }
  })

  it('HEAD: the same as GET, without a body', async () => {
    const routes = catalog.flatMap((op) =>
      listRoutes(op).flatMap(({ method, path }) =>
        method === 'GET' ? [path.replaceAll(/\{\w+\}/g, '999999')] : [],
      ),
    )
    assert.ok(routes.length > 30)
    for (const path of [
      ...routes,
      '/healthz',
      '/readyz',
      '/metrics',
      '/openapi.json',
      '/openapi-ops.json',
      '/errors/not_found',
      '/docs',
      '/media/x',
      '/exports/x',
      '/qr/x.png',
      '/message/x',
      '/nothing',
      '/v1/nowhere',
    ]) {
      const [head, get] = [await raw(path, { method: 'HEAD' }), await raw(path)]
      assert.deepEqual(
        [head.status, head.headers['content-type'], head.text],
        [get.status, get.headers['content-type'], ''],
        path,
      )
      for (const { headers } of [head, get]) assert.match(headers['request-id']!, /^req_\w+$/, path)
    }
    await refused(405, 'method_not_allowed', '/v1/ops/crm_list_tags')
  })

  it('405: methods that no route takes get the methods of the path too', async () => {
    for (const [path, allow] of [
      ['/v1/me', 'GET, HEAD'],
      ['/v1/ops/crm_list_tags', 'POST'],
      ['/healthz', 'GET, HEAD'],
      ['/docs', 'GET, HEAD'],
      ['/exports/x', 'GET, HEAD'],
    ] as const)
      for (const method of ['TRACE', 'PROPFIND', 'OPTIONS', 'DELETE']) {
        const { headers } = await refused(405, 'method_not_allowed', path, { method })
        assert.equal(headers['allow'], allow, `${method} ${path}`)
      }
    for (const path of ['/mcp', '/sandbox/messages', '/sandbox/provider/v23.0/1', WEBHOOK_PATH])
      for (const method of ['TRACE', 'PROPFIND']) {
        const { status } = await raw(path, { method })
        assert.ok(status >= 400 && status < 500, `${method} ${path} ${status}`)
      }
    await refused(404, 'not_found', '/v1/nowhere', { method: 'PROPFIND' })
  })

  it('unknown routes: 404 with a key, 401 without', async () => {
    for (const path of [
      '/v1',
      '/v1/',
      '/v1/contactz',
      '/v1/contacts/7/nothing',
      '/v1/ops/',
      '/v1/ops/crm_list_tags/more',
      '/v1/contacts//7',
      '/v1/contacts/',
    ]) {
      for (const method of ['GET', 'POST']) {
        const reply = await raw(path, { method, ...(method === 'POST' ? { body: '{}' } : {}) })
        assert.equal(reply.status, 404, `${method} ${path} ${reply.text}`)
        assertProblem(reply, server().url)
        await refused(401, 'unauthenticated', path, { method, headers: { Authorization: '' } })
      }
    }
    for (const [method, path, similar] of [
      ['GET', '/v1/contactz', 'GET /v1/contacts'],
      ['GET', '/v1/contact/7', 'GET /v1/contacts/{contact_id}'],
      ['POST', '/v1/webhooks', 'POST /v1/webhooks/endpoints'],
      ['POST', '/v1/ops/crm_list_tag', 'crm_list_tags'],
    ] as const) {
      const reply = await raw(path, { method, ...(method === 'POST' ? { body: '{}' } : {}) })
      assert.ok(reply.body.detail.includes(` Did you mean ${similar}? `), reply.text)
    }
    assert.doesNotMatch((await raw('/v1/nowhere/at/all')).body.detail, /Did you mean/)
    await refused(404, 'not_found', '/nothing/here')
    await refused(404, 'not_found', '/V1/me')
  })

  it('400: paths that cannot be decoded, or contain invalid ids', async () => {
    for (const id of ['%', '%zz', '%E0%A4%A', '%ff', '%C3%28']) await badInput(`/v1/contacts/${id}`, {})
    for (const id of [
      '0',
      '07',
      '-1',
      '1.0',
      '1e3',
      'abc',
      '12345678901234567890',
      '7%20',
      '%207',
      '%37%00',
      '٧',
      '7;DROP',
      '..%2f7',
      '7%2F8',
      '%252e',
      "'",
    ]) {
      const reply = await badInput(`/v1/contacts/${encodeURI(id).replaceAll('%25', '%')}`, {})
      assert.equal(reply.body.errors[0].parameter, 'contact_id', id)
    }
    await refused(404, 'not_found', '/v1/contacts/9223372036854775807')
    await refused(404, 'not_found', '/v1/contacts/9999999999999999999')
    assert.equal((await raw('/v1/%6d%65')).status, 200, 'what can be decoded is')
    await refused(404, 'not_found', '/v1/ops/%00', post('{}'))
    await refused(404, 'not_found', '/v1/ops/%zz', post('{}'))
    for (const query of ['query=%', 'query=%zz', 'query=%ff', '%=1', '&&&', '='])
      assert.ok([200, 400].includes((await raw(`/v1/contacts?${query}`)).status), query)
  })

  it('431: headers that are too large end the request, not the server', async () => {
    const reply = await raw('/v1/me', { headers: { 'X-Large': 'x'.repeat(20_000) } })
    assert.equal(reply.status, 431)
    assert.equal((await raw('/v1/me', { headers: { 'X-Large': 'x'.repeat(8000) } })).status, 200)
    for (const header of ['Api-Version', 'Idempotency-Key', 'Api-Confirm', 'User-Agent']) {
      const long = await raw(
        '/v1/groups',
        post('{"name":"One"}', { headers: { [header]: 'x'.repeat(8000) } }),
      )
      assert.ok(long.status < 500 && long.text.length < 4000, `${header} ${long.status}`)
    }
    const many = await raw(
      '/v1/groups',
      post('{"name":"One"}', { headers: { 'Idempotency-Key': ['first-key-1', 'second-key'] } }),
    )
    assert.equal(many.status, 400)
  })

  it('health, metrics, OpenAPI and HTML pages need no key', async () => {
    const open = { Authorization: '' }
    const shown = async (path: string, status: number, type: RegExp, holds: RegExp) => {
      const reply = await raw(path, { headers: open })
      assert.equal(reply.status, status, path)
      assert.match(reply.headers['content-type']!, type, path)
      assert.match(reply.text, holds, path)
    }
    await shown('/healthz', 200, /json/, /"ok"/)
    await shown('/readyz', 200, /json/, /"ready"/)
    await shown('/metrics', 200, /text\/plain/, /^# HELP/m)
    await shown('/openapi.json', 200, /json/, /"openapi":"3\.1/)
    await shown('/', 200, /html/, /wcrm/)
    await shown('/docs', 200, /html/, /<html/)
    await shown('/errors', 200, /html/, /rate_limited/)
    for (const code of Object.keys(errors)) await shown(`/errors/${code}`, 200, /html/, new RegExp(code))
    for (const path of [
      '/docs/assets/../../package.json',
      '/docs/assets/..%2f..%2fpackage.json',
      '/docs/assets/%2e%2e/%2e%2e/package.json',
      '/docs/assets/',
    ]) {
      assert.equal((await raw(path)).status, 404, path)
    }
    for (const path of ['/healthz', '/errors', '/docs']) {
      const reply = await refused(405, 'method_not_allowed', path, { method: 'POST', body: '{}' })
      assert.match(reply.headers['allow']!, /GET/)
    }
  })
})

/** The path with its first letter after `/v1/` encoded, which only h3's router decodes. */
const encodeLetter = (path: string): string =>
  path.replace(/^\/v1\/(\w)/, (_, letter: string) => `/v1/%${letter.charCodeAt(0).toString(16)}`)

everyDatabase('Direct routes', (server) => {
  let client: RawClient
  before(async () => {
    client = createRawClient(server().url, (await makeWorkspace(server())).owner.key)
  })

  /** What is the same in each response to the same request. */
  const fetchComparable = async (path: string, method: string) => {
    const { status, text, headers } = await client.raw(path, { method })
    const { code, detail, errors, ...rest } = JSON.parse(text) as Record<string, unknown>
    return { status, type: headers['content-type'], code, detail, errors, fields: Object.keys(rest) }
  }

  it('every route is served the same way by h3, which decodes paths', async () => {
    const paths = catalog.flatMap((op) =>
      listRoutes(op).map(({ method, path }) => [method, path.replaceAll(/\{\w+\}/g, '987654321')] as const),
    )
    assert.ok(paths.length > 50)
    for (const [method, path] of [...paths, ['POST', '/v1/ops/crm_list_tags'], ['POST', '/v1/ops/nowhere']])
      assert.deepEqual(
        await fetchComparable(path!, method!),
        await fetchComparable(encodeLetter(path!), method!),
        `${method} ${path}`,
      )
  })

  it('a value in a path may have the name of a route', async () => {
    for (const path of ['/v1/contacts/me', '/v1/contacts/contacts', '/v1/templates/ops'])
      assert.deepEqual(
        await fetchComparable(path, 'GET'),
        await fetchComparable(encodeLetter(path), 'GET'),
        path,
      )
  })
})

describe('The address of a client', () => {
  const addressOf = (trusted: string, peer: string | undefined, forwarded?: string): string | undefined => {
    const request = Object.assign(new Request('http://localhost/'), {
      runtime: { node: { req: { socket: { remoteAddress: peer } } } },
    })
    if (forwarded !== undefined) request.headers.set('x-forwarded-for', forwarded)
    return getClientAddress({ config: { trustedProxies: parseProxyList(trusted) } } as never, request)
  }

  it('is the peer, unless that is a trusted proxy', () => {
    assert.equal(addressOf('', '192.0.2.1', '198.51.100.1'), '192.0.2.1')
    assert.equal(addressOf('10.0.0.0/8', '192.0.2.1', '198.51.100.1'), '192.0.2.1')
    assert.equal(addressOf('10.0.0.0/8', '10.1.2.3', '198.51.100.1'), '198.51.100.1')
    assert.equal(addressOf('10.0.0.0/8', '::ffff:10.1.2.3', '198.51.100.1'), '198.51.100.1')
    assert.equal(addressOf('10.0.0.0/8', '10.1.2.3'), '10.1.2.3')
    assert.equal(addressOf('', undefined), undefined)
  })

  it('is what the last trusted proxy saw: what clients write before it is not believed', () => {
    const trusted = '10.0.0.0/8, 2001:db8::/32'
    assert.equal(addressOf(trusted, '10.1.2.3', '1.1.1.1, 198.51.100.1'), '198.51.100.1')
    assert.equal(
      addressOf(trusted, '10.1.2.3', '1.1.1.1, 198.51.100.1, 10.9.9.9, 2001:db8::7'),
      '198.51.100.1',
    )
    assert.equal(addressOf(trusted, '10.1.2.3', '198.51.100.1:5060'), '198.51.100.1')
    assert.equal(addressOf(trusted, '10.1.2.3', '[2001:DB9::1]:443'), '2001:db9::1')
    assert.equal(addressOf(trusted, '10.1.2.3', '1.1.1.1, unknown, 10.9.9.9'), '10.9.9.9')
    assert.equal(addressOf(trusted, '10.1.2.3', '10.1.1.1, 10.1.1.2'), '10.1.1.1')
  })

  it('a bad item of WCRM_TRUST_PROXY is named', () => {
    for (const item of ['localhost', '10.0.0.0/33', '10.0.0/8', '1.2.3.4:80'])
      assert.throws(() => parseProxyList(`10.0.0.0/8 ${item}`), new RegExp(item.replaceAll('.', '\\.')))
  })
})

everyDatabase('Metrics', (server) => {
  it('count calls of the provider and runs of background jobs, by how they ended', async () => {
    const scene = await createReplyScene(server())
    const reply = { conversation_id: scene.id, text: 'It arrives today.' }
    const sent = await scene.call('messaging_send_reply', reply, { confirm: 'send' })
    assert.equal(sent.status, 201, sent.text)
    await server().app.jobs.job('approvals').runOnce()
    const text = await (await fetch(`${server().url}/metrics`)).text()
    for (const line of [
      /^wcrm_provider_call_duration_seconds_count\{call="send",outcome="ok"\} [1-9]/m,
      /^wcrm_job_run_duration_seconds_count\{job="approvals",outcome="ok"\} [1-9]/m,
    ])
      assert.match(text, line)
  })
})

import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { catalog, listRoutes } from '../../catalog/index.ts'
import { errors } from '../../catalog/errors.ts'
import { WEBHOOK_PATH } from '../../server/provider/settings.ts'
import { everyDatabase } from '../doors.ts'
import { assertProblem } from '../problems.ts'
import { makeWorkspace } from '../servers.ts'
import { createRawClient, post, type RawClient } from './raw-request.ts'

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

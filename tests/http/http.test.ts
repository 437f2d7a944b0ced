import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { before, it } from 'node:test'
import { catalog, listRoutes } from '../../catalog/index.ts'
import { errors } from '../../catalog/errors.ts'
import { everyDatabase, type Reply } from '../doors.ts'
import { assertProblem } from '../problems.ts'
import { makeWorkspace } from '../servers.ts'

type Raw = {
  method?: string
  headers?: Record<string, string | string[]>
  body?: string | Buffer | undefined
  chunked?: boolean
}

everyDatabase('HTTP', (server) => {
  let key: string
  before(async () => {
    key = (await makeWorkspace(server())).owner.key
  })

  /** A request as it is written, without the corrections that fetch makes. */
  const raw = (
    path: string,
    { method = 'GET', headers = {}, body, chunked = false }: Raw = {},
  ): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const sized =
        body !== undefined && !chunked ? { 'Content-Length': String(Buffer.byteLength(body)) } : {}
      const request = httpRequest(
        server().url,
        {
          method,
          path,
          agent: false,
          headers: {
            Authorization: `Bearer ${key}`,
            ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
            ...sized,
            ...headers,
          },
        },
        (response) => {
          let text = ''
          response
            .setEncoding('utf8')
            .on('data', (chunk: string) => {
              text += chunk
            })
            .on('end', () => {
              const isJson = /json/.test(response.headers['content-type'] ?? '')
              resolve({
                status: response.statusCode!,
                text,
                body: isJson && text !== '' ? JSON.parse(text) : undefined,
                headers: response.headers as Record<string, string>,
              })
            })
        },
      )
      request.on('error', reject)
      if (chunked && body !== undefined)
        for (let at = 0; at < body.length; at += 65536) request.write(body.slice(at, at + 65536))
      request.end(chunked ? undefined : body)
    })

  const refused = async (status: number, code: string, path: string, how: Raw = {}): Promise<Reply> => {
    const reply = await raw(path, how)
    assert.deepEqual(
      [reply.status, reply.body?.code],
      [status, code],
      `${how.method ?? 'GET'} ${path.slice(0, 80)}: ${reply.text.slice(0, 300)}`,
    )
    assertProblem(reply, server().url)
    return reply
  }
  const post = (body: string | Buffer, more: Raw = {}) => ({ method: 'POST', body, ...more })
  const badInput = (path: string, how: Raw) => refused(400, 'invalid_input', path, how)

  it('405 lists the methods of the path, for every route', async () => {
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

  it('413 at a byte over 1 MiB, declared or not, and not before', async () => {
    const ofSize = (bytes: number) => `{"name":"One"${' '.repeat(bytes - 14)}}`
    for (const chunked of [false, true]) {
      assert.equal((await raw('/v1/groups', post(ofSize(1024 * 1024), { chunked }))).status, 200)
      const reply = await refused(
        413,
        'payload_too_large',
        '/v1/groups',
        post(ofSize(1024 * 1024 + 1), { chunked }),
      )
      assert.equal(reply.body.limit_bytes, 1024 * 1024)
      await refused(
        413,
        'payload_too_large',
        '/v1/ops/crm_create_group',
        post(ofSize(1024 * 1024 + 1), { chunked }),
      )
    }
  })

  it('413 beyond what any operation takes, without reading on', async () => {
    const reply = await raw('/v1/groups', post(Buffer.alloc(25 * 1024 * 1024, 0x20))).catch(
      (error: NodeJS.ErrnoException) => error,
    )
    // The server may hang up on the rest of the body; what it says first is a 413.
    if (reply instanceof Error) assert.match(String(reply.code), /ECONNRESET|EPIPE/)
    else assert.equal(reply.status, 413)
    assert.equal((await raw('/v1/me')).status, 200)
  })

  it('415 for a body that is not declared as JSON', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/jsonp',
      'text/json',
      '',
    ]) {
      const reply = await refused(
        415,
        'unsupported_media_type',
        '/v1/groups',
        post('{"name":"One"}', { headers: { 'Content-Type': type } }),
      )
      assert.equal(reply.headers['accept'], 'application/json')
    }
    for (const type of [
      'application/json',
      'application/json; charset=utf-8',
      'APPLICATION/JSON',
      'application/json;charset=UTF-8',
      'application/merge-patch+json',
    ]) {
      assert.equal(
        (await raw('/v1/groups', post('{"name":"One"}', { headers: { 'Content-Type': type } }))).status,
        200,
        type,
      )
    }
  })

  it('400 for a body that is not JSON, or not an object', async () => {
    const bodies = [
      '{',
      '{"name":',
      '{"name":"One"}}',
      'name=One',
      "{'name':1}",
      '{"name":"One",}',
      'undefined',
      '\u0000',
      '[]',
      '[{"name":"One"}]',
      '"text"',
      '7',
      'true',
      '\ufeff',
    ]
    for (const path of ['/v1/groups', '/v1/ops/crm_create_group']) {
      for (const body of bodies) {
        const reply = await badInput(path, post(body))
        assert.ok(reply.body.errors.length > 0, body)
      }
      await badInput(path, post('null'))
      await badInput(path, post(''))
    }
  })

  it('400 for text that nothing can store', async () => {
    const bytes = (text: string) =>
      Buffer.concat([Buffer.from('{"name":"'), Buffer.from(text, 'latin1'), Buffer.from('"}')])
    for (const path of ['/v1/groups', '/v1/ops/crm_create_group']) {
      for (const invalid of ['\xff', '\xc3', '\xc0\x80', '\xed\xa0\x80', '\xf5\x80\x80\x80']) {
        const reply = await badInput(path, post(bytes(invalid)))
        assert.match(reply.body.detail, /UTF-8/)
      }
      for (const text of ['\\u0000', 'a\\u0000b', '\\ud800', '\\udc00x', 'x\\ud83d']) {
        const reply = await badInput(path, post(`{"name":"${text}"}`))
        assert.deepEqual(
          [reply.body.errors[0].pointer, reply.body.errors[0].code],
          ['#/name', 'invalid_text'],
        )
      }
      await badInput(path, post('{"name":"One","\\u0000":1}'))
      await badInput(path, post('{"name":"One","\\ud800":1}'))
    }
    assert.equal(
      (await raw('/v1/groups', post('{"name":"\\ud83d\\ude00 \u{1f600}"}'))).body.group.name,
      '😀 😀',
    )
    await badInput('/v1/contacts?query=a%00b', {})
  })

  it('400 for input without end', async () => {
    for (const depth of [140, 1000, 200_000]) {
      const nested = '['.repeat(depth) + ']'.repeat(depth)
      await badInput('/v1/groups', post(`{"name":${nested}}`))
      await badInput(
        '/v1/ops/crm_upsert_contact',
        post(`{"phone":"+15550100042","attributes":{"email":${nested}}}`),
      )
      await badInput(
        '/v1/ops/crm_upsert_contact',
        post(`{"phone":"+15550100042","attributes":${'{"a":'.repeat(depth / 2)}1${'}'.repeat(depth / 2)}}`),
      )
    }
    const wide = JSON.stringify({
      name: 'One',
      ...Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`field_${n}`, n])),
    })
    const reply = await badInput('/v1/groups', post(wide))
    assert.ok(reply.body.errors.length <= 50)
    await badInput(
      '/v1/contacts/tag',
      post(JSON.stringify({ contact_ids: Array.from({ length: 100_000 }, () => 'x'), tags: ['a'] })),
    )
  })

  it('names of JavaScript are names like any other', async () => {
    for (const name of ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty']) {
      for (const path of ['/v1/groups', '/v1/ops/crm_create_group']) {
        const reply = await badInput(path, post(`{"name":"One","${name}":{"emoji":"⭐"}}`))
        assert.deepEqual(
          [reply.body.errors[0].pointer, reply.body.errors[0].code],
          [`#/${name}`, 'unknown_field'],
        )
      }
      await badInput('/v1/contacts', post(`{"phone":"+15550100042","attributes":{"${name}":"x"}}`))
      await badInput(`/v1/contacts?${name}=1`, {})
      await refused(404, 'not_found', `/v1/ops/${name}`, post('{}'))
      await refused(404, 'not_found', `/v1/${name}`)
      await refused(404, 'not_found', `/errors/${name}`)
    }
    assert.equal(({} as Record<string, unknown>)['emoji'], undefined)
  })

  it('a query parameter given twice is a list where a list is meant, and refused elsewhere', async () => {
    const reply = await badInput('/v1/contacts?limit=1&limit=2', {})
    assert.equal(reply.body.errors[0].parameter, 'limit')
    await badInput('/v1/contacts?query=a&query=b', {})
    await badInput('/v1/groups?dry_run=true&dry_run=false', post('{"name":"Twice"}'))
    assert.equal((await raw('/v1/contacts?tag_ids=7&tag_ids=8')).status, 200)
    for (const wrong of [
      'limit=0',
      'limit=101',
      'limit=1.5',
      'limit=abc',
      'limit=',
      'limit=1e1',
      'starred=yes',
      'starred=',
      'starred=TRUE',
      'tag_ids=x',
      'detail=all',
      'cursor=',
      'cursor=abc',
    ]) {
      const wronged = await badInput(`/v1/contacts?${wrong}`, {})
      assert.equal(
        wronged.body.errors[0].parameter ?? wronged.body.reason,
        wrong.startsWith('cursor=a') ? 'cursor' : wrong.split('=')[0],
        wronged.text,
      )
    }
  })

  it('a field in the wrong place is told where it belongs', async () => {
    const cases: [string, Raw, string, string, RegExp][] = [
      ['/v1/groups', post('{"name":"One","dry_run":true}'), 'pointer', '#/dry_run', /query/],
      ['/v1/groups?name=One', post('{}'), 'parameter', 'name', /body/],
      ['/v1/contacts/7', { method: 'PATCH', body: '{"contact_id":"7"}' }, 'pointer', '#/contact_id', /path/],
    ]
    for (const [path, how, place, name, where] of cases) {
      const reply = await badInput(path, how)
      const error = reply.body.errors.find((e: Record<string, string>) => e['code'] === 'misplaced_field')
      assert.equal(error?.[place], name, reply.text)
      assert.match(error.detail, where)
    }
    assert.equal(
      (await raw('/v1/contacts', { method: 'GET', body: '{"limit":0}' })).status,
      200,
      'GET has no body to read',
    )
    await badInput('/v1/contacts/7', { method: 'DELETE', body: '{"dry_run":true}' })
    const unknown = await badInput('/v1/contacts?limitt=1', {})
    assert.deepEqual(
      [unknown.body.errors[0].parameter, unknown.body.errors[0].fix],
      ['limitt', 'Did you mean limit?'],
    )
  })

  it('HEAD answers as GET, without a body', async () => {
    for (const path of [
      '/v1/me',
      '/v1/contacts',
      '/healthz',
      '/openapi.json',
      '/errors/not_found',
      '/v1/contacts/999999',
      '/v1/nowhere',
    ]) {
      const [head, get] = [await raw(path, { method: 'HEAD' }), await raw(path)]
      assert.deepEqual(
        [head.status, head.headers['content-type'], head.text],
        [get.status, get.headers['content-type'], ''],
        path,
      )
    }
    await refused(405, 'method_not_allowed', '/v1/ops/crm_list_tags')
  })

  it('unknown routes are 404 with a key and 401 without', async () => {
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
    await refused(404, 'not_found', '/nothing/here')
    await refused(404, 'not_found', '/V1/me')
  })

  it('paths that cannot be decoded, or hold what no id holds, are refused', async () => {
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

  it('headers too large to read end the request, not the server', async () => {
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

  it('pages for machines and people are there without a key', async () => {
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

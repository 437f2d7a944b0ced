import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { catalog, listRoutes } from '../../catalog/index.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { createRawClient, post, type RawClient, type RawRequest } from './raw-request.ts'

everyDatabase('HTTP: body and query', (server) => {
  let raw: RawClient['raw']
  let refused: RawClient['refused']
  let badInput: RawClient['badInput']
  before(async () => {
    const { key } = (await makeWorkspace(server())).owner
    ;({ raw, refused, badInput } = createRawClient(server().url, key))
  })

  it('413: one byte over 1 MiB, with and without Content-Length', async () => {
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

  it('413: a body over the maximum of all operations is not read to its end', async () => {
    const reply = await raw('/v1/groups', post(Buffer.alloc(25 * 1024 * 1024, 0x20))).catch(
      (error: NodeJS.ErrnoException) => error,
    )
    // The server may hang up on the rest of the body; what it says first is a 413.
    if (reply instanceof Error) assert.match(String(reply.code), /ECONNRESET|EPIPE/)
    else assert.equal(reply.status, 413)
    assert.equal((await raw('/v1/me')).status, 200)
  })

  it('415: a body that is not declared as JSON', async () => {
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

  it('400: a body that is not a JSON object', async () => {
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

  it('400: text that cannot be stored (NUL, lone surrogates, invalid UTF-8)', async () => {
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

  it('400: deeply nested and very wide input', async () => {
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

  it('property names of JavaScript objects are unknown fields', async () => {
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

  it('a field that is given twice is refused at every door', async () => {
    const twice = '{"name":"Twice","dry_run":true,"dry_run":false}'
    for (const path of ['/v1/groups', '/v1/ops/crm_create_group']) {
      const reply = await badInput(path, post(twice))
      assert.deepEqual(
        [reply.body.errors[0].pointer, reply.body.errors[0].code],
        ['#/dry_run', 'duplicate_field'],
      )
    }
    const nested = '{"filter":{"or":[{"name":{"eq":"\\\\"}},{"name":{"eq":"a","\\u0065q":"b"}}]}}'
    const reply = await badInput('/v1/contacts/count', post(nested))
    assert.equal(reply.body.errors[0].pointer, '#/filter/or/1/name/eq')
    for (const input of [twice, '{"name":"Twice","__proto__":{"dry_run":true}}']) {
      const params = `{"name":"crm_create_group","arguments":${input}}`
      const message = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`
      for (const body of [message, `[${message}]`]) {
        const answer = await raw('/mcp', post(body))
        assert.equal(answer.status, 400, JSON.stringify(answer.body))
      }
    }
    const { data } = (await raw('/v1/groups?search=Twice&limit=100')).body
    assert.ok(!data.some(({ name }: { name: string }) => name === 'Twice'))
  })

  it('a repeated query parameter is a list for list fields, and refused for others', async () => {
    for (const [path, request, name] of [
      ['/v1/contacts?limit=1&limit=2', {}, 'limit'],
      ['/v1/contacts?query=a&query=b', {}, 'query'],
      ['/v1/groups?dry_run=true&dry_run=false', post('{"name":"Twice"}'), 'dry_run'],
      ['/v1/ops/crm_create_group?dry_run=true&dry_run=true', post('{"name":"Twice"}'), 'dry_run'],
    ] as const) {
      const { parameter, code } = (await badInput(path, request)).body.errors[0]
      assert.deepEqual([parameter, code], [name, 'duplicate_field'], path)
    }
    const fraction = await badInput('/v1/contacts?limit=1.5', {})
    assert.equal(fraction.body.errors[0].detail, 'must be an integer, not 1.5')
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
      const [name] = wrong.split('=')
      assert.equal(wronged.body.errors[0].parameter, name, wronged.text)
      assert.equal(wronged.body.reason, name === 'cursor' ? 'cursor_invalid' : undefined, wronged.text)
    }
  })

  it('a cursor that is none has the reason cursor_invalid in every list', async () => {
    const lists = catalog.filter((op) => 'cursor' in op.input.shape)
    assert.ok(lists.length > 15)
    for (const op of lists) {
      const example = op.examples[0]!.input as Record<string, unknown>
      for (const cursor of ['', 'x'.repeat(10_000), 7]) {
        const { body } = await badInput(`/v1/ops/${op.name}`, post(JSON.stringify({ ...example, cursor })))
        assert.deepEqual([body.reason, body.errors[0].pointer], ['cursor_invalid', '#/cursor'], op.name)
      }
    }
    const { body } = await badInput('/v1/events?cursor=garbage', {})
    assert.deepEqual([body.reason, body.errors[0].parameter], ['cursor_invalid', 'cursor'])
    assert.equal((await badInput('/v1/events?cursor=garbage&limit=0', {})).body.reason, undefined)
  })

  it('If-None-Match of a change is refused: it would be made whatever it says', async () => {
    for (const given of ['*', '"1.x"'])
      for (const [path, method] of [
        ['/v1/contacts/7', 'PATCH'],
        ['/v1/groups', 'POST'],
        ['/v1/ops/crm_create_group', 'POST'],
      ] as const) {
        const headers = { 'If-None-Match': given }
        const { body } = await badInput(path, { method, body: '{"name":"One"}', headers })
        const [{ header, code }] = body.errors
        assert.deepEqual([header, code], ['If-None-Match', 'not_supported'], path)
      }
  })

  it('a body of null is no object, and no empty one', async () => {
    const cases: [path: string, method: string][] = [
      ['/v1/groups?dry_run=true', 'POST'],
      ['/v1/contacts/7?dry_run=true', 'PATCH'],
      ['/v1/ops/crm_list_tags', 'POST'],
      ['/v1/ops/crm_create_group?dry_run=true', 'POST'],
    ]
    for (const [path, method] of cases)
      for (const text of ['null', '[]', '7']) {
        const { body } = await badInput(path, { method, body: text })
        assert.deepEqual([body.errors.length, body.errors[0].pointer], [1, '#'], `${path} ${text}`)
        assert.match(body.detail, /^The input must be an object/)
      }
  })

  it('a reason that the body and the header give has to be one', async () => {
    const path = '/v1/ops/crm_create_group'
    const request = (reason: string) =>
      post(JSON.stringify({ name: 'One', dry_run: true, reason: 'For Ada' }), {
        headers: { 'Api-Reason': reason },
      })
    const { body } = await badInput(path, request('For%20Bob'))
    assert.equal(body.reason, 'contradiction')
    assert.deepEqual(
      body.errors.map(({ header, pointer }: Record<string, string>) => header ?? pointer),
      ['Api-Reason', '#/reason'],
    )
    assert.equal((await raw(path, request('For%20Ada'))).status, 200)
  })

  it('a field in the wrong place is refused with the right place', async () => {
    const cases: [string, RawRequest, string, string, RegExp][] = [
      ['/v1/groups', post('{"name":"One","dry_run":true}'), 'pointer', '#/dry_run', /query/],
      ['/v1/groups?name=One', post('{}'), 'parameter', 'name', /body/],
      ['/v1/contacts/7', { method: 'PATCH', body: '{"contact_id":"7"}' }, 'pointer', '#/contact_id', /path/],
    ]
    for (const [path, request, place, name, where] of cases) {
      const reply = await badInput(path, request)
      const error = reply.body.errors.find((e: Record<string, string>) => e['code'] === 'misplaced_field')
      assert.equal(error?.[place], name, reply.text)
      assert.match(error.detail, where)
    }
    await badInput('/v1/contacts/7', { method: 'DELETE', body: '{"dry_run":true}' })
    const unknown = await badInput('/v1/contacts?limitt=1', {})
    assert.deepEqual(
      [unknown.body.errors[0].parameter, unknown.body.errors[0].fix],
      ['limitt', 'Did you mean limit?'],
    )
  })

  it('an unknown field is answered with the fields of its own place', async () => {
    const cases: [string, RawRequest, string, string][] = [
      ['/v1/contacts?limit=2', post('{}'), 'limit', 'Remove it; valid fields are dry_run.'],
      ['/v1/contacts?nam=Ada', post('{}'), 'nam', 'Did you mean name, in the JSON body?'],
      ['/v1/contacts', post('{"dryrun":true}'), '#/dryrun', 'Did you mean dry_run, in the query?'],
      ['/v1/contacts?tag=1', {}, 'tag', 'Did you mean tag_ids?'],
      ['/v1/contacts', post('{"phone_number":"+15550100042"}'), '#/phone_number', 'Did you mean phone?'],
    ]
    for (const [path, request, where, fix] of cases) {
      const { errors } = (await badInput(path, request)).body
      const found = errors.find((e: Record<string, string>) => (e['parameter'] ?? e['pointer']) === where)
      assert.equal(found?.fix, fix, JSON.stringify(errors))
    }
    const change = { method: 'PATCH', body: '{"colour":1}' }
    const fixes = [
      (await badInput('/v1/contacts/7', change)).body.errors[0].fix,
      (await badInput('/v1/contacts?page=2', {})).body.errors[0].fix,
    ]
    assert.match(fixes[0], /valid fields are name, /)
    for (const fix of fixes) assert.doesNotMatch(fix, /contact_id|if_version|saved_filter_id|sort/)
    assert.match(
      (await badInput('/v1/contacts?group_ids=7,8', {})).body.errors[0].fix,
      /repeat the parameter: group_ids=1&group_ids=2\.$/,
    )
    const { detail } = (await badInput('/v1/contacts/search', post('{"query":"Ada"}'))).body
    assert.equal(detail, 'query is not a field of this route.')
  })

  it('a query that is not percent-encoded UTF-8 is refused, whoever routes it', async () => {
    for (const query of ['%zz', '%', '%E0%A4', '%ED%A0%80', '%ff', '100%'])
      for (const path of ['/v1/contacts', '/v1/%63ontacts']) {
        const reply = await badInput(`${path}?limit=1&query=${query}`, {})
        assert.ok(reply.body.errors, reply.text)
        const { parameter, code } = reply.body.errors[0]
        assert.deepEqual([parameter, code], ['query', 'invalid_encoding'], query)
      }
    await badInput('/v1/ops/crm_create_group?dry_run=%fftrue', post('{"name":"One"}'))
    for (const query of ['100%25', 'M%C3%BCller+x', '%F0%9F%98%80', "a'b*(c)~d"])
      assert.equal((await raw(`/v1/contacts?query=${query}`)).status, 200, query)
  })

  it('no GET takes a body: what it asks for would be ignored', async () => {
    const paths = catalog.flatMap((op) =>
      listRoutes(op).flatMap(({ method, path }) =>
        method === 'GET' ? [path.replaceAll(/\{\w+\}/g, '987654321')] : [],
      ),
    )
    assert.ok(paths.length > 30)
    for (const path of paths)
      for (const chunked of [false, true]) {
        // Node's client sends the body of a GET in chunks only where the header says so.
        const headers: Record<string, string> = chunked ? { 'Transfer-Encoding': 'chunked' } : {}
        const reply = await badInput(path, { body: '{"limit":1}', chunked, headers })
        assert.deepEqual(reply.body.errors[0].code, 'unexpected_body', path)
      }
    assert.equal((await raw('/v1/contacts', { method: 'HEAD', body: '{"limit":1}' })).status, 400)
    assert.equal((await raw('/v1/contacts', { headers: { 'Content-Type': 'application/json' } })).status, 200)
    await refused(415, 'unsupported_media_type', '/v1/contacts', {
      body: 'limit=1',
      headers: { 'Content-Type': 'text/plain' },
    })
  })
})

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import { sql } from 'kysely'
import { unsealHeaders, unsealSecrets } from '../../server/webhooks/secrets.ts'
import { findEndpoint } from '../../storage/webhooks.ts'
import { callAs, doAs } from '../calls.ts'
import { type Door, doorsOf, everyDatabase, everyDoor, type Reply, runCli, type Scene } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { rowsOf } from '../world.ts'

const url = 'https://example.com/hooks'
const SECRET = /^whsec_([A-Za-z0-9+/]{43}=)$/

const created = async (call: Door['call'], input: Record<string, unknown> = {}): Promise<Reply> => {
  const reply = await call('webhooks_create_endpoint', { url, ...input })
  assert.equal(reply.status, 201, reply.text)
  return reply
}

/** What the database holds of an endpoint, opened. */
const kept = async ({ db, app }: TestServer, workspaceId: string, id: string) => {
  const row = (await findEndpoint(db, workspaceId, id))!
  return { ...row, secrets: unsealSecrets(app, row), headers: unsealHeaders(app, row) }
}

const statuses = async ({ db }: TestServer, endpointId: string): Promise<string[]> =>
  (
    await db
      .selectFrom('webhook_deliveries')
      .select('status')
      .where('endpoint_id', '=', endpointId)
      .orderBy('id')
      .execute()
  ).map((d) => d.status)

/** A door to calls that ask for confirmation: a model may not give it. */
const surely = ({ door, server, workspace }: Scene): Door['call'] =>
  door.confirms ? door.call : callAs(server, workspace.owner.key)

const field = ({ status, body }: Reply) => [
  status,
  body.errors?.[0]?.pointer ?? body.errors?.[0]?.parameter,
  body.errors?.[0]?.code,
]

everyDoor('Webhook endpoints', (test) => {
  test('are created with a secret that is shown once', async ({ call, server, workspace }) => {
    const { body } = await created(call, {
      description: 'Orders',
      custom_headers: { Authorization: 'Bearer abcdef1234', 'X-Id': '1234' },
      event_types: ['message.received/1', 'contact.created/1'],
    })
    assert.equal(Buffer.from(SECRET.exec(body.signing_secret)![1]!, 'base64').length, 32)
    const { endpoint } = body
    assert.match(endpoint.id, /^ep_[0-9A-HJKMNP-TV-Z]{26}$/)
    assert.deepEqual(endpoint, {
      id: endpoint.id,
      url,
      description: 'Orders',
      status: 'active',
      custom_headers: { Authorization: '****1234', 'X-Id': '****' },
      consecutive_failures: 0,
      disabled_at: null,
      disabled_reason: null,
      signing_secret: `whsec_****${body.signing_secret.slice(-4)}`,
      payload_format: 'envelope',
      created_at: endpoint.created_at,
      updated_at: endpoint.created_at,
      subscriptions: {
        count: 2,
        all_active: true,
        event_types: ['contact.created/1', 'message.received/1'].map((id) => ({
          id,
          active: true,
          created_at: endpoint.created_at,
        })),
      },
    })
    const shown = [
      await call('webhooks_get_endpoint', { endpoint_id: endpoint.id }),
      await call('webhooks_list_endpoints'),
    ]
    assert.deepEqual([shown[0]!.body, shown[1]!.body.data], [endpoint, [endpoint]])
    for (const { text } of shown)
      assert.ok(!text.includes(body.signing_secret) && !text.includes('abcdef'), text)
    const stored = JSON.stringify(await rowsOf(server.db, workspace.id))
    assert.ok(
      stored.includes(endpoint.id) &&
        !stored.includes(body.signing_secret.slice(6)) &&
        !stored.includes('abcdef1234'),
      'the database tells a secret',
    )
    const { secrets, headers } = await kept(server, workspace.id, endpoint.id)
    assert.deepEqual(
      [secrets, headers],
      [[body.signing_secret], { Authorization: 'Bearer abcdef1234', 'X-Id': '1234' }],
    )
  })

  test('have no subscriptions and no headers unless some are given, and a rehearsal leaves none', async ({
    call,
  }) => {
    const rehearsed = await call('webhooks_create_endpoint', { url, event_types: ['*'], dry_run: true })
    assert.deepEqual(
      [
        rehearsed.body.endpoint.id,
        rehearsed.body.signing_secret,
        rehearsed.body.endpoint.signing_secret,
        rehearsed.body.endpoint.subscriptions.count,
      ],
      [null, null, 'whsec_****', 1],
      rehearsed.text,
    )
    assert.deepEqual((await call('webhooks_list_endpoints')).body, { data: [], next_cursor: null })
    const { endpoint } = (await created(call, { payload_format: 'data' })).body
    assert.deepEqual(
      [endpoint.subscriptions, endpoint.custom_headers, endpoint.description, endpoint.payload_format],
      [{ count: 0, all_active: true, event_types: [] }, {}, null, 'data'],
    )
    // The same address may be told twice, in two formats for example.
    await created(call)
  })

  test('are listed newest first, in pages, by status and by address', async ({ call }) => {
    const ids: string[] = []
    for (const n of [1, 2, 3, 4])
      ids.push((await created(call, { url: `https://example.com/Hooks_${n}` })).body.endpoint.id)
    const pages = [await call('webhooks_list_endpoints', { limit: 3 })]
    pages.push(await call('webhooks_list_endpoints', { limit: 3, cursor: pages[0]!.body.next_cursor }))
    const listed = pages.flatMap((page) => page.body.data.map((e: { created_at: string; id: string }) => e))
    assert.deepEqual(
      [listed.map((e) => e.id).sort(), pages[1]!.body.next_cursor, pages[0]!.body.data.length],
      [ids.toSorted(), null, 3],
    )
    const order = listed.map((e) => `${e.created_at} ${e.id}`)
    assert.deepEqual(order, order.toSorted().reverse())
    await call('webhooks_disable_endpoint', { endpoint_id: ids[1]! })
    const found = async (input: Record<string, unknown>) =>
      (await call('webhooks_list_endpoints', input)).body.data.map((e: { id: string }) => e.id)
    assert.deepEqual(await found({ status: 'disabled' }), [ids[1]])
    assert.equal((await found({ status: 'active' })).length, 3)
    assert.deepEqual(await found({ status: 'paused' }), [])
    assert.deepEqual(await found({ url_contains: 'hooks_3' }), [ids[2]])
    for (const none of ['%', 'hooks%3', 'HooksX3'])
      assert.deepEqual(await found({ url_contains: none }), [], none)
  })

  test('are updated field by field, and say what changed', async ({ call, server, workspace }) => {
    const {
      endpoint: { id },
      signing_secret: secret,
    } = (
      await created(call, {
        description: 'One',
        custom_headers: { 'X-A': 'first value', 'X-B': 'second value' },
      })
    ).body
    const update = async (input: Record<string, unknown>) =>
      (await call('webhooks_update_endpoint', { endpoint_id: id, ...input })).body
    assert.deepEqual(
      (
        await update({
          url: 'HTTPS://EXAMPLE.com:443/hooks',
          description: 'One',
          payload_format: 'envelope',
          custom_headers: { 'X-B': 'second value', 'X-A': 'first value' },
        })
      ).changed,
      [],
    )
    assert.deepEqual((await update({})).changed, [])
    const rehearsed = await update({ url: 'https://shop.example/new', description: null, dry_run: true })
    assert.deepEqual(
      [rehearsed.changed, rehearsed.endpoint.url, rehearsed.endpoint.description],
      [['url', 'description'], 'https://shop.example/new', null],
    )
    assert.equal((await call('webhooks_get_endpoint', { endpoint_id: id })).body.url, url)
    const all = await update({
      url: 'https://shop.example/new',
      description: null,
      payload_format: 'data',
      custom_headers: { 'X-C': 'third value' },
    })
    assert.deepEqual(all.changed, ['url', 'description', 'custom_headers', 'payload_format'])
    assert.deepEqual(
      [all.endpoint.url, all.endpoint.description, all.endpoint.payload_format, all.endpoint.custom_headers],
      ['https://shop.example/new', null, 'data', { 'X-C': '****alue' }],
    )
    assert.deepEqual((await update({ custom_headers: {} })).changed, ['custom_headers'])
    const now = await kept(server, workspace.id, id)
    assert.deepEqual([now.headers, now.secrets, now.url], [{}, [secret], 'https://shop.example/new'])
  })

  test('take no reserved headers, nor those that HTTP has not', async ({ call }) => {
    const {
      endpoint: { id },
    } = (await created(call, { custom_headers: { 'X-Kept': 'a kept value' } })).body
    const reserved = [
      'Webhook-Id',
      'webhook-signature',
      'WC-Event-Type',
      'wc-x',
      'Content-Type',
      'content-length',
      'CONTENT-anything',
      'Host',
      'hOST',
      'User-Agent',
      'Idempotency-Key',
      'Proxy-Authorization',
      'proxy-',
      'Connection',
      'Keep-Alive',
      'TE',
      'Trailer',
      'Transfer-Encoding',
      'Upgrade',
      'Expect',
    ]
    const bad: [Record<string, string>, string][] = [
      ...reserved.map((name): [Record<string, string>, string] => [{ [name]: 'x' }, 'reserved_name']),
      ...['X A', 'X:A', 'X\nA', 'Ü', 'X(A)', 'X,A', '"X"'].map((name): [Record<string, string>, string] => [
        { [name]: 'x' },
        'invalid_name',
      ]),
      ...['a\r\nHost: x', 'ü', ' x', 'x ', 'a\u007fb', '\t'].map(
        (value): [Record<string, string>, string] => [{ 'X-A': value }, 'invalid_header_value'],
      ),
      [{ 'X-A': '1', 'x-a': '2' }, 'duplicate'],
      [{ 'X-Kept': '****alue' }, 'masked_value'],
    ]
    for (const [headers, code] of bad) {
      const reply = await call('webhooks_update_endpoint', { endpoint_id: id, custom_headers: headers })
      assert.equal(reply.status, 400, JSON.stringify(headers))
      assert.deepEqual(
        [reply.body.errors[0].code, reply.body.errors[0].pointer.split('/')[1]],
        [code, 'custom_headers'],
        reply.text,
      )
      assert.ok(reply.body.errors[0].fix)
    }
    assert.deepEqual(
      field(
        await call('webhooks_create_endpoint', {
          url,
          custom_headers: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`X-${n}`, 'x'])),
        }),
      ),
      [400, '#/custom_headers', 'too_long'],
    )
    const good = {
      Authorization: 'Basic dXNlcjpwYXNz',
      Cookie: 'a=b; c="d"',
      "X-!#$%&'*+.^_`|~1": 'a\tb',
      Hostname: 'x',
      Contents: '',
      'Upgrade-Insecure': '1',
      'X-Webhook-Id': '1',
    }
    assert.equal(
      (await call('webhooks_update_endpoint', { endpoint_id: id, custom_headers: good })).status,
      200,
    )
  })

  test('are settled by those alone who see all that is sent', async ({ call, as, workspace }) => {
    const { endpoint } = (await created(call)).body
    const [first] = (await call('workspace_channels')).body.data
    const partial: [{ hide_phone_numbers?: boolean; channel_ids?: string[] }, string][] = [
      [{ hide_phone_numbers: true }, 'phone_hidden'],
      [{ channel_ids: [first.id] }, 'channels_limited'],
    ]
    for (const [fields, reason] of partial) {
      const agent = as((await workspace.staff({ role: 'agent', ...fields })).key)
      for (const [op, input] of [
        ['create_endpoint', { url }],
        ['update_endpoint', { endpoint_id: endpoint.id, url }],
        ['set_subscriptions', { endpoint_id: endpoint.id, event_types: ['*'] }],
        ['enable_endpoint', { endpoint_id: endpoint.id }],
        ['rotate_secret', { endpoint_id: endpoint.id }],
      ] as const) {
        const { status, body } = await agent(`webhooks_${op}`, { ...input, dry_run: true })
        assert.deepEqual([status, body.code, body.reason], [403, 'forbidden', reason], op)
      }
      assert.equal((await agent('webhooks_get_endpoint', { endpoint_id: endpoint.id })).status, 200)
    }
  })

  test('get what they are subscribed to', async ({ call, server, workspace }) => {
    const {
      endpoint: { id },
    } = (await created(call)).body
    const set = (event_types: string[], more: Record<string, unknown> = {}) =>
      call('webhooks_set_subscriptions', { endpoint_id: id, event_types, ...more })
    const first = await set(['contact.created/1', 'group.created/1', 'contact.created/1'])
    assert.deepEqual(
      [first.body.changed, first.body.endpoint.subscriptions.event_types.map((t: { id: string }) => t.id)],
      [true, ['contact.created/1', 'group.created/1']],
    )
    assert.equal((await set(['group.created/1', 'contact.created/1'])).body.changed, false)
    assert.equal((await set(['*'], { dry_run: true })).body.endpoint.subscriptions.count, 1)
    await call('crm_create_group', { name: 'One' })
    assert.deepEqual(await statuses(server, id), ['pending'])
    const second = await set(['contact.created/1'])
    assert.deepEqual(
      second.body.endpoint.subscriptions.event_types,
      [first.body.endpoint.subscriptions.event_types[0]],
      'what stays keeps its time',
    )
    await call('crm_create_group', { name: 'Two' })
    assert.deepEqual(await statuses(server, id), ['pending'])
    assert.equal((await set(['*'])).body.changed, true)
    await call('crm_create_group', { name: 'Three' })
    assert.deepEqual(await statuses(server, id), ['pending', 'pending'])
    const unknown = await set(['*', 'contact.craeted/1'])
    assert.deepEqual(
      [...field(unknown), unknown.body.errors[0].fix],
      [400, '#/event_types/1', 'unknown_event_type', 'Did you mean contact.created/1?'],
    )
    assert.equal((await set(['contact.created'])).body.errors[0].fix, 'Did you mean contact.created/1?')
    assert.deepEqual(field(await set(['*', 'contact.created/1'])), [400, '#/event_types', 'not_alone'])
    assert.deepEqual(field(await call('webhooks_create_endpoint', { url, event_types: ['nothing/1'] })), [
      400,
      '#/event_types/0',
      'unknown_event_type',
    ])
    assert.deepEqual(
      [(await set([])).body.endpoint.subscriptions, (await set([])).body.changed],
      [{ count: 0, all_active: true, event_types: [] }, false],
    )
    assert.equal(
      (await doAs(server, workspace.owner.key)('crm_create_group', { name: 'Four' })).created,
      true,
    )
    assert.equal((await statuses(server, id)).length, 2)
  })

  test('stop when they are disabled, and begin anew when they are enabled', async ({
    call,
    server,
    workspace,
  }) => {
    const {
      endpoint: { id },
    } = (await created(call, { event_types: ['group.created/1'] })).body
    const { endpoint: witness } = (await created(call, { event_types: ['webhook.endpoint_disabled/1'] })).body
    await call('crm_create_group', { name: 'Before' })
    // It has failed for long, and is tried again in an hour.
    await sql`update webhook_deliveries set status = 'failed', next_attempt_at = clock_timestamp() + interval '1 hour' where endpoint_id = ${id}`.execute(
      server.db,
    )
    await sql`update webhook_endpoints set status = 'paused', consecutive_failures = 12, failing_since = now(), warned = 50, next_probe_at = now() where id = ${id}`.execute(
      server.db,
    )
    const disable = (input = {}) => call('webhooks_disable_endpoint', { endpoint_id: id, ...input })
    assert.deepEqual(
      [
        (await disable({ dry_run: true })).body.changed,
        (await call('webhooks_get_endpoint', { endpoint_id: id })).body.status,
      ],
      [true, 'paused'],
    )
    const off = await disable()
    assert.deepEqual(
      [
        off.body.changed,
        off.body.endpoint.status,
        off.body.endpoint.disabled_reason,
        typeof off.body.endpoint.disabled_at,
      ],
      [true, 'disabled', 'manual', 'string'],
    )
    assert.deepEqual(
      [(await disable()).body.changed, (await statuses(server, witness.id)).length],
      [false, 1],
      'told once',
    )
    const told = await server.db
      .selectFrom('events')
      .select('data')
      .where('workspace_id', '=', workspace.id)
      .where('type', '=', 'webhook.endpoint_disabled/1')
      .execute()
    assert.deepEqual(
      told.map((e) => e.data),
      [{ endpoint: { id, url, consecutive_failures: 12 }, reason: 'manual' }],
    )
    await call('crm_create_group', { name: 'Meanwhile' })
    assert.deepEqual(await statuses(server, id), ['failed'], 'what happens meanwhile is not owed')
    const on = await call('webhooks_enable_endpoint', { endpoint_id: id })
    assert.deepEqual(
      [
        on.body.changed,
        on.body.endpoint.status,
        on.body.endpoint.disabled_at,
        on.body.endpoint.disabled_reason,
        on.body.endpoint.consecutive_failures,
      ],
      [true, 'active', null, null, 0],
    )
    assert.equal((await call('webhooks_enable_endpoint', { endpoint_id: id })).body.changed, false)
    const { rows } = await sql`
      select d.next_attempt_at <= clock_timestamp() as due, e.failing_since, e.warned, e.next_probe_at from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id where e.id = ${id}`.execute(
      server.db,
    )
    assert.deepEqual(rows[0], { due: true, failing_since: null, warned: 0, next_probe_at: null })
  })

  test('are gone when they are deleted, and their log stays', async (scene) => {
    const { call, server, workspace } = scene
    const {
      endpoint: { id },
    } = (await created(call, { event_types: ['group.created/1'], custom_headers: { 'X-A': 'a value' } })).body
    for (const name of ['One', 'Two', 'Three']) await call('crm_create_group', { name })
    await sql`update webhook_deliveries set status = case id when (select min(id) from webhook_deliveries where endpoint_id = ${id}) then 'delivered' else 'failed' end where endpoint_id = ${id}`.execute(
      server.db,
    )
    assert.deepEqual(
      [
        (await call('webhooks_delete_endpoint', { endpoint_id: id, dry_run: true })).body.deleted,
        (await call('webhooks_get_endpoint', { endpoint_id: id })).status,
      ],
      [true, 200],
    )
    assert.deepEqual(
      (await surely(scene)('webhooks_delete_endpoint', { endpoint_id: id }, { confirm: 'delete' })).body,
      { id, deleted: true },
    )
    assert.deepEqual(await statuses(server, id), ['delivered', 'skipped', 'skipped'])
    for (const op of [
      'get_endpoint',
      'update_endpoint',
      'delete_endpoint',
      'rotate_secret',
      'disable_endpoint',
      'enable_endpoint',
      'set_subscriptions',
    ]) {
      const reply = await surely(scene)(
        `webhooks_${op}`,
        { endpoint_id: id, ...(op === 'set_subscriptions' ? { event_types: [] } : {}) },
        op === 'rotate_secret'
          ? { confirm: 'rotate', idempotencyKey: randomUUID() }
          : op === 'delete_endpoint'
            ? { confirm: 'delete' }
            : {},
      )
      assert.deepEqual([op, reply.status, reply.body.code], [op, 404, 'not_found'], reply.text)
    }
    assert.deepEqual((await call('webhooks_list_endpoints')).body.data, [])
    const log = await call('webhooks_list_deliveries', { endpoint_id: id })
    assert.equal(log.body.data.length, 3, log.text)
    await call('crm_create_group', { name: 'Four' })
    assert.equal((await statuses(server, id)).length, 3)
    const [row] = await server.db
      .selectFrom('webhook_endpoints')
      .select(['signing_secret', 'custom_headers', 'deleted_at'])
      .where('workspace_id', '=', workspace.id)
      .execute()
    assert.deepEqual([row!.signing_secret, row!.custom_headers, row!.deleted_at === null], ['', '', false])
  })

  test('sign with two secrets for a day after a rotation', async (scene) => {
    const { call, server, workspace } = scene
    const {
      endpoint: { id },
      signing_secret: first,
    } = (await created(call)).body
    const rotate = (input = {}) =>
      surely(scene)(
        'webhooks_rotate_secret',
        { endpoint_id: id, ...input },
        { confirm: 'rotate', idempotencyKey: randomUUID() },
      )
    const rehearsed = await rotate({ dry_run: true })
    assert.deepEqual(
      [rehearsed.body.signing_secret, rehearsed.body.endpoint.signing_secret],
      [null, 'whsec_****'],
      rehearsed.text,
    )
    assert.deepEqual((await kept(server, workspace.id, id)).secrets, [first])
    const before = Date.now()
    const { signing_secret: second, endpoint, old_secret_valid_until: until } = (await rotate()).body
    assert.match(second, SECRET)
    assert.equal(endpoint.signing_secret, `whsec_****${second.slice(-4)}`)
    // The database has a clock of its own.
    assert.ok(Math.abs(Date.parse(until) - before - 86_400_000) < 60_000, until)
    assert.deepEqual((await kept(server, workspace.id, id)).secrets, [second, first])
    const { signing_secret: third } = (await rotate()).body
    assert.deepEqual((await kept(server, workspace.id, id)).secrets, [third, second])
    await sql`update webhook_endpoints set old_secret_until = clock_timestamp() - interval '1 second' where id = ${id}`.execute(
      server.db,
    )
    assert.deepEqual((await kept(server, workspace.id, id)).secrets, [third])
  })
})

everyDatabase('Secrets of endpoints', (server) => {
  it('are in answers that are kept for retries, but sealed', async () => {
    const workspace = await makeWorkspace(server())
    const [rest, ops] = doorsOf(server().url, workspace.owner.key)
    const first = await rest!.call(
      'webhooks_create_endpoint',
      { url },
      { idempotencyKey: 'a-secret-is-kept' },
    )
    const rotated = await ops!.call(
      'webhooks_rotate_secret',
      { endpoint_id: first.body.endpoint.id },
      { idempotencyKey: 'another-is-kept', confirm: 'rotate' },
    )
    const answers = await server()
      .db.selectFrom('idempotency')
      .select('body')
      .where('workspace_id', '=', workspace.id)
      .where('key', 'in', ['a-secret-is-kept', 'another-is-kept'])
      .execute()
    assert.equal(answers.length, 2)
    for (const { body } of answers) assert.ok(!body!.includes('whsec_') && !body!.includes('endpoint'), body!)
    for (const door of [rest!, ops!]) {
      const again = await door.call(
        'webhooks_create_endpoint',
        { url },
        { idempotencyKey: 'a-secret-is-kept' },
      )
      assert.deepEqual(
        [again.status, again.text, again.headers['idempotent-replayed']],
        [201, first.text, 'true'],
      )
      const twice = await door.call(
        'webhooks_rotate_secret',
        { endpoint_id: first.body.endpoint.id },
        { idempotencyKey: 'another-is-kept', confirm: 'rotate' },
      )
      assert.deepEqual(
        [twice.status, twice.text, twice.headers['idempotent-replayed']],
        [200, rotated.text, 'true'],
      )
    }
    // A refusal is kept as well, and given again.
    const refusals = [1, 2].map(() =>
      ops!.call(
        'webhooks_create_endpoint',
        { url: 'https://localhost.example.invalid/' },
        { idempotencyKey: 'refused-address' },
      ),
    )
    for (const refused of await Promise.all(refusals))
      assert.ok(refused.status === 400 || refused.status === 409, refused.text)
    assert.equal(
      (
        await ops!.call(
          'webhooks_create_endpoint',
          { url: 'https://localhost.example.invalid/' },
          { idempotencyKey: 'refused-address' },
        )
      ).headers['idempotent-replayed'],
      'true',
    )
  })

  it('open for their own endpoint alone', async () => {
    const workspace = await makeWorkspace(server())
    const call = callAs(server(), workspace.owner.key)
    const [one, other] = [(await created(call)).body.endpoint.id, (await created(call)).body.endpoint.id]
    const [mine, theirs] = [
      (await findEndpoint(server().db, workspace.id, one))!,
      (await findEndpoint(server().db, workspace.id, other))!,
    ]
    assert.throws(
      () => unsealSecrets(server().app, { ...mine, signing_secret: theirs.signing_secret }),
      /sealed with another/,
    )
    assert.throws(
      () => unsealHeaders(server().app, { ...mine, custom_headers: mine.signing_secret }),
      /sealed with another/,
    )
  })

  it('are asked for with confirmation and a key', async () => {
    const workspace = await makeWorkspace(server())
    const [rest] = doorsOf(server().url, workspace.owner.key)
    const {
      endpoint: { id },
    } = (await created(rest!.call)).body
    assert.equal(
      (await rest!.call('webhooks_rotate_secret', { endpoint_id: id }, { confirm: 'rotate' })).body.reason,
      'idempotency_key_required',
    )
    assert.equal(
      (await rest!.call('webhooks_rotate_secret', { endpoint_id: id }, { idempotencyKey: randomUUID() }))
        .status,
      428,
    )
    assert.equal((await rest!.call('webhooks_delete_endpoint', { endpoint_id: id })).status, 428)
    const reader = await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read', 'crm:write'] })
    assert.equal(
      (await rest!.call('webhooks_create_endpoint', { url }, { key: reader.key })).body.code,
      'insufficient_scope',
    )
    assert.equal((await rest!.call('webhooks_list_endpoints', {}, { key: reader.key })).status, 200)
  })

  it('are printed by the command line', async () => {
    const workspace = await makeWorkspace(server())
    const env = { WCRM_URL: server().url, WCRM_API_KEY: workspace.owner.key, XDG_CONFIG_HOME: '/nonexistent' }
    const { exit, stdout } = await runCli(
      ['webhooks', 'create', '--url', url, '--event-types', 'contact.created/1,group.created/1'],
      env,
    )
    assert.equal(exit, 0)
    assert.match(stdout, /^signing_secret: whsec_\S{44}$/m)
  })
})

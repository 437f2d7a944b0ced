import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { catalog } from '../../catalog/index.ts'
import { everyDoor } from '../doors.ts'
import { loadWorkspaceRows } from '../world.ts'
import { confirmingCall, createEndpoint, loadStored, SECRET, toFieldError, url } from './endpoint-fixture.ts'
import { doAs } from '../calls.ts'
import type { TestServer } from '../servers.ts'

const reservedHeaders = [
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

everyDoor('Webhook endpoints', (test) => {
  test('create: the signing secret is shown once and stored sealed', async ({ call, server, workspace }) => {
    const { body } = await createEndpoint(call, {
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
      version: endpoint.version,
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
    const stored = JSON.stringify(await loadWorkspaceRows(server.db, workspace.id))
    assert.ok(
      stored.includes(endpoint.id) &&
        !stored.includes(body.signing_secret.slice(6)) &&
        !stored.includes('abcdef1234'),
      'a secret is stored in plain text',
    )
    const { secrets, headers } = await loadStored(server, workspace.id, endpoint.id)
    assert.deepEqual(
      [secrets, headers],
      [[body.signing_secret], { Authorization: 'Bearer abcdef1234', 'X-Id': '1234' }],
    )
  })

  test('create: no subscriptions and headers by default; a dry run stores nothing', async ({ call }) => {
    const preview = await call('webhooks_create_endpoint', { url, event_types: ['*'], dry_run: true })
    assert.deepEqual(
      [
        preview.body.endpoint.id,
        preview.body.signing_secret,
        preview.body.endpoint.signing_secret,
        preview.body.endpoint.subscriptions.count,
      ],
      [null, null, 'whsec_****', 1],
      preview.text,
    )
    assert.deepEqual((await call('webhooks_list_endpoints')).body, { data: [], next_cursor: null })
    const { endpoint } = (await createEndpoint(call, { payload_format: 'data' })).body
    assert.deepEqual(
      [endpoint.subscriptions, endpoint.custom_headers, endpoint.description, endpoint.payload_format],
      [{ count: 0, all_active: true, event_types: [] }, {}, null, 'data'],
    )
    // Two endpoints may have the same URL, for example with two formats.
    await createEndpoint(call)
  })

  test('list: newest first, in pages, filtered by status and URL', async ({ call }) => {
    const ids: string[] = []
    for (const n of [1, 2, 3, 4])
      ids.push((await createEndpoint(call, { url: `https://example.com/Hooks_${n}` })).body.endpoint.id)
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

  test('update: changes the given fields and returns which changed', async ({ call, server, workspace }) => {
    const {
      endpoint: { id },
      signing_secret: secret,
    } = (
      await createEndpoint(call, {
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
    const preview = await update({ url: 'https://shop.example/new', description: null, dry_run: true })
    assert.deepEqual(
      [preview.changed, preview.endpoint.url, preview.endpoint.description],
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
    const now = await loadStored(server, workspace.id, id)
    assert.deepEqual([now.headers, now.secrets, now.url], [{}, [secret], 'https://shop.example/new'])
  })

  test('custom headers: reserved and invalid names and values are refused', async ({ call }) => {
    const {
      endpoint: { id },
    } = (await createEndpoint(call, { custom_headers: { 'X-Kept': 'a kept value' } })).body
    const bad: [Record<string, string>, string][] = [
      ...reservedHeaders.map((name): [Record<string, string>, string] => [{ [name]: 'x' }, 'reserved_name']),
      ...['X A', 'X:A', 'X\nA', 'Ü', 'X(A)', 'X,A', '"X"'].map((name): [Record<string, string>, string] => [
        { [name]: 'x' },
        'invalid_name',
      ]),
      ...['a\r\nHost: x', 'ü', ' x', 'x ', 'a\u007fb', '\t'].map(
        (value): [Record<string, string>, string] => [{ 'X-A': value }, 'invalid_header_value'],
      ),
      [{ 'X-A': '1', 'x-a': '2' }, 'duplicate'],
      [{ 'x-a': '1', 'X-A': '2' }, 'duplicate'],
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
      toFieldError(
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

  test('write operations need access to all channels and phone numbers', async ({ call, as, workspace }) => {
    const { endpoint } = (await createEndpoint(call)).body
    const [first] = (await call('workspace_channels')).body.data
    // What is sent again names a delivery or a span, and goes where it went before.
    const changes = catalog.filter(
      ({ name, scope }) =>
        /^webhooks_(?!replay_delivery|recover_endpoint)/.test(name) && scope === 'webhooks:write',
    )
    assert.ok(changes.length >= 8, `${changes.length} operations`)
    const partial: [{ hide_phone_numbers?: boolean; channel_ids?: string[] }, string][] = [
      [{ hide_phone_numbers: true }, 'phone_hidden'],
      [{ channel_ids: [first.id] }, 'channels_limited'],
    ]
    for (const [fields, reason] of partial) {
      const agent = as((await workspace.staff({ role: 'agent', ...fields })).key)
      for (const { name, input } of changes) {
        const own = {
          ...('endpoint_id' in input.shape ? { endpoint_id: endpoint.id } : {}),
          ...('url' in input.shape ? { url } : {}),
          ...('event_types' in input.shape ? { event_types: ['*'] } : {}),
          ...(name === 'webhooks_send_test' ? { event_type_id: 'contact.created/1' } : {}),
        }
        const { status, body } = await agent(name, { ...own, dry_run: true })
        assert.deepEqual([status, body.code, body.reason], [403, 'forbidden', reason], name)
      }
      assert.equal((await agent('webhooks_get_endpoint', { endpoint_id: endpoint.id })).status, 200)
    }
  })
})

const listStatuses = async ({ db }: TestServer, endpointId: string): Promise<string[]> =>
  (
    await db
      .selectFrom('webhook_deliveries')
      .select('status')
      .where('endpoint_id', '=', endpointId)
      .orderBy('id')
      .execute()
  ).map((d) => d.status)

everyDoor('State of webhook endpoints', (test) => {
  test('subscriptions: replaced as a whole; unknown types are refused with a suggestion', async ({
    call,
    server,
    workspace,
  }) => {
    const {
      endpoint: { id },
    } = (await createEndpoint(call)).body
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
    assert.deepEqual(await listStatuses(server, id), ['pending'])
    const second = await set(['contact.created/1'])
    assert.deepEqual(
      second.body.endpoint.subscriptions.event_types,
      [first.body.endpoint.subscriptions.event_types[0]],
      'a remaining subscription keeps its time',
    )
    await call('crm_create_group', { name: 'Two' })
    assert.deepEqual(await listStatuses(server, id), ['pending'])
    assert.equal((await set(['*'])).body.changed, true)
    await call('crm_create_group', { name: 'Three' })
    assert.deepEqual(await listStatuses(server, id), ['pending', 'pending'])
    const unknown = await set(['*', 'contact.craeted/1'])
    assert.deepEqual(
      [...toFieldError(unknown), unknown.body.errors[0].fix],
      [400, '#/event_types/1', 'unknown_event_type', 'Did you mean contact.created/1?'],
    )
    assert.equal((await set(['contact.created'])).body.errors[0].fix, 'Did you mean contact.created/1?')
    assert.deepEqual(toFieldError(await set(['*', 'contact.created/1'])), [400, '#/event_types', 'not_alone'])
    assert.deepEqual(
      toFieldError(await call('webhooks_create_endpoint', { url, event_types: ['nothing/1'] })),
      [400, '#/event_types/0', 'unknown_event_type'],
    )
    assert.deepEqual(
      [(await set([])).body.endpoint.subscriptions, (await set([])).body.changed],
      [{ count: 0, all_active: true, event_types: [] }, false],
    )
    assert.equal(
      (await doAs(server, workspace.owner.key)('crm_create_group', { name: 'Four' })).created,
      true,
    )
    assert.equal((await listStatuses(server, id)).length, 2)
  })

  test('disable and enable: deliveries stop, and pending ones are due when enabled', async ({
    call,
    server,
    workspace,
  }) => {
    const {
      endpoint: { id },
    } = (await createEndpoint(call, { event_types: ['group.created/1'] })).body
    const { endpoint: watcher } = (
      await createEndpoint(call, { event_types: ['webhook.endpoint_disabled/1'] })
    ).body
    await call('crm_create_group', { name: 'Before' })
    // A failed delivery that is due in an hour, and a paused endpoint.
    await sql`
      update webhook_deliveries
      set status = 'failed', next_attempt_at = clock_timestamp() + interval '1 hour'
      where endpoint_id = ${id}`.execute(server.db)
    await sql`
      update webhook_endpoints set
        status = 'paused', consecutive_failures = 12, failing_since = now(), warned = 50,
        next_probe_at = now()
      where id = ${id}`.execute(server.db)
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
      [(await disable()).body.changed, (await listStatuses(server, watcher.id)).length],
      [false, 1],
      'one event',
    )
    const events = await server.db
      .selectFrom('events')
      .select('data')
      .where('workspace_id', '=', workspace.id)
      .where('type', '=', 'webhook.endpoint_disabled/1')
      .execute()
    const owner = { staff: { id: workspace.owner.staffId, name: 'Owner' } }
    const key = { id: workspace.owner.keyId, name: null }
    assert.deepEqual(
      events.map((e) => e.data),
      [
        {
          endpoint: { id, url, consecutive_failures: 12 },
          reason: 'manual',
          actor: { ...owner, key, agent: false, approved_by: null },
        },
      ],
    )
    await call('crm_create_group', { name: 'Meanwhile' })
    assert.deepEqual(await listStatuses(server, id), ['failed'], 'events while disabled create no delivery')
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
      select d.next_attempt_at <= clock_timestamp() as due, e.failing_since, e.warned, e.next_probe_at
      from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id
      where e.id = ${id}`.execute(server.db)
    assert.deepEqual(rows[0], { due: true, failing_since: null, warned: 0, next_probe_at: null })
  })

  test('delete: pending deliveries are skipped, the log remains, secrets are erased', async (scene) => {
    const { call, server, workspace } = scene
    const {
      endpoint: { id },
    } = (
      await createEndpoint(call, { event_types: ['group.created/1'], custom_headers: { 'X-A': 'a value' } })
    ).body
    for (const name of ['One', 'Two', 'Three']) await call('crm_create_group', { name })
    await sql`
      update webhook_deliveries set status = case id
        when (select min(id) from webhook_deliveries where endpoint_id = ${id}) then 'delivered'
        else 'failed' end
      where endpoint_id = ${id}`.execute(server.db)
    assert.deepEqual(
      [
        (await call('webhooks_delete_endpoint', { endpoint_id: id, dry_run: true })).body.deleted,
        (await call('webhooks_get_endpoint', { endpoint_id: id })).status,
      ],
      [true, 200],
    )
    assert.deepEqual(
      (await confirmingCall(scene)('webhooks_delete_endpoint', { endpoint_id: id }, { confirm: 'delete' }))
        .body,
      { id, deleted: true },
    )
    assert.deepEqual(await listStatuses(server, id), ['delivered', 'skipped', 'skipped'])
    for (const op of [
      'get_endpoint',
      'update_endpoint',
      'delete_endpoint',
      'rotate_secret',
      'disable_endpoint',
      'enable_endpoint',
      'set_subscriptions',
    ]) {
      const reply = await confirmingCall(scene)(
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
    assert.equal((await listStatuses(server, id)).length, 3)
    const [row] = await server.db
      .selectFrom('webhook_endpoints')
      .select(['signing_secret', 'custom_headers', 'deleted_at'])
      .where('workspace_id', '=', workspace.id)
      .execute()
    assert.deepEqual([row!.signing_secret, row!.custom_headers, row!.deleted_at === null], ['', '', false])
  })
})

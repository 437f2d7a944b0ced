import assert from 'node:assert/strict'
import { catalog } from '../../catalog/index.ts'
import { everyDoor } from '../doors.ts'
import { loadWorkspaceRows } from '../world.ts'
import { url, SECRET, createEndpoint, loadStored, toFieldError } from './endpoint-fixture.ts'

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

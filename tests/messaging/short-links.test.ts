import assert from 'node:assert/strict'
import { createChannel, updateChannel } from '../../storage/workspace/admin.ts'
import { everyDoor } from '../doors.ts'
import { summarizeReply } from './fixtures.ts'
import {
  CREATE_SHORT_LINK,
  withIdempotencyKey,
  listProviderLinks,
  listShortLinkEvents,
  createSecondChannel,
  loadDefaultChannelId,
} from './short-links.ts'

everyDoor('Short links', (test) => {
  test('create, list, get and delete', async ({ call, door, server, workspace }) => {
    const { status, body: link } = await call(
      CREATE_SHORT_LINK,
      { message: '  Hello 👋\nI would like to order.  ' },
      withIdempotencyKey(),
    )
    assert.equal(status, 201)
    const channel = {
      id: await loadDefaultChannelId(server, workspace.id),
      name: 'Main line',
      phone: '15550100001',
    }
    assert.match(link.code, /^[A-Z2-7]{14}$/)
    assert.match(link.qr_image_url, new RegExp(`^${server.url}/qr/[0-9a-f]{32}\\.png$`))
    const { id, code, qr_image_url, created_at, updated_at, ...rest } = link
    assert.deepEqual(rest, {
      url: `${server.url}/message/${code}`,
      message: 'Hello 👋\nI would like to order.',
      qr_image_format: 'PNG',
      channel,
    })
    assert.deepEqual(
      (await listProviderLinks(server, workspace)).map((row) => [
        row.code,
        row.prefilled_message,
        row.deep_link_url,
      ]),
      [[code, link.message, link.url]],
    )
    assert.deepEqual(await listShortLinkEvents(server, workspace.id), [
      {
        type: 'short_link.created/1',
        data: {
          short_link: { id, code, url: link.url, message: link.message, channel_id: channel.id },
          actor: {
            staff: { id: workspace.owner.staffId, name: 'Owner' },
            key: { id: workspace.owner.keyId, name: null },
            agent: false,
            approved_by: null,
          },
        },
      },
    ])

    assert.deepEqual((await call('messaging_get_short_link', { short_link_id: id })).body, link)
    assert.deepEqual((await call('messaging_list_short_links')).body, {
      data: [link],
      total: 1,
      next_cursor: null,
    })
    assert.equal((await fetch(qr_image_url)).status, 200)

    assert.equal((await call('messaging_delete_short_link', { short_link_id: id })).status, 428)
    if (!door.confirms) return
    assert.deepEqual(
      (await call('messaging_delete_short_link', { short_link_id: id }, { confirm: 'delete' })).body,
      { id, deleted: true },
    )
    assert.deepEqual(await listProviderLinks(server, workspace), [])
    assert.equal((await listShortLinkEvents(server, workspace.id)).at(-1)!.type, 'short_link.deleted/1')
    for (const [op, options] of [
      ['messaging_get_short_link', {}],
      ['messaging_delete_short_link', { confirm: 'delete' }],
    ] as const) {
      assert.deepEqual(summarizeReply(await call(op, { short_link_id: id }, options)), [404, 'not_found'])
    }
    for (const url of [qr_image_url, link.url]) assert.equal((await fetch(url)).status, 404)
  })

  test('a dry run and a test key create no link', async ({ call, as, server, workspace }) => {
    const testKey = as((await workspace.key(workspace.owner.staffId, { test: true })).key)
    const channel = {
      id: await loadDefaultChannelId(server, workspace.id),
      name: 'Main line',
      phone: '15550100001',
    }
    for (const dryRun of [
      () => call(CREATE_SHORT_LINK, { message: 'Hi', qr_format: 'SVG', dry_run: true }),
      () => testKey(CREATE_SHORT_LINK, { message: 'Hi', qr_format: 'SVG' }),
    ]) {
      assert.deepEqual((await dryRun()).body, {
        id: null,
        code: null,
        url: null,
        message: 'Hi',
        qr_image_url: null,
        qr_image_format: 'SVG',
        channel,
        created_at: null,
        updated_at: null,
        dry_run: true,
      })
    }
    assert.deepEqual(
      [
        await listProviderLinks(server, workspace),
        (await call('messaging_list_short_links')).body.total,
        await listShortLinkEvents(server, workspace.id),
      ],
      [[], 0, []],
    )
    const { id } = (await call(CREATE_SHORT_LINK, { message: 'Hi' }, withIdempotencyKey())).body
    assert.deepEqual((await call('messaging_delete_short_link', { short_link_id: id, dry_run: true })).body, {
      id,
      deleted: true,
      dry_run: true,
    })
    assert.equal((await call('messaging_get_short_link', { short_link_id: id })).status, 200)
    assert.equal((await listProviderLinks(server, workspace)).length, 1)
  })

  test('a message has up to 140 characters; an emoji counts as two', async ({ call }) => {
    const dryRun = (message: string) => call(CREATE_SHORT_LINK, { message, dry_run: true })
    for (const message of [
      'x',
      'é'.repeat(140),
      '👍🏽'.repeat(70),
      '👩🏽‍❤️‍💋‍👩🏽'.repeat(70),
      `${'x'.repeat(139)}©`,
      'https%3A%2F%2Fexample.com',
    ])
      assert.equal((await dryRun(message)).status, 201, message)
    for (const [message, count] of [
      ['x'.repeat(141), 141],
      ['👍'.repeat(71), 142],
      [`${'x'.repeat(139)}🇩🇪`, 141],
    ] as const) {
      const { status, body } = await dryRun(message)
      assert.deepEqual([status, body.errors[0].pointer, body.errors[0].code], [400, '#/message', 'too_long'])
      assert.match(body.errors[0].detail, new RegExp(`it has ${count}$`))
      assert.equal(body.errors[0].fix, `Shorten it by ${count - 140}.`)
    }
    for (const message of ['', ' \n ', 'x'.repeat(3000), 'a\u0007b', 'a\tb', 'a\r\nb', 'a\u0085b']) {
      const { status, body } = await dryRun(message)
      assert.deepEqual(
        [status, body.errors.map((e: { pointer: string }) => e.pointer)],
        [400, ['#/message']],
        JSON.stringify(message),
      )
    }
    assert.match((await dryRun('a\u0007b')).body.errors[0].fix, /U\+0007/)
  })

  test('channel: the requested number, or the only connected one', async ({ call, server, workspace }) => {
    const dryRun = async (input: object): Promise<unknown> => {
      const reply = await call(CREATE_SHORT_LINK, { message: 'Hi', dry_run: true, ...input })
      return reply.status < 300 ? reply.body.channel.id : summarizeReply(reply)
    }
    const main = await loadDefaultChannelId(server, workspace.id)
    assert.equal(await dryRun({}), main)
    const second = await createSecondChannel(server, workspace.id)
    const disconnected = await createSecondChannel(server, workspace.id, {
      name: null,
      identifier: '15550100003',
      status: 'disconnected',
      provider_phone_number_id: `98${workspace.id}`,
    })
    const { id: web } = await createChannel(
      server.db,
      workspace.id,
      { type: 'web', identifier: '15550100004', status: 'connected' },
      server.app.now(),
    )
    const { status, body } = await call(CREATE_SHORT_LINK, { message: 'Hi', dry_run: true })
    assert.deepEqual(
      [status, body.reason, body.errors[0].pointer, body.errors[0].allowed],
      [400, 'channel_ambiguous', '#/channel_id', [main, second]],
    )
    assert.match(body.detail, /Main line, 15550100001.*Second line, 15550100002/)
    for (const input of [
      { channel_id: second },
      { phone: '15550100002' },
      { phone: '+1 (555) 010-0002' },
      { phone: '00 1 555 010 0002' },
      { channel_id: second, phone: '+15550100002' },
    ]) {
      assert.equal(await dryRun(input), second, JSON.stringify(input))
    }
    for (const input of [
      { channel_id: '999999999' },
      { channel_id: 'nonsense' },
      { channel_id: '9'.repeat(30) },
      { channel_id: web },
      { phone: '+15550100099' },
      { phone: '+15550100004' },
    ]) {
      assert.deepEqual(await dryRun(input), [404, 'not_found'], JSON.stringify(input))
    }
    for (const input of [{ channel_id: disconnected }, { phone: '+15550100003' }])
      assert.deepEqual(await dryRun(input), [409, 'conflict', 'channel_not_connected'])
    assert.deepEqual(await dryRun({ channel_id: main, phone: '+15550100002' }), [
      400,
      'invalid_input',
      '#/phone mismatch',
    ])
    assert.deepEqual(await dryRun({ phone: '0555 1' }), [400, 'invalid_input', '#/phone invalid_phone'])
    for (const id of [main, second])
      await updateChannel(server.db, workspace.id, id, { status: 'disconnected' })
    assert.deepEqual(await dryRun({}), [409, 'conflict', 'channel_not_connected'])
  })

  test('links of channels that the actor may not use are not found', async ({
    call,
    as,
    server,
    workspace,
  }) => {
    const [main, second] = [
      await loadDefaultChannelId(server, workspace.id),
      await createSecondChannel(server, workspace.id),
    ]
    const agent = as((await workspace.staff({ role: 'agent', channel_ids: [second] })).key)
    const { id } = (await call(CREATE_SHORT_LINK, { message: 'Hi', channel_id: main }, withIdempotencyKey()))
      .body
    const own = (await agent(CREATE_SHORT_LINK, { message: 'Hi' }, withIdempotencyKey())).body
    assert.equal(own.channel.id, second)
    for (const reply of [
      await agent(CREATE_SHORT_LINK, { message: 'Yo', channel_id: main, dry_run: true }),
      await agent(CREATE_SHORT_LINK, { message: 'Yo', phone: '15550100001', dry_run: true }),
      await agent('messaging_get_short_link', { short_link_id: id }),
      await agent('messaging_delete_short_link', { short_link_id: id, dry_run: true }),
    ])
      assert.deepEqual(summarizeReply(reply), [404, 'not_found'])
    const listIds = async (input: object) =>
      (await agent('messaging_list_short_links', { ...input })).body.data.map(
        (link: { id: string }) => link.id,
      )
    assert.deepEqual(
      [await listIds({}), await listIds({ channel_id: main }), await listIds({ channel_id: second })],
      [[own.id], [], [own.id]],
    )
  })

  test('a duplicate message on one number is rejected without allow_duplicate', async ({
    call,
    server,
    workspace,
  }) => {
    const [main, second] = [
      await loadDefaultChannelId(server, workspace.id),
      await createSecondChannel(server, workspace.id),
    ]
    const first = (await call(CREATE_SHORT_LINK, { message: 'Hi', channel_id: main }, withIdempotencyKey()))
      .body
    const duplicate = await call(
      CREATE_SHORT_LINK,
      { message: 'Hi ', channel_id: main },
      withIdempotencyKey(),
    )
    assert.deepEqual(
      [...summarizeReply(duplicate), duplicate.body.existing_id],
      [409, 'conflict', 'duplicate', first.id],
    )
    assert.deepEqual(
      summarizeReply(await call(CREATE_SHORT_LINK, { message: 'Hi', channel_id: main, dry_run: true })),
      [409, 'conflict', 'duplicate'],
    )
    for (const input of [
      { message: 'hi', channel_id: main },
      { message: 'Hi', channel_id: second },
      { message: 'Hi', channel_id: main, allow_duplicate: true },
    ])
      assert.equal((await call(CREATE_SHORT_LINK, input, withIdempotencyKey())).status, 201)
    assert.equal(new Set((await listProviderLinks(server, workspace)).map((link) => link.code)).size, 4)
  })

  test('search by message and code, with pages', async ({ call, server, workspace }) => {
    const [main, second] = [
      await loadDefaultChannelId(server, workspace.id),
      await createSecondChannel(server, workspace.id),
    ]
    const links = []
    for (const message of ['Grüße 100%', 'GRÜSSE again', 'Other'])
      links.unshift((await call(CREATE_SHORT_LINK, { message, channel_id: main }, withIdempotencyKey())).body)
    links.unshift(
      (await call(CREATE_SHORT_LINK, { message: 'Other', channel_id: second }, withIdempotencyKey())).body,
    )
    const listLinks = async (input: object) => (await call('messaging_list_short_links', { ...input })).body
    const listMessages = async (input: object) =>
      (await listLinks(input)).data.map((link: { message: string }) => link.message)
    assert.deepEqual((await listLinks({})).data, links)
    assert.deepEqual(await listMessages({ search: 'grüsse' }), ['GRÜSSE again', 'Grüße 100%'])
    assert.deepEqual(
      [await listMessages({ search: '%' }), await listMessages({ search: '_' })],
      [['Grüße 100%'], []],
    )
    assert.deepEqual((await listLinks({ search: links[2].code.slice(2, 11).toLowerCase() })).data, [links[2]])
    assert.deepEqual((await listLinks({ search: 'other', channel_id: main })).data, [links[1]])
    const page = await listLinks({ limit: 3 })
    assert.deepEqual([page.total, page.data], [4, links.slice(0, 3)])
    assert.deepEqual(await listLinks({ limit: 3, cursor: page.next_cursor }), {
      data: links.slice(3),
      total: null,
      next_cursor: null,
    })
  })
})

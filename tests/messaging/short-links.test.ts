import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PassThrough } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { sql } from 'kysely'
import { create, toBuffer } from 'qrcode'
import { createChannel, updateChannel } from '../../storage/workspace/admin.ts'
import { everyDatabase, everyDoor, type Reply } from '../doors.ts'
import { createSandboxDriver, summarizeReply } from './fixtures.ts'
import {
  CREATE_SHORT_LINK,
  createIdempotencyKey,
  createLinkScene,
  createSecondChannel,
  listProviderLinks,
  listShortLinkEvents,
  loadDefaultChannelId,
  withIdempotencyKey,
} from './short-links.ts'
import { countLinkCharacters } from '../../catalog/short-links.ts'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { noticeSlowClock, setClockAhead } from '../slow-clock.ts'
import { runCommandLine } from '../../cli/main.ts'
import { drawQrCode } from '../../cli/qr.ts'

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
    const rehearsed = await call(CREATE_SHORT_LINK, { message: 'Hi', qr_format: 'SVG', dry_run: true })
    assert.deepEqual(rehearsed.body, {
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

describe("Length of a short link's message", () => {
  const emoji = [
    '😀',
    '❤️',
    '👍🏽',
    '🇩🇪',
    '1️⃣',
    '#⃣',
    '👨‍👩‍👧‍👦',
    '👩🏽‍❤️‍💋‍👩🏽',
    '🏳️‍🌈',
    '🏴󠁧󠁢󠁷󠁬󠁳󠁿',
    '❤‍🔥',
    '🧑‍🦰',
    '☎️',
    '©️',
    '🏴‍☠️',
    '👁️‍🗨️',
    '🏽',
    '🕵🏻‍♀️',
    '🫱🏻‍🫲🏿',
  ]
  const plain = [
    'a',
    'é',
    'e\u0301',
    'ß',
    '中',
    '한',
    '7',
    '#',
    '*',
    '©',
    '™',
    '☎',
    '𝒳',
    'नि',
    '\n',
    ' ',
    '٧',
    '€',
    '→',
  ]

  it('the length of a text is the sum of its parts', () => {
    const part = fc.oneof(
      fc.constantFrom(...emoji).map((text) => ({ text, count: 2 })),
      fc.constantFrom(...plain).map((text) => ({ text, count: [...text].length })),
    )
    // The separator keeps parts from joining into one emoji, such as a skin tone after a hand.
    fc.assert(
      fc.property(fc.array(part, { maxLength: 80 }), (parts) => {
        assert.equal(
          countLinkCharacters(parts.map(({ text }) => text).join('.')),
          parts.reduce((n, { count }) => n + count, 0) + Math.max(0, parts.length - 1),
        )
      }),
      { numRuns: 300 },
    )
  })

  it('is at least 1 and at most two for each code point', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        const length = countLinkCharacters(text)
        assert.ok(length <= 2 * [...text].length && (text === '' || length >= 1), JSON.stringify(text))
      }),
      { numRuns: 2000 },
    )
  })

  it('combining marks after an emoji are counted', () => {
    assert.equal(countLinkCharacters(`😀${'\u0301'.repeat(200)}`), 202)
  })
})

everyDatabase('Short links at the provider', (server) => {
  const createScene = () => createLinkScene(server())

  it('create: one link when the response of the provider is lost', async () => {
    const { createLink, fault, listAtProvider, run, listEvents } = await createScene()
    await fault({ drop_answer: true })
    assert.equal((await createLink()).status, 504)
    assert.deepEqual(
      [(await listAtProvider()).length, (await run('messaging_list_short_links')).total, await listEvents()],
      [1, 0, []],
    )
    const duplicate = await createLink({}, createIdempotencyKey())
    assert.deepEqual(summarizeReply(duplicate), [409, 'conflict', 'duplicate'])
    const { status, body } = await createLink()
    assert.deepEqual(
      [status, (await listAtProvider()).map((link) => link.code), await listEvents()],
      [201, [body.code], ['short_link.created/1']],
    )
    assert.equal(body.id, duplicate.body.existing_id)
    assert.equal((await fetch(body.qr_image_url)).status, 200)
    const replayed = await createLink()
    assert.deepEqual(
      [replayed.headers['idempotent-replayed'], replayed.body, (await listAtProvider()).length],
      ['true', body, 1],
    )
  })

  it('create: the worker completes an interrupted call', async () => {
    const { createLink, fault, listAtProvider, run, listEvents } = await createScene()
    await fault({ drop_answer: true })
    assert.equal((await createLink()).status, 504)
    await reconcileProviderCalls(server().app)
    const {
      data: [link],
    } = await run('messaging_list_short_links')
    assert.deepEqual(
      [(await listAtProvider()).map(({ code }) => code), await listEvents()],
      [[link.code], ['short_link.created/1']],
    )
    assert.equal((await createLink()).headers['idempotent-replayed'], 'true')
  })

  it('create: a slow clock of the server makes the 15 minutes no longer', async (test) => {
    const { createLink, fault, backdateCall } = await createScene()
    await fault({ code: 2 })
    assert.equal((await createLink()).status, 503)
    await backdateCall(901)
    await noticeSlowClock(test, server())
    assert.equal((await createLink()).status, 201)
  })

  it('create: a clock of a server that is ahead makes the 15 minutes no longer, and no shorter', async (test) => {
    const { createLink, fault, listAtProvider } = await createScene()
    await fault({ code: 2 })
    setClockAhead(test, 20)
    assert.equal((await createLink()).status, 503)
    test.mock.timers.reset()
    const retryAfter = Number((await createLink()).headers['retry-after'])
    assert.ok(retryAfter > 850 && retryAfter <= 900, String(retryAfter))
    setClockAhead(test, 20)
    assert.deepEqual(summarizeReply(await createLink()), [504, 'timeout', 'outcome_unknown'])
    assert.deepEqual(await listAtProvider(), [])
  })

  it('create: a repeat alone makes the call again, 15 minutes after the last one', async () => {
    const { createLink, fault, listAtProvider, backdateCall } = await createScene()
    await fault({ code: 2 })
    const lost = await createLink()
    assert.deepEqual(summarizeReply(lost), [503, 'upstream_unavailable', 'outcome_unknown'])
    const tooEarly = await createLink()
    assert.deepEqual(summarizeReply(tooEarly), [504, 'timeout', 'outcome_unknown'])
    const retryAfter = Number(tooEarly.headers['retry-after'])
    assert.ok(retryAfter > 890 && retryAfter <= 900, String(retryAfter))
    await backdateCall(901)
    await reconcileProviderCalls(server().app)
    assert.deepEqual(await listAtProvider(), [], 'not by itself')
    assert.equal((await createLink()).status, 201)
    assert.equal((await listAtProvider()).length, 1)
  })

  it('create: given up after 24 hours, and the message is free again', async () => {
    const { createLink, fault, workspace } = await createScene()
    await fault({ code: 2 })
    assert.equal((await createLink()).status, 503)
    await createSandboxDriver(server(), workspace).advance('25h')
    await reconcileProviderCalls(server().app)
    assert.deepEqual(summarizeReply(await createLink()), [409, 'conflict', 'not_confirmed'])
    assert.equal((await createLink({}, createIdempotencyKey())).status, 201)
  })

  it('create: a failed lookup does not count as a missing link', async () => {
    const { createLink, fault, listAtProvider } = await createScene()
    await fault({ drop_answer: true })
    assert.equal((await createLink()).status, 504)
    await fault({ code: 200 })
    assert.equal((await createLink()).status, 503)
    assert.equal((await createLink()).status, 201)
    assert.equal((await listAtProvider()).length, 1)
  })

  it('create: a rejection by the provider leaves no row', async () => {
    const { createLink, fault, listAtProvider, run, listEvents, workspace } = await createScene()
    await fault({ code: 200 })
    const rejected = await createLink()
    assert.deepEqual(
      [rejected.status, rejected.body.code, rejected.body.reason],
      [502, 'upstream_error', 'provider_access'],
    )
    await fault({ code: 4 })
    const throttled = await createLink()
    assert.deepEqual([throttled.status, throttled.body.reason], [503, 'throttled'])
    assert.equal(
      await server()
        .db.selectFrom('short_links')
        .select('id')
        .where('workspace_id', '=', workspace.id)
        .executeTakeFirst(),
      undefined,
    )
    assert.deepEqual(
      [await listAtProvider(), (await run('messaging_list_short_links')).total, await listEvents()],
      [[], 0, []],
    )
    assert.equal((await createLink()).status, 201)
  })

  it('create: concurrent calls with one message create one link', async () => {
    const { createLink, listAtProvider, listEvents } = await createScene()
    const replies = await Promise.all(Array.from({ length: 6 }, () => createLink({}, createIdempotencyKey())))
    const created = replies.filter(({ status }) => status === 201)
    assert.equal(created.length, 1)
    for (const reply of replies)
      if (reply !== created[0])
        assert.deepEqual(
          [...summarizeReply(reply), reply.body.existing_id],
          [409, 'conflict', 'duplicate', created[0]!.body.id],
        )
    assert.deepEqual([(await listAtProvider()).length, await listEvents()], [1, ['short_link.created/1']])
  })

  it('create: as many links as calls when responses with one message are lost', async () => {
    const { createLink, fault, listAtProvider, run } = await createScene()
    const keys = [createIdempotencyKey(), createIdempotencyKey(), createIdempotencyKey()]
    await fault({ drop_answer: true, times: 2 })
    for (const key of keys.slice(0, 2))
      assert.equal((await createLink({ allow_duplicate: true }, key)).status, 504)
    assert.equal((await createLink({ allow_duplicate: true }, keys[2]!)).status, 201)
    const replies = await Promise.all(keys.map((key) => createLink({ allow_duplicate: true }, key)))
    assert.deepEqual(
      replies.map(({ status }) => status),
      [201, 201, 201],
    )
    const codes = (await listAtProvider()).map(({ code }) => code).toSorted()
    assert.equal(codes.length, 3)
    assert.deepEqual(replies.map(({ body }) => body.code).toSorted(), codes)
    assert.deepEqual(
      (await run('messaging_list_short_links')).data.map((link: { code: string }) => link.code).toSorted(),
      codes,
    )
  })

  it('create: claims another link with the same message when its own was claimed', async () => {
    const { createLink, listAtProvider, run, fault } = await createScene()
    const [slowKey, lostKey] = [createIdempotencyKey(), createIdempotencyKey()]
    await fault({ drop_answer: true })
    assert.equal((await createLink({ allow_duplicate: true }, lostKey)).status, 504)
    const [first] = await listAtProvider()
    // During the call of the slow one, the lost one claims its link: the newest.
    const { provider } = server().app
    const originalCreateLink = provider.createLink
    try {
      provider.createLink = async (...args) => {
        provider.createLink = originalCreateLink
        const link = await originalCreateLink(...args)
        assert.equal((await createLink({ allow_duplicate: true }, lostKey)).body.code, link.code)
        return link
      }
      const { status, body } = await createLink({ allow_duplicate: true }, slowKey)
      assert.deepEqual([status, body.code], [201, first!.code])
    } finally {
      provider.createLink = originalCreateLink
    }
    assert.deepEqual(
      [(await listAtProvider()).length, (await run('messaging_list_short_links')).total],
      [2, 2],
    )
  })

  it('delete: once when the response of the provider is lost', async () => {
    const { createLink, deleteLink, fault, listAtProvider, listEvents, run } = await createScene()
    const { id } = (await createLink()).body
    const key = createIdempotencyKey()
    await fault({ drop_answer: true })
    assert.equal((await deleteLink(id, key)).status, 504)
    assert.deepEqual(
      [await listAtProvider(), (await run('messaging_get_short_link', { short_link_id: id })).id],
      [[], id],
    )
    assert.deepEqual((await deleteLink(id, key)).body, { id, deleted: true })
    assert.deepEqual(summarizeReply(await deleteLink(id, createIdempotencyKey())), [404, 'not_found'])
    assert.deepEqual(await listEvents(), ['short_link.created/1', 'short_link.deleted/1'])
    assert.equal((await createLink({}, createIdempotencyKey())).status, 201, 'its message can be used again')
  })

  it('delete: a link missing at the provider is deleted, and concurrent deletes emit one event', async () => {
    const { createLink, deleteLink, listEvents } = await createScene()
    const { id, code } = (await createLink()).body
    await sql`delete from sandbox_links where code = ${code}`.execute(server().db)
    const replies: Reply[] = await Promise.all(
      [createIdempotencyKey(), createIdempotencyKey(), createIdempotencyKey()].map((key) =>
        deleteLink(id, key),
      ),
    )
    for (const { status } of replies) assert.ok(status === 200 || status === 404, String(status))
    assert.ok(replies.some(({ status }) => status === 200))
    assert.deepEqual(await listEvents(), ['short_link.created/1', 'short_link.deleted/1'])
  })

  it('delete: a rejection by the provider keeps the link', async () => {
    const { createLink, deleteLink, fault, run, listEvents } = await createScene()
    const { id } = (await createLink()).body
    await fault({ code: 200 })
    assert.deepEqual(summarizeReply(await deleteLink(id, createIdempotencyKey())), [
      502,
      'upstream_error',
      'provider_access',
    ])
    assert.equal((await run('messaging_get_short_link', { short_link_id: id })).id, id)
    assert.deepEqual(await listEvents(), ['short_link.created/1'])
  })

  it('QR images are served without a key at their address', async () => {
    const { createLink } = await createScene()
    const png = (await createLink()).body
    const svg = (await createLink({ message: 'Yo', qr_format: 'SVG' }, createIdempotencyKey())).body
    const none = (await createLink({ message: 'None', qr_format: 'NONE' }, createIdempotencyKey())).body
    assert.deepEqual([svg.qr_image_format, none.qr_image_format, none.qr_image_url], ['SVG', null, null])
    for (const [link, type] of [
      [png, 'image/png'],
      [svg, 'image/svg+xml'],
    ] as const) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await fetch(link.qr_image_url, { method })
        assert.deepEqual(
          [status, headers.get('content-type'), headers.get('x-content-type-options')],
          [200, type, 'nosniff'],
        )
        assert.match(headers.get('content-security-policy')!, /default-src 'none'/)
        assert.match(headers.get('cache-control')!, /^public, max-age=\d+$/)
      }
    }
    assert.deepEqual(
      Buffer.from(await (await fetch(png.qr_image_url)).arrayBuffer()),
      await toBuffer(png.url, { type: 'png', width: 512, margin: 4 }),
    )
    const svgText = await (await fetch(svg.qr_image_url)).text()
    assert.match(svgText, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" width="512" height="512"/)
    assert.doesNotMatch(svgText, /<script|href/)
    const name = /[0-9a-f]{32}/.exec(png.qr_image_url)![0]
    for (const path of [
      `${name}.svg`,
      name,
      `${name}.gif`,
      `${'0'.repeat(32)}.png`,
      '%00.png',
      '%ff',
      '..%2f..%2fetc',
      `${name}.png/x`,
    ])
      assert.equal((await fetch(`${server().url}/qr/${path}`)).status, 404, path)
  })

  it('the link page shows the message that will be typed', async () => {
    const { createLink, workspace, run } = await createScene()
    const { url, channel } = (await createLink({ message: '<b>"Hi" & it\'s me</b> 👋' })).body
    const page = await fetch(url)
    const text = await page.text()
    assert.deepEqual([page.status, page.headers.get('content-type')], [200, 'text/html; charset=utf-8'])
    assert.match(
      page.headers.get('content-security-policy')!,
      /^default-src 'none'; style-src 'unsafe-inline';/,
    )
    assert.ok(text.includes("&lt;b&gt;&quot;Hi&quot; &amp; it's me&lt;/b&gt; 👋</blockquote>"), text)
    assert.ok(!text.includes('<b>') && !text.includes('<script'), text)
    assert.ok(
      text.includes(
        `href="https://wa.me/15550100001?text=${encodeURIComponent('<b>"Hi" & it\'s me</b> 👋')}"`,
      ),
      text,
    )
    assert.ok(
      text.includes(`--channel ${channel.id} '&lt;b&gt;&quot;Hi&quot; &amp; it'\\''s me&lt;/b&gt; 👋'`),
      text,
    )
    assert.equal((await fetch(url, { method: 'HEAD' })).status, 200)
    // A link of the real provider opens the chat itself.
    await sql`
      update short_links set url = 'https://wa.me/message/ABC'
      where workspace_id = ${workspace.id}`.execute(server().db)
    const other = await (await fetch(url)).text()
    assert.ok(other.includes('href="https://wa.me/message/ABC"') && !other.includes('sandbox'), other)
    assert.equal((await run('messaging_list_short_links')).data[0].url, 'https://wa.me/message/ABC')
    for (const code of ['AAAAAAAAAAAAAA', 'x', '%00', '%ff', 'x'.repeat(5000), '..%2f']) {
      const missing = await fetch(`${server().url}/message/${code}`)
      assert.deepEqual(
        [missing.status, missing.headers.get('content-type')],
        [404, 'text/html; charset=utf-8'],
        code,
      )
    }
  })

  it('the CLI draws the QR code on a terminal only', async () => {
    const { createLink, workspace } = await createScene()
    const { id, url } = (await createLink()).body
    const runOnTerminal = async (argv: string[], isTTY: boolean, env: Record<string, string> = {}) => {
      const stream = (fields: object = {}) => Object.assign(new PassThrough(), { isTTY }, fields)
      const [stdin, stdout, stderr] = [stream(), stream({ columns: 100 }), stream({ columns: 100 })]
      stdin.end()
      let text = ''
      stdout.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      assert.equal(
        await runCommandLine(argv, {
          stdin,
          stdout,
          stderr,
          env: {
            WCRM_URL: server().url,
            WCRM_API_KEY: workspace.owner.key,
            XDG_CONFIG_HOME: '/nonexistent',
            ...env,
          },
        }),
        0,
      )
      return text
    }
    const getLink = ['short-links', 'get', id]
    const terminal = { width: 100, color: true }
    assert.ok((await runOnTerminal(getLink, true)).endsWith(await drawQrCode(url, terminal)))
    assert.ok(
      (await runOnTerminal(getLink, true, { NO_COLOR: '1' })).endsWith(
        await drawQrCode(url, { ...terminal, color: false }),
      ),
    )
    for (const text of [
      await runOnTerminal(getLink, false),
      await runOnTerminal([...getLink, '--json'], true),
      await runOnTerminal(['short-links', 'list'], true),
      await runOnTerminal(['short-links', 'create', '--message', 'Yo', '--dry-run'], true),
    ])
      assert.doesNotMatch(text, /[▀▄█]/)
    const created = await runOnTerminal(['short-links', 'create', '--message', 'Yo'], true)
    assert.match(created, /[▀▄█]/)
    assert.ok(created.includes(`${server().url}/message/`), created)
  })
})

describe('QR code on a terminal', () => {
  const url = 'https://wcrm.example.com/message/ANED2T5QRU7HG1'
  const { modules } = create(url, { errorCorrectionLevel: 'M' })

  /** Returns the modules that the characters draw, margin included; true: dark. */
  const parseModules = (rows: string[], drawn: 'dark' | 'light'): boolean[][] =>
    rows.flatMap((row) => {
      const chars = [...row]
      return [
        chars.map((c) => '▀█'.includes(c) === (drawn === 'dark')),
        chars.map((c) => '▄█'.includes(c) === (drawn === 'dark')),
      ]
    })
  const assertModules = (actual: boolean[][]) => {
    for (const [y, row] of actual.entries())
      for (const [x, dark] of row.entries()) {
        const inside = x >= 4 && y >= 4 && x < modules.size + 4 && y < modules.size + 4
        assert.equal(dark, inside && modules.get(y - 4, x - 4) === 1, `${x} ${y}`)
      }
  }

  it('is black on white with color, and uses light blocks without color', async () => {
    const colored = (await drawQrCode(url, { width: 80, color: true })).trimEnd().split('\n')
    assert.ok(colored.every((row) => row.startsWith('\x1B[38;5;16;48;5;231m') && row.endsWith('\x1B[0m')))
    const characters = colored.map((row) => stripVTControlCharacters(row))
    assertModules(parseModules(characters, 'dark'))
    assertModules(
      parseModules((await drawQrCode(url, { width: 80, color: false })).trimEnd().split('\n'), 'light'),
    )
  })

  it('is empty when it does not fit', async () => {
    assert.equal(await drawQrCode(url, { width: modules.size + 7, color: true }), '')
    assert.notEqual(await drawQrCode(url, { width: modules.size + 8, color: true }), '')
  })
})

import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { create, toBuffer } from 'qrcode'
import { linkLength } from '../../catalog/short-links.ts'
import { run } from '../../cli/main.ts'
import { drawQr } from '../../cli/qr.ts'
import { reconcile } from '../../server/jobs/reconcile.ts'
import { createChannel, updateChannel } from '../../storage/admin.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor, type Reply } from '../doors.ts'
import { refusal, sandboxOf } from './sends.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

const OP = 'messaging_create_short_link'
let made = 0
const freshKey = (): string => `short-link-${process.pid}-${++made}`
const keyed = () => ({ idempotencyKey: freshKey() })

/** What the provider holds of the workspace's numbers, newest first. */
const atProvider = async (
  server: Pick<TestServer, 'url'>,
  { owner }: Pick<TestWorkspace, 'owner'>,
): Promise<{ code: string; prefilled_message: string; deep_link_url: string }[]> => {
  const response = await fetch(`${server.url}/sandbox/links`, {
    headers: { Authorization: `Bearer ${owner.key}` },
  })
  return (
    (await response.json()) as { data: { code: string; prefilled_message: string; deep_link_url: string }[] }
  ).data
}

const eventsOf = async ({ db }: Pick<TestServer, 'db'>, workspaceId: string) => [
  ...(await db
    .selectFrom('events')
    .select(['type', 'data'])
    .where('workspace_id', '=', workspaceId)
    .where('type', 'like', 'short_link.%')
    .orderBy('id')
    .execute()),
]

const addNumber = async (
  server: TestServer,
  workspaceId: string,
  fields: Partial<Parameters<typeof createChannel>[2]> = {},
): Promise<string> => {
  const { id } = await createChannel(
    server.db,
    workspaceId,
    {
      type: 'chatapp',
      name: 'Second line',
      identifier: '15550100002',
      status: 'connected',
      provider_phone_number_id: `99${workspaceId}`,
      ...fields,
    },
    server.app.now(),
  )
  await server.sync(workspaceId)
  return id
}
const mainLine = async ({ db }: TestServer, workspaceId: string): Promise<string> =>
  (
    await db
      .selectFrom('channels')
      .select('id')
      .where('workspace_id', '=', workspaceId)
      .where('is_default', '=', true)
      .executeTakeFirstOrThrow()
  ).id

everyDoor('Short links', (test) => {
  test('are made, listed, read and deleted', async ({ call, door, server, workspace }) => {
    const { status, body: link } = await call(
      OP,
      { message: '  Hello 👋\nI would like to order.  ' },
      keyed(),
    )
    assert.equal(status, 201)
    const channel = { id: await mainLine(server, workspace.id), name: 'Main line', phone: '15550100001' }
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
      (await atProvider(server, workspace)).map((row) => [
        row.code,
        row.prefilled_message,
        row.deep_link_url,
      ]),
      [[code, link.message, link.url]],
    )
    assert.deepEqual(await eventsOf(server, workspace.id), [
      {
        type: 'short_link.created/1',
        data: { short_link: { id, code, url: link.url, message: link.message, channel_id: channel.id } },
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
    assert.deepEqual(await atProvider(server, workspace), [])
    assert.equal((await eventsOf(server, workspace.id)).at(-1)!.type, 'short_link.deleted/1')
    for (const [op, options] of [
      ['messaging_get_short_link', {}],
      ['messaging_delete_short_link', { confirm: 'delete' }],
    ] as const) {
      assert.deepEqual(refusal(await call(op, { short_link_id: id }, options)), [404, 'not_found'])
    }
    for (const url of [qr_image_url, link.url]) assert.equal((await fetch(url)).status, 404)
  })

  test('of a rehearsal and of a test key are not there', async ({ call, as, server, workspace }) => {
    const testKey = as((await workspace.key(workspace.owner.staffId, { test: true })).key)
    const channel = { id: await mainLine(server, workspace.id), name: 'Main line', phone: '15550100001' }
    for (const rehearse of [
      () => call(OP, { message: 'Hi', qr_format: 'SVG', dry_run: true }),
      () => testKey(OP, { message: 'Hi', qr_format: 'SVG' }),
    ]) {
      assert.deepEqual((await rehearse()).body, {
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
        await atProvider(server, workspace),
        (await call('messaging_list_short_links')).body.total,
        await eventsOf(server, workspace.id),
      ],
      [[], 0, []],
    )
    const { id } = (await call(OP, { message: 'Hi' }, keyed())).body
    assert.deepEqual((await call('messaging_delete_short_link', { short_link_id: id, dry_run: true })).body, {
      id,
      deleted: true,
      dry_run: true,
    })
    assert.equal((await call('messaging_get_short_link', { short_link_id: id })).status, 200)
    assert.equal((await atProvider(server, workspace)).length, 1)
  })

  test('take a message of 140 characters in which an emoji counts as two', async ({ call }) => {
    const rehearse = (message: string) => call(OP, { message, dry_run: true })
    for (const message of [
      'x',
      'é'.repeat(140),
      '👍🏽'.repeat(70),
      '👩🏽‍❤️‍💋‍👩🏽'.repeat(70),
      `${'x'.repeat(139)}©`,
      'https%3A%2F%2Fexample.com',
    ])
      assert.equal((await rehearse(message)).status, 201, message)
    for (const [message, count] of [
      ['x'.repeat(141), 141],
      ['👍'.repeat(71), 142],
      [`${'x'.repeat(139)}🇩🇪`, 141],
    ] as const) {
      const { status, body } = await rehearse(message)
      assert.deepEqual([status, body.errors[0].pointer, body.errors[0].code], [400, '#/message', 'too_long'])
      assert.match(body.errors[0].detail, new RegExp(`it has ${count}$`))
      assert.equal(body.errors[0].fix, `Shorten it by ${count - 140}.`)
    }
    for (const message of ['', ' \n ', 'x'.repeat(3000), 'a\u0007b', 'a\tb', 'a\r\nb', 'a\u0085b']) {
      const { status, body } = await rehearse(message)
      assert.deepEqual(
        [status, body.errors.map((e: { pointer: string }) => e.pointer)],
        [400, ['#/message']],
        JSON.stringify(message),
      )
    }
    assert.match((await rehearse('a\u0007b')).body.errors[0].fix, /U\+0007/)
  })

  test('lead to the number that is asked for, or to the only one', async ({ call, server, workspace }) => {
    const rehearse = async (input: object): Promise<unknown> => {
      const reply = await call(OP, { message: 'Hi', dry_run: true, ...input })
      return reply.status < 300 ? reply.body.channel.id : refusal(reply)
    }
    const main = await mainLine(server, workspace.id)
    assert.equal(await rehearse({}), main)
    const second = await addNumber(server, workspace.id)
    const cut = await addNumber(server, workspace.id, {
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
    const { status, body } = await call(OP, { message: 'Hi', dry_run: true })
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
      assert.equal(await rehearse(input), second, JSON.stringify(input))
    }
    for (const input of [
      { channel_id: '999999999' },
      { channel_id: 'nonsense' },
      { channel_id: '9'.repeat(30) },
      { channel_id: web },
      { phone: '+15550100099' },
      { phone: '+15550100004' },
    ]) {
      assert.deepEqual(await rehearse(input), [404, 'not_found'], JSON.stringify(input))
    }
    for (const input of [{ channel_id: cut }, { phone: '+15550100003' }])
      assert.deepEqual(await rehearse(input), [409, 'conflict', 'channel_not_connected'])
    assert.deepEqual(await rehearse({ channel_id: main, phone: '+15550100002' }), [
      400,
      'invalid_input',
      '#/phone mismatch',
    ])
    assert.deepEqual(await rehearse({ phone: '0555 1' }), [400, 'invalid_input', '#/phone invalid_phone'])
    for (const id of [main, second])
      await updateChannel(server.db, workspace.id, id, { status: 'disconnected' })
    assert.deepEqual(await rehearse({}), [409, 'conflict', 'channel_not_connected'])
  })

  test('of other channels are nothing to staff who may not use them', async ({
    call,
    as,
    server,
    workspace,
  }) => {
    const [main, second] = [await mainLine(server, workspace.id), await addNumber(server, workspace.id)]
    const agent = as((await workspace.staff({ role: 'agent', channel_ids: [second] })).key)
    const { id } = (await call(OP, { message: 'Hi', channel_id: main }, keyed())).body
    const own = (await agent(OP, { message: 'Hi' }, keyed())).body
    assert.equal(own.channel.id, second)
    for (const reply of [
      await agent(OP, { message: 'Yo', channel_id: main, dry_run: true }),
      await agent(OP, { message: 'Yo', phone: '15550100001', dry_run: true }),
      await agent('messaging_get_short_link', { short_link_id: id }),
      await agent('messaging_delete_short_link', { short_link_id: id, dry_run: true }),
    ])
      assert.deepEqual(refusal(reply), [404, 'not_found'])
    const ids = async (input: object) =>
      (await agent('messaging_list_short_links', { ...input })).body.data.map(
        (link: { id: string }) => link.id,
      )
    assert.deepEqual(
      [await ids({}), await ids({ channel_id: main }), await ids({ channel_id: second })],
      [[own.id], [], [own.id]],
    )
  })

  test('are one to a message and number, unless more are wanted', async ({ call, server, workspace }) => {
    const [main, second] = [await mainLine(server, workspace.id), await addNumber(server, workspace.id)]
    const first = (await call(OP, { message: 'Hi', channel_id: main }, keyed())).body
    const again = await call(OP, { message: 'Hi ', channel_id: main }, keyed())
    assert.deepEqual([...refusal(again), again.body.existing_id], [409, 'conflict', 'duplicate', first.id])
    assert.deepEqual(refusal(await call(OP, { message: 'Hi', channel_id: main, dry_run: true })), [
      409,
      'conflict',
      'duplicate',
    ])
    for (const input of [
      { message: 'hi', channel_id: main },
      { message: 'Hi', channel_id: second },
      { message: 'Hi', channel_id: main, allow_duplicate: true },
    ])
      assert.equal((await call(OP, input, keyed())).status, 201)
    assert.equal(new Set((await atProvider(server, workspace)).map((link) => link.code)).size, 4)
  })

  test('are found by message and code, page by page', async ({ call, server, workspace }) => {
    const [main, second] = [await mainLine(server, workspace.id), await addNumber(server, workspace.id)]
    const links = []
    for (const message of ['Grüße 100%', 'GRÜSSE again', 'Other'])
      links.unshift((await call(OP, { message, channel_id: main }, keyed())).body)
    links.unshift((await call(OP, { message: 'Other', channel_id: second }, keyed())).body)
    const list = async (input: object) => (await call('messaging_list_short_links', { ...input })).body
    const messages = async (input: object) =>
      (await list(input)).data.map((link: { message: string }) => link.message)
    assert.deepEqual((await list({})).data, links)
    assert.deepEqual(await messages({ search: 'grüsse' }), ['GRÜSSE again', 'Grüße 100%'])
    assert.deepEqual([await messages({ search: '%' }), await messages({ search: '_' })], [['Grüße 100%'], []])
    assert.deepEqual((await list({ search: links[2].code.slice(2, 11).toLowerCase() })).data, [links[2]])
    assert.deepEqual((await list({ search: 'other', channel_id: main })).data, [links[1]])
    const page = await list({ limit: 3 })
    assert.deepEqual([page.total, page.data], [4, links.slice(0, 3)])
    assert.deepEqual(await list({ limit: 3, cursor: page.next_cursor }), {
      data: links.slice(3),
      total: null,
      next_cursor: null,
    })
  })
})

everyDatabase('Short links at the provider', (server) => {
  const scene = async () => {
    const workspace = await makeWorkspace(server())
    const call = callAs(server(), workspace.owner.key)
    const key = freshKey()
    return {
      workspace,
      call,
      run: doAs(server(), workspace.owner.key),
      fault: (fault: object) => sandboxOf(server(), workspace).fault({ on: 'links', ...fault }),
      make: (more: object = {}, idempotencyKey = key) =>
        call(OP, { message: 'Hi', ...more }, { idempotencyKey }),
      remove: (id: string, idempotencyKey: string) =>
        call('messaging_delete_short_link', { short_link_id: id }, { confirm: 'delete', idempotencyKey }),
      provider: () => atProvider(server(), workspace),
      events: async () => (await eventsOf(server(), workspace.id)).map(({ type }) => type),
      /** As if the last call had been so many seconds ago. */
      age: (seconds: number) =>
        sql`update short_links set called_at = clock_timestamp() - ${seconds} * interval '1 second' where workspace_id = ${workspace.id} and url is null`.execute(
          server().db,
        ),
    }
  }

  it('are one though the answer was lost', async () => {
    const { make, fault, provider, run, events } = await scene()
    await fault({ drop_answer: true })
    assert.equal((await make()).status, 504)
    assert.deepEqual(
      [(await provider()).length, (await run('messaging_list_short_links')).total, await events()],
      [1, 0, []],
    )
    const waiting = await make({}, freshKey())
    assert.deepEqual(refusal(waiting), [409, 'conflict', 'duplicate'])
    const { status, body } = await make()
    assert.deepEqual(
      [status, (await provider()).map((link) => link.code), await events()],
      [201, [body.code], ['short_link.created/1']],
    )
    assert.equal(body.id, waiting.body.existing_id)
    assert.equal((await fetch(body.qr_image_url)).status, 200)
    const replayed = await make()
    assert.deepEqual(
      [replayed.headers['idempotent-replayed'], replayed.body, (await provider()).length],
      ['true', body, 1],
    )
  })

  it('are finished by a worker when nobody asks again', async () => {
    const { make, fault, provider, run, events } = await scene()
    await fault({ drop_answer: true })
    assert.equal((await make()).status, 504)
    await reconcile(server().app)
    const {
      data: [link],
    } = await run('messaging_list_short_links')
    assert.deepEqual(
      [(await provider()).map(({ code }) => code), await events()],
      [[link.code], ['short_link.created/1']],
    )
    assert.equal((await make()).headers['idempotent-replayed'], 'true')
  })

  it('may still be on their way though they are not there yet', async () => {
    const { make, fault, provider, age } = await scene()
    await fault({ code: 2 })
    assert.equal((await make()).status, 503)
    const early = await make()
    assert.deepEqual([early.status, (await provider()).length], [504, 0])
    const wait = Number(early.headers['retry-after'])
    assert.ok(wait > 20 && wait <= 30, String(wait))
    await age(31)
    assert.equal((await make()).status, 201)
    assert.equal((await provider()).length, 1)
  })

  it('are not taken for gone when the provider does not tell', async () => {
    const { make, fault, provider } = await scene()
    await fault({ drop_answer: true })
    assert.equal((await make()).status, 504)
    await fault({ code: 200 })
    assert.equal((await make()).status, 503)
    assert.equal((await make()).status, 201)
    assert.equal((await provider()).length, 1)
  })

  it('leave nothing behind when they are refused', async () => {
    const { make, fault, provider, run, events, workspace } = await scene()
    await fault({ code: 200 })
    const refused = await make()
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.reason],
      [502, 'upstream_error', 'provider_access'],
    )
    await fault({ code: 4 })
    const throttled = await make()
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
      [await provider(), (await run('messaging_list_short_links')).total, await events()],
      [[], 0, []],
    )
    assert.equal((await make()).status, 201)
  })

  it('of two who make one at once are one', async () => {
    const { make, provider, events } = await scene()
    const replies = await Promise.all(Array.from({ length: 6 }, () => make({}, freshKey())))
    const won = replies.filter(({ status }) => status === 201)
    assert.equal(won.length, 1)
    for (const reply of replies)
      if (reply !== won[0])
        assert.deepEqual(
          [...refusal(reply), reply.body.existing_id],
          [409, 'conflict', 'duplicate', won[0]!.body.id],
        )
    assert.deepEqual([(await provider()).length, await events()], [1, ['short_link.created/1']])
  })

  it('are as many as were asked for, though answers of several with one message were lost', async () => {
    const { make, fault, provider, run } = await scene()
    const keys = [freshKey(), freshKey(), freshKey()]
    await fault({ drop_answer: true, times: 2 })
    for (const key of keys.slice(0, 2)) assert.equal((await make({ allow_duplicate: true }, key)).status, 504)
    assert.equal((await make({ allow_duplicate: true }, keys[2]!)).status, 201)
    const replies = await Promise.all(keys.map((key) => make({ allow_duplicate: true }, key)))
    assert.deepEqual(
      replies.map(({ status }) => status),
      [201, 201, 201],
    )
    const codes = (await provider()).map(({ code }) => code).toSorted()
    assert.equal(codes.length, 3)
    assert.deepEqual(replies.map(({ body }) => body.code).toSorted(), codes)
    assert.deepEqual(
      (await run('messaging_list_short_links')).data.map((link: { code: string }) => link.code).toSorted(),
      codes,
    )
  })

  it('take another of their kind when one with the same message took theirs', async () => {
    const { make, provider, run, fault } = await scene()
    const [slow, lost] = [freshKey(), freshKey()]
    await fault({ drop_answer: true })
    assert.equal((await make({ allow_duplicate: true }, lost)).status, 504)
    const [first] = await provider()
    // As the call of the one is under way, the other takes what it made: the newest.
    const provided = server().app.provider
    const createLink = provided.createLink
    try {
      provided.createLink = async (...call) => {
        provided.createLink = createLink
        const link = await createLink(...call)
        assert.equal((await make({ allow_duplicate: true }, lost)).body.code, link.code)
        return link
      }
      const { status, body } = await make({ allow_duplicate: true }, slow)
      assert.deepEqual([status, body.code], [201, first!.code])
    } finally {
      provided.createLink = createLink
    }
    assert.deepEqual([(await provider()).length, (await run('messaging_list_short_links')).total], [2, 2])
  })

  it('are deleted once, though the answer was lost', async () => {
    const { make, remove, fault, provider, events, run } = await scene()
    const { id } = (await make()).body
    const key = freshKey()
    await fault({ drop_answer: true })
    assert.equal((await remove(id, key)).status, 504)
    assert.deepEqual(
      [await provider(), (await run('messaging_get_short_link', { short_link_id: id })).id],
      [[], id],
    )
    assert.deepEqual((await remove(id, key)).body, { id, deleted: true })
    assert.deepEqual(refusal(await remove(id, freshKey())), [404, 'not_found'])
    assert.deepEqual(await events(), ['short_link.created/1', 'short_link.deleted/1'])
    assert.equal((await make({}, freshKey())).status, 201, 'its message is free again')
  })

  it('that were deleted elsewhere are deleted here too, and those of two who delete at once only once', async () => {
    const { make, remove, events } = await scene()
    const { id, code } = (await make()).body
    await sql`delete from sandbox_links where code = ${code}`.execute(server().db)
    const replies: Reply[] = await Promise.all(
      [freshKey(), freshKey(), freshKey()].map((key) => remove(id, key)),
    )
    for (const { status } of replies) assert.ok(status === 200 || status === 404, String(status))
    assert.ok(replies.some(({ status }) => status === 200))
    assert.deepEqual(await events(), ['short_link.created/1', 'short_link.deleted/1'])
  })

  it('stay when the provider refuses to delete them', async () => {
    const { make, remove, fault, run, events } = await scene()
    const { id } = (await make()).body
    await fault({ code: 200 })
    assert.deepEqual(refusal(await remove(id, freshKey())), [502, 'upstream_error', 'provider_access'])
    assert.equal((await run('messaging_get_short_link', { short_link_id: id })).id, id)
    assert.deepEqual(await events(), ['short_link.created/1'])
  })

  it('have images that anybody may read who has the address', async () => {
    const { make } = await scene()
    const png = (await make()).body
    const svg = (await make({ message: 'Yo', qr_format: 'SVG' }, freshKey())).body
    const none = (await make({ message: 'None', qr_format: 'NONE' }, freshKey())).body
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
    const drawn = await (await fetch(svg.qr_image_url)).text()
    assert.match(drawn, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" width="512" height="512"/)
    assert.doesNotMatch(drawn, /<script|href/)
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

  it('open a page that says what will be typed', async () => {
    const { make, workspace, run } = await scene()
    const { url, channel } = (await make({ message: '<b>"Hi" & it\'s me</b> 👋' })).body
    const answer = await fetch(url)
    const text = await answer.text()
    assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'text/html; charset=utf-8'])
    assert.match(
      answer.headers.get('content-security-policy')!,
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
    // A link of the true provider opens the chat itself.
    await sql`update short_links set url = 'https://wa.me/message/ABC' where workspace_id = ${workspace.id}`.execute(
      server().db,
    )
    const other = await (await fetch(url)).text()
    assert.ok(other.includes('href="https://wa.me/message/ABC"') && !other.includes('sandbox'), other)
    assert.equal((await run('messaging_list_short_links')).data[0].url, 'https://wa.me/message/ABC')
    for (const code of ['AAAAAAAAAAAAAA', 'x', '%00', '%ff', 'x'.repeat(5000), '..%2f']) {
      const absent = await fetch(`${server().url}/message/${code}`)
      assert.deepEqual(
        [absent.status, absent.headers.get('content-type')],
        [404, 'text/html; charset=utf-8'],
        code,
      )
    }
  })

  it('are drawn on a terminal, and nowhere else', async () => {
    const { make, workspace } = await scene()
    const { id, url } = (await make()).body
    const wcrm = async (words: string[], tty: boolean, env: Record<string, string> = {}) => {
      const stream = (more: object = {}) => Object.assign(new PassThrough(), { isTTY: tty }, more)
      const [stdin, stdout, stderr] = [stream(), stream({ columns: 100 }), stream({ columns: 100 })]
      stdin.end()
      let text = ''
      stdout.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      assert.equal(
        await run(words, {
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
    const get = ['short-links', 'get', id]
    const look = { width: 100, color: true }
    assert.ok((await wcrm(get, true)).endsWith(await drawQr(url, look)))
    assert.ok(
      (await wcrm(get, true, { NO_COLOR: '1' })).endsWith(await drawQr(url, { ...look, color: false })),
    )
    for (const text of [
      await wcrm(get, false),
      await wcrm([...get, '--json'], true),
      await wcrm(['short-links', 'list'], true),
      await wcrm(['short-links', 'create', '--message', 'Yo', '--dry-run'], true),
    ])
      assert.doesNotMatch(text, /[▀▄█]/)
    const created = await wcrm(['short-links', 'create', '--message', 'Yo'], true)
    assert.match(created, /[▀▄█]/)
    assert.ok(created.includes(`${server().url}/message/`), created)
  })
})

describe('A QR code on the terminal', () => {
  const url = 'https://wcrm.example.com/message/ANED2T5QRU7HG1'
  const { modules } = create(url, { errorCorrectionLevel: 'M' })

  /** The dark modules that the characters show, with their margin. */
  const read = (rows: string[], drawn: 'dark' | 'light'): boolean[][] =>
    rows.flatMap((row) => {
      const chars = [...row]
      return [
        chars.map((c) => '▀█'.includes(c) === (drawn === 'dark')),
        chars.map((c) => '▄█'.includes(c) === (drawn === 'dark')),
      ]
    })
  const assertCode = (shown: boolean[][]) => {
    for (const [y, row] of shown.entries())
      for (const [x, dark] of row.entries()) {
        const inside = x >= 4 && y >= 4 && x < modules.size + 4 && y < modules.size + 4
        assert.equal(dark, inside && modules.get(y - 4, x - 4) === 1, `${x} ${y}`)
      }
  }

  it('is black on white with colour, and drawn light without', async () => {
    const colored = (await drawQr(url, { width: 80, color: true })).trimEnd().split('\n')
    assert.ok(colored.every((row) => row.startsWith('\x1B[38;5;16;48;5;231m') && row.endsWith('\x1B[0m')))
    // eslint-disable-next-line no-control-regex -- the escapes are what is taken off
    assertCode(
      read(
        colored.map((row) => row.replaceAll(/\x1B\[[\d;]*m/g, '')),
        'dark',
      ),
    )
    assertCode(read((await drawQr(url, { width: 80, color: false })).trimEnd().split('\n'), 'light'))
  })

  it('is left out where it does not fit', async () => {
    assert.equal(await drawQr(url, { width: modules.size + 7, color: true }), '')
    assert.notEqual(await drawQr(url, { width: modules.size + 8, color: true }), '')
  })
})

describe("The length of a link's message", () => {
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

  it('counts an emoji as two, however it is put together', () => {
    for (const one of emoji) assert.equal(linkLength(one), 2, one)
  })

  it('counts all else by its characters', () => {
    for (const one of plain) assert.equal(linkLength(one), [...one].length, one)
  })

  it('is the sum of its parts', () => {
    const part = fc.oneof(
      fc.constantFrom(...emoji).map((text) => ({ text, count: 2 })),
      fc.constantFrom(...plain).map((text) => ({ text, count: [...text].length })),
    )
    // A flag after half a flag, a skin tone after a hand and the like are one emoji: parts are kept apart.
    fc.assert(
      fc.property(fc.array(part, { maxLength: 80 }), (parts) => {
        assert.equal(
          linkLength(parts.map(({ text }) => text).join('.')),
          parts.reduce((n, { count }) => n + count, 0) + Math.max(0, parts.length - 1),
        )
      }),
      { numRuns: 300 },
    )
  })

  it('is never more than the text has UTF-16 units, nor free of charge', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        const length = linkLength(text)
        assert.ok(length <= text.length && (text === '' || length >= 1), JSON.stringify(text))
      }),
      { numRuns: 2000 },
    )
  })

  it('does not hide a pile of marks behind an emoji', () => {
    assert.equal(linkLength(`😀${'\u0301'.repeat(200)}`), 202)
  })
})

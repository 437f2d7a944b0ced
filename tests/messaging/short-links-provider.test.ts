import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { everyDatabase, type Reply } from '../doors.ts'
import { noticeSlowClock, setClockAhead } from '../slow-clock.ts'
import { createSandboxDriver, summarizeReply } from './fixtures.ts'
import { createIdempotencyKey, createLinkScene } from './short-links.ts'

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
})

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { everyDatabase, type Reply } from '../doors.ts'
import { refusal } from './sends.ts'
import { freshKey, createLinkScene } from './short-links.ts'

everyDatabase('Short links at the provider', (server) => {
  const scene = () => createLinkScene(server())

  it('create: one link when the response of the provider is lost', async () => {
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

  it('create: the worker completes an interrupted call', async () => {
    const { make, fault, provider, run, events } = await scene()
    await fault({ drop_answer: true })
    assert.equal((await make()).status, 504)
    await reconcileProviderCalls(server().app)
    const {
      data: [link],
    } = await run('messaging_list_short_links')
    assert.deepEqual(
      [(await provider()).map(({ code }) => code), await events()],
      [[link.code], ['short_link.created/1']],
    )
    assert.equal((await make()).headers['idempotent-replayed'], 'true')
  })

  it('create: a retry waits while the first call may be in flight', async () => {
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

  it('create: a failed lookup does not count as a missing link', async () => {
    const { make, fault, provider } = await scene()
    await fault({ drop_answer: true })
    assert.equal((await make()).status, 504)
    await fault({ code: 200 })
    assert.equal((await make()).status, 503)
    assert.equal((await make()).status, 201)
    assert.equal((await provider()).length, 1)
  })

  it('create: a refusal by the provider leaves no row', async () => {
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

  it('create: concurrent calls with one message create one link', async () => {
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

  it('create: as many links as calls when responses with one message are lost', async () => {
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

  it('create: claims another link with the same message when its own was claimed', async () => {
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

  it('delete: once when the response of the provider is lost', async () => {
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

  it('delete: a link missing at the provider is deleted, and concurrent deletes emit one event', async () => {
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

  it('delete: a refusal by the provider keeps the link', async () => {
    const { make, remove, fault, run, events } = await scene()
    const { id } = (await make()).body
    await fault({ code: 200 })
    assert.deepEqual(refusal(await remove(id, freshKey())), [502, 'upstream_error', 'provider_access'])
    assert.equal((await run('messaging_get_short_link', { short_link_id: id })).id, id)
    assert.deepEqual(await events(), ['short_link.created/1'])
  })
})

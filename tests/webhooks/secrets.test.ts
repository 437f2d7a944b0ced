import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import { sql } from 'kysely'
import { MAX_SIGNING_SECRETS, unsealHeaders, unsealSecrets } from '../../server/domains/webhooks/secrets.ts'
import type { Db } from '../../storage/database.ts'
import { findEndpoint } from '../../storage/webhooks/webhooks.ts'
import { callAs } from '../calls.ts'
import { doorsOf, everyDatabase, everyDoor, runCli } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { noticeSlowClock } from '../slow-clock.ts'
import { url, SECRET, createEndpoint, loadStored, confirmingCall } from './endpoint-fixture.ts'

/** Moves the ends of the replaced secrets of an endpoint, as if so much real time had passed. */
const letHoursPass = async (db: Db, id: string, hours: number): Promise<void> => {
  const { old_secrets: secrets } = await db
    .selectFrom('webhook_endpoints')
    .select('old_secrets')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const moved = secrets.map(({ secret, until }) => ({
    secret,
    until: new Date(Date.parse(until) - hours * 3_600_000).toISOString(),
  }))
  await sql`update webhook_endpoints set old_secrets = ${JSON.stringify(moved)}::text::jsonb where id = ${id}`.execute(
    db,
  )
}

everyDoor('Webhook secret rotation', (test) => {
  test('rotate: the old secret remains valid for a day', async (scene) => {
    const { call, server, workspace } = scene
    const {
      endpoint: { id },
      signing_secret: first,
    } = (await createEndpoint(call)).body
    const rotate = (input = {}) =>
      confirmingCall(scene)(
        'webhooks_rotate_secret',
        { endpoint_id: id, ...input },
        { confirm: 'rotate', idempotencyKey: randomUUID() },
      )
    const preview = await rotate({ dry_run: true })
    assert.deepEqual(
      [preview.body.signing_secret, preview.body.endpoint.signing_secret],
      [null, 'whsec_****'],
      preview.text,
    )
    assert.deepEqual((await loadStored(server, workspace.id, id)).secrets, [first])
    const before = Date.now()
    const { signing_secret: second, endpoint, old_secret_valid_until: until } = (await rotate()).body
    assert.match(second, SECRET)
    assert.equal(endpoint.signing_secret, `whsec_****${second.slice(-4)}`)
    // The clock of the database may differ.
    assert.ok(Math.abs(Date.parse(until) - before - 86_400_000) < 60_000, until)
    assert.deepEqual((await loadStored(server, workspace.id, id)).secrets, [second, first])
  })

  test('rotating again within the day keeps every old secret until its promised time', async (scene) => {
    const { call, server, workspace } = scene
    const { endpoint, signing_secret: first } = (await createEndpoint(call)).body
    const rotate = () =>
      confirmingCall(scene)(
        'webhooks_rotate_secret',
        { endpoint_id: endpoint.id },
        { confirm: 'rotate', idempotencyKey: randomUUID() },
      )
    const secrets: string[] = [first]
    const ends: string[] = []
    const stored = async () => (await loadStored(server, workspace.id, endpoint.id)).secrets
    for (let n = 1; n < MAX_SIGNING_SECRETS; n++) {
      const { body, text } = await rotate()
      assert.match(body.signing_secret, SECRET, text)
      secrets.unshift(body.signing_secret)
      ends.unshift(body.old_secret_valid_until)
      assert.deepEqual(body.old_secrets_valid_until, ends)
      assert.deepEqual(await stored(), secrets)
      // Each rotation an hour after the one before.
      await letHoursPass(server.db, endpoint.id, 1)
      ends.forEach((end, at) => {
        ends[at] = new Date(Date.parse(end) - 3_600_000).toISOString()
      })
    }
    const refused = await rotate()
    assert.deepEqual(
      [refused.status, refused.body.reason, refused.body.retry_at],
      [409, 'too_many_secrets', ends.at(-1)],
      refused.text,
    )
    assert.deepEqual(await stored(), secrets, 'a refused rotation drops none')
    // The oldest had 24 hours from the first rotation, three hours less than the newest of the old ones.
    await letHoursPass(server.db, endpoint.id, 20.5)
    assert.deepEqual(await stored(), secrets.slice(0, -1))
    const { body } = await rotate()
    secrets.unshift(body.signing_secret)
    secrets.pop()
    assert.deepEqual(await stored(), secrets)
    await letHoursPass(server.db, endpoint.id, 25)
    assert.deepEqual(await stored(), [secrets[0]])
    await server.app.jobs.job('webhook-delivery-retention').runOnce()
    const { old_secrets: left } = await server.db
      .selectFrom('webhook_endpoints')
      .select('old_secrets')
      .where('id', '=', endpoint.id)
      .executeTakeFirstOrThrow()
    assert.deepEqual(left, [], 'what no longer signs is deleted')
  })
})

everyDatabase('Webhook secrets', (server) => {
  it('end when they were promised to, also where the clock of the server is slow', async (test) => {
    const workspace = await makeWorkspace(server())
    const call = callAs(server(), workspace.owner.key)
    const { id } = (await createEndpoint(call)).body.endpoint
    const rotate = () =>
      call('webhooks_rotate_secret', { endpoint_id: id }, { confirm: 'rotate', idempotencyKey: randomUUID() })
    for (let n = 1; n < MAX_SIGNING_SECRETS; n++) assert.equal((await rotate()).status, 200)
    assert.equal((await rotate()).body.reason, 'too_many_secrets')
    await letHoursPass(server().db, id, 25)
    await noticeSlowClock(test, server())
    assert.equal((await loadStored(server(), workspace.id, id)).secrets.length, 1)
    assert.equal((await rotate()).status, 200)
  })

  it('idempotent answers are stored sealed and repeated with the secret', async () => {
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
    // A refusal is stored sealed and repeated as well.
    const refusals = [1, 2].map(() =>
      ops!.call(
        'webhooks_rotate_secret',
        { endpoint_id: 'ep_01ARZ3NDEKTSV4RRFFQ69G5FAV' },
        { idempotencyKey: 'refused-rotation', confirm: 'rotate' },
      ),
    )
    for (const refused of await Promise.all(refusals))
      assert.ok(refused.status === 404 || refused.status === 409, refused.text)
    const { body: refusal } = await server()
      .db.selectFrom('idempotency')
      .select('body')
      .where('workspace_id', '=', workspace.id)
      .where('key', '=', 'refused-rotation')
      .executeTakeFirstOrThrow()
    assert.doesNotMatch(refusal!, /endpoint/)
    const repeated = await ops!.call(
      'webhooks_rotate_secret',
      { endpoint_id: 'ep_01ARZ3NDEKTSV4RRFFQ69G5FAV' },
      { idempotencyKey: 'refused-rotation', confirm: 'rotate' },
    )
    assert.deepEqual([repeated.status, repeated.headers['idempotent-replayed']], [404, 'true'])
  })

  it('sealed values of another endpoint or field cannot be opened', async () => {
    const workspace = await makeWorkspace(server())
    const call = callAs(server(), workspace.owner.key)
    const [one, other] = [
      (await createEndpoint(call)).body.endpoint.id,
      (await createEndpoint(call)).body.endpoint.id,
    ]
    const [mine, theirs] = [
      (await findEndpoint(server().db, workspace.id, one))!,
      (await findEndpoint(server().db, workspace.id, other))!,
    ]
    assert.throws(
      () =>
        unsealSecrets(server().app, { ...mine, signing_secret: theirs.signing_secret }, server().app.now()),
      /encrypted with another/,
    )
    assert.throws(
      () => unsealHeaders(server().app, { ...mine, custom_headers: mine.signing_secret }),
      /encrypted with another/,
    )
  })

  it('rotation requires confirmation and an idempotency key', async () => {
    const workspace = await makeWorkspace(server())
    const [rest] = doorsOf(server().url, workspace.owner.key)
    const {
      endpoint: { id },
    } = (await createEndpoint(rest!.call)).body
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

  it('the command line prints the secret', async () => {
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

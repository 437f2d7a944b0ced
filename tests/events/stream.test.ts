import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { it } from 'node:test'
import { hashApiKey } from '../../server/api-keys.ts'
import { stopStreams } from '../../server/http/event-stream.ts'
import { callAs, doAs } from '../calls.ts'
import { databases } from '../databases.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { type ShownEvent, openStream } from './event-fixture.ts'
import { waitUntil } from '../wait-until.ts'

everyDatabase('Event stream', (server) => {
  it('is for clients that like it as much as JSON: not with the weight 0', async () => {
    const { key } = (await makeWorkspace(server())).owner
    for (const [accept, type] of [
      ['text/event-stream;q=0, application/json', 'application/json; charset=utf-8'],
      ['application/json, Text/Event-Stream; charset=utf-8 ; Q=0.000', 'application/json; charset=utf-8'],
      ['application/json, text/event-stream;q=0.1', 'application/json; charset=utf-8'],
      ['*/*, text/event-stream;q=0.9', 'application/json; charset=utf-8'],
      ['application/json;q=0.5, text/event-stream;q=0.5, */*', 'text/event-stream; charset=utf-8'],
      ['application/json, text/event-stream', 'text/event-stream; charset=utf-8'],
      ['text/event-stream', 'text/event-stream; charset=utf-8'],
    ] as const) {
      const headers = { Authorization: `Bearer ${key}`, Accept: accept }
      const response = await fetch(`${server().url}/v1/events`, { headers })
      assert.equal(response.headers.get('content-type'), type, accept)
      await response.body?.cancel()
    }
  })

  it('says where an id to resume after is wrong', async () => {
    const { key } = (await makeWorkspace(server())).owner
    for (const id of ['garbage', 'now', 'evt_1']) {
      const headers = { Authorization: `Bearer ${key}`, Accept: 'text/event-stream', 'Last-Event-ID': id }
      const response = await fetch(`${server().url}/v1/events?limit=5`, { headers })
      const { detail, errors } = (await response.json()) as any
      assert.deepEqual([response.status, errors.length, errors[0].header], [400, 1, 'Last-Event-ID'])
      assert.match(detail, /^Last-Event-ID /)
    }
  })

  it('sends stored and new events, and resumes after Last-Event-ID', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    await run('crm_create_group', { name: 'A' })
    const stream = await openStream(server(), workspace.owner.key)
    assert.deepEqual(
      [stream.response.status, stream.response.headers.get('content-type')],
      [200, 'text/event-stream; charset=utf-8'],
    )
    const [a] = await stream.take(1)
    assert.deepEqual([a!.event, a!.data.id, a!.data.data['group']!['name']], ['group.created/1', a!.id, 'A'])
    await run('crm_create_group', { name: 'B' })
    const [b] = await stream.take(1)
    assert.deepEqual(b!.data, (await run('events_list', { after: a!.id })).data[0])
    await stream.close()
    await run('crm_upsert_contact', { phone: '+15550100042' })
    await run('crm_create_group', { name: 'C' })
    // Last-Event-ID takes precedence over the parameter `after`.
    const again = await openStream(server(), workspace.owner.key, {
      after: a!.id,
      last: b!.id,
      types: 'group.created',
    })
    assert.equal((await again.take(1))[0]!.data.data['group']!['name'], 'C')
    await again.close()
    // It reconnects to the URL that it began with.
    const since = { from: '2020-01-01T00:00:00Z', types: 'group.created' }
    const everything = await openStream(server(), workspace.owner.key, since)
    const seen = (await everything.take(3)).map(({ data }) => data.data['group']!['name'])
    assert.deepEqual(seen, ['A', 'B', 'C'])
    await everything.close()
    const continued = await openStream(server(), workspace.owner.key, { ...since, last: b!.id })
    assert.equal((await continued.take(1))[0]!.data.data['group']!['name'], 'C')
    await continued.close()
    const fromNow = await openStream(server(), workspace.owner.key, { after: 'now' })
    await run('crm_create_group', { name: 'D' })
    assert.equal((await fromNow.take(1))[0]!.data.data['group']!['name'], 'D')
    await fromNow.close()
  })

  it('is refused with the same errors as events_list', async () => {
    const workspace = await makeWorkspace(server())
    const scopeless = await workspace.key(workspace.owner.staffId, { scopes: ['crm:write'] })
    for (const [key, options, status] of [
      ['wc_live_nobody', {}, 401],
      [scopeless.key, {}, 403],
      [workspace.owner.key, { types: 'group.creatd' }, 400],
      [workspace.owner.key, { last: 'nonsense' }, 400],
      [workspace.owner.key, { last: 'evt_01JABCDEFGHJKMNPQRSTVWXYZ1' }, 404],
    ] as const) {
      const { response, ended } = await openStream(server(), key, options)
      assert.deepEqual(
        [response.status, response.headers.get('content-type')],
        [status, 'application/problem+json'],
      )
      await ended()
    }
  })

  it('a key may have ten streams; closing one frees its place', async () => {
    const workspace = await makeWorkspace(server())
    const streams = await Promise.all(
      Array.from({ length: 10 }, () => openStream(server(), workspace.owner.key)),
    )
    const refused = await openStream(server(), workspace.owner.key)
    assert.deepEqual([refused.response.status, refused.response.headers.get('retry-after')], [429, '15'])
    await refused.ended()
    const head = await fetch(`${server().url}/v1/events`, {
      method: 'HEAD',
      headers: { Authorization: `Bearer ${(await workspace.staff({})).key}`, Accept: 'text/event-stream' },
    })
    assert.equal(head.status, 200)
    const other = await openStream(server(), (await workspace.staff({})).key)
    assert.equal(other.response.status, 200)
    await Promise.all([...streams, other].map((stream) => stream.close()))
    // The server notices a closed connection a moment later.
    let status = 429
    await waitUntil('the place is free', async () => {
      const stream = await openStream(server(), workspace.owner.key)
      status = stream.response.status
      await stream.close()
      return status !== 429
    })
    assert.equal(status, 200)
  })

  it('ends within two seconds after its key was revoked', async () => {
    const workspace = await makeWorkspace(server())
    const stream = await openStream(server(), workspace.owner.key)
    await server()
      .db.updateTable('api_keys')
      .set({ revoked_at: server().app.now() })
      .where('hash', '=', hashApiKey(workspace.owner.key))
      .execute()
    const startedAt = performance.now()
    await stream.ended()
    // Two seconds, and what a busy machine takes.
    assert.ok(performance.now() - startedAt < 10_000)
  })
})

for (const database of databases) {
  it(`event streams end when the server stops (${database})`, async () => {
    const { startServer } = await import('../servers.ts')
    const server = await startServer(database)
    const workspace = await makeWorkspace(server)
    const stream = await openStream(server, workspace.owner.key)
    await stopStreams(server.app)
    await stream.ended()
    await server.close()
  })
}

everyDatabase('wcrm events list --follow', (server) => {
  it('prints events as they happen, and exits on SIGINT', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    await run('crm_create_group', { name: 'A' })
    const child = spawn(
      process.execPath,
      ['bin/wcrm.js', 'events', 'list', '--follow', '--types', 'group.created', '--json=id,data'],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: {
          PATH: process.env['PATH'],
          HOME: '/nonexistent',
          WCRM_URL: server().url,
          WCRM_API_KEY: workspace.owner.key,
        },
      },
    )
    const exited = once(child, 'exit')
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const next = async () => JSON.parse((await lines.next()).value as string) as ShownEvent
    assert.equal((await next()).data['group']!['name'], 'A')
    await run('crm_upsert_contact', { phone: '+15550100042' })
    await run('crm_create_group', { name: 'B' })
    const b = await next()
    assert.deepEqual([Object.keys(b), b.data['group']!['name']], [['id', 'data'], 'B'])
    child.kill('SIGINT')
    assert.deepEqual(await exited, [0, null])
  })

  it('exits with the code of the error', async () => {
    const child = spawn(process.execPath, ['bin/wcrm.js', 'events', 'list', '--follow'], {
      stdio: ['ignore', 'ignore', 'ignore'],
      env: {
        PATH: process.env['PATH'],
        HOME: '/nonexistent',
        WCRM_URL: server().url,
        WCRM_API_KEY: 'wc_live_nobody',
      },
    })
    assert.deepEqual(await once(child, 'exit'), [4, null])
    assert.equal((await callAs(server(), 'wc_live_nobody')('events_list')).status, 401)
  })
})

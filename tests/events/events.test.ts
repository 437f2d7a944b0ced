import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { createEventId } from '../../server/ids.ts'
import { hashApiKey } from '../../server/api-keys.ts'
import { deleteOldEvents } from '../../server/events/retention.ts'
import { stopStreams } from '../../server/events/stream.ts'
import { type EventRow, scanEvents, insertEvents } from '../../storage/events.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace, startSharedServers, type TestServer } from '../servers.ts'
import { databases, onEmptyDatabase } from '../databases.ts'

type Shown = { id: string; type: string; data: Record<string, never> }

const group = (name: string): EventRow => ({
  id: createEventId(),
  type: 'group.created/1',
  occurred_at: '2026-10-01T09:30:00.000Z',
  data: { group: { id: '1', name, emoji: null } },
})

everyDoor('The event log', (test) => {
  test('is read oldest first, page by page, after any of its events', async ({ call }) => {
    for (const name of ['A', 'B', 'C']) await call('crm_create_group', { name })
    const { data, next_cursor: end } = (await call('events_list')).body
    assert.deepEqual([data.map((e: Shown) => e.data['group']!['name']), end], [['A', 'B', 'C'], null])
    const first = (await call('events_list', { limit: 1 })).body
    assert.deepEqual([first.data.length, first.next_cursor], [1, data[0].id])
    const rest = (await call('events_list', { after: first.next_cursor, limit: 2 })).body
    assert.deepEqual([rest.data.map((e: Shown) => e.id), rest.next_cursor], [[data[1].id, data[2].id], null])
    assert.deepEqual((await call('events_list', { after: data[2].id })).body, { data: [], next_cursor: null })
    await call('crm_create_group', { name: 'D', dry_run: true })
    assert.deepEqual((await call('events_list', { after: data[2].id })).body.data, [])
  })

  test('is read by type, with a version or without', async ({ call }) => {
    const {
      body: {
        group: { id },
      },
    } = await call('crm_create_group', { name: 'A' })
    await call('crm_upsert_contact', { phone: '+15550100042', group_ids: [id] })
    for (const [types, expected] of [
      [['group.created'], ['group.created/1']],
      [
        ['group.created/1', 'contact.created'],
        ['group.created/1', 'contact.created/1'],
      ],
      [['short_link.deleted'], []],
    ] as const) {
      const { body } = await call('events_list', { types })
      assert.deepEqual([body.data.map((e: Shown) => e.type), body.next_cursor], [expected, null])
    }
  })

  test('refuses types and events that there are not', async ({ call }) => {
    for (const [given, meant] of [
      ['contact.creatd', 'contact.created'],
      ['group.created/2', 'group.created/1'],
      ['Message.received', 'message.received'],
    ]) {
      const { status, body } = await call('events_list', { types: ['group.created', given] })
      assert.deepEqual(
        [status, body.errors[0].code, body.errors[0].fix],
        [400, 'unknown_event_type', `Did you mean ${meant}?`],
      )
    }
    assert.equal((await call('events_list', { after: 'evt_01JABCDEFGHJKMNPQRSTVWXYZ1' })).status, 404)
    assert.equal((await call('events_list', { after: 'yesterday' })).status, 400)
    assert.equal((await call('events_list', { types: ['x'.repeat(200)] })).status, 400)
  })
})

everyDatabase('What a reader of events sees', (server) => {
  it('has phones masked where they are hidden, and is whole for others', async () => {
    const workspace = await makeWorkspace(server())
    await doAs(server(), workspace.owner.key)('crm_upsert_contact', { phone: '+15550100042', name: 'Ada' })
    const message = {
      id: '9',
      conversation_id: '7',
      contact_id: '4',
      channel_id: '1',
      type: 'TEXT',
      direction: 'outbound',
      status: 'failed',
      text: 'Call 15550100077',
      error: 'No such number: 15550100042.',
    }
    await insertEvents(server().db, workspace.id, [
      { ...group('x'), type: 'message.failed/1', data: { message } },
      {
        ...group('x'),
        type: 'message.sent/1',
        data: { message: { ...message, type: 'SYSTEM', text: 'Now 15550100042' } },
      },
    ])
    const seenBy = async (key: string) =>
      (await doAs(server(), key)('events_list')).data.map((e: Shown) => e.data)
    const hidden = (await workspace.staff({ role: 'agent', hide_phone_numbers: true })).key
    const [contact, failed, system] = await seenBy(hidden)
    assert.deepEqual([contact.contact.phone, contact.contact.name], ['********042', 'Ada'])
    assert.deepEqual(
      [failed.message.error, failed.message.text],
      ['No such number: ********042.', 'Call 15550100077'],
    )
    assert.equal(system.message.text, 'Now ********042')
    assert.equal((await seenBy(workspace.owner.key))[1].message.error, 'No such number: 15550100042.')
    const stream = await openStream(server(), hidden)
    assert.ok(
      !(await stream.take(3)).some(({ data }) =>
        JSON.stringify([data.data['contact'] ?? {}, data.data['message']?.['error'] ?? '']).includes(
          '15550100042',
        ),
      ),
    )
    await stream.close()
  })

  it('is of their channels for staff who have some, of conversations and messages', async () => {
    const workspace = await makeWorkspace(server())
    const about = (type: string, data: unknown): EventRow => ({ ...group('x'), type, data })
    await insertEvents(server().db, workspace.id, [
      about('conversation.created/1', { conversation: { id: '1', channel_id: '11' } }),
      about('message.received/1', { message: { id: '2', channel_id: '12' } }),
      about('conversation.closed/1', { conversation: { id: '3', channel_id: null } }),
      about('message.sent/1', { message: { id: '4', channel_id: '11' } }),
      about('contact.deleted/1', { contact: { id: '5' } }),
    ])
    const { key } = await workspace.staff({ role: 'agent', channel_ids: ['11'] })
    const types = (page: { data: Shown[] }) => page.data.map((e) => e.type)
    assert.deepEqual(types(await doAs(server(), key)('events_list')), [
      'conversation.created/1',
      'message.sent/1',
      'contact.deleted/1',
    ])
    assert.deepEqual(
      types(await doAs(server(), key)('events_list', { types: ['message.received', 'message.sent'] })),
      ['message.sent/1'],
    )
    assert.equal((await doAs(server(), workspace.owner.key)('events_list')).data.length, 5)
  })

  it('comes in steps where little of a long log is asked for', async () => {
    const workspace = await makeWorkspace(server())
    await sql`
      insert into events (workspace_id, id, type, occurred_at, data)
      select ${workspace.id}::bigint, 'evt_01M0000000' || lpad(n::text, 16, '0'), case when n in (1, 52000, 52001) then 'group.deleted/1' else 'group.created/1' end, now(), '{}'::jsonb
      from generate_series(1, 52001) as n`.execute(server().db)
    const run = doAs(server(), workspace.owner.key)
    const first = await run('events_list', { types: ['group.deleted'] })
    assert.deepEqual([first.data.length, typeof first.next_cursor], [1, 'string'])
    const second = await run('events_list', { types: ['group.deleted'], after: first.next_cursor, limit: 1 })
    assert.deepEqual(
      [second.data.map((e: Shown) => e.id), second.next_cursor],
      [['evt_01M00000000000000000052000'], 'evt_01M00000000000000000052000'],
    )
    const third = await run('events_list', { types: ['group.deleted'], after: second.next_cursor })
    assert.deepEqual(
      [third.data.map((e: Shown) => e.id), third.next_cursor],
      [['evt_01M00000000000000000052001'], null],
    )
  })
})

everyDatabase('Old events', (server) => {
  it('are forgotten after their days, but for those that a delivery waits for', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const day = (n: number): string => new Date(Date.parse(server().app.now()) - n * 86_400_000).toISOString()
    const events = [20, 19, 15.1, 14.9, 0].map((n) => ({ ...group(`${n} days`), occurred_at: day(n) }))
    await insertEvents(server().db, workspace.id, events.slice(0, 1))
    await run('webhooks_create_endpoint', { url: 'https://hooks.example.com/in', event_types: ['*'] })
    await insertEvents(server().db, workspace.id, events.slice(1, 2))
    await sql`update webhook_endpoints set status = 'disabled' where workspace_id = ${workspace.id}`.execute(
      server().db,
    )
    await insertEvents(server().db, workspace.id, events.slice(2))
    const names = async () => (await run('events_list')).data.map((e: Shown) => e.data['group']!['name'])
    await deleteOldEvents({
      ...server().app,
      config: { ...server().app.config, eventRetentionDays: undefined },
    })
    assert.equal((await names()).length, 5)
    await deleteOldEvents({ ...server().app, config: { ...server().app.config, eventRetentionDays: 15 } })
    assert.deepEqual(await names(), ['19 days', '14.9 days', '0 days'])
    assert.equal(
      (await callAs(server(), workspace.owner.key)('events_list', { after: events[0]!.id })).status,
      404,
    )
  })
})

type Told = { id: string; event: string; data: Shown }
type Stream = {
  response: Response
  take: (count: number) => Promise<Told[]>
  ended: () => Promise<void>
  close: () => Promise<void>
}

const openStream = async (
  server: Pick<TestServer, 'url'>,
  key: string,
  { after, last, types }: { after?: string; last?: string; types?: string } = {},
): Promise<Stream> => {
  const query = new URLSearchParams({ ...(after ? { after } : {}), ...(types ? { types } : {}) })
  const response = await fetch(`${server.url}/v1/events?${query}`, {
    headers: {
      Authorization: `Bearer ${key}`,
      Accept: 'text/event-stream',
      ...(last ? { 'Last-Event-ID': last } : {}),
    },
  })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  const told: Told[] = []
  const read = async (): Promise<boolean> => {
    const { done, value } = await reader.read()
    const blocks = (rest + (value ?? '')).split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const lines = Object.fromEntries(
        block
          .split('\n')
          .map((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]),
      )
      if (lines['data'])
        told.push({ id: lines['id']!, event: lines['event']!, data: JSON.parse(lines['data']) as Shown })
    }
    return !done
  }
  return {
    response,
    take: async (count) => {
      while (told.length < count) assert.ok(await read(), 'the stream ended early')
      return told.splice(0, count)
    },
    ended: async () => {
      while (await read());
    },
    close: async () => {
      await reader.cancel()
    },
  }
}

everyDatabase('The event log as a stream', (server) => {
  it('tells what is there and what happens, with ids to resume from', async () => {
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
    // What a client had last wins over where it once began.
    const again = await openStream(server(), workspace.owner.key, {
      after: a!.id,
      last: b!.id,
      types: 'group.created',
    })
    assert.equal((await again.take(1))[0]!.data.data['group']!['name'], 'C')
    await again.close()
  })

  it('refuses as the page does', async () => {
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

  it('is open ten times for a key, and has place again when one is closed', async () => {
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
    let status = 429
    while (status === 429) {
      const stream = await openStream(server(), workspace.owner.key)
      status = stream.response.status
      await stream.close()
    }
    assert.equal(status, 200)
  })

  it('ends within two seconds when its key is revoked', async () => {
    const workspace = await makeWorkspace(server())
    const stream = await openStream(server(), workspace.owner.key)
    await server()
      .db.updateTable('api_keys')
      .set({ revoked_at: server().app.now() })
      .where('hash', '=', hashApiKey(workspace.owner.key))
      .execute()
    const begun = performance.now()
    await stream.ended()
    assert.ok(performance.now() - begun < 2000)
  })
})

for (const database of databases) {
  it(`Streams end when the server stops (${database})`, async () => {
    const { startServer } = await import('../servers.ts')
    const server = await startServer(database)
    const workspace = await makeWorkspace(server)
    const stream = await openStream(server, workspace.owner.key)
    await stopStreams(server.app)
    await stream.ended()
    await server.close()
  })
}

describe('The event log of several servers', { skip: databases.length === 1 }, () => {
  let shared: Awaited<ReturnType<typeof startSharedServers>>
  before(async () => {
    shared = await startSharedServers(2)
  })
  after(async () => {
    await shared.close()
  })

  it('streams over one server what another wrote, and resumes over it', async () => {
    const [one, two] = shared.servers as [TestServer, TestServer]
    const workspace = await makeWorkspace(one)
    const stream = await openStream(two, workspace.owner.key)
    await doAs(one, workspace.owner.key)('crm_create_group', { name: 'A' })
    const [a] = await stream.take(1)
    await stream.close()
    await doAs(two, workspace.owner.key)('crm_create_group', { name: 'B' })
    const resumed = await openStream(one, workspace.owner.key, { last: a!.id })
    assert.equal((await resumed.take(1))[0]!.data.data['group']!['name'], 'B')
    await resumed.close()
  })

  it('is not held up by a transaction in another database of the cluster', async () => {
    const [server] = shared.servers as [TestServer]
    const workspace = await makeWorkspace(server)
    const run = doAs(server, workspace.owner.key)
    const seen = async (): Promise<string[]> =>
      (await run('events_list')).data.map((e: Shown) => e.data['group']!['name'])
    await onEmptyDatabase('postgresql', (db) =>
      db.transaction().execute(async (foreign) => {
        await sql`create table busy (n int)`.execute(foreign)
        await run('crm_create_group', { name: 'A' })
        assert.deepEqual(await seen(), ['A'])
        // A transaction of this very database may write an event that stands before; it is waited for.
        await server.db.transaction().execute(async (own) => {
          await insertEvents(own, workspace.id, [group('C')])
          await run('crm_create_group', { name: 'B' })
          assert.deepEqual(await seen(), ['A'])
        })
        assert.deepEqual(await seen(), ['A', 'C', 'B'])
      }),
    )
  })

  it('shows every reader each event once, in one order, while transactions of all lengths write', async () => {
    const { servers } = shared
    const workspace = await makeWorkspace(servers[0]!)
    let seed = 7
    const random = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647
    const written: string[] = []
    const turn = () =>
      new Promise((resolve) => {
        setImmediate(resolve)
      })
    const write = async ({ db }: TestServer): Promise<void> => {
      for (let n = 0; n < 60; n++) {
        const events = Array.from({ length: 1 + Math.floor(random() * 3) }, () => group('x'))
        const [long, fails] = [random() < 0.3, random() < 0.1]
        const tx = await db.startTransaction().execute()
        await insertEvents(tx, workspace.id, events)
        // A long transaction has its place in the order while others come and go.
        for (let pause = long ? 40 : 0; pause > 0; pause--) await turn()
        if (long) await sql`select pg_sleep(${random() * 0.05})`.execute(tx)
        await (fails ? tx.rollback() : tx.commit()).execute()
        if (!fails) written.push(...events.map(({ id }) => id))
      }
    }
    let done = false
    const read = async ({ db }: TestServer, most: number): Promise<string[]> => {
      const seen: string[] = []
      let position
      for (let last = false; ;) {
        const scan = await scanEvents(db, workspace.id, position, {}, most)
        position = scan.last ?? position
        seen.push(...scan.events.map(({ id }) => id))
        if (last && !scan.more) return seen
        last = done
      }
    }
    const readers = [read(servers[0]!, 1), read(servers[1]!, 7), read(servers[1]!, 500)]
    await Promise.all([...servers, ...servers, ...servers].map(write))
    done = true
    const seen = await Promise.all(readers)
    assert.equal(new Set(seen[0]).size, seen[0]!.length)
    assert.deepEqual(seen[0]!.toSorted(), written.toSorted())
    for (const other of seen.slice(1)) assert.deepEqual(other, seen[0])
    assert.notDeepEqual(
      seen[0],
      seen[0]!.toSorted(),
      'no transaction overtook another, so that nothing was tried',
    )
  })
})

everyDatabase('wcrm events list --follow', (server) => {
  it('prints events as they happen, and ends on Ctrl-C', async () => {
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
    const next = async () => JSON.parse((await lines.next()).value as string) as Shown
    assert.equal((await next()).data['group']!['name'], 'A')
    await run('crm_upsert_contact', { phone: '+15550100042' })
    await run('crm_create_group', { name: 'B' })
    const b = await next()
    assert.deepEqual([Object.keys(b), b.data['group']!['name']], [['id', 'data'], 'B'])
    child.kill('SIGINT')
    assert.deepEqual(await exited, [0, null])
  })

  it('is refused with the exit code of the refusal', async () => {
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

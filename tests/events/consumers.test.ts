import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { createClient } from '../../client/index.ts'
import { deleteOldEvents } from '../../server/domains/events/retention.ts'
import { lockEventConsumers } from '../../storage/events/consumers.ts'
import { insertEvents } from '../../storage/events/events.ts'
import { callAs, doAs } from '../calls.ts'
import { databases } from '../databases.ts'
import { createAgentScene } from '../approvals/scene.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace, startSharedServers, type TestServer } from '../servers.ts'
import { groupEvent, openStream, type ShownEvent } from './event-fixture.ts'

const namesOf = ({ data }: { data: ShownEvent[] }): unknown[] =>
  data.map((event) => event.data['group']!['name'])

/** Resolves when a statement on consumers waits for a lock. */
const untilOneWaits = async ({ db }: TestServer, statement = 'event_consumers'): Promise<void> => {
  for (let isWaiting = false; !isWaiting;) {
    const { rows } = await sql`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'
        and query like ${`%${statement}%`}`.execute(db)
    isWaiting = rows.length > 0
  }
}

everyDoor('Consumers of the event log', (test) => {
  test('read on after what they acknowledged', async ({ call, server, workspace, door }) => {
    const run = async (name: string, input: Record<string, unknown>) => {
      const { status, body, text } = await call(name, input)
      assert.equal(status, 200, text)
      return body
    }
    await insertEvents(
      server.db,
      workspace.id,
      ['A', 'B', 'C'].map((name) => groupEvent(name)),
    )
    const first = await run('events_list', { consumer: 'nightly', limit: 2 })
    assert.deepEqual(namesOf(first), ['A', 'B'])
    // Nothing is handled before it is acknowledged.
    assert.deepEqual(namesOf(await run('events_list', { consumer: 'nightly', limit: 2 })), ['A', 'B'])
    assert.deepEqual(namesOf(await run('events_list', { consumer: 'nightly', cursor: first.next_cursor })), [
      'C',
    ])
    const [a, b] = first.data as [ShownEvent, ShownEvent]
    const rehearsed = await run('events_ack', { consumer: 'nightly', event_id: b.id, dry_run: true })
    assert.deepEqual([rehearsed.changed, rehearsed.dry_run], [true, true])
    assert.deepEqual((await run('events_list_consumers', {})).data, [])
    const { consumer, changed } = await run('events_ack', { consumer: 'nightly', event_id: b.id })
    assert.deepEqual(
      [consumer.name, consumer.event_id, consumer.complete, changed],
      ['nightly', b.id, true, true],
    )
    assert.deepEqual(namesOf(await run('events_list', { consumer: 'nightly' })), ['C'])
    // Where it begins is only asked of a consumer that there is not yet.
    assert.deepEqual(namesOf(await run('events_list', { consumer: 'nightly', after: a.id })), ['C'])
    assert.deepEqual(namesOf(await run('events_list', { consumer: 'other', after: a.id })), ['B', 'C'])

    assert.equal((await run('events_ack', { consumer: 'nightly', event_id: a.id })).changed, false)
    assert.deepEqual(namesOf(await run('events_list', { consumer: 'nightly' })), ['C'])
    assert.equal(
      (await run('events_ack', { consumer: 'nightly', event_id: a.id, rewind: true })).changed,
      true,
    )
    assert.deepEqual(namesOf(await run('events_list', { consumer: 'nightly' })), ['B', 'C'])

    const { data, total } = await run('events_list_consumers', {})
    assert.deepEqual([data.map((row: any) => [row.name, row.event_id]), total], [[['nightly', a.id]], 1])
    const options = door.confirms ? { confirm: 'delete' } : {}
    if (door.confirms) {
      assert.equal((await call('events_delete_consumer', { consumer: 'nightly' })).status, 428)
      assert.deepEqual((await call('events_delete_consumer', { consumer: 'nightly' }, options)).body, {
        name: 'nightly',
        deleted: true,
      })
      assert.equal((await call('events_delete_consumer', { consumer: 'nightly' }, options)).status, 404)
      assert.deepEqual(namesOf(await run('events_list', { consumer: 'nightly' })), ['A', 'B', 'C'])
    }
  })

  test('refuse events and names that there are not', async ({ call, server, workspace }) => {
    const other = await makeWorkspace(server)
    const foreign = groupEvent('foreign')
    await insertEvents(server.db, other.id, [foreign])
    const own = groupEvent('own')
    await insertEvents(server.db, workspace.id, [own])
    for (const event_id of [foreign.id, 'evt_01JABCDEFGHJKMNPQRSTVWXYZ0'])
      assert.equal((await call('events_ack', { consumer: 'nightly', event_id })).status, 404)
    for (const consumer of ['-nightly', 'two words', 'ü', 'x'.repeat(101)])
      assert.equal((await call('events_ack', { consumer, event_id: own.id })).status, 400, consumer)
    // A consumer belongs to its workspace.
    await call('events_ack', { consumer: 'nightly', event_id: own.id })
    assert.deepEqual(namesOf(await doAs(server, other.owner.key)('events_list', { consumer: 'nightly' })), [
      'foreign',
    ])
  })
})

everyDatabase('Consumers of the event log', (server) => {
  const setUp = async (names: readonly string[]) => {
    const workspace = await makeWorkspace(server())
    const events = names.map((name) => groupEvent(name))
    await insertEvents(server().db, workspace.id, events)
    return { workspace, run: doAs(server(), workspace.owner.key), events }
  }

  it('begin with what happens next', async () => {
    const { workspace, run, events } = await setUp(['A'])
    const { data, next_cursor: now } = await run('events_list', { consumer: 'new', after: 'now' })
    assert.deepEqual([data, now], [[], events[0]!.id])
    await run('events_ack', { consumer: 'new', event_id: now })
    await insertEvents(server().db, workspace.id, [groupEvent('B')])
    assert.deepEqual(namesOf(await run('events_list', { consumer: 'new', after: 'now' })), ['B'])
  })

  it('acknowledge what was scanned and not shown', async () => {
    const { run, events } = await setUp(['A', 'B'])
    const page = await run('events_list', { consumer: 'c', types: ['group.deleted'], limit: 1 })
    assert.deepEqual(page, { data: [], next_cursor: null })
    await run('events_ack', { consumer: 'c', event_id: events[1]!.id })
    assert.deepEqual((await run('events_list', { consumer: 'c' })).data, [])
  })

  it('of others are moved by an agent only if a person agrees', async () => {
    const scene = await createAgentScene(server())
    const { data } = (await scene.person('events_list', {})).body
    const [first, last] = [data[0].id, data.at(-1).id] as [string, string]
    const acknowledge = (consumer: string, event_id: string, fields = {}) =>
      scene.ask('events_ack', { consumer, event_id, ...fields })
    assert.equal((await scene.person('events_ack', { consumer: 'nightly', event_id: first })).status, 200)
    const rehearsed = await acknowledge('nightly', last, { dry_run: true })
    assert.deepEqual([rehearsed.status, rehearsed.headers['approval']], [200, 'required'])
    const asked = await acknowledge('nightly', last)
    assert.deepEqual([asked.status, asked.body.approval.asked_for], [202, ['operation']], asked.text)
    const positionOf = async (): Promise<string> =>
      (await scene.person('events_list_consumers', {})).body.data.find(
        ({ name }: { name: string }) => name === 'nightly',
      ).event_id
    assert.equal(await positionOf(), first)
    await scene.person('approvals_approve', { approval_id: asked.body.approval.id })
    await scene.work()
    assert.equal(await positionOf(), last)

    // Its own, by another key of the same staff member too, but not by an agent of somebody else.
    assert.equal((await acknowledge('agent', first)).status, 200)
    assert.equal((await acknowledge('agent', last)).status, 200)
    const next = await scene.workspace.key(scene.manager.staffId, { agent: true })
    const back = { consumer: 'agent', event_id: first, rewind: true }
    assert.equal((await scene.as(next.key)('events_ack', back)).status, 200)
    const stranger = await scene.workspace.key((await scene.workspace.staff({ role: 'manager' })).staffId, {
      agent: true,
    })
    assert.equal((await scene.as(stranger.key)('events_ack', { ...back, event_id: last })).status, 202)
    await scene.setPolicy({ operations: { events_ack: 'allow' } })
    assert.equal((await acknowledge('nightly', first, { rewind: true })).status, 200)
  })

  it('never move back by acknowledgements at the same time', async () => {
    const { run, events } = await setUp(Array.from({ length: 20 }, (_, n) => `${n}`))
    await Promise.all(
      events.toReversed().map(({ id }) => run('events_ack', { consumer: 'busy', event_id: id })),
    )
    assert.equal((await run('events_list_consumers')).data[0].event_id, events.at(-1)!.id)
  })

  it('does not move back where an acknowledgement waited for one of a later event', async (t) => {
    if (server().database !== 'postgresql') return t.skip('one connection: nothing waits')
    const { workspace, run, events } = await setUp(['A', 'B'])
    await run('events_ack', { consumer: 'slow', event_id: events[0]!.id })
    const later = groupEvent('C')
    let waiting: Promise<{ changed: boolean }> | undefined
    await server()
      .db.transaction()
      .execute(async (tx) => {
        const consumer = tx.updateTable('event_consumers').where('workspace_id', '=', workspace.id)
        await consumer.set({ event_id: events[0]!.id }).execute()
        waiting = run('events_ack', { consumer: 'slow', event_id: events[1]!.id })
        await untilOneWaits(server())
        // It happens after the other has begun to wait, who does not see it.
        await insertEvents(server().db, workspace.id, [later])
        await consumer.set({ event_id: later.id }).execute()
      })
    assert.equal((await waiting!).changed, false)
    assert.equal((await run('events_list_consumers')).data[0].event_id, later.id)
  })

  it('of others that are made while an agent acknowledges are moved only if a person agrees', async (t) => {
    if (server().database !== 'postgresql') return t.skip('one connection: nothing waits')
    const scene = await createAgentScene(server())
    const { data } = (await scene.person('events_list', {})).body
    const [first, last] = [data[0].id, data.at(-1).id] as [string, string]
    const input = { consumer: 'meanwhile', event_id: last }
    const options = { idempotencyKey: 'ack-meanwhile-1' }
    let waiting: ReturnType<typeof scene.ask> | undefined
    await server()
      .db.transaction()
      .execute(async (tx) => {
        await lockEventConsumers(tx, scene.workspace.id)
        waiting = scene.ask('events_ack', input, options)
        await untilOneWaits(server(), 'pg_advisory_xact_lock(hashtextextended')
        const row = { consumer: 'meanwhile', event_id: first, now: server().app.now() }
        await sql`
          insert into event_consumers (workspace_id, name, event_id, acknowledged_at, created_at)
          values (${scene.workspace.id}, ${row.consumer}, ${row.event_id}, ${row.now}, ${row.now})`.execute(
          tx,
        )
      })
    const refused = await waiting!
    assert.deepEqual([refused.status, refused.body.reason], [409, 'still_running'], refused.text)
    const asked = await scene.ask('events_ack', input, options)
    assert.deepEqual([asked.status, asked.body.approval?.asked_for], [202, ['operation']], asked.text)
    const [consumer] = (await scene.person('events_list_consumers', {})).body.data
    assert.equal(consumer.event_id, first)
  })

  it('are a hundred at most', async () => {
    const { workspace, run, events } = await setUp(['A'])
    const call = callAs(server(), workspace.owner.key)
    const { id } = events[0]!
    await Promise.all(
      Array.from({ length: 99 }, (_, n) => run('events_ack', { consumer: `c${n}`, event_id: id })),
    )
    const answers = await Promise.all(
      ['x', 'y', 'z'].map((consumer) => call('events_ack', { consumer, event_id: id })),
    )
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 409, 409])
    assert.equal(answers.find(({ status }) => status === 409)!.body.reason, 'too_many_consumers')
    assert.equal((await run('events_ack', { consumer: 'c0', event_id: id })).changed, false)
    const { data, total, next_cursor: cursor } = await run('events_list_consumers', { limit: 99 })
    const rest = await run('events_list_consumers', { limit: 99, cursor })
    const names = [...data, ...rest.data].map(({ name }: { name: string }) => name)
    assert.deepEqual([total, names.length, names], [100, 100, names.toSorted()])
  })

  it('are told when events were deleted that they had not acknowledged, and only then', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const call = callAs(server(), workspace.owner.key)
    const day = (n: number): string => new Date(Date.parse(server().app.now()) - n * 86_400_000).toISOString()
    const [a, b, c] = [20, 19, 1].map((n) => groupEvent(`${n} days`, day(n))) as [
      ReturnType<typeof groupEvent>,
      ReturnType<typeof groupEvent>,
      ReturnType<typeof groupEvent>,
    ]
    await insertEvents(server().db, workspace.id, [a, b])
    await run('events_ack', { consumer: 'late', event_id: a.id })
    await run('events_ack', { consumer: 'done', event_id: b.id })
    await deleteOldEvents({ ...server().app, config: { ...server().app.config, eventRetentionDays: 15 } })
    await insertEvents(server().db, workspace.id, [c])
    assert.deepEqual(namesOf(await run('events_list', { consumer: 'done' })), ['1 days'])
    const refused = await call('events_list', { consumer: 'late' })
    assert.deepEqual([refused.status, refused.body.reason], [409, 'events_deleted'])
    const stream = await fetch(`${server().url}/v1/events?consumer=late`, {
      headers: { Authorization: `Bearer ${workspace.owner.key}`, Accept: 'text/event-stream' },
    })
    assert.deepEqual(
      [stream.status, ((await stream.json()) as { reason: string }).reason],
      [409, 'events_deleted'],
    )
    const { data } = await run('events_list_consumers')
    assert.deepEqual(
      data.map((row: any) => [row.name, row.complete]),
      [
        ['done', true],
        ['late', false],
      ],
    )
    await run('events_ack', { consumer: 'late', event_id: c.id })
    assert.deepEqual((await run('events_list', { consumer: 'late' })).data, [])
  })

  it('follow a stream, which goes on after a break with what was not yet received', async () => {
    const { workspace, run, events } = await setUp(['A', 'B', 'C'])
    const { key } = workspace.owner
    await run('events_ack', { consumer: 'live', event_id: events[0]!.id })
    const stream = await openStream(server(), key, { consumer: 'live' })
    const [b] = await stream.take(1)
    await stream.close()
    assert.equal(b!.data.data['group']!['name'], 'B')
    const resumed = await openStream(server(), key, { consumer: 'live', last: b!.id })
    assert.equal((await resumed.take(1))[0]!.data.data['group']!['name'], 'C')
    await resumed.close()

    const client = createClient({ url: server().url, apiKey: key })
    const seen: string[] = []
    for await (const event of client.stream({ consumer: 'live' })) {
      await client.events.ack({ consumer: 'live', event_id: event.id })
      if (event.type === 'group.created/1') seen.push(event.data.group.name)
      if (seen.length === 2) break
    }
    assert.deepEqual(seen, ['B', 'C'])
    assert.deepEqual((await run('events_list', { consumer: 'live' })).data, [])
  })
})

describe('Consumers of several servers', { skip: databases.length === 1 }, () => {
  let shared: Awaited<ReturnType<typeof startSharedServers>>
  before(async () => {
    shared = await startSharedServers(2)
  })
  after(async () => {
    await shared.close()
  })

  it('an event is not acknowledged while an earlier one may still appear', async () => {
    const [one, two] = shared.servers as [TestServer, TestServer]
    const workspace = await makeWorkspace(one)
    const run = doAs(two, workspace.owner.key)
    const call = callAs(two, workspace.owner.key)
    const late = groupEvent('late')
    await one.db.transaction().execute(async (tx) => {
      await insertEvents(tx, workspace.id, [groupEvent('early')])
      await insertEvents(two.db, workspace.id, [late])
      // As a webhook tells its receiver of it, before the log does.
      const options = { idempotencyKey: 'acknowledge-late' }
      const refused = await call('events_ack', { consumer: 'c', event_id: late.id }, options)
      assert.deepEqual([refused.status, refused.body.reason], [409, 'event_not_listed'])
    })
    assert.deepEqual(namesOf(await run('events_list', { consumer: 'c' })), ['early', 'late'])
    const accepted = await call(
      'events_ack',
      { consumer: 'c', event_id: late.id },
      { idempotencyKey: 'acknowledge-late' },
    )
    assert.deepEqual([accepted.status, accepted.body.changed], [200, true])
  })
})

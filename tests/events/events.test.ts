import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { deleteOldEvents } from '../../server/domains/events/retention.ts'
import { type EventRow, insertEvents } from '../../storage/events/events.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { groupEvent, type ShownEvent, openStream } from './event-fixture.ts'

everyDoor('Event log', (test) => {
  test('pages: oldest first, after any event id; a dry run emits nothing', async ({ call }) => {
    for (const name of ['A', 'B', 'C']) await call('crm_create_group', { name })
    const { data, next_cursor: end } = (await call('events_list')).body
    assert.deepEqual([data.map((e: ShownEvent) => e.data['group']!['name']), end], [['A', 'B', 'C'], null])
    const first = (await call('events_list', { limit: 1 })).body
    assert.deepEqual([first.data.length, first.next_cursor], [1, data[0].id])
    const rest = (await call('events_list', { after: first.next_cursor, limit: 2 })).body
    assert.deepEqual(
      [rest.data.map((e: ShownEvent) => e.id), rest.next_cursor],
      [[data[1].id, data[2].id], null],
    )
    assert.deepEqual((await call('events_list', { after: data[2].id })).body, { data: [], next_cursor: null })
    await call('crm_create_group', { name: 'D', dry_run: true })
    assert.deepEqual((await call('events_list', { after: data[2].id })).body.data, [])
  })

  test('after=now returns nothing that is in the log, and where to continue', async ({ call }) => {
    assert.deepEqual((await call('events_list', { after: 'now' })).body, { data: [], next_cursor: null })
    await call('crm_create_group', { name: 'A' })
    const { data, next_cursor: now } = (await call('events_list', { after: 'now' })).body
    await call('crm_create_group', { name: 'B' })
    const later = (await call('events_list', { cursor: now })).body.data
    assert.deepEqual([data, later.map((e: ShownEvent) => e.data['group']!['name'])], [[], ['B']])
    const { status, body } = await call('events_list', { after: 'yesterday' })
    assert.deepEqual([status, body.errors[0].detail], [400, 'must be an event id, or now'])
  })

  test('from a time: everything from the first event that happened then or later, in pages', async ({
    call,
    server,
    workspace,
  }) => {
    const names = async (input: Record<string, unknown>): Promise<unknown> => {
      const { status, body } = await call('events_list', input)
      return status === 200
        ? [body.data.map((e: ShownEvent) => e.data['group']!['name']), body.next_cursor !== null]
        : [status, body.errors[0].pointer ?? body.errors[0].parameter ?? body.errors[0].detail]
    }
    assert.deepEqual(await names({ from: '2026-10-01T00:00:00Z' }), [[], false])
    for (const [name, hour] of [
      ['A', '08'],
      ['B', '10'],
      // The clock of a server that was behind.
      ['C', '09'],
      ['D', '11'],
    ] as const)
      await insertEvents(server.db, workspace.id, [groupEvent(name, `2026-10-01T${hour}:00:00.000Z`)])
    assert.deepEqual(await names({ from: '2026-10-01T08:00:00Z' }), [['A', 'B', 'C', 'D'], false])
    assert.deepEqual(await names({ from: '2026-10-01T11:30:00+02:00' }), [['B', 'C', 'D'], false])
    assert.deepEqual(await names({ from: '2026-10-01T09:30:00Z', limit: 2 }), [['B', 'C'], true])
    assert.deepEqual(await names({ from: '2026-10-01T11:00:00Z', types: ['group.created'] }), [['D'], false])
    assert.deepEqual(await names({ from: '2026-10-01T12:00:00Z' }), [[], false])
    const both = await call('events_list', { from: '2026-10-01T09:30:00Z', after: 'now' })
    assert.deepEqual([both.status, both.body.errors[0].code], [400, 'contradiction'])
    const wrong = await call('events_list', { from: 'yesterday' })
    assert.deepEqual(
      [wrong.status, wrong.body.errors[0].detail, wrong.body.errors[0].fix],
      [
        400,
        'is not a time of ISO 8601',
        'Send a time such as 2026-10-01T09:30:00Z or 2026-10-01T11:30:00+02:00.',
      ],
    )
  })

  test('filters by type, with or without a version', async ({ call }) => {
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
      assert.deepEqual([body.data.map((e: ShownEvent) => e.type), body.next_cursor], [expected, null])
    }
  })

  test('unknown types and events are refused, types with a suggestion', async ({ call }) => {
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

everyDatabase('Event access', (server) => {
  it('phone numbers are masked for staff who may not see them', async () => {
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
      { ...groupEvent('x'), type: 'message.failed/1', data: { message } },
      {
        ...groupEvent('x'),
        type: 'message.sent/1',
        data: { message: { ...message, type: 'SYSTEM', text: 'Now 15550100042' } },
      },
      {
        ...groupEvent('x'),
        type: 'contact.updated/1',
        data: { contact: { id: '4', chatapp_user_id: 'u15550100042', web_visitor_id: 'v15550100042' } },
      },
      // Of a version that is no more, or not yet.
      { ...groupEvent('x'), type: 'call.missed/1', data: { call: { id: '4', from: '15550100042' } } },
    ])
    const seenBy = async (key: string) =>
      (await doAs(server(), key)('events_list')).data.map((e: ShownEvent) => e.data)
    const hidden = (await workspace.staff({ role: 'agent', hide_phone_numbers: true })).key
    const [contact, failed, system, visitor, call] = await seenBy(hidden)
    assert.deepEqual([contact.contact.phone, contact.contact.name], ['********042', 'Ada'])
    assert.deepEqual(
      [failed.message.error, failed.message.text],
      ['No such number: ********042.', 'Call 15550100077'],
    )
    assert.equal(system.message.text, 'Now ********042')
    const ids = { id: '4', chatapp_user_id: 'u********042', web_visitor_id: 'v********042' }
    assert.deepEqual(visitor.contact, ids)
    assert.deepEqual(call.call, { id: '4', from: '********042' })
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

  it('staff with channels see only events of conversations and messages of these', async () => {
    const workspace = await makeWorkspace(server())
    const about = (type: string, data: unknown): EventRow => ({ ...groupEvent('x'), type, data })
    await insertEvents(server().db, workspace.id, [
      about('conversation.created/1', { conversation: { id: '1', channel_id: '11' } }),
      about('message.received/1', { message: { id: '2', channel_id: '12' } }),
      about('conversation.closed/1', { conversation: { id: '3', channel_id: null } }),
      about('message.sent/1', { message: { id: '4', channel_id: '11' } }),
      about('contact.deleted/1', { contact: { id: '5' } }),
    ])
    const { key } = await workspace.staff({ role: 'agent', channel_ids: ['11'] })
    const types = (page: { data: ShownEvent[] }) => page.data.map((e) => e.type)
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

  it('a rare type in a long log is scanned in steps', async () => {
    const workspace = await makeWorkspace(server())
    await sql`
      insert into events (workspace_id, id, type, occurred_at, data)
      select ${workspace.id}::bigint, 'evt_01M0000000' || lpad(n::text, 16, '0'),
        case when n in (1, 52000, 52001) then 'group.deleted/1' else 'group.created/1' end,
        now(), '{}'::jsonb
      from generate_series(1, 52001) as n`.execute(server().db)
    const run = doAs(server(), workspace.owner.key)
    const first = await run('events_list', { types: ['group.deleted'] })
    assert.deepEqual([first.data.length, typeof first.next_cursor], [1, 'string'])
    const second = await run('events_list', { types: ['group.deleted'], after: first.next_cursor, limit: 1 })
    assert.deepEqual(
      [second.data.map((e: ShownEvent) => e.id), second.next_cursor],
      [['evt_01M00000000000000000052000'], 'evt_01M00000000000000000052000'],
    )
    const third = await run('events_list', { types: ['group.deleted'], after: second.next_cursor })
    assert.deepEqual(
      [third.data.map((e: ShownEvent) => e.id), third.next_cursor],
      [['evt_01M00000000000000000052001'], null],
    )
  })
})

everyDatabase('Event retention', (server) => {
  it('deletes events after the configured days, unless a delivery is pending', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const day = (n: number): string => new Date(Date.parse(server().app.now()) - n * 86_400_000).toISOString()
    const events = [20, 19, 15.1, 14.9, 0].map((n) => ({ ...groupEvent(`${n} days`), occurred_at: day(n) }))
    await insertEvents(server().db, workspace.id, events.slice(0, 1))
    await run('webhooks_create_endpoint', { url: 'https://hooks.example.com/in', event_types: ['*'] })
    await insertEvents(server().db, workspace.id, events.slice(1, 2))
    await sql`
      update webhook_endpoints set status = 'disabled'
      where workspace_id = ${workspace.id}`.execute(server().db)
    await insertEvents(server().db, workspace.id, events.slice(2))
    const names = async () => (await run('events_list')).data.map((e: ShownEvent) => e.data['group']!['name'])
    await deleteOldEvents({
      ...server().app,
      config: { ...server().app.config, eventRetentionDays: null },
    })
    assert.equal((await names()).length, 5)
    await deleteOldEvents({ ...server().app, config: { ...server().app.config, eventRetentionDays: 15 } })
    assert.deepEqual(await names(), ['19 days', '14.9 days', '0 days'])
    assert.equal(
      (await callAs(server(), workspace.owner.key)('events_list', { after: events[0]!.id })).status,
      404,
    )
  })

  it('goes on behind more events than a batch has that deliveries need', async () => {
    const { db, app } = server()
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const { endpoint } = await run('webhooks_create_endpoint', { url: 'https://hooks.example.com/in' })
    const old = new Date(Date.parse(app.now()) - 20 * 86_400_000).toISOString()
    const listLeft = async () =>
      (
        await sql<{ needed: string; free: string }>`
        select count(*) filter (where type = 'group.created/1') as needed,
          count(*) filter (where type = 'group.deleted/1') as free
        from events where workspace_id = ${workspace.id}`.execute(db)
      ).rows
    await sql`
      insert into events (workspace_id, id, type, occurred_at, data)
      select ${workspace.id}::bigint, 'evt_01K0000000' || lpad(n::text, 16, '0'),
        case when n <= 1500 then 'group.created/1' else 'group.deleted/1' end, ${old}::timestamptz, '{}'::jsonb
      from generate_series(1, 1510) as n`.execute(db)
    await sql`
      insert into webhook_deliveries (workspace_id, id, endpoint_id, event_id, event_type, next_attempt_at, created_at)
      select workspace_id, replace(id, 'evt_', 'dlv_'), ${endpoint.id}, id, type, now() + interval '1 day', now()
      from events where workspace_id = ${workspace.id} and type = 'group.created/1'`.execute(db)
    const retention = { ...app, config: { ...app.config, eventRetentionDays: 15 } }
    await deleteOldEvents(retention)
    assert.deepEqual(await listLeft(), [{ needed: '1500', free: '0' }])
    await sql`
      update webhook_deliveries set status = 'dead' where workspace_id = ${workspace.id}`.execute(db)
    await deleteOldEvents(retention)
    assert.deepEqual(await listLeft(), [{ needed: '0', free: '0' }])
  })
})

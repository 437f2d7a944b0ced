import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { createEventId } from '../../server/ids.ts'
import { createChannel, updateStaff } from '../../storage/workspace/admin.ts'
import { insertEvents } from '../../storage/events/events.ts'
import { importContacts, MANY, runJobs } from '../bulk-jobs/many.ts'
import { callAs, doAs, plantContact } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { deliverDue } from '../deliver-due.ts'
import { plantConversation, receiveMessage, sendReply } from '../inbox/conversations.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { startReceiver } from '../webhooks/receiver.ts'

/*
 * What staff who may see some channels only, and agents, still see. That nothing else shows is the subject of
 * tests/core/visibility.test.ts.
 */

type Run = ReturnType<typeof doAs>

/** Two channels with a conversation each, one of them assigned to an agent who may see the first channel. */
const createScene = async (server: TestServer) => {
  const workspace = await makeWorkspace(server)
  const owner = doAs(server, workspace.owner.key)
  const [first] = (await owner('workspace_channels')).data as { id: string }[]
  const second = await createChannel(server.db, workspace.id, { type: 'web', name: 'Shop' }, server.app.now())
  const seen = await plantConversation(server, workspace.id, { name: 'Ada', channelId: first!.id })
  const hidden = await plantConversation(server, workspace.id, { name: 'Bob', channelId: second.id })
  const { key, staffId } = await workspace.staff({ role: 'agent', reports: true, channel_ids: [first!.id] })
  return { workspace, owner, agent: doAs(server, key), key, staffId, first: first!, second, seen, hidden }
}

const countMatches = async (run: Run, filter: object): Promise<number> =>
  (await run('crm_count_contacts', { filter })).count as number

everyDatabase('Staff who are limited to channels', (server) => {
  it('the log tells of the jobs that jobs_list shows, and of no others', async () => {
    const { workspace, owner, agent, key, first } = await createScene(server())
    const manager = await workspace.staff({ role: 'manager', channel_ids: [first.id] })
    await importContacts(callAs(server(), workspace.owner.key), MANY, (n) => ({ name: `Cy ${n}` }))
    for (const [run, tag] of [
      [owner, 'Owner'],
      [agent, 'Agent'],
    ] as const)
      await run('crm_tag_contacts', { filter: { name: { contains: 'Cy' } }, tags: [tag] })
    await runJobs(server())
    for (const [viewer, count] of [
      [workspace.owner.key, 2],
      [manager.key, 2],
      [key, 1],
    ] as const) {
      const run = doAs(server(), viewer)
      const listed = (await run('jobs_list')).data.map(({ id }: { id: string }) => id)
      const { data } = await run('events_list', { types: ['job.finished'] })
      const told = data.map((event: { data: { job: { id: string } } }) => event.data.job.id)
      assert.equal(listed.length, count)
      assert.deepEqual(told.toSorted(), listed.toSorted())
    }
  })

  it('a request of their own key without a channel is in the list and in the log, as it can be read', async () => {
    const { workspace, agent, key, staffId } = await createScene(server())
    const asking = await workspace.key(staffId, { agent: true })
    const message = await agent('messaging_create_quick_message', { code: 'hello', text: 'Hello' })
    const ask = callAs(server(), asking.key)
    const asked = await ask(
      'messaging_delete_quick_message',
      { quick_message_id: message.id },
      { confirm: 'delete' },
    )
    assert.equal(asked.status, 202, asked.text)
    for (const viewer of [key, asking.key, workspace.owner.key]) {
      const run = doAs(server(), viewer)
      const { data: listed } = await run('approvals_list')
      const { data: told } = await run('events_list', { types: ['approval.requested'] })
      assert.equal(listed.length, 1)
      assert.deepEqual(
        [(await run('approvals_get', { approval_id: listed[0].id })).id, told[0]?.data.approval.id],
        [listed[0].id, listed[0].id],
      )
    }
  })

  it('filters are about the conversations and the activity on their channels', async () => {
    const { owner, agent, first, second } = await createScene(server())
    const future = { gte: '2100-01-01T00:00:00Z' }
    const cases: [filter: object, owner: number, agent: number][] = [
      [{ conversations: { some: {} } }, 2, 1],
      [{ conversations: { none: {} } }, 0, 1],
      [{ conversations: { some: { channelId: { eq: first.id } } } }, 1, 1],
      [{ conversations: { some: { channelId: { eq: second.id } } } }, 1, 0],
      [{ lastActivityAt: { isNull: false } }, 2, 1],
      [{ lastActivityAt: { isNull: true } }, 0, 1],
      [{ lastActivityAt: { gte: '2020-01-01T00:00:00Z' } }, 2, 1],
      [{ lastActivityAt: { lt: '2100-01-01T00:00:00Z' } }, 2, 1],
      [{ lastActivityAt: { between: ['2020-01-01T00:00:00Z', '2100-01-01T00:00:00Z'] } }, 2, 1],
      [{ lastActivityAt: { ne: '2020-01-01T00:00:00Z' } }, 2, 1],
      [{ not: { lastActivityAt: future } }, 2, 2],
      [{ lastActivityAt: future }, 0, 0],
      [{ awaitingReply: { eq: true } }, 2, 1],
      [{ awaitingReply: { ne: true } }, 0, 1],
      [{ awaitingReply: { eq: false } }, 0, 1],
      [{ awaitingReply: { ne: false } }, 2, 1],
      [{ not: { awaitingReply: { eq: true } } }, 0, 1],
      [{ awaitingReply: { isNull: false } }, 2, 2],
      [{ awaitingReply: { isNull: true } }, 0, 0],
    ]
    for (const [filter, all, visible] of cases)
      assert.deepEqual(
        [await countMatches(owner, filter), await countMatches(agent, filter)],
        [all, visible],
        JSON.stringify(filter),
      )
  })

  it('awaitingReply follows messages, replies and the end of a conversation', async () => {
    const { workspace, owner, seen, hidden } = await createScene(server())
    const listWaiting = async (): Promise<string[]> =>
      (await owner('crm_search_contacts', { filter: { awaitingReply: { eq: true } } })).data
        .map((contact: { id: string }) => contact.id)
        .toSorted()
    const both = [seen.contactId, hidden.contactId].map(String).toSorted()
    assert.deepEqual(await listWaiting(), both)
    await sendReply(server(), workspace.id, hidden.id)
    assert.deepEqual(await listWaiting(), [String(seen.contactId)])
    await receiveMessage(server(), workspace.id, hidden.id)
    assert.deepEqual(await listWaiting(), both)
    await owner('inbox_close_conversation', { conversation_id: hidden.id })
    assert.deepEqual(await listWaiting(), [String(seen.contactId)])
  })

  it('the comparison of the latest activity agrees with what a contact shows', async () => {
    const { agent, seen } = await createScene(server())
    const { last_activity_at: at } = await agent('crm_get_contact', { contact_id: seen.contactId })
    const before = new Date(Date.parse(at) - 1).toISOString()
    for (const [test, expected] of [
      [{ eq: at }, 1],
      [{ ne: at }, 0],
      [{ gt: at }, 0],
      [{ gte: at }, 1],
      [{ lt: at }, 0],
      [{ lte: at }, 1],
      [{ gt: before }, 1],
      [{ lte: before }, 0],
      [{ between: [before, at] }, 1],
    ] as const)
      assert.equal(await countMatches(agent, { lastActivityAt: test }), expected, JSON.stringify(test))
  })

  it('reports count what is on their channels, live, and say so', async () => {
    const { owner, agent, first, seen, hidden } = await createScene(server())
    for (const { id } of [seen, hidden]) await owner('inbox_close_conversation', { conversation_id: id })
    const summaries = await Promise.all(
      [owner, agent].map((run) => run('reports_workspace_summary', { preset: 'today' })),
    )
    assert.deepEqual(
      summaries.map(({ conversations, contacts }) => [conversations.closes, contacts.new]),
      [
        [2, 2],
        [1, 2],
      ],
    )
    const staff = await Promise.all([owner, agent].map((run) => run('reports_staff', { preset: 'today' })))
    assert.deepEqual(
      staff.map(({ data }) => data.map((row: { closed: number }) => row.closed)),
      [[2], [1]],
    )
    for (const [, report] of [summaries, staff]) {
      const note = report!.notes.find((text: string) => text.includes('channels that you may see'))
      assert.match(note, new RegExp(`: ${first.id}\\.`))
    }
    assert.ok(!JSON.stringify([summaries[0], staff[0]]).includes('channels that you may see'))
  })

  it('logs of all channels are refused, and the log of events is of their channels', async () => {
    const { workspace, owner, agent, key, first, second, hidden } = await createScene(server())
    const { endpoint } = await owner('webhooks_create_endpoint', {
      url: 'https://example.com/hooks',
      event_types: ['*'],
    })
    const link = { allow_duplicate: true, channel_id: first.id }
    await server().sync(workspace.id)
    const created = await callAs(server(), workspace.owner.key)(
      'messaging_create_short_link',
      { ...link, message: 'Hello' },
      { idempotencyKey: 'visible-link' },
    )
    assert.equal(created.status, 201, created.text)
    await owner('inbox_close_conversation', { conversation_id: hidden.id })
    const { data } = await owner('webhooks_list_deliveries', { endpoint_id: endpoint.id })
    const limited = callAs(server(), key)
    for (const [op, input] of [
      ['webhooks_list_deliveries', { endpoint_id: endpoint.id }],
      ['webhooks_get_delivery', { delivery_id: data[0].id }],
      ['webhooks_replay_delivery', { delivery_id: data[0].id }],
      [
        'webhooks_recover_endpoint',
        { endpoint_id: endpoint.id, from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' },
      ],
    ] as const) {
      const { status, body } = await limited(op, input)
      assert.deepEqual([status, body.reason], [403, 'channels_limited'], op)
    }
    await workspace.staff({ name: 'Clerk', channel_ids: [first.id, second.id] })
    const manager = await workspace.staff({ role: 'manager', channel_ids: [first.id] })
    const { status, body } = await callAs(server(), manager.key)('audit_list')
    assert.deepEqual([status, body.reason], [403, 'channels_limited'])
    const types = (await agent('events_list', { limit: 100 })).data.map(
      (event: { type: string }) => event.type,
    )
    assert.ok(
      types.includes('short_link.created/1') && !types.includes('conversation.closed/1'),
      types.join(),
    )
    const { data: staff } = await agent('workspace_list_staff', { search: 'Clerk' })
    assert.deepEqual(staff[0].channel_ids, [first.id])
  })

  it('what happens on other channels does not move the position of now', async () => {
    const { workspace, owner, agent, second, seen, hidden } = await createScene(server())
    const readNow = async (run: Run): Promise<string> =>
      (await run('events_list', { after: 'now' })).next_cursor
    const [ofAgent, ofOwner] = [await readNow(agent), await readNow(owner)]
    await owner('inbox_close_conversation', { conversation_id: hidden.id })
    assert.notEqual(await readNow(owner), ofOwner)
    assert.equal(await readNow(agent), ofAgent)
    // More than are read at a time.
    const closed = {
      type: 'conversation.closed/1',
      occurred_at: server().app.now(),
      data: { conversation: { id: hidden.id, channel_id: second.id } },
    }
    const many = Array.from({ length: 1100 }, () => ({ ...closed, id: createEventId() }))
    await insertEvents(server().db, workspace.id, many)
    assert.equal(await readNow(agent), ofAgent)
    await owner('inbox_close_conversation', { conversation_id: seen.id })
    const { data } = await agent('events_list', { after: ofAgent })
    assert.deepEqual(
      data.map((event: { data: { conversation: { id: string } } }) => event.data.conversation.id),
      [seen.id],
    )
    assert.equal(await readNow(agent), data[0].id)
  })

  it('an answer that was stored when they could see more is not given again', async () => {
    const { workspace, first, second, hidden } = await createScene(server())
    const { staffId } = await workspace.staff({ role: 'agent' })
    /** Closes the hidden conversation with one idempotency key, by a new key of the staff member. */
    const close = async (channels: string[] | null) => {
      await updateStaff(server().db, workspace.id, staffId, { channel_ids: channels }, undefined)
      const { key } = await workspace.key(staffId)
      const input = { conversation_id: hidden.id }
      return await callAs(server(), key)('inbox_close_conversation', input, {
        idempotencyKey: 'before-limit',
      })
    }
    assert.equal((await close(null)).status, 200)
    assert.equal((await close(null)).headers['idempotent-replayed'], 'true')
    for (const channels of [[first.id], [first.id], [], [first.id, second.id]]) {
      const { status, body } = await close(channels)
      assert.deepEqual([status, body.code, body.reason], [409, 'conflict', 'visibility_changed'])
    }
    assert.equal((await close(null)).headers['idempotent-replayed'], 'true')
  })
})

everyDatabase('Manager-only fields', (server) => {
  it('saved filters, events and delivery logs do not name them to agents', async () => {
    const workspace = await makeWorkspace(server())
    const owner = doAs(server(), workspace.owner.key)
    const agent = doAs(server(), (await workspace.staff({ role: 'agent' })).key)
    await owner('crm_create_custom_field', { key: 'salary', type: 'int', visibility: 'manager_only' })
    await owner('crm_create_custom_field', { key: 'plan', type: 'text' })
    const plan = { attributes: { some: { attributeName: { eq: 'plan' }, stringValue: { eq: 'pro' } } } }
    const salary = { attributes: { none: { attributeName: { eq: 'salary' }, numberValue: { gt: 9000 } } } }
    const filter = { or: [plan, { not: salary }] }
    const { saved_filter: saved } = await owner('crm_create_saved_filter', { name: 'Rich', filter })
    const read = { saved_filter_id: saved.id }
    assert.deepEqual((await owner('crm_get_saved_filter', read)).filter, filter)
    const shown = { or: [plan, { not: { attributes: { none: { attributeName: { eq: '****' } } } } }] }
    assert.deepEqual((await agent('crm_get_saved_filter', read)).filter, shown)
    assert.deepEqual((await agent('crm_list_saved_filters')).data[0].filter, shown)

    const { id } = await owner('crm_upsert_contact', { phone: '+15550100077', name: 'Ada' })
    await owner('crm_update_contact', { contact_id: id, attributes: { salary: 9001, plan: 'pro' } })
    await owner('crm_update_contact', { contact_id: id, attributes: { salary: 9002 } })
    const listChanges = async (run: Run): Promise<string[][]> =>
      (await run('events_list', { types: ['contact.updated'] })).data.map(
        (event: { data: { changes: string[] } }) => event.data.changes.toSorted(),
      )
    assert.deepEqual(await listChanges(owner), [
      ['attributes.plan', 'attributes.salary'],
      ['attributes.salary'],
    ])
    assert.deepEqual(await listChanges(agent), [['attributes.plan'], []])
  })

  it('who became an agent is not shown again what they changed as a manager', async () => {
    const workspace = await makeWorkspace(server())
    const field = { key: 'salary', type: 'text', visibility: 'manager_only' }
    await doAs(server(), workspace.owner.key)('crm_create_custom_field', field)
    const contact = { phone: null, name: 'Ada', email: null, attrs: {}, tagIds: [], groupIds: [] }
    // More than are changed at once, without a job.
    for (let n = 0; n < 501; n++) await plantContact(server().db, workspace.id, contact, server().app.now())
    const { staffId } = await workspace.staff({ role: 'manager' })
    const input = { filter: { name: { contains: 'Ada' } }, attributes: { salary: 'the highest' } }
    const update = async () => {
      const call = callAs(server(), (await workspace.key(staffId)).key)
      const reply = await call('crm_update_contacts', input, { idempotencyKey: 'as-a-manager' })
      const { body } = await call('jobs_list')
      return { ...reply, attributes: body.data[0].input.attributes }
    }
    const first = await update()
    assert.deepEqual([first.status, first.attributes], [202, input.attributes])
    await updateStaff(server().db, workspace.id, staffId, { role: 'agent' }, undefined)
    const second = await update()
    assert.deepEqual([second.status, second.body.reason], [409, 'visibility_changed'])
    assert.deepEqual(second.attributes, { salary: '(hidden)' })
  })

  it('an endpoint whose address an agent gave is not sent their names', async () => {
    const workspace = await makeWorkspace(server())
    const owner = doAs(server(), workspace.owner.key)
    const agent = doAs(server(), (await workspace.staff({ role: 'agent' })).key)
    await owner('crm_create_custom_field', { key: 'salary', type: 'int', visibility: 'manager_only' })
    const receivers = await Promise.all([startReceiver(), startReceiver(), startReceiver()])
    // The job attempts deliveries of every workspace, and other tests leave some behind.
    await sql`update webhook_deliveries set status = 'skipped' where status in ('pending', 'failed')`.execute(
      server().db,
    )
    try {
      const hooks = []
      for (const [n, run] of [owner, agent, owner].entries())
        hooks.push(
          await run('webhooks_create_endpoint', {
            url: `${receivers[n]!.url}/first`,
            payload_format: 'data',
            event_types: ['contact.updated/1'],
          }),
        )
      // Led elsewhere by an agent.
      await agent('webhooks_update_endpoint', {
        endpoint_id: hooks[2].endpoint.id,
        url: `${receivers[2]!.url}/then`,
      })
      const { id } = await owner('crm_upsert_contact', { phone: '+15550100078', name: 'Ada' })
      await owner('crm_update_contact', { contact_id: id, name: 'Eva', attributes: { salary: 1 } })
      await owner('crm_update_contact', { contact_id: id, metadata: { plan: 'gold' } })
      await owner('crm_update_contact', { contact_id: id, attributes: { salary: 2 } })
      while ((await deliverDue(server().app)) > 0);
      const changes = receivers.map(({ received }) =>
        received
          .map(({ body }) => (JSON.parse(body) as { changes: string[] }).changes)
          .toSorted((a, b) => b.length - a.length),
      )
      assert.deepEqual(changes, [
        [['name', 'attributes.salary'], ['metadata'], ['attributes.salary']],
        [['name'], [], []],
        [['name'], [], []],
      ])
    } finally {
      for (const receiver of receivers) await receiver.close()
    }
  })
})

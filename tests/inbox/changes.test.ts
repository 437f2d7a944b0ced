import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { createChannel, createTeam, updateStaff } from '../../storage/admin.ts'
import { callAs, doAs } from '../calls.ts'
import { customerWrites, plantConversation, staffReplies } from './conversations.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

/** Events about conversations in the order of their writing, as type and conversation. */
const eventsOf = async (server: TestServer, workspaceId: string) =>
  (
    await sql<{ type: string; data: { conversation: Record<string, unknown>; reason?: string | null } }>`
    select type, data from events where workspace_id = ${workspaceId} and type like 'conversation.%' and type <> 'conversation.created/1' order by xid, id`.execute(
      server.db,
    )
  ).rows

const typesOf = async (server: TestServer, workspaceId: string): Promise<string[]> =>
  (await eventsOf(server, workspaceId)).map(({ type }) => type)

const stateOf = async (server: TestServer, workspaceId: string, id: string) =>
  (
    await sql<
      Record<string, unknown>
    >`select * from conversations where workspace_id = ${workspaceId} and id = ${id}`.execute(server.db)
  ).rows[0]!

const team = async (server: TestServer, workspace: TestWorkspace, name: string): Promise<string> =>
  (await createTeam(server.db, workspace.id, name, server.app.now())).id
const otherChannel = async (server: TestServer, workspace: TestWorkspace): Promise<string> =>
  (
    await createChannel(
      server.db,
      workspace.id,
      { type: 'web', name: 'Shop window', identifier: 'shop.example', status: 'connected' },
      server.app.now(),
    )
  ).id

everyDoor('Changes of a conversation', (test) => {
  test('assigned to staff, to a team, and put back', async ({ server, workspace, call }) => {
    const { id, contactId, channelId } = await plantConversation(server, workspace.id)
    const grace = (await workspace.staff({ name: 'Grace' })).staffId
    const support = await team(server, workspace, 'Support')
    const assign = (input: Record<string, unknown>) =>
      call('inbox_assign_conversation', { conversation_id: id, ...input })
    const shown = (staff: string | null, teamId: string | null) => ({
      id,
      state: 'open',
      assignee_staff_id: staff,
      team_id: teamId,
      tags: [],
    })

    assert.deepEqual((await assign({ staff_id: grace, dry_run: true })).body, {
      conversation: shown(grace, null),
      assigned_to: 'Grace',
      dry_run: true,
    })
    assert.equal((await stateOf(server, workspace.id, id))['assigned_staff_id'], null)
    assert.deepEqual((await assign({ staff_id: grace })).body, {
      conversation: shown(grace, null),
      assigned_to: 'Grace',
    })
    assert.notEqual((await stateOf(server, workspace.id, id))['assigned_at'], null)
    assert.deepEqual((await assign({ staff_id: grace })).body, {
      conversation: shown(grace, null),
      assigned_to: 'Grace',
    })
    const refused = await assign({ staff_id: grace, only_if_unassigned: true })
    assert.deepEqual([refused.status, refused.body.reason], [409, 'already_assigned'])
    assert.deepEqual(
      (await assign({ team_id: support })).body,
      { conversation: shown(null, support), assigned_to: 'Support' },
      'a team takes the place of the staff member',
    )
    assert.deepEqual(
      [
        (await assign({ staff_id: grace, only_if_unassigned: true })).status,
        (await assign({ team_id: support, only_if_unassigned: true })).status,
      ],
      [409, 409],
    )
    assert.deepEqual(
      (await assign({ staff_id: grace })).body.conversation,
      shown(grace, support),
      'a staff member takes it from the team, which keeps it',
    )

    const back = await call('inbox_unassign_conversation', { conversation_id: id })
    assert.deepEqual(back.body, { conversation: shown(null, null), changed: true })
    assert.deepEqual((await call('inbox_unassign_conversation', { conversation_id: id })).body, {
      conversation: shown(null, null),
      changed: false,
    })
    assert.equal((await stateOf(server, workspace.id, id))['assigned_at'], null)
    assert.equal((await assign({ staff_id: grace, only_if_unassigned: true })).status, 200)

    const events = await eventsOf(server, workspace.id)
    const about = { id, state: 'open', contact_id: contactId, channel_id: channelId, episode: 1 }
    assert.deepEqual(
      events.map(({ type, data }) => [type, data.conversation]),
      [
        ['conversation.assigned/1', { ...about, assignee_staff_id: grace, team_id: null }],
        ['conversation.assigned/1', { ...about, assignee_staff_id: null, team_id: support }],
        ['conversation.assigned/1', { ...about, assignee_staff_id: grace, team_id: support }],
        ['conversation.unassigned/1', { ...about, assignee_staff_id: null, team_id: null }],
        ['conversation.assigned/1', { ...about, assignee_staff_id: grace, team_id: null }],
      ],
    )
  })

  test('whom it cannot be assigned to', async ({ server, workspace, call }) => {
    const { id } = await plantConversation(server, workspace.id)
    const web = await otherChannel(server, workspace)
    const away = (await workspace.staff({ name: 'Away', enabled: false })).staffId
    const elsewhere = (await workspace.staff({ name: 'Elsewhere', channel_ids: [web] })).staffId
    const support = await team(server, workspace, 'Support')
    const assign = (input: Record<string, unknown>) =>
      call('inbox_assign_conversation', { conversation_id: id, ...input })

    for (const input of [{}, { staff_id: away, team_id: support }]) {
      const { status, body, text } = await assign(input)
      assert.deepEqual([status, body.code], [400, 'invalid_input'])
      assert.ok(text.includes('staff_id') && text.includes('team_id'), text)
    }
    const disabled = await assign({ staff_id: away })
    assert.deepEqual(
      [disabled.status, disabled.body.code, disabled.body.reason],
      [403, 'forbidden', 'assignee_disabled'],
    )
    const blind = await assign({ staff_id: elsewhere })
    assert.deepEqual(
      [blind.status, blind.body.code, blind.body.reason],
      [403, 'forbidden', 'no_channel_access'],
    )
    for (const input of [
      { staff_id: '999999999' },
      { team_id: '999999999' },
      { staff_id: '9999999999999999999' },
    ])
      assert.equal((await assign(input)).status, 404)
    const foreign = await makeWorkspace(server)
    assert.equal((await assign({ staff_id: foreign.owner.staffId })).status, 404)
    assert.equal((await assign({ team_id: await team(server, foreign, 'Theirs') })).status, 404)
    assert.equal((await stateOf(server, workspace.id, id))['assigned_staff_id'], null)
    assert.deepEqual(await typesOf(server, workspace.id), [])
  })

  test('closed and opened again', async ({ server, workspace, call }) => {
    const { id } = await plantConversation(server, workspace.id)
    const close = (input: Record<string, unknown> = {}) =>
      call('inbox_close_conversation', { conversation_id: id, ...input })
    const reopen = (input: Record<string, unknown> = {}) =>
      call('inbox_reopen_conversation', { conversation_id: id, ...input })
    const shown = (state: string) => ({ id, state, assignee_staff_id: null, team_id: null, tags: [] })

    assert.deepEqual((await reopen()).body, { conversation: shown('open'), changed: false })
    assert.deepEqual((await close({ reason: 'Delivered', dry_run: true })).body, {
      conversation: shown('closed'),
      changed: true,
      dry_run: true,
    })
    assert.equal((await stateOf(server, workspace.id, id))['state'], 'open')
    assert.deepEqual((await close({ reason: ' Delivered ' })).body, {
      conversation: shown('closed'),
      changed: true,
    })
    assert.deepEqual((await close({ reason: 'Again' })).body, {
      conversation: shown('closed'),
      changed: false,
    })
    assert.equal((await close({ reason: 'x'.repeat(201) })).status, 400)
    assert.deepEqual((await reopen({ title: 'Return', dry_run: true })).body, {
      conversation: shown('open'),
      changed: true,
      dry_run: true,
    })
    assert.deepEqual((await reopen({ title: 'Return' })).body, { conversation: shown('open'), changed: true })
    assert.deepEqual((await reopen({ title: 'Other' })).body, { conversation: shown('open'), changed: false })
    for (const title of ['', '  ', 'x'.repeat(121)]) assert.equal((await reopen({ title })).status, 400)
    assert.equal((await close()).body.changed, true)

    const episodes = await sql<Record<string, unknown>>`
      select n, title, opened_by, closed_by, close_reason, closed_at is not null as closed from conversation_episodes where workspace_id = ${workspace.id} and conversation_id = ${id} order by n`.execute(
      server.db,
    )
    const owner = workspace.owner.staffId
    assert.deepEqual(
      [...episodes.rows],
      [
        { n: 1, title: null, opened_by: null, closed_by: owner, close_reason: 'Delivered', closed: true },
        { n: 2, title: 'Return', opened_by: owner, closed_by: owner, close_reason: null, closed: true },
      ],
    )
    const events = await eventsOf(server, workspace.id)
    assert.deepEqual(
      events.map(({ type, data }) => [
        type,
        data.conversation['state'],
        data.conversation['episode'],
        data.reason,
      ]),
      [
        ['conversation.closed/1', 'closed', 1, 'Delivered'],
        ['conversation.reopened/1', 'open', 2, undefined],
        ['conversation.closed/1', 'closed', 2, null],
      ],
    )
  })

  test('tagged by name and by id', async ({ server, workspace, call }) => {
    const { id } = await plantConversation(server, workspace.id)
    const tag = (input: Record<string, unknown>) =>
      call('inbox_tag_conversation', { conversation_id: id, ...input })
    const names = (body: { conversation: { tags: { name: string }[] } }): string[] =>
      body.conversation.tags.map((t) => t.name)

    const rehearsed = await tag({ add: ['VIP'], dry_run: true })
    assert.deepEqual(
      [rehearsed.body.conversation.tags, rehearsed.body.changed, rehearsed.body.dry_run],
      [[{ id: null, name: 'VIP' }], true, true],
    )
    assert.deepEqual((await call('crm_list_tags')).body.data, [])
    const first = await tag({ add: ['VIP', 'vip', 'Zebra', 'älter'] })
    assert.deepEqual([names(first.body), first.body.changed], [['VIP', 'Zebra', 'älter'], true])
    const vip = first.body.conversation.tags[0].id
    assert.deepEqual(
      [
        (await tag({ add: ['Vip'] })).body.changed,
        (await tag({ add: [vip] })).body.changed,
        (await tag({ remove: ['never seen'] })).body.changed,
      ],
      [false, false, false],
    )
    assert.deepEqual(
      (await call('crm_list_tags')).body.data.map((t: { name: string }) => t.name),
      ['VIP', 'Zebra', 'älter'],
      'an unknown name to remove becomes no tag',
    )
    const swapped = await tag({ add: ['lead'], remove: [vip, 'ZEBRA'] })
    assert.deepEqual([names(swapped.body), swapped.body.changed], [['lead', 'älter'], true])

    for (const input of [
      {},
      { add: [] },
      { add: [], remove: [] },
      { add: ['new'], remove: ['NEW'] },
      { add: [vip], remove: ['vip'] },
      { add: [999999999] },
      { add: [' '] },
      { add: Array(21).fill('x') },
    ]) {
      const { status, body } = await tag(input)
      assert.deepEqual([status, body.code], [400, 'invalid_input'], JSON.stringify(input))
    }
    assert.deepEqual((await call('crm_list_tags')).body.data.length, 4, 'what is refused makes no tags')
    assert.deepEqual(names((await call('inbox_close_conversation', { conversation_id: id })).body), [
      'lead',
      'älter',
    ])
  })

  test('noted on, which customers never see', async ({ server, workspace, call }) => {
    const { id } = await plantConversation(server, workspace.id, { inboundAt: '2025-10-02T08:00:00.000Z' })
    const before = await stateOf(server, workspace.id, id)
    const note = (input: Record<string, unknown>) => call('inbox_add_note', { conversation_id: id, ...input })
    const rehearsed = await note({ text: 'Asked the courier.', dry_run: true })
    assert.deepEqual([rehearsed.status, rehearsed.body.message.id, rehearsed.body.dry_run], [201, null, true])
    const { status, body } = await note({ text: '  Asked the courier. 🚚 ' })
    assert.equal(status, 201)
    const { message } = body
    assert.deepEqual(
      [
        message.conversation_id,
        message.direction,
        message.status,
        message.type,
        message.text,
        message.note,
        message.from,
        message.has_media,
      ],
      [
        id,
        'system',
        'system',
        'TEXT',
        'Asked the courier. 🚚',
        true,
        { staff_id: workspace.owner.staffId, name: 'Owner' },
        false,
      ],
    )
    for (const text of ['', '  ', 'x'.repeat(4097)]) assert.equal((await note({ text })).status, 400)
    const after = await stateOf(server, workspace.id, id)
    for (const field of ['last_message_id', 'last_activity_at', 'reply_status', 'unread_count', 'state'])
      assert.equal(after[field], before[field], field)
    const notes = await sql<{
      id: string
    }>`select id from messages where workspace_id = ${workspace.id} and note`.execute(server.db)
    assert.deepEqual([...notes.rows], [{ id: message.id }])
  })

  test('remembered, and read', async ({ server, workspace, call }) => {
    const { id } = await plantConversation(server, workspace.id)
    const remind = (at: string | null, more: Record<string, unknown> = {}) =>
      call('inbox_set_reminder', { conversation_id: id, at, ...more })
    assert.deepEqual((await remind(null)).body.changed, false)
    assert.equal(
      (await remind('2099-10-02T09:00:00+02:00', { dry_run: true })).body.conversation.reminder_at,
      '2099-10-02T07:00:00.000Z',
    )
    const set = await remind('2099-10-02T09:00:00.123456+02:00')
    assert.deepEqual(
      [set.body.conversation.reminder_at, set.body.changed],
      ['2099-10-02T07:00:00.123Z', true],
    )
    assert.equal((await remind('2099-10-02T07:00:00.123Z')).body.changed, false)
    for (const at of [
      '2020-01-01T00:00:00Z',
      '0000-01-01T00:00:00Z',
      '2099-10-02',
      '2099-10-02T09:00:00',
      '9999-12-31T23:59:59-10:00',
      '2099-02-30T00:00:00Z',
      'tomorrow',
      '',
    ]) {
      const { status, body } = await remind(at)
      assert.equal(status, 400, at)
      assert.ok(JSON.stringify(body.errors).includes('at'), at)
    }
    assert.deepEqual(
      [
        (await remind(null)).body.conversation.reminder_at,
        (await stateOf(server, workspace.id, id))['reminder_at'],
      ],
      [null, null],
    )

    const read = (more: Record<string, unknown> = {}) =>
      call('inbox_mark_read', { conversation_id: id, ...more })
    assert.deepEqual(
      [
        (await read({ dry_run: true })).body.conversation.unread_count,
        (await stateOf(server, workspace.id, id))['unread_count'],
      ],
      [0, 1],
    )
    assert.deepEqual([(await read()).body.changed, (await read()).body.changed], [true, false])
    const after = await stateOf(server, workspace.id, id)
    assert.deepEqual([after['unread_count'], after['reply_status']], [0, 'incoming_no_reply'])
    assert.deepEqual(await typesOf(server, workspace.id), [])
  })

  test('a key that is used again changes nothing again', async ({ server, workspace, call }) => {
    const { id } = await plantConversation(server, workspace.id)
    const { staffId } = await workspace.staff({ name: 'Grace' })
    const claim = () =>
      call(
        'inbox_assign_conversation',
        { conversation_id: id, staff_id: staffId, only_if_unassigned: true },
        { idempotencyKey: 'claim-it-once' },
      )
    const [first, again] = [await claim(), await claim()]
    assert.deepEqual([first.status, again.status], [200, 200])
    assert.deepEqual(again.body, first.body)
    const note = () =>
      call('inbox_add_note', { conversation_id: id, text: 'Once' }, { idempotencyKey: 'note-it-once' })
    assert.deepEqual((await note()).body, (await note()).body)
    const notes = await sql<{
      n: string
    }>`select count(*) as n from messages where workspace_id = ${workspace.id} and note`.execute(server.db)
    assert.deepEqual(
      [await typesOf(server, workspace.id), notes.rows[0]!.n],
      [['conversation.assigned/1'], '1'],
    )
  })
})

const changes: readonly (readonly [string, Record<string, unknown>])[] = [
  ['inbox_assign_conversation', { staff_id: '1' }],
  ['inbox_unassign_conversation', {}],
  ['inbox_close_conversation', {}],
  ['inbox_reopen_conversation', {}],
  ['inbox_tag_conversation', { add: ['VIP'] }],
  ['inbox_add_note', { text: 'Hello' }],
  ['inbox_set_reminder', { at: '2099-01-01T00:00:00Z' }],
  ['inbox_mark_read', {}],
]

everyDatabase('Changes of a conversation', (server) => {
  it('are for those who may use its channel', async () => {
    const workspace = await makeWorkspace(server())
    const web = await otherChannel(server(), workspace)
    const main = await plantConversation(server(), workspace.id)
    const seen = await plantConversation(server(), workspace.id, { channelId: web })
    const agent = await workspace.staff({ channel_ids: [web] })
    const run = callAs(server(), agent.key)
    for (const [op, input] of changes) {
      const given = 'staff_id' in input ? { staff_id: agent.staffId } : input
      const refused = await run(op, { conversation_id: main.id, ...given })
      assert.deepEqual([refused.status, refused.body.code], [404, 'not_found'], op)
      const { status, text } = await run(op, { conversation_id: seen.id, ...given })
      assert.ok(status < 300, `${op}: ${text}`)
    }
    assert.equal((await stateOf(server(), workspace.id, main.id))['state'], 'open')
  })

  it('do not reach other workspaces', async () => {
    const [mine, other] = [await makeWorkspace(server()), await makeWorkspace(server())]
    const { id } = await plantConversation(server(), other.id)
    const before = await stateOf(server(), other.id, id)
    for (const [op, input] of changes) {
      for (const conversation of [id, '9999999999999999999']) {
        const given = 'staff_id' in input ? { staff_id: mine.owner.staffId } : input
        assert.equal(
          (await callAs(server(), mine.owner.key)(op, { conversation_id: conversation, ...given })).status,
          404,
          op,
        )
      }
    }
    assert.deepEqual(await stateOf(server(), other.id, id), before)
    const tags = await sql`select 1 from tags where workspace_id = ${mine.id}`.execute(server().db)
    assert.equal(tags.rows.length, 0, 'a tag that could not be used is not made')
  })

  it('want the scope', async () => {
    const workspace = await makeWorkspace(server())
    const { id } = await plantConversation(server(), workspace.id)
    const key = await workspace.key(workspace.owner.staffId, {
      scopes: ['mcp:read', 'crm:write', 'messaging:write'],
    })
    for (const [op, input] of changes)
      assert.equal(
        (await callAs(server(), key.key)(op, { conversation_id: id, ...input })).body.code,
        'insufficient_scope',
        op,
      )
  })

  it('a staff member who loses the channel keeps what was given before', async () => {
    const workspace = await makeWorkspace(server())
    const web = await otherChannel(server(), workspace)
    const { id, channelId } = await plantConversation(server(), workspace.id)
    const { staffId } = await workspace.staff({ name: 'Grace', channel_ids: [channelId] })
    const run = doAs(server(), workspace.owner.key)
    await run('inbox_assign_conversation', { conversation_id: id, staff_id: staffId })
    await updateStaff(server().db, workspace.id, staffId, { channel_ids: [web] }, undefined)
    assert.equal(
      (await run('inbox_mark_read', { conversation_id: id })).conversation.assignee_staff_id,
      staffId,
    )
    assert.equal(
      (
        await callAs(server(), workspace.owner.key)('inbox_assign_conversation', {
          conversation_id: id,
          staff_id: staffId,
        })
      ).body.reason,
      'no_channel_access',
    )
  })
})

everyDatabase('The life of a conversation', (server) => {
  const start = async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const waits = async () =>
      (
        await sql<Record<string, unknown>>`
      select since, kind, episode, ended_at, ended_by from reply_waits where workspace_id = ${workspace.id} order by since`.execute(
          server().db,
        )
      ).rows
    return { workspace, run, waits, state: (id: string) => stateOf(server(), workspace.id, id) }
  }
  const at = (time: string): string => `2025-11-02T${time}.000Z`

  it('a closed one opens again when the customer writes', async () => {
    const { workspace, run, state } = await start()
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    await run('inbox_assign_conversation', { conversation_id: id, staff_id: workspace.owner.staffId })
    await run('inbox_close_conversation', { conversation_id: id })
    const message = await customerWrites(server(), workspace.id, id, { at: at('11:00:00') })
    const now = await state(id)
    assert.deepEqual(
      [now['state'], now['episode'], now['last_message_id'], now['assigned_staff_id'], now['unread_count']],
      ['open', 2, message, workspace.owner.staffId, 2],
    )
    assert.deepEqual(await typesOf(server(), workspace.id), [
      'conversation.assigned/1',
      'conversation.closed/1',
      'conversation.reopened/1',
    ])
  })

  it('a message that arrives late is unread, and not the last', async () => {
    const { workspace, state } = await start()
    const { id, contactId } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    const newest = await customerWrites(server(), workspace.id, id, { at: at('10:05:00') })
    await customerWrites(server(), workspace.id, id, { at: at('10:02:00'), arrivedAt: at('10:06:00') })
    const now = await state(id)
    assert.deepEqual(
      [
        now['last_message_id'],
        now['last_activity_at'],
        now['last_inbound_at'],
        now['unread_count'],
        now['window_expires_at'],
      ],
      [newest, at('10:05:00'), at('10:05:00'), 3, '2025-11-03T10:05:00.000Z'],
    )
    const contact = await sql<{
      at: string
    }>`select last_activity_at as at from contacts where workspace_id = ${workspace.id} and id = ${contactId}`.execute(
      server().db,
    )
    assert.equal(contact.rows[0]!.at, at('10:05:00'))
    const same = await customerWrites(server(), workspace.id, id, { at: at('10:05:00') })
    assert.equal(
      (await state(id))['last_message_id'],
      same,
      'of the same second the one written later is the last',
    )
  })

  it('an ad opens the window for longer, and some messages open none', async () => {
    const { workspace, state } = await start()
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00'), ad: true })
    assert.equal((await state(id))['window_expires_at'], '2025-11-05T10:00:00.000Z')
    await customerWrites(server(), workspace.id, id, {
      at: at('12:00:00'),
      opensWindow: false,
      type: 'SYSTEM',
    })
    const now = await state(id)
    assert.deepEqual(
      [now['last_inbound_at'], now['free_entry_at'], now['unread_count']],
      [at('10:00:00'), at('10:00:00'), 2],
    )
  })

  it('waits begin with the first message that nobody answered and end with the answer', async () => {
    const { workspace, run, waits, state } = await start()
    const owner = workspace.owner.staffId
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    await customerWrites(server(), workspace.id, id, { at: at('10:01:00') })
    const reply = await staffReplies(server(), workspace.id, id, { at: at('10:02:00'), staffId: owner })
    const answered = await state(id)
    assert.deepEqual(
      [
        answered['reply_status'],
        answered['unread_count'],
        answered['last_message_id'],
        answered['last_inbound_at'],
      ],
      ['outgoing_no_response', 0, reply, at('10:01:00')],
    )
    await customerWrites(server(), workspace.id, id, { at: at('10:03:00') })
    await staffReplies(server(), workspace.id, id, { at: at('10:04:00') })
    await customerWrites(server(), workspace.id, id, { at: at('10:04:00'), arrivedAt: at('10:05:00') })
    await run('inbox_close_conversation', { conversation_id: id })
    const [first, second, third, ...more] = await waits()
    assert.deepEqual(first, {
      since: at('10:00:00'),
      kind: 'first_response',
      episode: 1,
      ended_at: at('10:02:00'),
      ended_by: owner,
    })
    assert.deepEqual(second, {
      since: at('10:03:00'),
      kind: 'next_response',
      episode: 1,
      ended_at: at('10:04:00'),
      ended_by: null,
    })
    assert.deepEqual(
      [third!['since'], third!['ended_at'] !== null, third!['ended_by'], more.length],
      [at('10:04:00'), true, owner, 0],
    )
    const episode = await sql<{
      at: string
    }>`select first_response_at as at from conversation_episodes where workspace_id = ${workspace.id}`.execute(
      server().db,
    )
    assert.equal(episode.rows[0]!.at, at('10:02:00'))
  })

  it('an answered message and the next of the same second are two waits', async () => {
    const { workspace, waits } = await start()
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    await staffReplies(server(), workspace.id, id, { at: '2025-11-02T10:00:00.400Z' })
    await customerWrites(server(), workspace.id, id, {
      at: at('10:00:00'),
      arrivedAt: '2025-11-02T10:00:00.900Z',
    })
    assert.deepEqual(
      (await waits()).map((wait) => [wait['kind'], wait['ended_at']]),
      [
        ['first_response', '2025-11-02T10:00:00.400Z'],
        ['next_response', null],
      ],
    )
  })

  it('a message that comes while a reply is on its way still waits', async () => {
    const { workspace, state, waits } = await start()
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    const newer = await customerWrites(server(), workspace.id, id, { at: at('10:05:01') })
    await staffReplies(server(), workspace.id, id, { at: at('10:05:00') })
    const now = await state(id)
    assert.deepEqual(
      [now['reply_status'], now['unread_count'], now['last_message_id']],
      ['incoming_no_reply', 1, newer],
    )
    assert.deepEqual(
      (await waits()).map((wait) => [wait['since'], wait['kind'], wait['ended_at']]),
      [
        [at('10:00:00'), 'first_response', at('10:05:00')],
        [at('10:05:01'), 'next_response', null],
      ],
    )
  })

  it('opened again by staff, a customer without an answer waits anew', async () => {
    const { workspace, run, waits, state } = await start()
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    await run('inbox_close_conversation', { conversation_id: id })
    await run('inbox_reopen_conversation', { conversation_id: id })
    const [before, anew] = await waits()
    assert.deepEqual(
      [before!['ended_at'] !== null, anew!['kind'], anew!['episode'], anew!['ended_at']],
      [true, 'next_response', 2, null],
    )
    await customerWrites(server(), workspace.id, id)
    assert.equal((await waits()).length, 2, 'one wait at a time')
    assert.equal((await state(id))['reply_status'], 'incoming_no_reply')
  })

  it('a contact has one conversation for each channel', async () => {
    const { workspace } = await start()
    const first = await plantConversation(server(), workspace.id)
    const again = await plantConversation(server(), workspace.id, { contactId: first.contactId })
    const web = await plantConversation(server(), workspace.id, {
      contactId: first.contactId,
      channelId: await otherChannel(server(), workspace),
    })
    assert.equal(again.id, first.id)
    assert.notEqual(web.id, first.id)
    const created =
      await sql`select 1 from events where workspace_id = ${workspace.id} and type = 'conversation.created/1'`.execute(
        server().db,
      )
    assert.equal(created.rows.length, 2)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { createTeam, updateStaff } from '../../storage/workspace/admin.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import {
  makeWorkspace,
  startSharedServers,
  type TestKey,
  type TestServer,
  type TestWorkspace,
} from '../servers.ts'
import { changes, eventsOf, insertWebChannel, stateOf, typesOf } from './conversation-state.ts'
import { plantConversation } from './conversations.ts'
import { callAs, doAs } from '../calls.ts'
import { databases } from '../databases.ts'

const insertTeam = async (server: TestServer, workspace: TestWorkspace, name: string): Promise<string> =>
  (await createTeam(server.db, workspace.id, name, server.app.now())).id

everyDoor('Conversation changes', (test) => {
  test('assign to staff and to a team, and unassign', async ({ server, workspace, call }) => {
    const { id, contactId, channelId } = await plantConversation(server, workspace.id)
    const grace = (await workspace.staff({ name: 'Grace' })).staffId
    const support = await insertTeam(server, workspace, 'Support')
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
      'a team replaces the staff member',
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
      'assigning staff keeps the team',
    )

    const unassigned = await call('inbox_unassign_conversation', { conversation_id: id })
    assert.deepEqual(unassigned.body, { conversation: shown(null, null), changed: true })
    assert.deepEqual((await call('inbox_unassign_conversation', { conversation_id: id })).body, {
      conversation: shown(null, null),
      changed: false,
    })
    assert.equal((await stateOf(server, workspace.id, id))['assigned_at'], null)
    assert.equal((await assign({ staff_id: grace, only_if_unassigned: true })).status, 200)

    const events = await eventsOf(server, workspace.id)
    const shared = { id, state: 'open', contact_id: contactId, channel_id: channelId, episode: 1 }
    assert.deepEqual(
      events.map(({ type, data }) => [type, data.conversation]),
      [
        ['conversation.assigned/1', { ...shared, assignee_staff_id: grace, team_id: null }],
        ['conversation.assigned/1', { ...shared, assignee_staff_id: null, team_id: support }],
        ['conversation.assigned/1', { ...shared, assignee_staff_id: grace, team_id: support }],
        ['conversation.unassigned/1', { ...shared, assignee_staff_id: null, team_id: null }],
        ['conversation.assigned/1', { ...shared, assignee_staff_id: grace, team_id: null }],
      ],
    )
  })

  test('assign: refused for disabled staff, staff without the channel and unknown ids', async ({
    server,
    workspace,
    call,
  }) => {
    const { id } = await plantConversation(server, workspace.id)
    const web = await insertWebChannel(server, workspace)
    const disabledStaff = (await workspace.staff({ name: 'Away', enabled: false })).staffId
    const elsewhere = (await workspace.staff({ name: 'Elsewhere', channel_ids: [web] })).staffId
    const support = await insertTeam(server, workspace, 'Support')
    const assign = (input: Record<string, unknown>) =>
      call('inbox_assign_conversation', { conversation_id: id, ...input })

    for (const input of [{}, { staff_id: disabledStaff, team_id: support }]) {
      const { status, body, text } = await assign(input)
      assert.deepEqual([status, body.code], [400, 'invalid_input'])
      assert.ok(text.includes('staff_id') && text.includes('team_id'), text)
    }
    const disabled = await assign({ staff_id: disabledStaff })
    assert.deepEqual(
      [disabled.status, disabled.body.code, disabled.body.reason],
      [403, 'forbidden', 'assignee_disabled'],
    )
    const withoutChannel = await assign({ staff_id: elsewhere })
    assert.deepEqual(
      [withoutChannel.status, withoutChannel.body.code, withoutChannel.body.reason],
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
    assert.equal((await assign({ team_id: await insertTeam(server, foreign, 'Theirs') })).status, 404)
    assert.equal((await stateOf(server, workspace.id, id))['assigned_staff_id'], null)
    assert.deepEqual(await typesOf(server, workspace.id), [])
  })

  test('close and reopen', async ({ server, workspace, call }) => {
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
      select n, title, opened_by, closed_by, close_reason, closed_at is not null as closed
      from conversation_episodes
      where workspace_id = ${workspace.id} and conversation_id = ${id} order by n`.execute(server.db)
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

  test('tag by name and by id', async ({ server, workspace, call }) => {
    const { id } = await plantConversation(server, workspace.id)
    const tag = (input: Record<string, unknown>) =>
      call('inbox_tag_conversation', { conversation_id: id, ...input })
    const names = (body: { conversation: { tags: { name: string }[] } }): string[] =>
      body.conversation.tags.map((t) => t.name)

    const preview = await tag({ add: ['VIP'], dry_run: true })
    assert.deepEqual(
      [preview.body.conversation.tags, preview.body.changed, preview.body.dry_run],
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
      'removing an unknown name creates no tag',
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
    assert.deepEqual((await call('crm_list_tags')).body.data.length, 4, 'a refused call creates no tags')
    assert.deepEqual(names((await call('inbox_close_conversation', { conversation_id: id })).body), [
      'lead',
      'älter',
    ])
  })

  test('a note leaves the state and the last message as they are', async ({ server, workspace, call }) => {
    const { id } = await plantConversation(server, workspace.id, { inboundAt: '2025-10-02T08:00:00.000Z' })
    const before = await stateOf(server, workspace.id, id)
    const note = (input: Record<string, unknown>) => call('inbox_add_note', { conversation_id: id, ...input })
    const preview = await note({ text: 'Asked the courier.', dry_run: true })
    assert.deepEqual([preview.status, preview.body.message.id, preview.body.dry_run], [201, null, true])
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
    }>`
      select id from messages where workspace_id = ${workspace.id} and note`.execute(server.db)
    assert.deepEqual([...notes.rows], [{ id: message.id }])
  })

  test('set a reminder, and mark as read', async ({ door, server, workspace, call }) => {
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
      '9999-12-31T23:59:59-10:00',
      '2099-02-30T00:00:00Z',
      '',
      // The command line takes times without a zone, and phrases.
      ...(door.name === 'cli' ? [] : ['2099-10-02', '2099-10-02T09:00:00', 'tomorrow']),
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
})

everyDatabase('Access to conversation changes', (server) => {
  it('staff without the channel get 404', async () => {
    const workspace = await makeWorkspace(server())
    const web = await insertWebChannel(server(), workspace)
    const main = await plantConversation(server(), workspace.id)
    const seen = await plantConversation(server(), workspace.id, { channelId: web })
    const agent = await workspace.staff({ channel_ids: [web] })
    const run = callAs(server(), agent.key)
    for (const [op, input] of changes) {
      const fields = 'staff_id' in input ? { staff_id: agent.staffId } : input
      const refused = await run(op, { conversation_id: main.id, ...fields })
      assert.deepEqual([refused.status, refused.body.code], [404, 'not_found'], op)
      const { status, text } = await run(op, { conversation_id: seen.id, ...fields })
      assert.ok(status < 300, `${op}: ${text}`)
    }
    assert.equal((await stateOf(server(), workspace.id, main.id))['state'], 'open')
  })

  it('nobody gets a conversation on a channel that they may not have, or on none', async () => {
    const workspace = await makeWorkspace(server())
    const web = await insertWebChannel(server(), workspace)
    const { staffId } = await workspace.staff({ channel_ids: [web] })
    const ids = [
      await plantConversation(server(), workspace.id),
      await plantConversation(server(), workspace.id),
    ]
    await server()
      .db.updateTable('conversations')
      .set({ channel_id: null })
      .where('workspace_id', '=', workspace.id)
      .where('id', '=', ids[1]!.id)
      .execute()
    const run = callAs(server(), workspace.owner.key)
    for (const { id } of ids) {
      const one = await run('inbox_assign_conversation', { conversation_id: id, staff_id: staffId })
      assert.deepEqual([one.status, one.body.reason], [403, 'no_channel_access'])
      const many = await run('inbox_assign_conversations', { conversation_ids: [id], staff_id: staffId })
      assert.deepEqual([many.status, many.body.failed], [200, 1], many.text)
      assert.equal((await stateOf(server(), workspace.id, id))['assigned_staff_id'], null)
    }
  })

  it('insufficient_scope without inbox:write', async () => {
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

  it('an assignee who loses access to the channel stays assigned', async () => {
    const workspace = await makeWorkspace(server())
    const web = await insertWebChannel(server(), workspace)
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

const CLAIM_COUNT = 100

/** Ten agents claim one conversation at once, over the servers in turn; exactly one claim succeeds. */
const claimConcurrently = async (servers: readonly TestServer[]): Promise<void> => {
  const server = servers[0]!
  const workspace = await makeWorkspace(server)
  const { id } = await plantConversation(server, workspace.id)
  const staff: TestKey[] = []
  for (let n = 0; n < 10; n++) staff.push(await workspace.staff({ name: `Agent ${n}` }))
  const replies = await Promise.all(
    Array.from({ length: CLAIM_COUNT }, async (_, n) => {
      const { key, staffId } = staff[n % staff.length]!
      return {
        staffId,
        ...(await callAs(servers[n % servers.length]!, key)('inbox_assign_conversation', {
          conversation_id: id,
          only_if_unassigned: true,
          staff_id: staffId,
        })),
      }
    }),
  )
  const winners = replies.filter(({ status }) => status === 200)
  const losers = replies.filter(({ status, body }) => status === 409 && body.reason === 'already_assigned')
  assert.deepEqual(
    [winners.length, losers.length],
    [1, CLAIM_COUNT - 1],
    replies.find(({ status }) => status !== 200 && status !== 409)?.text ?? 'one winner',
  )
  const {
    rows: [row],
  } = await sql<{ staff: string | null; events: string }>`
    select assigned_staff_id as staff, (
      select count(*) from events
      where workspace_id = ${workspace.id} and type = 'conversation.assigned/1') as events
    from conversations where workspace_id = ${workspace.id} and id = ${id}`.execute(server.db)
  assert.deepEqual([row!.staff, row!.events], [winners[0]!.body.conversation.assignee_staff_id, '1'])
  assert.equal(row!.staff, winners[0]!.staffId)
}

everyDatabase('Concurrent claims', (server) => {
  it('only_if_unassigned: one of a hundred claims succeeds', () => claimConcurrently([server()]))
})

describe(
  'Concurrent claims over two servers',
  { skip: databases.includes('postgresql') ? false : 'WCRM_TEST_POSTGRES_URL is not set' },
  () => {
    it('only_if_unassigned: one of a hundred claims succeeds', async () => {
      const { servers, close } = await startSharedServers(2)
      try {
        for (let round = 0; round < 3; round++) await claimConcurrently(servers)
      } finally {
        await close()
      }
    })
  },
)

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { createSandboxDriver, createSandboxRequest, generatePhone } from '../messaging/fixtures.ts'
import { makeWorkspace } from '../servers.ts'
import { typesOf, stateOf, insertWebChannel } from './conversation-state.ts'
import { receiveMessage, plantConversation, sendReply } from './conversations.ts'

everyDatabase('Conversation lifecycle', (server) => {
  const setUp = async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const waits = async () =>
      (
        await sql<Record<string, unknown>>`
      select since, kind, episode, ended_at, ended_by from reply_waits
          where workspace_id = ${workspace.id} order by since`.execute(server().db)
      ).rows
    return { workspace, run, waits, state: (id: string) => stateOf(server(), workspace.id, id) }
  }
  const at = (time: string): string => `2025-11-02T${time}.000Z`

  it('an inbound message reopens a closed conversation', async () => {
    const { workspace, run, state } = await setUp()
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    await run('inbox_assign_conversation', { conversation_id: id, staff_id: workspace.owner.staffId })
    await run('inbox_close_conversation', { conversation_id: id })
    const message = await receiveMessage(server(), workspace.id, id, { at: at('11:00:00') })
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

  it('no period is negative where the clock was set back meanwhile', async () => {
    const { workspace, run } = await setUp()
    const sandbox = createSandboxDriver(server(), workspace)
    const phone = generatePhone()
    await sandbox.advance('2h')
    await sandbox.say({ from: `+${phone}`, text: 'Hello' })
    const { data } = await run('inbox_search_conversations', { query: phone })
    await createSandboxRequest(server(), workspace)('DELETE', 'clock')
    const { id } = data[0]
    const reply = { conversation_id: id, text: 'Hi' }
    await callAs(server(), workspace.owner.key)('messaging_send_reply', reply, { confirm: 'send' })
    await run('inbox_close_conversation', { conversation_id: id })
    const { rows } = await sql`
      select first_response_at >= opened_at as answered, closed_at >= opened_at as closed
      from conversation_episodes where workspace_id = ${workspace.id}`.execute(server().db)
    assert.deepEqual(rows, [{ answered: true, closed: true }])
    await sandbox.advance('50h')
    const { conversations } = await run('reports_workspace_summary', { preset: 'last_7_days' })
    assert.deepEqual([conversations.closes, conversations.median_close_seconds], [1, 0])
  })

  it('a late message counts as unread but is not the last message', async () => {
    const { workspace, state } = await setUp()
    const { id, contactId } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    const newest = await receiveMessage(server(), workspace.id, id, { at: at('10:05:00') })
    await receiveMessage(server(), workspace.id, id, { at: at('10:02:00'), arrivedAt: at('10:06:00') })
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
    }>`
      select last_activity_at as at from contacts
      where workspace_id = ${workspace.id} and id = ${contactId}`.execute(server().db)
    assert.equal(contact.rows[0]!.at, at('10:05:00'))
    const same = await receiveMessage(server(), workspace.id, id, { at: at('10:05:00') })
    assert.equal(
      (await state(id))['last_message_id'],
      same,
      'of two messages of the same second, the one inserted later is the last',
    )
  })

  it('an ad opens a longer window', async () => {
    const { workspace, state } = await setUp()
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00'), ad: true })
    assert.equal((await state(id))['window_expires_at'], '2025-11-05T10:00:00.000Z')
  })

  it('a reply wait starts with the first unanswered message and ends with the reply', async () => {
    const { workspace, run, waits, state } = await setUp()
    const owner = workspace.owner.staffId
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    await receiveMessage(server(), workspace.id, id, { at: at('10:01:00') })
    const reply = await sendReply(server(), workspace.id, id, { at: at('10:02:00'), staffId: owner })
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
    await receiveMessage(server(), workspace.id, id, { at: at('10:03:00') })
    await sendReply(server(), workspace.id, id, { at: at('10:04:00') })
    await receiveMessage(server(), workspace.id, id, { at: at('10:04:00'), arrivedAt: at('10:05:00') })
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
    }>`
      select first_response_at as at from conversation_episodes
      where workspace_id = ${workspace.id}`.execute(server().db)
    assert.equal(episode.rows[0]!.at, at('10:02:00'))
  })

  it('two messages of the same second with a reply between them are two waits', async () => {
    const { workspace, waits } = await setUp()
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    await sendReply(server(), workspace.id, id, { at: '2025-11-02T10:00:00.400Z' })
    await receiveMessage(server(), workspace.id, id, {
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

  it('a message that overtakes a reply still waits for a reply', async () => {
    const { workspace, state, waits } = await setUp()
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    const newer = await receiveMessage(server(), workspace.id, id, { at: at('10:05:01') })
    await sendReply(server(), workspace.id, id, { at: at('10:05:00') })
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

  it('reopened by staff: an unanswered customer starts a new wait', async () => {
    const { workspace, run, waits, state } = await setUp()
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    await run('inbox_close_conversation', { conversation_id: id })
    await run('inbox_reopen_conversation', { conversation_id: id })
    const [before, anew] = await waits()
    assert.deepEqual(
      [before!['ended_at'] !== null, anew!['kind'], anew!['episode'], anew!['ended_at']],
      [true, 'next_response', 2, null],
    )
    await receiveMessage(server(), workspace.id, id)
    assert.equal((await waits()).length, 2, 'one wait at a time')
    assert.equal((await state(id))['reply_status'], 'incoming_no_reply')
  })

  it('a contact has one conversation per channel', async () => {
    const { workspace } = await setUp()
    const first = await plantConversation(server(), workspace.id)
    const again = await plantConversation(server(), workspace.id, { contactId: first.contactId })
    const web = await plantConversation(server(), workspace.id, {
      contactId: first.contactId,
      channelId: await insertWebChannel(server(), workspace),
    })
    assert.equal(again.id, first.id)
    assert.notEqual(web.id, first.id)
    const created = await sql`
      select 1 from events
      where workspace_id = ${workspace.id} and type = 'conversation.created/1'`.execute(server().db)
    assert.equal(created.rows.length, 2)
  })
})

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import type { EventTypeId } from '../../catalog/events.ts'
import type { ChangeContext } from '../../server/change-context.ts'
import { applyCloses, applyReopen } from '../../server/domains/inbox/lifecycle.ts'
import { applyStatus, failUnconfirmed, markSent } from '../../server/domains/messaging/message-status.ts'
import { type ConversationState, lockConversation } from '../../storage/conversations/conversations.ts'
import { insertMessages } from '../../storage/messages/messages.ts'
import { loadEpisodes, loadWaits } from '../../storage/conversations/reply-corrections.ts'
import { insertSlaPolicy, type SlaPolicyFields } from '../../storage/conversations/sla.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { inChangeContext, plantConversation, receiveMessage, sendReply } from '../inbox/conversations.ts'
import { makeWorkspace } from '../servers.ts'
import { listEmittedEventTypes } from './fixtures.ts'
import { createReplyScene } from './replies.ts'
import { insertSandboxTemplates, createTemplateScene, ORDER_UPDATE } from './send-template.ts'

everyDatabase('Replies that fail', (server) => {
  const createScene = async () => {
    const scene = await createReplyScene(server())
    const { id, run, reply } = scene
    return {
      ...scene,
      send: async (): Promise<string> => {
        const { status, body } = await reply({ text: 'Hi' })
        assert.equal(status, 201, JSON.stringify(body))
        await server().settle()
        return body.message.id
      },
      show: async () => {
        const row = await run('inbox_get_conversation', { conversation_id: id })
        return [row.state, row.reply_status, row.assignee?.staff_id ?? null]
      },
      /** The start of the wait and the time of the first message of the customer. */
      waiting: async () => {
        const { data } = await run('inbox_list_messages', { conversation_id: id })
        const first = data.findLast((m: { direction: string }) => m.direction === 'inbound').created_at
        return [(await run('inbox_get_conversation', { conversation_id: id })).waiting_since, first]
      },
    }
  }

  it('change no waits that they did not end', async () => {
    const { id, phone, sandbox, send } = await createScene()
    const listWaits = async () =>
      (
        await sql<{ wait: string }>`
          select to_jsonb(w)::text || ' written by ' || w.xmin::text as wait from reply_waits w
          where conversation_id = ${id} order by since`.execute(server().db)
      ).rows.map(({ wait }) => wait)
    await send()
    await sandbox.say({ from: `+${phone}`, text: 'And another thing' })
    const message = await send()
    const before = await listWaits()
    await sandbox.status(message, 'failed', 131026)
    const after = await listWaits()
    assert.equal(after.length, 2)
    assert.deepEqual([after[0] === before[0], after[1] === before[1]], [true, false])
  })

  /** A conversation with a first reply; `reply` sends one, and `fail` has it fail. */
  const createHistory = async () => {
    const workspace = await makeWorkspace(server())
    const { db } = server()
    const at = (time: string) => `2026-10-01T${time}.000Z`
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    const reply = (time: string) => sendReply(server(), workspace.id, id, { at: at(time) })
    await reply('10:01:00')
    return {
      id,
      at,
      reply,
      receive: (time: string, arrivedAt = time) =>
        receiveMessage(server(), workspace.id, id, { at: at(time), arrivedAt: at(arrivedAt) }),
      fail: async (message: string, time: string) => {
        const providerId = `wamid.history.${message}`
        await sql`update messages set provider_id = ${providerId} where id = ${message}`.execute(db)
        const error = { code: 131026, title: 'Undeliverable', details: null }
        await inChangeContext(server(), workspace.id, at(time), (context) =>
          applyStatus(context, { providerId, status: 'failed', at: at(time), error }),
        )
      },
      waits: async () =>
        (await loadWaits(db, workspace.id, id)).map(({ since, ended_at: end }) => [since, end]),
    }
  }

  it('are corrected from the reply before on, however long the conversation is', async () => {
    const { id, at, reply, receive, fail, waits } = await createHistory()
    await receive('10:10:00')
    await reply('10:10:30')
    await receive('10:20:00')
    const failed = await reply('10:20:30')
    // The first wait is not what its messages say: whoever reads them again puts it right.
    await sql`update reply_waits set ended_at = ${at('10:02:00')}
      where conversation_id = ${id} and since = ${at('10:00:00')}`.execute(server().db)
    await fail(failed, '10:21:00')
    assert.deepEqual(await waits(), [
      [at('10:00:00'), at('10:02:00')],
      [at('10:10:00'), at('10:10:30')],
      [at('10:20:00'), null],
    ])
  })

  it('put back a customer whose message arrived after the reply before, although it is older', async () => {
    const { at, reply, receive, fail, waits } = await createHistory()
    await receive('10:00:50', '10:01:05')
    const failed = await reply('10:02:00')
    await fail(failed, '10:03:00')
    assert.deepEqual(await waits(), [
      [at('10:00:00'), at('10:01:00')],
      [at('10:00:50'), null],
    ])
  })

  it('keep the wait since a reopening, where the reply before has an earlier time', async () => {
    const workspace = await makeWorkspace(server())
    const { db } = server()
    const at = (time: string) => `2026-10-01T${time}.000Z`
    const { id } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    const change = (
      time: string,
      work: (context: ChangeContext<EventTypeId>, row: ConversationState) => Promise<unknown>,
    ) =>
      inChangeContext(server(), workspace.id, at(time), async (context) =>
        work(context, (await lockConversation(context.tx, workspace.id, id))!),
      )
    const { staffId } = workspace.owner
    await change('10:01:00', (context, row) =>
      applyCloses(context, [row], { by: staffId, keyId: null }, null),
    )
    await change('10:05:03', (context, row) => applyReopen(context, row, staffId, null))
    // Of a server whose clock is slow.
    await sendReply(server(), workspace.id, id, { at: at('10:05:01') })
    await receiveMessage(server(), workspace.id, id, { at: at('10:20:00') })
    const message = await sendReply(server(), workspace.id, id, { at: at('10:21:00') })
    const loadSince = async () => (await loadWaits(db, workspace.id, id)).map(({ since }) => since)
    const before = await loadSince()
    assert.deepEqual(before, [at('10:00:00'), at('10:05:03'), at('10:20:00')])
    const providerId = `wamid.${message}`
    await sql`update messages set provider_id = ${providerId} where id = ${message}`.execute(db)
    await inChangeContext(server(), workspace.id, at('10:22:00'), (context) =>
      applyStatus(context, {
        providerId,
        status: 'failed',
        at: at('10:22:00'),
        error: { code: 131026, title: 'Undeliverable', details: null },
      }),
    )
    assert.deepEqual(await loadSince(), before)
  })

  it('put the customer back, who waits since the first message without an answer', async () => {
    const { workspace, run, id, phone, sandbox, send, show, waiting } = await createScene()
    const message = await send()
    await run('inbox_assign_conversation', { conversation_id: id, staff_id: workspace.owner.staffId })
    await sandbox.say({ from: `+${phone}`, text: 'And another thing' })
    assert.equal((await run('inbox_get_conversation', { conversation_id: id })).unread_count, 1)
    await sandbox.status(message, 'failed', 131026)
    assert.deepEqual(await show(), ['open', 'incoming_no_reply', workspace.owner.staffId])
    const [since, first] = await waiting()
    assert.equal(since, first)
    const row = await run('inbox_get_conversation', { conversation_id: id })
    assert.deepEqual(
      [row.unread_count, row.last_message.text, row.window.open],
      [1, 'And another thing', true],
    )
    const { data } = await run('events_list', { types: ['conversation.reply_failed'] })
    assert.deepEqual(
      data.map((event: { data: Record<string, unknown> }) => event.data),
      [
        {
          conversation: {
            id,
            state: 'open',
            contact_id: row.contact.id,
            channel_id: row.channel.id,
            assignee_staff_id: workspace.owner.staffId,
            team_id: null,
            episode: 1,
          },
          message_id: message,
          waiting_since: first,
        },
      ],
    )
  })

  it('change nothing while another reply stands, however often they fail', async () => {
    const { workspace, sandbox, send, show } = await createScene()
    const [first, second] = [await send(), await send()]
    for (const message of [second, second]) await sandbox.status(message, 'failed', 131026)
    assert.deepEqual(await show(), ['open', 'outgoing_no_response', null])
    await sandbox.status(first, 'failed', 131026)
    assert.deepEqual(await show(), ['open', 'incoming_no_reply', null])
    const types = await listEmittedEventTypes(server(), workspace)
    assert.deepEqual(
      types.filter((type) => type === 'message.failed/1' || type === 'conversation.reply_failed/1'),
      ['message.failed/1', 'message.failed/1', 'conversation.reply_failed/1'],
    )
  })

  it('are answered by a template that follows, and notes answer nobody', async () => {
    const { workspace, run, id, phone, call, sandbox, send, show } = await createScene()
    await insertSandboxTemplates(server(), workspace, {})
    const message = await send()
    await run('inbox_add_note', { conversation_id: id, text: 'Called her' })
    const sent = await call(
      'messaging_send_template',
      { phone: `+${phone}`, template: ORDER_UPDATE },
      { confirm: 'send' },
    )
    await server().settle()
    await sandbox.status(message, 'failed', 131026)
    assert.deepEqual(await show(), ['open', 'outgoing_no_response', null])
    await sandbox.status(sent.body.message.id, 'failed', 131026)
    assert.deepEqual(await show(), ['open', 'incoming_no_reply', null])
  })

  it('leave a conversation without any message of the customer as if nothing was sent', async () => {
    const { workspace, run, sandbox, send } = await createTemplateScene(server())
    const { message, conversation_id: id } = (await send({})).body
    await server().settle()
    await sandbox.status(message.id, 'failed', 131026)
    const row = await run('inbox_get_conversation', { conversation_id: id })
    assert.deepEqual([row.state, row.reply_status, row.last_message.status], ['open', null, 'failed'])
    assert.ok(!(await listEmittedEventTypes(server(), workspace)).includes('conversation.reply_failed/1'))
  })

  it('stay closed when the customer was answered otherwise, and are not reopened twice', async () => {
    const { workspace, run, id, sandbox, send, show } = await createScene()
    const [first, second] = [await send(), await send()]
    await run('inbox_close_conversation', { conversation_id: id })
    await sandbox.status(first, 'failed', 131026)
    assert.deepEqual(await show(), ['closed', 'outgoing_no_response', null])
    await sandbox.status(second, 'failed', 131026)
    assert.deepEqual(await show(), ['open', 'incoming_no_reply', null])
    await run('inbox_close_conversation', { conversation_id: id })
    await sandbox.status(second, 'failed', 131026)
    assert.deepEqual(await show(), ['closed', 'incoming_no_reply', null])
    const reopened = (await listEmittedEventTypes(server(), workspace)).filter(
      (type) => type === 'conversation.reopened/1',
    )
    assert.equal(reopened.length, 1)
  })
})

const noPolicy: SlaPolicyFields = {
  name: 'Standard',
  enabled: true,
  channel_ids: null,
  first_response_seconds: null,
  next_response_seconds: null,
  resolution_seconds: null,
  hours: null,
}

everyDatabase('Replies without a confirmation', (server) => {
  const at = (time: string): string => `2025-11-02T${time}.000Z`
  const setUp = async ({ policy }: { policy?: Partial<SlaPolicyFields> } = {}) => {
    const workspace = await makeWorkspace(server())
    if (policy) await insertSlaPolicy(server().db, workspace.id, { ...noPolicy, ...policy }, at('09:00:00'))
    const { id, channelId } = await plantConversation(server(), workspace.id, { inboundAt: at('10:00:00') })
    const [message] = await insertMessages(server().db, workspace.id, [
      {
        conversation_id: id,
        channel_id: channelId,
        episode: 1,
        direction: 'outbound',
        type: 'TEXT',
        status: 'pending',
        created_at: at('10:02:00'),
        staff_id: workspace.owner.staffId,
      },
    ])
    const run = doAs(server(), workspace.owner.key)
    return { workspace, id, message: message!, run, waits: () => loadWaits(server().db, workspace.id, id) }
  }
  const wait = { kind: 'first_response', episode: 1, due_at: null }

  it('that is confirmed late, a reply answers when it was written', async () => {
    const { workspace, id, message, waits } = await setUp()
    await receiveMessage(server(), workspace.id, id, { at: at('10:05:00') })
    await sendReply(server(), workspace.id, id, { at: at('10:10:00') })
    const first = { ...wait, since: at('10:00:00') }
    assert.deepEqual(await waits(), [{ ...first, ended_at: at('10:10:00'), ended_by: null }])
    await inChangeContext(server(), workspace.id, at('10:20:00'), (context) =>
      markSent(context, { id: message }, `wamid.${message}.confirmed`, at('10:02:01')),
    )
    assert.deepEqual(await waits(), [
      { ...first, ended_at: at('10:02:00'), ended_by: workspace.owner.staffId },
      {
        ...wait,
        kind: 'next_response',
        since: at('10:05:00'),
        ended_at: at('10:10:00'),
        ended_by: null,
      },
    ])
  })

  it('that is confirmed late, a reply does not put off when the message after it is due', async () => {
    const { workspace, id, message, waits } = await setUp({ policy: { next_response_seconds: 3600 } })
    await receiveMessage(server(), workspace.id, id, { at: at('10:05:00') })
    await inChangeContext(server(), workspace.id, at('13:00:00'), (context) =>
      markSent(context, { id: message }, `wamid.${message}.confirmed`, at('10:02:01')),
    )
    assert.deepEqual((await waits()).at(-1), {
      ...wait,
      kind: 'next_response',
      since: at('10:05:00'),
      due_at: at('11:05:00'),
      ended_at: null,
      ended_by: null,
    })
  })

  it('that is given up, a reply reopens the conversation that was closed after it', async () => {
    const { workspace, id, message, run, waits } = await setUp()
    await run('inbox_close_conversation', { conversation_id: id })
    await inChangeContext(server(), workspace.id, server().app.now(), (context) =>
      failUnconfirmed(context, message, 'Not confirmed.'),
    )
    const row = await run('inbox_get_conversation', { conversation_id: id })
    assert.deepEqual(
      [row.state, row.reply_status, row.waiting_since],
      ['open', 'incoming_no_reply', at('10:00:00')],
    )
    assert.deepEqual(await waits(), [
      { ...wait, episode: 2, since: at('10:00:00'), ended_at: null, ended_by: null },
    ])
    assert.deepEqual(
      (await loadEpisodes(server().db, workspace.id, id)).map((episode) => episode.resumed),
      [false, true],
    )
  })
})

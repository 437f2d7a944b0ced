import assert from 'node:assert/strict'
import { it } from 'node:test'
import { generateReport, nightlyRanges } from '../../server/domains/reports/generate.ts'
import { insertSlaPolicy } from '../../storage/conversations/sla.ts'
import { callAs, doAs } from '../calls.ts'
import { doorsOf, everyDatabase } from '../doors.ts'
import { createSandboxDriver, createSandboxRequest, generatePhone } from '../messaging/fixtures.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { STAFF_REPORT } from './staff-report.ts'

/*
 * Sunday, 25 October 2026 in Berlin, worked out by hand: 25 hours, from 22:00 UTC on the 24th to 23:00 UTC.
 * Times are in UTC. A first response is due after 10 minutes, a later one after 5, the close after 4 hours.
 */
let clock = '2026-10-25T08:00:00.000Z'
const today = (time: string): string => `2026-10-25T${time}.000Z`
const SUMMARY = 'reports_workspace_summary'

const setUp = async (server: TestServer) => {
  clock = today('08:00:00')
  const workspace = await makeWorkspace(server, { timezone: 'Europe/Berlin' })
  const grace = await workspace.staff({ name: 'Grace', role: 'agent' })
  const targets = { first_response_seconds: 600, next_response_seconds: 300, resolution_seconds: 14_400 }
  await insertSlaPolicy(
    server.db,
    workspace.id,
    { name: 'Standard', enabled: true, channel_ids: null, hours: null, ...targets },
    clock,
  )
  const run = doAs(server, workspace.owner.key)
  const sandbox = createSandboxDriver(server, workspace)
  const inbox = async (id: string) => {
    const { data } = await run('inbox_search_conversations', {})
    const row = data.find((one: { id: string }) => one.id === id)
    const { status, next_due_metric: metric, next_due_at: due } = row.sla
    const read = await run('inbox_get_conversation', { conversation_id: id })
    assert.deepEqual(read, row)
    return [row.state, row.reply_status, row.waiting_since, row.unread_count, status, metric, due]
  }
  return {
    server,
    workspace,
    run,
    sandbox,
    inbox,
    /** A customer writes; returns the conversation. */
    write: async (time: string, phone: string): Promise<string> => {
      clock = today(time)
      await sandbox.say({ from: `+${phone}`, name: 'Customer', text: 'Hello' })
      const { data } = await run('inbox_search_conversations', { query: phone })
      return data[0].id
    },
    /** Grace or the owner replies; returns the message, which is delivered. */
    reply: async (time: string, by: 'grace' | 'owner', id: string): Promise<string> => {
      clock = today(time)
      const key = by === 'grace' ? grace.key : workspace.owner.key
      const { status, body } = await callAs(server, key)(
        'messaging_send_reply',
        { conversation_id: id, text: 'Hello' },
        { confirm: 'send' },
      )
      assert.equal(status, 201, JSON.stringify(body))
      await server.settle()
      return body.message.id
    },
    close: async (time: string, by: 'grace' | 'owner', id: string, reason?: string): Promise<void> => {
      clock = today(time)
      const key = by === 'grace' ? grace.key : workspace.owner.key
      await doAs(server, key)('inbox_close_conversation', {
        conversation_id: id,
        ...(reason === undefined ? {} : { reason }),
      })
    },
    /** The provider reports what became of a message. */
    report: async (time: string, message: string, status: 'failed' | 'read'): Promise<void> => {
      clock = today(time)
      await sandbox.status(message, status, status === 'failed' ? 131026 : undefined)
    },
    grace: grace.staffId,
  }
}
type Scene = Awaited<ReturnType<typeof setUp>>

/** The events of conversations, and which message failed, newest last. */
const listEvents = async ({ run }: Scene, conversationId: string) => {
  const { data } = await run('events_list', { limit: 100 })
  return data.flatMap(({ type, data: d }: { type: string; data: Record<string, any> }) =>
    d['conversation']?.id === conversationId && type !== 'conversation.created/1'
      ? [[type, d['message_id'], d['waiting_since']]]
      : d['message']?.conversation_id === conversationId && type === 'message.failed/1'
        ? [[type, d['message'].id]]
        : [],
  )
}

const ZERO = { first_response: 0, next_response: 0, resolution: 0, total: 0 }

/** Of two replies, the first fails, then the second: the customer waits since the first message. */
const tellOfAda = async (scene: Scene): Promise<void> => {
  const { write, reply, report, inbox, run } = scene
  const phone = generatePhone()
  const id = await write('09:00:00', phone)
  const first = await reply('09:05:00', 'grace', id)
  await write('09:06:00', phone)
  const second = await reply('09:08:00', 'grace', id)

  await report('09:20:00', first, 'failed')
  const running = ['running', 'resolution', today('13:00:00')]
  assert.deepEqual(await inbox(id), ['open', 'outgoing_no_response', null, 0, ...running])
  const [grace] = (await run(STAFF_REPORT, { preset: 'today' })).data
  assert.deepEqual(
    [grace.name, grace.replied, grace.messages_sent, grace.avg_first_response_seconds],
    ['Grace', 1, 1, 480],
  )
  assert.deepEqual(await listEvents(scene, id), [['message.failed/1', first]])

  await report('09:30:00', second, 'failed')
  const overdue = ['breached', 'first_response', today('09:10:00')]
  assert.deepEqual(await inbox(id), ['open', 'incoming_no_reply', today('09:00:00'), 0, ...overdue])
  assert.deepEqual((await listEvents(scene, id)).slice(1), [
    ['message.failed/1', second],
    ['conversation.reply_failed/1', second, today('09:00:00')],
  ])
  const { messages, conversations, sla } = await run(SUMMARY, { preset: 'today' })
  assert.deepEqual([messages.sent, messages.failed, conversations.waiting_now, sla.breaches], [0, 2, 1, 1])
  const { data, workload_now: workload } = await run(STAFF_REPORT, { preset: 'today' })
  assert.deepEqual(
    data.map((row: Record<string, unknown>) => [row['staff_id'], row['conversations'], row['untouched']]),
    [[null, 1, 1]],
  )
  assert.deepEqual(data[0].sla_breaches, { ...ZERO, first_response: 1, total: 1 })
  assert.deepEqual([workload[0].waiting, workload[0].oldest_wait_seconds], [1, 1800])

  // The same failure again changes nothing.
  await report('09:31:00', second, 'failed')
  assert.equal((await listEvents(scene, id)).length, 3)
  await reply('09:40:00', 'owner', id)
  const answered = ['breached', 'resolution', today('13:00:00')]
  assert.deepEqual(await inbox(id), ['open', 'outgoing_no_response', null, 0, ...answered])
}

/** The reply fails after the conversation was closed: it is reopened, and the same wait goes on. */
const tellOfBob = async (scene: Scene): Promise<void> => {
  const { write, reply, report, close, inbox } = scene
  const id = await write('10:00:00', generatePhone())
  const message = await reply('10:02:00', 'grace', id)
  await close('10:03:00', 'grace', id)
  await report('10:10:00', message, 'failed')
  const due = ['running', 'first_response', today('10:10:00')]
  assert.deepEqual(await inbox(id), ['open', 'incoming_no_reply', today('10:00:00'), 0, ...due])
  assert.deepEqual(await listEvents(scene, id), [
    ['conversation.closed/1', undefined, undefined],
    ['message.failed/1', message],
    ['conversation.reopened/1', undefined, undefined],
    ['conversation.reply_failed/1', message, today('10:00:00')],
  ])
  await reply('10:12:00', 'owner', id)
  assert.deepEqual((await inbox(id)).slice(1, 3), ['outgoing_no_response', null])
  await close('14:10:01', 'owner', id, 'solved')
}

/** The customer reads a reply that had failed, so that it stands, and reacts to it, which changes nothing. */
const tellOfCleo = async (scene: Scene): Promise<void> => {
  const { server, workspace, write, reply, report, inbox } = scene
  const id = await write('11:00:00', generatePhone())
  const message = await reply('11:01:00', 'grace', id)
  await report('11:03:00', message, 'failed')
  assert.deepEqual((await inbox(id)).slice(0, 3), ['open', 'incoming_no_reply', today('11:00:00')])
  await report('11:05:00', message, 'read')
  const answered = ['open', 'outgoing_no_response', null, 0, 'running', 'resolution', today('15:00:00')]
  assert.deepEqual(await inbox(id), answered)
  clock = today('11:06:00')
  await createSandboxRequest(server, workspace)('POST', 'react', { message_id: message, emoji: '👍' })
  await server.settle()
  assert.deepEqual(await inbox(id), answered)
}

/** The reply of the evening fails after midnight, when the day was reported already. */
const tellOfDora = async (scene: Scene): Promise<void> => {
  const { server, workspace, write, reply, report, inbox, run } = scene
  const id = await write('22:30:00', generatePhone())
  const message = await reply('22:35:00', 'grace', id)
  clock = today('23:05:00')
  for (const range of nightlyRanges(clock, 'Europe/Berlin'))
    await generateReport(server.db, workspace.id, range, clock)
  const before = await run(STAFF_REPORT, { preset: 'yesterday' })
  assert.deepEqual(
    [before.source, before.data[0].name, before.data[0].replied],
    ['generated_report', 'Grace', 2],
  )
  await report('23:10:00', message, 'failed')
  const overdue = ['breached', 'first_response', today('22:40:00')]
  assert.deepEqual(await inbox(id), ['open', 'incoming_no_reply', today('22:30:00'), 0, ...overdue])
}

/** The figures of the day, as of a quarter past midnight. */
const staffRows = (grace: string, owner: string) => [
  {
    staff_id: grace,
    name: 'Grace',
    conversations: 2, // Bob's, which she closed, and Cleo's
    handled: 2,
    closed: 1,
    replied: 1, // Cleo
    untouched: 0,
    messages_sent: 1,
    reopened: 1, // Bob's
    avg_first_response_seconds: 60, // Cleo, 11:00 to 11:01
    avg_time_to_close_seconds: 180, // Bob's, 10:00 to 10:03
    sla_breaches: ZERO,
    sla_compliance_rate: 1, // Cleo's first response and Bob's close
    reason_coverage: 0,
  },
  {
    staff_id: owner,
    name: 'Owner',
    conversations: 2, // Ada's and Bob's
    handled: 2,
    closed: 1,
    replied: 2,
    untouched: 0,
    messages_sent: 2,
    reopened: 0,
    avg_first_response_seconds: 1560, // Ada 09:00 to 09:40, Bob 10:00 to 10:12
    avg_time_to_close_seconds: 14_401, // Bob's, 10:10:00 to 14:10:01
    sla_breaches: { first_response: 2, next_response: 0, resolution: 1, total: 3 },
    sla_compliance_rate: 0,
    reason_coverage: 1,
  },
  {
    staff_id: null,
    name: null,
    conversations: 1, // Dora's
    handled: 0,
    closed: 0,
    replied: 0,
    untouched: 1,
    messages_sent: 0,
    reopened: 0,
    avg_first_response_seconds: null,
    avg_time_to_close_seconds: null,
    // Dora's first response at 22:40; the closes of Ada's at 13:00 and Cleo's at 15:00
    sla_breaches: { first_response: 1, next_response: 0, resolution: 2, total: 3 },
    sla_compliance_rate: 0,
    reason_coverage: null,
  },
]

everyDatabase(
  'A day worked out by hand',
  (server) => {
    it('inbox, service levels, staff report and summary agree to the second, at every door', async () => {
      const scene = await setUp(server())
      for (const tell of [tellOfAda, tellOfBob, tellOfCleo, tellOfDora]) await tell(scene)
      clock = today('23:15:00')
      const { workspace, grace } = scene
      for (const { call, name } of doorsOf(server().url, workspace.owner.key))
        for (const input of [
          { preset: 'yesterday' },
          { from: '2026-10-25', to: '2026-10-26' },
          // The same hours in another time zone, but the first.
          { from: '2026-10-25', to: '2026-10-25', timezone: 'UTC' },
        ]) {
          const { body: staff } = await call(STAFF_REPORT, input)
          assert.equal(staff.source, 'live_closes', name)
          assert.deepEqual(
            staff.data,
            staffRows(grace, workspace.owner.staffId),
            `${name} ${staff.range.from}`,
          )
          assert.deepEqual(staff.workload_now, [
            {
              staff_id: null,
              name: null,
              waiting: 1, // Dora
              assigned_open: 3,
              window_expired: 0,
              oldest_wait_seconds: 2700, // since 22:30
            },
          ])
          const { body: summary } = await call(SUMMARY, input)
          assert.deepEqual(summary.messages, {
            sent: 3,
            delivered: 3,
            read: 1,
            failed: 4,
            delivery_rate: 1,
          })
          assert.deepEqual(summary.conversations, {
            closes: 2,
            distinct_conversations: 1,
            reopened: 1,
            median_close_seconds: 7290.5, // of 180 and 14,401
            waiting_now: 1,
            unassigned_now: 3,
            oldest_wait_buckets_now: { under_1h: 1, '1h_to_4h': 0, '4h_to_24h': 0, over_24h: 0 },
          })
          assert.deepEqual(summary.sla, { running: true, breaches: 6, config_problems: 0 })
        }
    })
  },
  { now: () => clock },
)

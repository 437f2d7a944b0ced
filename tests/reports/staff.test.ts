import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { generateReport, resolvePastRange } from '../../server/domains/reports/generate.ts'
import { doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { plantConversation, sendReply } from '../inbox/conversations.ts'
import { makeWorkspace, type TestKey, type TestServer, type TestWorkspace } from '../servers.ts'
import { listStaffRows, STAFF_REPORT } from './staff-report.ts'

const NOON = '2026-10-07T12:00:00.000Z'
let clock = NOON
const options = { now: () => clock }
const HOUR = 3_600_000
const hoursAgo = (hours: number): string => new Date(Date.parse(clock) - hours * HOUR).toISOString()

/** A row of the report with nothing to count. */
const ZERO_ROW = {
  conversations: 0,
  handled: 0,
  closed: 0,
  replied: 0,
  untouched: 0,
  messages_sent: 0,
  reopened: 0,
  avg_first_response_seconds: null,
  avg_time_to_close_seconds: null,
  sla_breaches: { first_response: 0, next_response: 0, resolution: 0, total: 0 },
  sla_compliance_rate: null,
  reason_coverage: null,
}

/**
 * Plays a day with three conversations: an agent answers the first one 20 minutes late, closes the second,
 * which the owner reopens and closes again, and does nothing in the third, which is assigned to the agent.
 */
const doWork = async (server: TestServer, workspace: TestWorkspace, agent: TestKey): Promise<void> => {
  await sql`
    insert into sla_policies (
      workspace_id, name, first_response_seconds, resolution_seconds, created_at)
    values (${workspace.id}, 'Policy', 600, 36000, ${hoursAgo(90)})`.execute(server.db)
  clock = hoursAgo(20)
  const [answered, closed, waiting] = [
    await plantConversation(server, workspace.id, {}),
    await plantConversation(server, workspace.id, {}),
    await plantConversation(server, workspace.id, {}),
  ]
  const [runAsOwner, runAsAgent] = [doAs(server, workspace.owner.key), doAs(server, agent.key)]
  await runAsOwner('inbox_assign_conversation', { conversation_id: waiting.id, staff_id: agent.staffId })
  clock = hoursAgo(-0.5)
  await sendReply(server, workspace.id, answered.id, { staffId: agent.staffId })
  await runAsAgent('inbox_close_conversation', { conversation_id: closed.id, reason: 'solved' })
  clock = hoursAgo(-1)
  await runAsOwner('inbox_reopen_conversation', { conversation_id: closed.id })
  await runAsOwner('inbox_close_conversation', { conversation_id: closed.id })
}

everyDoor(
  'Staff report',
  (test) => {
    test('counts the work of members', async ({ server, workspace, call }) => {
      clock = NOON
      const grace = await workspace.staff({ name: 'Grace', role: 'agent' })
      await doWork(server, workspace, grace)
      const { body } = await call(STAFF_REPORT, { preset: 'today' })
      assert.deepEqual(
        [body.source, body.report, body.population],
        [
          'live_closes',
          null,
          { total: 2, capped: false, note: 'Members with nothing to count in these days are left out.' },
        ],
      )
      assert.deepEqual(body.data, [
        {
          ...ZERO_ROW,
          staff_id: grace.staffId,
          name: 'Grace',
          conversations: 3,
          handled: 2,
          closed: 1,
          replied: 1,
          untouched: 1,
          messages_sent: 1,
          reopened: 1,
          avg_first_response_seconds: 1800,
          avg_time_to_close_seconds: 1800,
          // The third is that of the conversation that still waits.
          sla_breaches: { first_response: 3, next_response: 0, resolution: 0, total: 3 },
          sla_compliance_rate: 0.25,
          reason_coverage: 1,
        },
        {
          ...ZERO_ROW,
          staff_id: workspace.owner.staffId,
          name: 'Owner',
          conversations: 1,
          handled: 1,
          closed: 1,
          avg_time_to_close_seconds: 0,
          sla_compliance_rate: 1,
          reason_coverage: 0,
        },
      ])
      const workload = { waiting: 0, assigned_open: 1, window_expired: 0, oldest_wait_seconds: null }
      assert.deepEqual(body.workload_now, [
        { ...workload, staff_id: grace.staffId, name: 'Grace', waiting: 1, oldest_wait_seconds: 5400 },
        { ...workload, staff_id: null, name: null },
      ])
      assert.deepEqual(body.unavailable, [
        {
          metric: 'data.avg_first_response_seconds',
          reason: 'Null for members without a first response in these days.',
        },
      ])
      assert.ok(body.notes.includes('The last day is not over.'))
      clock = NOON
    })

    test('requires report permission, which owners, admins and managers have', async ({ workspace, as }) => {
      for (const role of ['owner', 'admin', 'manager'] as const)
        assert.equal(
          (await as((await workspace.staff({ role, reports: false })).key)(STAFF_REPORT)).status,
          200,
        )
      assert.equal(
        (await as((await workspace.staff({ role: 'agent', reports: true })).key)(STAFF_REPORT)).status,
        200,
      )
      const { status, body } = await as((await workspace.staff({ role: 'agent', reports: false })).key)(
        STAFF_REPORT,
        { preset: 'today' },
      )
      assert.deepEqual([status, body.code, body.reason], [403, 'forbidden', 'report_not_allowed'])
      assert.match(body.detail, /admin staff update/)
    })

    test('an invalid range is rejected with the field', async ({ call }) => {
      clock = NOON
      for (const [input, field] of [
        [{ from: '2026-10-02', to: '2026-10-01' }, 'from'],
        [{ from: '2026-10-07', to: '2026-10-08' }, 'to'],
        [{ from: '2026-01-01', to: '2026-10-01' }, 'from'],
        [{ timezone: 'Mars/Olympus' }, 'timezone'],
        [{ from: '2026-10-01' }, 'to'],
        [{ limit: 101 }, 'limit'],
        [{ cursor: 'x' }, 'cursor'],
      ] as const) {
        const { status, body } = await call(STAFF_REPORT, input)
        assert.deepEqual([status, body.code], [400, 'invalid_input'], JSON.stringify(input))
        const [error] = body.errors
        assert.ok(
          [error.pointer, error.parameter].some(
            (location: string | undefined) => location === `#/${field}` || location === field,
          ),
          JSON.stringify(body),
        )
      }
    })
  },
  options,
)

everyDatabase(
  'Staff report: pages',
  (server) => {
    it('each member is shown once, even when numbers or days change between pages', async () => {
      clock = '2026-10-07T23:50:00.000Z'
      const workspace = await makeWorkspace(server(), { timezone: 'UTC' })
      const members: string[] = []
      for (let n = 0; n < 7; n++) members.push((await workspace.staff({ name: `Member ${n % 3}` })).staffId)
      const { id } = await plantConversation(server(), workspace.id, {})
      for (const staffId of members) await sendReply(server(), workspace.id, id, { staffId, at: hoursAgo(1) })
      let changes = 0
      assert.deepEqual(
        await listStaffRows(doAs(server(), workspace.owner.key), { preset: 'yesterday' }, 2),
        [],
      )
      // Between pages, the last members become the first ones, a report is generated, and the day ends.
      const rows = await listStaffRows(
        doAs(server(), workspace.owner.key),
        { preset: 'today' },
        2,
        async () => {
          changes++
          clock = new Date(Date.parse('2026-10-08T00:10:00.000Z') + changes * 1000).toISOString()
          const other = await plantConversation(server(), workspace.id, {
            inboundAt: '2026-10-07T20:00:00.000Z',
          })
          for (const staffId of members.slice(5))
            await sendReply(server(), workspace.id, other.id, { staffId, at: '2026-10-07T22:00:00.000Z' })
          await generateReport(
            server().db,
            workspace.id,
            resolvePastRange(clock, 'UTC', { from: '2026-10-07', to: '2026-10-07' }, null),
            clock,
          )
        },
      )
      assert.deepEqual(rows.map((row) => row.staff_id).toSorted(), members.toSorted())
      assert.ok(changes >= 3)
      // A new call reports the new day.
      assert.deepEqual(
        (await doAs(server(), workspace.owner.key)(STAFF_REPORT, { preset: 'today' })).range.from,
        '2026-10-08',
      )
    })
  },
  options,
)

everyDatabase(
  'Staff report: expired reply windows',
  (server) => {
    it('counts the windows that conversations show as expired', async () => {
      clock = NOON
      const workspace = await makeWorkspace(server())
      const { db } = server()
      const types = [
        ['chatapp', 1],
        ['photoapp', 2],
        ['videoapp', 3],
        ['web', 4],
      ] as const
      for (const [type, n] of types) {
        const { id: channelId } = await db
          .insertInto('channels')
          .values({
            workspace_id: workspace.id,
            type,
            name: `Channel ${n}`,
            status: 'connected',
            created_at: NOON,
          } as never)
          .returning('id')
          .executeTakeFirstOrThrow()
        for (const hours of [1, 24, 25, 47.99, 48, 73])
          for (const ad of [false, true])
            await plantConversation(server(), workspace.id, { channelId, inboundAt: hoursAgo(hours), ad })
        const corrected = await plantConversation(server(), workspace.id, {
          channelId,
          inboundAt: hoursAgo(2),
        })
        await sql`
          update conversations set window_corrected_at = ${hoursAgo(1)}
          where workspace_id = ${workspace.id} and id = ${corrected.id}`.execute(db)
        await plantConversation(server(), workspace.id, { channelId, inboundAt: null })
      }
      const orphaned = await plantConversation(server(), workspace.id, { inboundAt: hoursAgo(100) })
      await sql`
        update conversations set channel_id = 999999999
        where workspace_id = ${workspace.id} and id = ${orphaned.id}`.execute(db)
      const run = doAs(server(), workspace.owner.key)
      const { data } = await run('inbox_search_conversations', { limit: 100 })
      const expired = data.filter((v: { window: { reason: string } }) => v.window.reason === 'expired').length
      const [{ assigned_open, window_expired }] = (await run(STAFF_REPORT)).workload_now
      assert.deepEqual([assigned_open, window_expired], [data.length, expired])
      assert.ok(expired > 10 && expired < data.length - 10)
    })
  },
  options,
)

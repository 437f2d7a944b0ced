import assert from 'node:assert/strict'
import { it } from 'node:test'
import {
  createNightlyReportJob,
  generateReport,
  resolvePastRange,
} from '../../server/domains/reports/generate.ts'
import { createStaff, updateStaff } from '../../storage/workspace/admin.ts'
import { listReports } from '../../storage/reports/staff-reports.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { plantConversation, sendReply } from '../inbox/conversations.ts'
import { makeWorkspace, startSharedServers } from '../servers.ts'
import { STAFF_REPORT } from './staff-report.ts'

const NOON = '2026-10-07T12:00:00.000Z'
let clock = NOON
// The job makes the reports of all workspaces of a database.
const options = { now: () => clock, dedicated: true } as const
const HOUR = 3_600_000
const hoursAgo = (hours: number): string => new Date(Date.parse(clock) - hours * HOUR).toISOString()

everyDatabase(
  'Stored staff reports',
  (server) => {
    it('a stored report of exactly these days in this time zone is used, and no other', async () => {
      clock = NOON
      const workspace = await makeWorkspace(server(), { timezone: 'Europe/Berlin' })
      const run = doAs(server(), workspace.owner.key)
      const generate = async (from: string, to: string, name: string | null) =>
        await generateReport(
          server().db,
          workspace.id,
          resolvePastRange(clock, 'Europe/Berlin', { from, to }, name),
          clock,
        )
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: hoursAgo(48) })
      const grace = await createStaff(server().db, workspace.id, { name: 'Grace', role: 'agent' }, [], NOON)
      await sendReply(server(), workspace.id, id, { staffId: grace.id, at: hoursAgo(47) })
      await generate('2026-09-07', '2026-10-06', 'Long')
      const week = { from: '2026-09-30', to: '2026-10-06' }
      await generate(week.from, week.to, 'Older')
      const { id: newest } = await generate(week.from, week.to, null)
      await updateStaff(server().db, workspace.id, grace.id, { name: 'Grace Hopper' }, undefined)
      const { source, report, range, data, unavailable } = await run(STAFF_REPORT, week)
      assert.deepEqual(
        [source, report.id, report.covers_more_than_asked, range.days, data[0].name],
        ['generated_report', newest, false, 7, 'Grace Hopper'],
      )
      assert.deepEqual(
        unavailable.map((u: { metric: string }) => u.metric),
        ['data.avg_time_to_close_seconds', 'data.sla_compliance_rate', 'data.reason_coverage'],
      )
      for (const input of [
        { ...week, timezone: 'Europe/Paris' },
        { ...week, from: '2026-10-01' },
        { ...week, to: '2026-10-05' },
        { ...week, from: '2026-09-29' },
        { from: '2026-09-01', to: '2026-09-30' },
        { preset: 'last_7_days' },
      ]) {
        const live = await run(STAFF_REPORT, input)
        assert.deepEqual([live.source, live.report], ['live_closes', null], JSON.stringify(input))
      }
      assert.throws(
        () => resolvePastRange(clock, 'Europe/Berlin', { preset: 'today' }, null),
        /day that is over/,
      )
      const otherWorkspace = await makeWorkspace(server(), { timezone: 'Europe/Berlin' })
      assert.equal((await doAs(server(), otherWorkspace.owner.key)(STAFF_REPORT, week)).source, 'live_closes')
    })

    it("are generated each night for the past days in the workspace's time zone", async () => {
      clock = '2026-10-07T10:30:00.000Z'
      const workspace = await makeWorkspace(server(), { timezone: 'Pacific/Kiritimati' })
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: hoursAgo(30) })
      await sendReply(server(), workspace.id, id, { staffId: workspace.owner.staffId, at: hoursAgo(29) })
      const runJob = createNightlyReportJob(server().app)
      const listStored = async () =>
        (await listReports(server().db, workspace.id))
          .map(({ name, from, to, timezone, rows }) => ({ name, from, to, timezone, rows }))
          .toSorted((a, b) => (a.from < b.from ? 1 : -1))
      const createNight = (to: string, weekFrom: string, monthFrom: string) =>
        [
          ['Yesterday', to],
          ['7 days', weekFrom],
          ['30 days', monthFrom],
        ].map(([name, from]) => ({ name, from, to, timezone: 'Pacific/Kiritimati', rows: 1 }))
      await runJob(AbortSignal.abort())
      assert.deepEqual(await listStored(), [], 'a server that stops begins no report')
      await runJob()
      // October 8 began there half an hour ago. A night starts an hour after midnight.
      const firstNight = [...createNight('2026-10-06', '2026-09-30', '2026-09-07')]
      assert.deepEqual(await listStored(), firstNight)
      clock = '2026-10-07T11:00:00.000Z'
      await Promise.all([runJob(), runJob()])
      await createNightlyReportJob(server().app)()
      const bothNights = [...firstNight, ...createNight('2026-10-07', '2026-10-01', '2026-09-08')].toSorted(
        (a, b) => (a.from! < b.from! ? 1 : -1),
      )
      assert.deepEqual(
        (await listStored()).map((r) => ({ ...r, rows: 1 })),
        bothNights,
      )
      const report = await doAs(server(), workspace.owner.key)(STAFF_REPORT, { preset: 'yesterday' })
      assert.deepEqual(
        [report.source, report.report.name, report.report.generated_at],
        ['generated_report', 'Yesterday', clock],
      )
      clock = NOON
    })
  },
  options,
)

it(
  'Stored staff reports: one of several servers generates the reports of a night',
  { skip: !process.env.WCRM_TEST_POSTGRES_URL },
  async () => {
    clock = NOON
    const { servers, close } = await startSharedServers(3, options)
    try {
      const workspaces = []
      for (let n = 0; n < 4; n++) workspaces.push(await makeWorkspace(servers[0]!))
      await Promise.all(servers.map((server) => createNightlyReportJob(server.app)()))
      // A server that found the lock taken skips the night, and checks again in the next run.
      await Promise.all(servers.map((server) => createNightlyReportJob(server.app)()))
      for (const { id } of workspaces)
        assert.deepEqual((await listReports(servers[0]!.db, id)).map((r) => r.name).toSorted(), [
          '30 days',
          '7 days',
          'Yesterday',
        ])
    } finally {
      await close()
    }
  },
)

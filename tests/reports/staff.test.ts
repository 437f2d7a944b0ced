import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { presets } from '../../catalog/reports.ts'
import { generateReport, createNightlyReportJob, resolvePastRange } from '../../server/reports/generate.ts'
import { createStaff, updateStaff } from '../../storage/admin.ts'
import { listReports } from '../../storage/staff-reports.ts'
import { callAs, doAs } from '../calls.ts'
import { customerWrites, plantConversation, staffReplies } from '../inbox/conversations.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { workspaceHistory, insertHistory } from './history.ts'
import { resolveReportDays } from './oracle.ts'
import { makeWorkspace, startSharedServers, type TestServer } from '../servers.ts'
import { countStaffRows, type StaffHistory, countWorkload } from './staff-oracle.ts'
import { runs } from '../level.ts'

const name = 'reports_staff'
const NOON = '2026-10-07T12:00:00.000Z'
let clock = NOON
const options = { now: () => clock }
const HOUR = 3_600_000
const ago = (hours: number): string => new Date(Date.parse(clock) - hours * HOUR).toISOString()

type Row = StaffHistory['conversations'][number]

/**
 * What the shared history leaves open: when conversations were given to their members, and windows of a
 * messaging channel.
 */
const plantStaff = async (
  server: TestServer,
  workspaceId: string,
  story: Parameters<typeof insertHistory>[2],
  assigned: readonly number[],
): Promise<StaffHistory> => {
  const raw = await insertHistory(server.db, workspaceId, story)
  const mine = (row: Row, i: number): [string, number][] =>
    row.assigned_staff_id === null ? [] : [[row.id, raw.now - assigned[i % assigned.length]!]]
  const assignedAt = new Map(raw.conversations.flatMap(mine))
  for (const [id, at] of assignedAt)
    await sql`update conversations set assigned_at = ${new Date(at).toISOString()} where workspace_id = ${workspaceId} and id = ${id}`.execute(
      server.db,
    )
  await sql`update channels set type = 'photoapp' where workspace_id = ${workspaceId} and type = 'web'`.execute(
    server.db,
  )
  const staff = await server.db
    .selectFrom('staff')
    .select(['id', 'name'])
    .where('workspace_id', '=', workspaceId)
    .orderBy('id')
    .execute()
  return { ...raw, names: new Map(staff.map((s) => [s.id, s.name])), assignedAt }
}

const spans = fc.oneof(
  fc.record({ preset: fc.constantFrom(...presets) }),
  fc.record({ back: fc.nat(30), days: fc.integer({ min: 1, max: 20 }) }),
)

everyDatabase(
  'Staff report against a row-by-row count',
  (server) => {
    it('live and stored figures equal those of a row-by-row count, on any page size', async () => {
      let [counted, untouched, late, reopened, stored] = [0, 0, 0, 0, 0]
      await fc.assert(
        fc.asyncProperty(
          workspaceHistory,
          spans,
          fc.array(fc.integer({ min: 0, max: 40 * 24 * HOUR }), { minLength: 1, maxLength: 5 }),
          async (story, span, assigned) => {
            const [timezone, now] = story.scene
            clock = now
            const workspace = await makeWorkspace(server(), { timezone })
            const raw = await plantStaff(server(), workspace.id, story, assigned)
            const to = Temporal.Instant.fromEpochMilliseconds(raw.now)
              .toZonedDateTimeISO(timezone)
              .toPlainDate()
              .subtract({ days: 'back' in span ? span.back : 0 })
            const asked: { preset?: string; from?: string; to?: string } =
              'preset' in span
                ? span
                : { from: to.subtract({ days: span.days - 1 }).toString(), to: to.toString() }
            const days = resolveReportDays(asked, raw.now, timezone)
            const run = doAs(server(), workspace.owner.key)
            const answer = await run(name, asked)
            const expected = countStaffRows(raw, days)
            assert.deepEqual(answer.data, expected, JSON.stringify(asked))
            assert.deepEqual(answer.workload_now, countWorkload(raw))
            assert.equal(answer.population.total, expected.length)
            assert.deepEqual(await pages(run, asked, 1), expected)
            for (const row of expected)
              [counted, untouched, late, reopened] = [
                counted + row.conversations,
                untouched + row.untouched,
                late + row.sla_breaches.total,
                reopened + row.reopened,
              ]
            if (days.to === resolveReportDays({ preset: 'today' }, raw.now, timezone).to) return
            await assertStored(server(), workspace, asked, days, expected)
            stored++
          },
        ),
        { numRuns: runs(40, 120) },
      )
      assert.ok(
        Math.min(counted / 5, untouched, late, reopened, stored) > 4,
        `there was something to count: ${[counted, untouched, late, reopened, stored]}`,
      )
    })
  },
  options,
)

/** The rows of all pages of this size. */
const pages = async (
  run: ReturnType<typeof doAs>,
  input: Record<string, unknown>,
  limit: number,
  between = async () => {},
): Promise<{ staff_id: string | null }[]> => {
  const rows = []
  let cursor: string | null = null
  do {
    const page: { data: { staff_id: string | null }[]; next_cursor: string | null } = await run(name, {
      ...input,
      limit,
      ...(cursor === null ? {} : { cursor }),
    })
    rows.push(...page.data)
    cursor = page.next_cursor
    if (cursor !== null) await between()
  } while (cursor !== null)
  return rows
}

type Expected = ReturnType<typeof countStaffRows>

/** A report made of these days says the same, but for what it does not hold. */
const assertStored = async (
  server: TestServer,
  workspace: Awaited<ReturnType<typeof makeWorkspace>>,
  asked: object,
  { from, to }: { from: string; to: string },
  expected: Expected,
): Promise<void> => {
  const zone = (await doAs(server, workspace.owner.key)('workspace_whoami')).workspace.timezone as string
  const made = await generateReport(
    server.db,
    workspace.id,
    resolvePastRange(clock, zone, { from, to }, 'By hand'),
    clock,
  )
  const answer = await doAs(server, workspace.owner.key)(name, asked as Record<string, unknown>)
  assert.deepEqual(
    [answer.source, answer.report],
    [
      'generated_report',
      {
        id: made.id,
        name: 'By hand',
        from,
        to,
        generated_at: clock,
        timezone: zone,
        covers_more_than_asked: false,
      },
    ],
  )
  assert.deepEqual(
    answer.data,
    expected.map((row) => ({ ...row, reason_coverage: null })),
  )
}

everyDoor(
  'Staff report',
  (test) => {
    test('counts the work of members', async ({ server, workspace, call }) => {
      clock = NOON
      const grace = await workspace.staff({ name: 'Grace', role: 'agent' })
      await sql`insert into sla_policies (workspace_id, name, first_response_seconds, resolution_seconds, created_at) values (${workspace.id}, 'Promise', 600, 36000, ${ago(90)})`.execute(
        server.db,
      )
      clock = ago(20)
      const [answered, closed, waits] = [
        await plantConversation(server, workspace.id, {}),
        await plantConversation(server, workspace.id, {}),
        await plantConversation(server, workspace.id, {}),
      ]
      const [owner, agent] = [workspace.owner.key, grace.key].map((key) => doAs(server, key))
      await owner!('inbox_assign_conversation', { conversation_id: waits.id, staff_id: grace.staffId })
      clock = ago(-0.5)
      // Late by 20 minutes.
      await staffReplies(server, workspace.id, answered.id, { staffId: grace.staffId })
      await agent!('inbox_close_conversation', { conversation_id: closed.id, reason: 'solved' })
      clock = ago(-1)
      await owner!('inbox_reopen_conversation', { conversation_id: closed.id })
      await owner!('inbox_close_conversation', { conversation_id: closed.id })
      const { body } = await call(name, { preset: 'today' })
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
          sla_breaches: { first_response: 2, next_response: 0, resolution: 0, total: 2 },
          sla_compliance_rate: 0.3333,
          reason_coverage: 1,
        },
        {
          staff_id: workspace.owner.staffId,
          name: 'Owner',
          conversations: 1,
          handled: 1,
          closed: 1,
          replied: 0,
          untouched: 0,
          messages_sent: 0,
          reopened: 0,
          avg_first_response_seconds: null,
          avg_time_to_close_seconds: 0,
          sla_breaches: { first_response: 0, next_response: 0, resolution: 0, total: 0 },
          sla_compliance_rate: 1,
          reason_coverage: 0,
        },
      ])
      assert.deepEqual(body.workload_now, [
        {
          staff_id: grace.staffId,
          name: 'Grace',
          waiting: 1,
          assigned_open: 1,
          window_expired: 0,
          oldest_wait_seconds: 5400,
        },
        {
          staff_id: null,
          name: null,
          waiting: 0,
          assigned_open: 1,
          window_expired: 0,
          oldest_wait_seconds: null,
        },
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
        assert.equal((await as((await workspace.staff({ role, reports: false })).key)(name)).status, 200)
      assert.equal(
        (await as((await workspace.staff({ role: 'agent', reports: true })).key)(name)).status,
        200,
      )
      const { status, body } = await as((await workspace.staff({ role: 'agent', reports: false })).key)(
        name,
        { preset: 'today' },
      )
      assert.deepEqual([status, body.code, body.reason], [403, 'forbidden', 'report_not_allowed'])
      assert.match(body.detail, /admin staff update/)
    })

    test('an invalid range is refused with the field', async ({ call }) => {
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
        const { status, body } = await call(name, input)
        assert.deepEqual([status, body.code], [400, 'invalid_input'], JSON.stringify(input))
        const [error] = body.errors
        assert.ok(
          [error.pointer, error.parameter].some(
            (at: string | undefined) => at === `#/${field}` || at === field,
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
      for (const staffId of members) await staffReplies(server(), workspace.id, id, { staffId, at: ago(1) })
      let run = 0
      // Whoever was last becomes the first and the other way round, a report comes into being, and the day
      // ends.
      const rows = await pages(doAs(server(), workspace.owner.key), { preset: 'yesterday' }, 2)
      assert.deepEqual(rows, [])
      const shown = await pages(doAs(server(), workspace.owner.key), { preset: 'today' }, 2, async () => {
        run++
        clock = new Date(Date.parse('2026-10-08T00:10:00.000Z') + run * 1000).toISOString()
        const other = await plantConversation(server(), workspace.id, {
          inboundAt: '2026-10-07T20:00:00.000Z',
        })
        for (const staffId of members.slice(5))
          await staffReplies(server(), workspace.id, other.id, { staffId, at: '2026-10-07T22:00:00.000Z' })
        await generateReport(
          server().db,
          workspace.id,
          resolvePastRange(clock, 'UTC', { from: '2026-10-07', to: '2026-10-07' }, null),
          clock,
        )
      })
      assert.deepEqual(shown.map((row) => row.staff_id).toSorted(), members.toSorted())
      assert.ok(run >= 3)
      // From the beginning, it is of the new day.
      assert.deepEqual(
        (await doAs(server(), workspace.owner.key)(name, { preset: 'today' })).range.from,
        '2026-10-08',
      )
    })

    it('cursors are bound to their filters', async () => {
      clock = NOON
      const workspace = await makeWorkspace(server())
      const { id } = await plantConversation(server(), workspace.id, {})
      for (const staffId of [workspace.owner.staffId, null])
        await staffReplies(server(), workspace.id, id, { staffId })
      const { next_cursor: cursor } = await doAs(server(), workspace.owner.key)(name, { limit: 1 })
      const { status, body } = await callAs(server(), workspace.owner.key)(name, {
        limit: 1,
        preset: 'today',
        cursor,
      })
      assert.deepEqual([status, body.reason], [400, 'cursor_invalid'])
    })
  },
  options,
)

everyDatabase(
  'Staff report: expired reply windows',
  (server) => {
    it('reply windows are those that conversations show', async () => {
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
            await plantConversation(server(), workspace.id, { channelId, inboundAt: ago(hours), ad })
        const corrected = await plantConversation(server(), workspace.id, { channelId, inboundAt: ago(2) })
        await sql`update conversations set window_corrected_at = ${ago(1)} where workspace_id = ${workspace.id} and id = ${corrected.id}`.execute(
          db,
        )
        await customerWrites(
          server(),
          workspace.id,
          (await plantConversation(server(), workspace.id, { channelId, inboundAt: null })).id,
          { at: ago(3), opensWindow: false },
        )
      }
      const gone = await plantConversation(server(), workspace.id, { inboundAt: ago(100) })
      await sql`update conversations set channel_id = 999999999 where workspace_id = ${workspace.id} and id = ${gone.id}`.execute(
        db,
      )
      const run = doAs(server(), workspace.owner.key)
      const { data } = await run('inbox_search_conversations', { limit: 100 })
      const expired = data.filter((v: { window: { reason: string } }) => v.window.reason === 'expired').length
      const [{ assigned_open, window_expired }] = (await run(name)).workload_now
      assert.deepEqual([assigned_open, window_expired], [data.length, expired])
      assert.ok(expired > 10 && expired < data.length - 10)
    })
  },
  options,
)

everyDatabase(
  'Stored staff reports',
  (server) => {
    it('the shortest stored report that covers the days in its time zone is used', async () => {
      clock = NOON
      const workspace = await makeWorkspace(server(), { timezone: 'Europe/Berlin' })
      const run = doAs(server(), workspace.owner.key)
      const make = async (from: string, to: string, named: string | null) =>
        await generateReport(
          server().db,
          workspace.id,
          resolvePastRange(clock, 'Europe/Berlin', { from, to }, named),
          clock,
        )
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: ago(48) })
      const grace = await createStaff(server().db, workspace.id, { name: 'Grace', role: 'agent' }, [], NOON)
      await staffReplies(server(), workspace.id, id, { staffId: grace.id, at: ago(47) })
      const month = await make('2026-09-07', '2026-10-06', 'Long')
      const week = await make('2026-09-30', '2026-10-06', null)
      const asked = { from: '2026-10-01', to: '2026-10-05' }
      await updateStaff(server().db, workspace.id, grace.id, { name: 'Grace Hopper' }, undefined)
      const answer = await run(name, asked)
      assert.deepEqual(
        [
          answer.source,
          answer.report.id,
          answer.report.covers_more_than_asked,
          answer.range.days,
          answer.data[0].name,
        ],
        ['generated_report', week.id, true, 5, 'Grace Hopper'],
      )
      assert.match(answer.notes[0], /2026-09-30 to 2026-10-06: more days than the 5/)
      assert.deepEqual(
        answer.unavailable.map((u: { metric: string }) => u.metric),
        ['data.avg_time_to_close_seconds', 'data.sla_compliance_rate', 'data.reason_coverage'],
      )
      assert.equal((await run(name, { from: '2026-09-20', to: '2026-10-01' })).report.id, month.id)
      for (const other of [
        { ...asked, timezone: 'Europe/Paris' },
        { from: '2026-09-01', to: '2026-09-30' },
        { preset: 'last_7_days' },
      ]) {
        const live = await run(name, other)
        assert.deepEqual([live.source, live.report], ['live_closes', null], JSON.stringify(other))
      }
      assert.throws(
        () => resolvePastRange(clock, 'Europe/Berlin', { preset: 'today' }, null),
        /day that is over/,
      )
      const elsewhere = await makeWorkspace(server(), { timezone: 'Europe/Berlin' })
      assert.equal((await doAs(server(), elsewhere.owner.key)(name, asked)).source, 'live_closes')
    })

    it("are generated each night for the past days in the workspace's time zone", async () => {
      clock = '2026-10-07T10:30:00.000Z'
      const workspace = await makeWorkspace(server(), { timezone: 'Pacific/Kiritimati' })
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: ago(30) })
      await staffReplies(server(), workspace.id, id, { staffId: workspace.owner.staffId, at: ago(29) })
      const work = createNightlyReportJob(server().app)
      const made = async () =>
        (await listReports(server().db, workspace.id))
          .map(({ name: named, from, to, timezone, rows }) => ({ name: named, from, to, timezone, rows }))
          .toSorted((a, b) => (a.from < b.from ? 1 : -1))
      const night = (to: string, week: string, month: string) =>
        [
          ['Yesterday', to],
          ['7 days', week],
          ['30 days', month],
        ].map(([named, from]) => ({ name: named, from, to, timezone: 'Pacific/Kiritimati', rows: 1 }))
      await work()
      // There the 8th has lasted for half an hour; until it has for an hour, the night is that before.
      const first = [...night('2026-10-06', '2026-09-30', '2026-09-07')]
      assert.deepEqual(await made(), first)
      clock = '2026-10-07T11:00:00.000Z'
      await Promise.all([work(), work()])
      await createNightlyReportJob(server().app)()
      const both = [...first, ...night('2026-10-07', '2026-10-01', '2026-09-08')].toSorted((a, b) =>
        a.from! < b.from! ? 1 : -1,
      )
      assert.deepEqual(
        (await made()).map((r) => ({ ...r, rows: 1 })),
        both,
      )
      const answer = await doAs(server(), workspace.owner.key)(name, { preset: 'yesterday' })
      assert.deepEqual(
        [answer.source, answer.report.name, answer.report.generated_at],
        ['generated_report', 'Yesterday', clock],
      )
      clock = NOON
    })
  },
  options,
)

it(
  'Stored staff reports: of several servers one generates the reports of a night',
  { skip: !process.env.WCRM_TEST_POSTGRES_URL },
  async () => {
    clock = NOON
    const { servers, close } = await startSharedServers(3, options)
    try {
      const workspaces = []
      for (let n = 0; n < 4; n++) workspaces.push(await makeWorkspace(servers[0]!))
      await Promise.all(servers.map((server) => createNightlyReportJob(server.app)()))
      // Whoever found another at work leaves it to them, and looks again.
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

import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { presets } from '../../catalog/reports.ts'
import { generateReport, resolvePastRange } from '../../server/domains/reports/generate.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { type WorkspaceHistory, workspaceHistory } from './history.ts'
import { insertHistory } from './insert-history.ts'
import { type OracleDays, resolveReportDays } from './oracle.ts'
import { countStaffRows, countWorkload, type StaffHistory } from './staff-oracle.ts'
import { listStaffRows, STAFF_REPORT } from './staff-report.ts'

let clock = '2026-10-07T12:00:00.000Z'
const options = { now: () => clock }
const HOUR = 3_600_000

/**
 * Inserts a history, and what the staff report needs besides: when conversations were assigned
 * (`assignedAgo`, in milliseconds before now), and a messaging channel, which has reply windows.
 */
const insertStaffHistory = async (
  { db }: TestServer,
  workspaceId: string,
  history: WorkspaceHistory,
  assignedAgo: readonly number[],
): Promise<StaffHistory> => {
  const rows = await insertHistory(db, workspaceId, history)
  const assignedAt = new Map(
    rows.conversations.flatMap(({ id, assigned_staff_id: staffId }, i): [string, number][] =>
      staffId === null ? [] : [[id, rows.now - assignedAgo[i % assignedAgo.length]!]],
    ),
  )
  for (const [id, at] of assignedAt)
    await sql`
      update conversations set assigned_at = ${new Date(at).toISOString()}
      where workspace_id = ${workspaceId} and id = ${id}`.execute(db)
  await sql`
    update channels set type = 'photoapp'
    where workspace_id = ${workspaceId} and type = 'web'`.execute(db)
  const staff = await db
    .selectFrom('staff')
    .select(['id', 'name'])
    .where('workspace_id', '=', workspaceId)
    .orderBy('id')
    .execute()
  return { ...rows, names: new Map(staff.map((s) => [s.id, s.name])), assignedAt }
}

const range = fc.oneof(
  fc.record({ preset: fc.constantFrom(...presets) }),
  fc.record({ back: fc.nat(30), days: fc.integer({ min: 1, max: 20 }) }),
)
type GeneratedRange = typeof range extends fc.Arbitrary<infer T> ? T : never
type RangeInput = { preset?: string; from?: string; to?: string }

/** Returns the input of a generated range; `back` counts days back from today to its last day. */
const toRangeInput = (generated: GeneratedRange, now: number, timezone: string): RangeInput => {
  if ('preset' in generated) return generated
  const to = Temporal.Instant.fromEpochMilliseconds(now)
    .toZonedDateTimeISO(timezone)
    .toPlainDate()
    .subtract({ days: generated.back })
  return { from: to.subtract({ days: generated.days - 1 }).toString(), to: to.toString() }
}

/** Asserts that a stored report of these days has the same rows, but for what it does not store. */
const assertStored = async (
  server: TestServer,
  workspace: TestWorkspace,
  input: RangeInput,
  { from, to }: OracleDays,
  expected: ReturnType<typeof countStaffRows>,
): Promise<void> => {
  const run = doAs(server, workspace.owner.key)
  const timezone = (await run('workspace_whoami')).workspace.timezone as string
  const stored = await generateReport(
    server.db,
    workspace.id,
    resolvePastRange(clock, timezone, { from, to }, 'Custom'),
    clock,
  )
  const { source, report, data } = await run(STAFF_REPORT, input)
  assert.equal(source, 'generated_report')
  assert.deepEqual(report, {
    id: stored.id,
    name: 'Custom',
    from,
    to,
    generated_at: clock,
    timezone,
    covers_more_than_asked: false,
  })
  assert.deepEqual(
    data,
    expected.map((row) => ({ ...row, reason_coverage: null })),
  )
}

everyDatabase(
  'Staff report against a row-by-row count',
  (server) => {
    it('live and stored figures equal those of a row-by-row count, on any page size', async () => {
      const counted = { conversations: 0, untouched: 0, late: 0, reopened: 0, stored: 0 }
      await fc.assert(
        fc.asyncProperty(
          workspaceHistory,
          range,
          fc.array(fc.integer({ min: 0, max: 40 * 24 * HOUR }), { minLength: 1, maxLength: 5 }),
          async (history, generatedRange, assignedAgo) => {
            const { timezone, now } = history
            clock = now
            const workspace = await makeWorkspace(server(), { timezone })
            const rows = await insertStaffHistory(server(), workspace.id, history, assignedAgo)
            const input = toRangeInput(generatedRange, rows.now, timezone)
            const days = resolveReportDays(input, rows.now, timezone)
            const run = doAs(server(), workspace.owner.key)
            const report = await run(STAFF_REPORT, input)
            const expected = countStaffRows(rows, days)
            assert.deepEqual(report.data, expected, JSON.stringify(input))
            assert.deepEqual(report.workload_now, countWorkload(rows))
            assert.equal(report.population.total, expected.length)
            assert.deepEqual(await listStaffRows(run, input, 1), expected)
            for (const row of expected) {
              counted.conversations += row.conversations
              counted.untouched += row.untouched
              counted.late += row.sla_breaches.total
              counted.reopened += row.reopened
            }
            if (days.to === resolveReportDays({ preset: 'today' }, rows.now, timezone).to) return
            await assertStored(server(), workspace, input, days, expected)
            counted.stored++
          },
        ),
        { numRuns: runs(25, 120) },
      )
      const { conversations, untouched, late, reopened, stored } = counted
      assert.ok(
        // Few of them by chance is no fault.
        Math.min(conversations, untouched, late, reopened, stored) > 0,
        `the generated histories must have something to count: ${JSON.stringify(counted)}`,
      )
    })
  },
  options,
)

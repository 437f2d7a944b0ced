import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { presets } from '../../catalog/reports.ts'
import { doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { workspaceHistory } from './history.ts'
import { insertHistory } from './insert-history.ts'
import { type OracleDays, resolveReportDays, countSummary } from './oracle.ts'
import { makeWorkspace } from '../servers.ts'
import { runs } from '../level.ts'

const SUMMARY = 'reports_workspace_summary'
let clock = '2026-10-07T12:00:00.000Z'
const options = { now: () => clock }

const range = fc.oneof(
  fc.record({ preset: fc.constantFrom(...presets) }),
  fc.record({ back: fc.nat(30), days: fc.integer({ min: 1, max: 20 }) }),
)

everyDatabase(
  'Workspace summary against a row-by-row count',
  (server) => {
    it('figures equal those of a row-by-row count, in any time zone and across clock changes', async () => {
      let counted = 0
      await fc.assert(
        fc.asyncProperty(
          workspaceHistory,
          fc.array(range, { minLength: 1, maxLength: 4 }),
          async (history, ranges) => {
            const { timezone, now } = history
            clock = now
            const workspace = await makeWorkspace(server(), { timezone })
            const rows = await insertHistory(server().db, workspace.id, history)
            for (const generated of ranges) {
              const input = 'preset' in generated ? generated : toDates(generated, rows.now, timezone)
              const summary = await doAs(server(), workspace.owner.key)(SUMMARY, input)
              const days = resolveReportDays(input, rows.now, timezone)
              assertRange(summary.range, days, timezone)
              const { messages, conversations, contacts, broadcasts, sla } = summary
              assert.deepEqual(
                { messages, conversations, contacts, broadcasts, sla },
                countSummary(rows, days),
                JSON.stringify(input),
              )
              assert.equal(summary.workspace.contacts_total, rows.contacts.length)
              counted += messages.sent + conversations.closes + sla.breaches
            }
          },
        ),
        { numRuns: runs(25, 120) },
      )
      assert.ok(counted > 100, `the generated histories had ${counted} things to count`)
    })
  },
  options,
)

/** Returns the range of so many days that ends `back` days before today. */
const toDates = (
  { back, days }: { back: number; days: number },
  now: number,
  timezone: string,
): { from: string; to: string } => {
  const to = Temporal.Instant.fromEpochMilliseconds(now)
    .toZonedDateTimeISO(timezone)
    .toPlainDate()
    .subtract({ days: back })
  return { from: to.subtract({ days: days - 1 }).toString(), to: to.toString() }
}

/** Asserts the days of a range, and its first instant and the one after its last. */
const assertRange = (
  range: { from: string; to: string; days: number; timezone: string; started_at: string; ended_at: string },
  days: OracleDays,
  timezone: string,
): void => {
  const { from, to, days: n, started_at: start, ended_at: end } = range
  assert.deepEqual(
    { from, to, n, timezone: range.timezone },
    { from: days.from, to: days.to, n: days.days, timezone },
  )
  const onDays = [start, end].flatMap((at) => [-1, 0].map((ms) => days.on(Date.parse(at) + ms)))
  assert.deepEqual(onDays, [false, true, true, false], JSON.stringify(range))
}

everyDoor(
  'Workspace summary',
  (test) => {
    test('an empty workspace has zeros, and nulls with a reason', async ({ call, workspace }) => {
      clock = '2026-10-07T12:00:00.000Z'
      const { body } = await call(SUMMARY)
      assert.deepEqual(body.range, {
        from: '2026-10-01',
        to: '2026-10-07',
        days: 7,
        timezone: 'UTC',
        started_at: '2026-10-01T00:00:00.000Z',
        ended_at: '2026-10-08T00:00:00.000Z',
        preset: 'last_7_days',
      })
      assert.deepEqual(body.workspace, {
        company_id: workspace.id,
        name: 'Test',
        timezone: 'UTC',
        contacts_total: 0,
      })
      assert.deepEqual(body.messages, { sent: 0, delivered: 0, read: 0, failed: 0, delivery_rate: null })
      assert.deepEqual(
        [body.conversations.closes, body.conversations.median_close_seconds, body.sla.running],
        [0, null, false],
      )
      assert.deepEqual(
        body.unavailable.map((u: { metric: string }) => u.metric),
        listNullFigures(body),
      )
      assert.ok(
        body.unavailable.every((u: { reason: string }) => u.reason.endsWith('.')) &&
          body.notes.includes('2026-10-07 is not over.'),
        JSON.stringify(body),
      )
    })

    test('needs no report permission', async ({ workspace, as }) => {
      const { key } = await workspace.staff({ role: 'agent', reports: false, channel_ids: [] })
      assert.equal((await as(key)(SUMMARY, { preset: 'today' })).status, 200)
    })

    test('accepts the requested time zone in any case', async ({ call }) => {
      clock = '2026-10-07T19:00:00.000Z'
      const {
        body: { range, notes },
      } = await call(SUMMARY, { preset: 'today', timezone: 'asia/kolkata' })
      assert.deepEqual(range, {
        from: '2026-10-08',
        to: '2026-10-08',
        days: 1,
        timezone: 'Asia/Kolkata',
        started_at: '2026-10-07T18:30:00.000Z',
        ended_at: '2026-10-08T18:30:00.000Z',
        preset: 'today',
      })
      assert.ok(!notes.some((note: string) => note.startsWith('Clocks')))
    })

    test('days have 23, 24.5 or 25 hours where clocks change, and a skipped day has none', async ({
      call,
    }) => {
      clock = '2026-11-30T12:00:00.000Z'
      for (const [timezone, day, hours] of [
        ['Europe/Berlin', '2026-03-29', 23],
        ['Europe/Berlin', '2026-10-25', 25],
        ['Australia/Lord_Howe', '2026-04-05', 24.5],
        ['Pacific/Apia', '2011-12-30', 0],
      ] as const) {
        const {
          body: { range, notes },
        } = await call(SUMMARY, { from: day, to: day, timezone })
        assert.equal((Date.parse(range.ended_at) - Date.parse(range.started_at)) / 3_600_000, hours, timezone)
        assert.ok(
          notes.some((note: string) => note.includes(`${hours} hours`)),
          timezone,
        )
      }
    })

    test('from and to override a preset, and may end today', async ({ call }) => {
      clock = '2026-10-07T23:59:59.999Z'
      const {
        body: { range },
      } = await call(SUMMARY, { preset: 'yesterday', from: '2026-04-05', to: '2026-10-07' })
      assert.deepEqual(
        [range.from, range.to, range.days, range.preset],
        ['2026-04-05', '2026-10-07', 186, null],
      )
    })

    test('an invalid range or time zone is rejected with field and fix', async ({ call }) => {
      clock = '2026-10-07T12:00:00.000Z'
      const cases: [Record<string, unknown>, string, string][] = [
        [{ from: '2026-10-01' }, 'to', 'required'],
        [{ to: '2026-10-01' }, 'from', 'required'],
        [{ from: '2026-10-02', to: '2026-10-01' }, 'from', 'reversed'],
        [{ from: '2026-10-08', to: '2026-10-09' }, 'from', 'future'],
        [{ from: '2026-10-01', to: '2026-10-08' }, 'to', 'future'],
        [{ from: '2026-04-04', to: '2026-10-07' }, 'from', 'too_long'],
        [{ from: '2026-02-30', to: '2026-03-01' }, 'from', 'invalid_day'],
        [{ from: '0000-01-01', to: '0000-01-02' }, 'from', 'invalid_day'],
        [{ from: '2026-10-01', to: '2026-13-01' }, 'to', 'invalid_day'],
        ...[
          'Mars/Olympus',
          '+05:30',
          'T00+01',
          'UTC ',
          '2026-01-01T00:00Z[Europe/Berlin]',
          'Asia/Kolkata[UTC]',
          '😀',
        ].map((timezone): [Record<string, unknown>, string, string] => [
          { timezone },
          'timezone',
          'unknown_timezone',
        ]),
      ]
      for (const [input, field, code] of cases) {
        const { status, body } = await call(SUMMARY, input)
        assert.deepEqual(
          [status, body.code, body.errors?.[0]?.code],
          [400, 'invalid_input', code],
          JSON.stringify([input, body]),
        )
        assert.ok(
          (body.errors[0].pointer ?? body.errors[0].parameter).endsWith(field) && body.errors[0].fix,
          JSON.stringify(body.errors),
        )
      }
      for (const input of [
        { preset: 'last_year' },
        { from: '1.10.2026', to: '2.10.2026' },
        { timezone: 'x'.repeat(65) },
      ])
        assert.equal((await call(SUMMARY, input)).status, 400, JSON.stringify(input))
    })

    test('accepts ranges back to the year 1', async ({ call }) => {
      clock = '2026-10-07T12:00:00.000Z'
      for (const timezone of ['Asia/Kolkata', 'America/New_York'])
        assert.equal(
          (await call(SUMMARY, { from: '0001-01-01', to: '0001-01-02', timezone })).body.messages.sent,
          0,
        )
    })
  },
  options,
)

/** Returns the paths of the figures that are null. */
const listNullFigures = (body: Record<string, Record<string, unknown>>): string[] =>
  ['messages', 'conversations', 'contacts', 'broadcasts', 'sla', 'agents', 'chatbots'].flatMap((part) =>
    Object.entries(body[part]!)
      .filter(([, figure]) => figure === null)
      .map(([figure]) => `${part}.${figure}`),
  )

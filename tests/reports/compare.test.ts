import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { catalog } from '../../catalog/index.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { workspaceHistory } from './history.ts'
import { insertHistory } from './insert-history.ts'

let clock = '2026-10-07T12:00:00.000Z'
const options = { now: () => clock }

type Duration = { member: string; seconds: string }

const medianOf = (rows: readonly Duration[]): number | null => {
  if (rows.length === 0) return null
  const sorted = rows.map(({ seconds }) => Number(seconds)).toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Every first response, and every close, of a range, with who made it. */
const loadDurations = async ({ db }: TestServer, workspaceId: string, range: Record<string, string>) => {
  const within = (column: string) => sql`
    ${sql.ref(column)} >= ${range['started_at']}::timestamptz
      and ${sql.ref(column)} < ${range['ended_at']}::timestamptz`
  const closes = await sql<Duration>`
    select coalesce(closed_by, 0)::text as member, extract(epoch from closed_at - opened_at) as seconds
    from conversation_episodes where workspace_id = ${workspaceId} and ${within('closed_at')}`.execute(db)
  const firsts = await sql<Duration>`
    select coalesce(w.ended_by, case when e.closed_by is null and e.closed_at <= w.ended_at then 0 else -1 end)::text
      as member, extract(epoch from w.ended_at - w.since) as seconds
    from reply_waits w left join conversation_episodes e on e.workspace_id = w.workspace_id
      and e.conversation_id = w.conversation_id and e.n = w.episode
    where w.workspace_id = ${workspaceId} and w.kind = 'first_response' and ${within('w.ended_at')}
      and not (e.n is not null and e.first_response_at is null)`.execute(db)
  return { closes: closes.rows, firsts: firsts.rows }
}

const assertNear = (actual: number | null, expected: number | null, what: string): void => {
  if (actual === null || expected === null) assert.equal(actual, expected, what)
  else assert.ok(Math.abs(actual - expected) < 0.001, `${what}: ${actual} is not ${expected}`)
}

everyDatabase(
  'Reports of a period and the one before',
  (server) => {
    it('the period before has the figures of its own report; medians are those of the rows', async () => {
      let counted = 0
      await fc.assert(
        fc.asyncProperty(workspaceHistory, fc.integer({ min: 1, max: 15 }), async (history, days) => {
          clock = history.now
          const workspace = await makeWorkspace(server(), { timezone: history.timezone })
          await insertHistory(server().db, workspace.id, history)
          const run = doAs(server(), workspace.owner.key)
          const last = (await run('reports_workspace_summary', { preset: 'today' })).range.to as string
          const from = Temporal.PlainDate.from(last)
            .subtract({ days: days - 1 })
            .toString()
          const span = { from, to: last, compare: true, medians: true }
          const summary = await run('reports_workspace_summary', span)
          const { previous } = summary
          const own = await run('reports_workspace_summary', {
            from: previous.range.from,
            to: previous.range.to,
            medians: true,
          })
          assert.deepEqual(previous.range, own.range)
          assert.equal(previous.range.days, days)
          assert.equal(previous.range.ended_at, summary.range.started_at)
          for (const part of ['messages', 'contacts', 'broadcasts'])
            assert.deepEqual(previous[part], own[part], part)
          assert.equal(previous.sla.breaches, own.sla.breaches)
          for (const [name, figure] of Object.entries(previous.conversations))
            assert.deepEqual(figure, own.conversations[name], name)
          const staff = await run('reports_staff', { ...span, limit: 100 })
          for (const [report, rows] of [
            [summary, staff],
            [previous, staff.previous],
          ]) {
            const { closes, firsts } = await loadDurations(server(), workspace.id, report.range)
            counted += closes.length + firsts.length
            const figures = report.conversations
            assertNear(figures.median_first_response_seconds, medianOf(firsts), 'first response')
            assertNear(figures.median_close_seconds, medianOf(closes), 'close')
            for (const row of rows.data) {
              const mine = (all: readonly Duration[]) =>
                all.filter((one) => one.member === (row.staff_id ?? (row.name === 'Phone app' ? '-1' : '0')))
              assertNear(
                row.median_first_response_seconds,
                medianOf(mine(firsts)),
                'first response of a member',
              )
              assertNear(row.median_time_to_close_seconds, medianOf(mine(closes)), 'close of a member')
            }
          }
          const plain = await run('reports_staff', { from, to: last, limit: 100 })
          assert.deepEqual(
            [plain.previous, plain.data[0]?.median_time_to_close_seconds],
            [undefined, undefined],
          )
        }),
        { numRuns: runs(12, 60) },
      )
      assert.ok(counted > 20, `the generated histories had ${counted} closes and first responses`)
    })

    it('a range with too few days before it is refused by every report that compares', async () => {
      clock = '2026-10-07T12:00:00.000Z'
      const { owner } = await makeWorkspace(server(), { timezone: 'America/New_York' })
      const call = callAs(server(), owner.key)
      const comparing = catalog.filter(({ input }) => 'compare' in input.shape)
      assert.ok(comparing.length >= 2, `${comparing.length} reports`)
      for (const { name } of comparing)
        for (const timezone of ['America/New_York', 'Asia/Kolkata', 'UTC']) {
          const compare = (from: string, to: string) => call(name, { from, to, timezone, compare: true })
          for (const [from, to, fix] of [
            ['0001-01-01', '0001-01-01', /0001-01-02/],
            ['0001-01-01', '0001-01-02', /0001-01-03/],
            ['0001-02-01', '0001-03-04', /0001-02-02/],
          ] as const) {
            const { status, body } = await compare(from, to)
            assert.deepEqual(
              [status, body.code, body.errors?.[0]?.pointer, body.errors?.[0]?.code],
              [400, 'invalid_input', '#/from', 'no_days_before'],
              JSON.stringify([name, timezone, body]),
            )
            assert.match(body.errors[0].fix, fix)
          }
          const first = await compare('0001-01-03', '0001-01-04')
          assert.deepEqual(
            [first.status, first.body.previous?.range.from, first.body.previous?.range.to],
            [200, '0001-01-01', '0001-01-02'],
            JSON.stringify([name, timezone, first.body]),
          )
        }
    })
  },
  options,
)

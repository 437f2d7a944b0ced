import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { lockConversation } from '../../storage/conversations/conversations.ts'
import { loadEpisodes, loadWaits } from '../../storage/conversations/reply-corrections.ts'
import { insertSlaPolicy } from '../../storage/conversations/sla.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { runs } from '../level.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import type { HistoryRows } from './history.ts'
import { countSummary, type OracleDays, resolveReportDays } from './oracle.ts'
import { type Fact, type ModelState, play, type Step, stories, TARGETS } from './replies-model.ts'
import { type Scene, take, type Told } from './replies-scene.ts'
import { countStaffRows, countWorkload, type StaffHistory } from './staff-oracle.ts'
import { STAFF_REPORT } from './staff-report.ts'

/** Where the stories begin: a day with a change of clocks, hours before it. */
const starts = [
  ['Europe/Berlin', '2026-03-28T20:00:00.000Z'],
  ['Europe/Berlin', '2026-10-24T20:00:00.000Z'],
  ['America/New_York', '2026-03-07T22:00:00.000Z'],
  ['Australia/Lord_Howe', '2026-10-03T10:00:00.000Z'],
  ['Asia/Kathmandu', '2026-06-30T16:00:00.000Z'],
] as const

let clock: string = starts[0][1]
const options = { now: () => clock }
const toIso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

/** Asserts that a conversation is what the model says. */
const assertConversation = async (scene: Scene, told: Told): Promise<void> => {
  const { server, workspaceId, staff } = scene
  const expected = play(told.facts, told.failed)
  const conversation = await server.db
    .transaction()
    .execute((tx) => lockConversation(tx, workspaceId, told.id))
  const open = expected.waits.find((wait) => wait.end === null)
  const dueOf = (kind: string) => (open?.kind === kind ? toIso(open.due) : null)
  const episode = expected.episodes.at(-1)!
  const isLate = (due: number, at: number | null): boolean => at !== null && at > due
  const what = JSON.stringify({ facts: told.facts, failed: [...told.failed] })
  assert.deepEqual(
    {
      state: conversation!.state,
      episode: conversation!.episode,
      reply_status: conversation!.reply_status,
      first_response_due_at: conversation!.first_response_due_at,
      next_response_due_at: conversation!.next_response_due_at,
      resolution_due_at: conversation!.resolution_due_at,
      sla_breached: conversation!.sla_breached,
    },
    {
      state: expected.open ? 'open' : 'closed',
      episode: episode.n,
      reply_status: expected.status,
      first_response_due_at: dueOf('first_response'),
      next_response_due_at: dueOf('next_response'),
      resolution_due_at: expected.open ? toIso(episode.resolutionDue) : null,
      sla_breached:
        expected.waits.some((wait) => wait.episode === episode.n && isLate(wait.due, wait.end)) ||
        isLate(episode.resolutionDue, episode.closedAt),
    },
    what,
  )
  assert.deepEqual(
    await loadWaits(server.db, workspaceId, told.id),
    expected.waits.map(({ since, kind, episode: n, due, end, by }) => ({
      since: toIso(since),
      kind,
      episode: n,
      due_at: toIso(due),
      ended_at: toIso(end),
      ended_by: by === null ? null : staff[by]!,
    })),
    what,
  )
  assert.deepEqual(
    (await loadEpisodes(server.db, workspaceId, told.id)).map(({ n, resumed }) => [n, resumed]),
    expected.episodes.map(({ n, resumed }) => [n, resumed]),
    what,
  )
}

/** Returns the rows of the model, for the oracles of the reports. */
const toHistory = (scene: Scene, told: readonly Told[], names: ReadonlyMap<string, string>): StaffHistory => {
  const { staff } = scene
  const toStaff = (by: number | null): string | null => (by === null ? null : staff[by]!)
  const states = told.map((one): [Told, ModelState] => [one, play(one.facts, one.failed)])
  const rows: HistoryRows = {
    now: Date.parse(clock),
    staff,
    contacts: told.map((one) => ({ created_at: one.createdAt })),
    broadcasts: [],
    policies: [{ enabled: true, effective: true }],
    messages: states.flatMap(([{ id, replies, failed, read }]) =>
      [...replies.values()].map((reply) => ({
        conversation_id: id,
        direction: 'outbound',
        note: false,
        status: failed.has(reply.id) ? 'failed' : read.has(reply.id) ? 'read' : 'sent',
        staff_id: toStaff(reply.by),
        created_at: reply.at,
      })),
    ),
    conversations: states.map(([{ id, createdAt, assigned, facts }, { open, status }]) => ({
      id,
      state: open ? 'open' : 'closed',
      reply_status: status,
      assigned_staff_id: assigned && toStaff(assigned.by),
      assigned_team_id: null,
      created_at: createdAt,
      window_expires_at: null,
      last_inbound_at: facts.findLast((fact) => fact.do === 'receive')!.at,
    })),
    episodes: states.flatMap(([{ id }, { episodes }]) =>
      episodes.map((e) => ({
        conversation_id: id,
        n: e.n,
        opened_at: e.openedAt,
        opened_by: toStaff(e.openedBy),
        closed_at: e.closedAt,
        closed_by: toStaff(e.closedBy),
        close_reason: null,
        first_response_at: e.firstResponse,
        resolution_due_at: e.resolutionDue,
      })),
    ),
    waits: states.flatMap(([{ id }, { waits }]) =>
      waits.map((w) => ({
        conversation_id: id,
        since: w.since,
        kind: w.kind,
        episode: w.episode,
        due_at: w.due,
        ended_at: w.end,
        ended_by: toStaff(w.by),
      })),
    ),
  }
  const assignedAt = new Map(told.flatMap((one) => (one.assigned ? [[one.id, one.assigned.at]] : [])))
  return { ...rows, names, assignedAt }
}

type StaffRow = ReturnType<typeof countStaffRows>[number]

const addUp = (rows: readonly StaffRow[]) => ({
  sent: rows.reduce((sum, row) => sum + row.messages_sent, 0),
  closes: rows.reduce((sum, row) => sum + row.closed, 0),
  reopened: rows.reduce((sum, row) => sum + row.reopened, 0),
  breaches: rows.reduce((sum, row) => sum + row.sla_breaches.total, 0),
})

/** Asserts that both reports of these days are what the model says, and agree. Returns whether one was stored. */
const assertReports = async (
  run: ReturnType<typeof doAs>,
  history: StaffHistory,
  days: OracleDays,
  input: Record<string, unknown>,
): Promise<boolean> => {
  const [summary, staff] = [await run('reports_workspace_summary', input), await run(STAFF_REPORT, input)]
  const { messages, conversations, sla } = summary
  const expected = countSummary(history, days)
  const what = JSON.stringify(input)
  assert.deepEqual(
    { messages, conversations, sla },
    { messages: expected.messages, conversations: expected.conversations, sla: expected.sla },
    what,
  )
  assert.deepEqual(
    addUp(staff.data),
    {
      sent: messages.sent,
      closes: conversations.closes,
      reopened: conversations.reopened,
      breaches: sla.breaches,
    },
    what,
  )
  assert.deepEqual(staff.workload_now, countWorkload(history))
  assert.equal(
    staff.workload_now.reduce((sum: number, row: { waiting: number }) => sum + row.waiting, 0),
    conversations.waiting_now,
  )
  if (staff.source === 'live_closes') assert.deepEqual(staff.data, countStaffRows(history, days), what)
  else assert.deepEqual([staff.report.from, staff.report.to], [days.from, days.to])
  return staff.source !== 'live_closes'
}

const setUp = async (server: TestServer, timezone: string): Promise<Scene & { key: string }> => {
  const workspace = await makeWorkspace(server, { timezone })
  const staff = []
  for (const name of ['Ada', 'Bo', 'Cy']) staff.push((await workspace.staff({ name, role: 'agent' })).staffId)
  const { first, next, resolution } = TARGETS
  await insertSlaPolicy(
    server.db,
    workspace.id,
    {
      name: 'Standard',
      enabled: true,
      channel_ids: null,
      first_response_seconds: first,
      next_response_seconds: next,
      resolution_seconds: resolution,
      hours: null,
    },
    clock,
  )
  return { now: () => clock, server, workspaceId: workspace.id, timezone, staff, key: workspace.owner.key }
}

/** Gives the steps of all stories their times, and sorts them. Every story begins with a message. */
const schedule = (told: readonly (readonly Step[])[], start: number) =>
  told
    .flatMap((steps, n) => {
      let at = start + n * 1000
      return steps.map((step) => ({ n, step, at: (at += step.after * 1000) }))
    })
    .toSorted((a, b) => a.at - b.at)

/** A conversation that is closed with a reply which fails twice, the second time after the next close. */
const closedTooEarly: Step[] = [
  { after: 60, do: 'reply', by: 0 },
  { after: 1, do: 'close', by: 0 },
  { after: 600, do: 'fail', key: 0 },
  { after: 300, do: 'reply', by: 1 },
  { after: 30, do: 'reply', by: 2 },
  { after: 1, do: 'close', by: 1 },
  { after: 60, do: 'fail', key: 1 },
  { after: 60, do: 'fail', key: 0 },
]
/** A reply of the evening that fails after its day was reported. */
const overnight: Step[] = [
  { after: 3600, do: 'reply', by: 0 },
  { after: 60_000, do: 'report' },
  { after: 600, do: 'fail', key: 0 },
  { after: 600, do: 'report' },
]

/** Replies that fail long after others of the same episode, of which the first came too late. */
const wellAnswered: Step[] = [
  { after: 50_000, do: 'reply', by: 0 },
  { after: 60, do: 'receive' },
  { after: 60, do: 'reply', by: 1 },
  { after: 60, do: 'receive' },
  { after: 60, do: 'reply', by: 2 },
  { after: 60, do: 'fail', key: 0 },
  { after: 60, do: 'receive' },
  { after: 60, do: 'reply', by: 0 },
  { after: 60, do: 'close', by: 0 },
  { after: 60, do: 'fail', key: 0 },
]

everyDatabase(
  'Replies that fail afterwards',
  (server) => {
    it('inbox, waits, clocks and reports are those of a history without the replies that failed', async () => {
      const counted = { failed: 0, resumed: 0, stored: 0 }
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...starts), stories, async ([timezone, start], tales) => {
          clock = start
          const { key, ...scene } = await setUp(server(), timezone)
          const told: Told[] = []
          for (const [n] of tales.entries()) {
            const createdAt = Date.parse(start) + n * 1000
            clock = toIso(createdAt)!
            const { id } = await plantConversation(server(), scene.workspaceId, { inboundAt: clock })
            const facts: Fact[] = [{ do: 'receive', at: createdAt }]
            told.push({
              id,
              createdAt,
              facts,
              replies: new Map(),
              failed: new Set(),
              read: new Set(),
              assigned: null,
            })
          }
          for (const { n, step, at } of schedule(tales, Date.parse(start))) {
            clock = toIso(at)!
            await take(scene, told[n]!, step)
            await assertConversation(scene, told[n]!)
          }
          const run = doAs(server(), key)
          const staff = await server()
            .db.selectFrom('staff')
            .select(['id', 'name'])
            .where('workspace_id', '=', scene.workspaceId)
            .orderBy('id')
            .execute()
          const history = toHistory(scene, told, new Map(staff.map((s) => [s.id, s.name])))
          for (const preset of ['today', 'yesterday', 'last_7_days']) {
            const days = resolveReportDays({ preset }, history.now, timezone)
            counted.stored += Number(await assertReports(run, history, days, { preset }))
          }
          for (const one of told) {
            counted.failed += one.failed.size
            counted.resumed += one.facts.filter((fact) => fact.do === 'resume').length
          }
        }),
        {
          numRuns: runs(16, 100),
          examples: [[starts[0], [closedTooEarly, closedTooEarly, overnight, wellAnswered]]],
        },
      )
      assert.ok(
        Math.min(counted.failed / 5, counted.resumed, counted.stored) > 1,
        `the stories must have something to count: ${JSON.stringify(counted)}`,
      )
    })
  },
  options,
)

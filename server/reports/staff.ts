import type { Db } from '../../storage/database.ts'
import {
  type Answering,
  type Closing,
  type Handling,
  readAnswering,
  readClosing,
  readHandling,
  readReopened,
  readStaffNames,
  readWorkload,
  type Workload,
} from '../../storage/staff-figures.ts'
import { findReport, readReport, type StoredReport } from '../../storage/staff-reports.ts'
import type { Context } from '../core/context.ts'
import { windowRules } from '../inbox/window.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { Problem } from '../core/problem.ts'
import { type Range, rangeOf } from './range.ts'
import { limits, notesOf, unavailableOf } from './staff-words.ts'

type Output = OutputOf<'reports_staff'>
export type StaffRow = Output['data'][number]

/** In storage the member who is nobody. */
const NOBODY = '0'
/** A cursor holds one bit for each member. */
const MOST_MEMBERS = 5000

const rounded = (value: number, digits: number): number => Math.round(value * 10 ** digits) / 10 ** digits
/** Null where there is nothing to divide by. */
const ratio = (part: number, whole: number, digits: number): number | null =>
  whole === 0 ? null : rounded(part / whole, digits)

const nothing = {
  handling: { conversations: 0, handled: 0, closed: 0, replied: 0, messages: 0 } satisfies Handling,
  closing: { closes: 0, with_reason: 0, seconds: 0, clocks: 0, late: 0 } satisfies Closing,
  answering: {
    firsts: 0,
    seconds: 0,
    first_clocks: 0,
    first_late: 0,
    next_clocks: 0,
    next_late: 0,
  } satisfies Answering,
}

const rowOf = (
  member: string,
  name: string | null,
  h: Handling,
  c: Closing,
  a: Answering,
  reopened: number,
): StaffRow => {
  const late = a.first_late + a.next_late + c.late
  const clocks = a.first_clocks + a.next_clocks + c.clocks
  return {
    staff_id: member === NOBODY ? null : member,
    name,
    conversations: h.conversations,
    handled: h.handled,
    closed: h.closed,
    replied: h.replied,
    untouched: h.conversations - h.handled,
    messages_sent: h.messages,
    reopened,
    avg_first_response_seconds: ratio(a.seconds, a.firsts, 3),
    avg_time_to_close_seconds: ratio(c.seconds, c.closes, 3),
    sla_breaches: {
      first_response: a.first_late,
      next_response: a.next_late,
      resolution: c.late,
      total: late,
    },
    sla_compliance_rate: ratio(clocks - late, clocks, 4),
    reason_coverage: ratio(c.with_reason, c.closes, 4),
  }
}

/** Most conversations first, then by name; of equal names the older member, and nobody last. */
const inOrder = <T extends { staff_id: string | null; name: string | null }>(
  rows: readonly T[],
  most: (row: T) => number,
): T[] =>
  rows.toSorted(
    (a, b) =>
      most(b) - most(a) ||
      compare(a.name, b.name) ||
      Number(a.staff_id ?? Infinity) - Number(b.staff_id ?? Infinity),
  )

const compare = (a: string | null, b: string | null): number => {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1
  return a < b ? -1 : a > b ? 1 : 0
}

/** What each member did then, of those who did something, counted from what is there now. */
export const liveRows = async (
  tx: Db,
  workspaceId: string,
  { started_at: start, ended_at: end }: Range,
): Promise<StaffRow[]> => {
  const between = { start, end }
  const [names, handling, closing, reopened, answering] = await Promise.all([
    readStaffNames(tx, workspaceId),
    readHandling(tx, workspaceId, between),
    readClosing(tx, workspaceId, between),
    readReopened(tx, workspaceId, between),
    readAnswering(tx, workspaceId, between),
  ])
  const members = new Set([handling, closing, reopened, answering].flatMap((some) => [...some.keys()]))
  const rows = [...members].map((member) =>
    rowOf(
      member,
      names.get(member) ?? null,
      handling.get(member) ?? nothing.handling,
      closing.get(member) ?? nothing.closing,
      answering.get(member) ?? nothing.answering,
      reopened.get(member)?.reopened ?? 0,
    ),
  )
  return inOrder(rows, (row) => row.conversations!)
}

const workloadOf = async (
  { tx, actor, now }: Context,
  names: ReadonlyMap<string, string>,
): Promise<Output['workload_now']> => {
  const workload = await readWorkload(tx, actor.workspace.id, windowRules, now)
  const rows = [...workload].map(
    ([member, { waiting, assigned_open, window_expired, oldest }]: [string, Workload]) => ({
      staff_id: member === NOBODY ? null : member,
      name: names.get(member) ?? null,
      waiting,
      assigned_open,
      window_expired,
      oldest_wait_seconds:
        oldest === null ? null : Math.max(0, (Date.parse(now) - Date.parse(oldest)) / 1000),
    }),
  )
  return inOrder(rows, (row) => row.assigned_open)
}

/**
 * Where a list of members goes on: its days and its source stay, and whoever was shown is not shown again,
 * however the numbers move meanwhile.
 */
type Position = { from: string; to: string; timezone: string; reportId: string | null; shown: Uint8Array }

const opened = (ctx: Context, cursor: string | undefined): Position | null => {
  const position = ctx.cursors.open(cursor)
  if (!position) return null
  const [from, to, timezone, reportId, shown] = position as [string, string, string, string | null, string]
  return { from, to, timezone, reportId, shown: Buffer.from(shown, 'base64') }
}

const isShown = (shown: Uint8Array, place: number): boolean =>
  (((shown[place >> 3] ?? 0) >> (place & 7)) & 1) === 1
const withShown = (shown: Uint8Array, places: readonly number[]): Uint8Array => {
  const bits = new Uint8Array(Math.max(shown.length, ...places.map((place) => (place >> 3) + 1)))
  bits.set(shown)
  for (const place of places) bits[place >> 3]! |= 1 << (place & 7)
  return bits
}

/**
 * A page of the rows: those not shown yet, in their order. Staff are never deleted, so that their places by
 * id stay; nobody has the place 0.
 */
const pageOfRows = (
  ctx: Context,
  limit: number,
  rows: readonly StaffRow[],
  names: ReadonlyMap<string, string>,
  at: Position,
): Pick<Output, 'data' | 'population' | 'next_cursor'> => {
  const places = new Map([NOBODY, ...names.keys()].map((id, place) => [id, place]))
  const placeOf = ({ staff_id: id }: StaffRow): number => places.get(id ?? NOBODY) ?? Infinity
  const counted = rows.filter((row) => placeOf(row) < MOST_MEMBERS)
  const left = counted.filter((row) => !isShown(at.shown, placeOf(row)))
  const data = left.slice(0, limit)
  const capped = counted.length < rows.length
  return {
    data,
    population: { total: counted.length, capped, note: capped ? limits.capped(MOST_MEMBERS) : limits.left },
    next_cursor:
      left.length > limit
        ? ctx.cursors.seal([
            at.from,
            at.to,
            at.timezone,
            at.reportId,
            Buffer.from(withShown(at.shown, data.map(placeOf))).toString('base64'),
          ])
        : null,
  }
}

const storedRows = (report: StoredReport, names: ReadonlyMap<string, string>): StaffRow[] =>
  inOrder(
    (report.rows as StaffRow[]).map((row) => ({
      ...row,
      name: row.staff_id === null ? null : (names.get(row.staff_id) ?? row.name),
      reason_coverage: null,
    })),
    (row) => row.conversations!,
  )

const shownReport = (
  { id, name, from, to, timezone, generated_at }: StoredReport,
  range: Range,
): NonNullable<Output['report']> => ({
  id,
  name,
  from,
  to,
  generated_at,
  timezone,
  covers_more_than_asked: from < range.from || to > range.to,
})

/** Throws 403 `report_not_allowed` for an agent without report permission. */
const requireReports = ({ actor: { staff } }: Context): void => {
  if (staff.role !== 'agent' || staff.reports) return
  throw new Problem(
    'forbidden',
    `${staff.name} has no report permission. An administrator can give it: wcrm admin staff update ${staff.id} --reports.`,
    { reason: 'report_not_allowed' },
  )
}

export const staffReport: Handler<InputOf<'reports_staff'>, Output> = async (
  ctx,
  { limit, cursor, ...span },
) => {
  requireReports(ctx)
  const position = opened(ctx, cursor)
  const asked = rangeOf(
    ctx,
    position ? { from: position.from, to: position.to, timezone: position.timezone } : span,
  )
  const range: Range =
    position && span.from === undefined ? { ...asked, preset: span.preset ?? 'last_7_days' } : asked
  const {
    tx,
    actor: {
      workspace: { id: workspaceId },
    },
  } = ctx
  const names = await readStaffNames(tx, workspaceId)
  const workload = workloadOf(ctx, names)
  const found = !position
    ? findReport(tx, workspaceId, range)
    : position.reportId === null
      ? undefined
      : readReport(tx, workspaceId, position.reportId)
  const [report, workload_now] = await Promise.all([found, workload])
  const rows = report ? storedRows(report, names) : await liveRows(tx, workspaceId, range)
  const page = pageOfRows(
    ctx,
    limit,
    rows,
    names,
    position ?? { ...range, reportId: report?.id ?? null, shown: new Uint8Array() },
  )
  const shown = report ? shownReport(report, range) : null
  return {
    range,
    source: report ? 'generated_report' : 'live_closes',
    report: shown,
    ...page,
    workload_now,
    notes: notesOf(range, shown, ctx.now),
    unavailable: unavailableOf(page.data, shown !== null),
  }
}

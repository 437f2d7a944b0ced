import type { Context, Handler, OutputOf } from '../../handler.ts'
import { loadStaffNames, loadWorkloadFigures } from '../../../storage/reports/staff-figures.ts'
import { loadMedians } from '../../../storage/reports/medians.ts'
import { findStoredReport, loadReport, type StaffReport } from '../../../storage/reports/staff-reports.ts'
import { windowRules } from '../inbox/window.ts'
import { Problem } from '../../kernel/problem.ts'
import { formatChannelNotes } from './channel-notes.ts'
import { precedingRange, type ReportRange, resolveRange } from './range.ts'
import { isManager, listVisibleChannels } from '../../visibility/policy.ts'
import { formatNotes, formatPopulationNote, listUnavailable } from './staff-notes.ts'
import {
  computeStaffRows,
  memberOf,
  NOBODY,
  parseStoredRows,
  PHONE_APP,
  sortStaff,
  type StaffReportRow,
} from './staff-rows.ts'

type Output = OutputOf<'reports_staff'>

/** A cursor holds one bit for each member. */
const MAX_MEMBERS = 5000

const loadWorkload = async (
  { tx, actor, now }: Context,
  names: ReadonlyMap<string, string>,
): Promise<Output['workload_now']> => {
  const workload = await loadWorkloadFigures(
    tx,
    actor.workspace.id,
    windowRules,
    now,
    listVisibleChannels(actor),
  )
  const rows = [...workload].map(([staffId, { waiting, assigned_open, window_expired, oldest }]) => ({
    staff_id: staffId === NOBODY ? null : staffId,
    name: names.get(staffId) ?? null,
    waiting,
    assigned_open,
    window_expired,
    oldest_wait_seconds: oldest === null ? null : Math.max(0, (Date.parse(now) - Date.parse(oldest)) / 1000),
  }))
  return sortStaff(rows, (row) => row.assigned_open)
}

/**
 * Where a list of members continues. The range and the source stay the same on all pages, and a member who
 * was shown is not shown again, however the numbers change in the meantime. `shown`: one bit for each member.
 */
type StaffPosition = {
  from: string
  to: string
  timezone: string
  reportId: string | null
  shown: Uint8Array
}

const openCursor = (ctx: Context, cursor: string | undefined): StaffPosition | null => {
  const position = ctx.cursors.open(cursor)
  if (!position) return null
  const [from, to, timezone, reportId, shown] = position as [string, string, string, string | null, string]
  return { from, to, timezone, reportId, shown: Buffer.from(shown, 'base64') }
}

const hasBit = (bits: Uint8Array, index: number): boolean =>
  (((bits[index >> 3] ?? 0) >> (index & 7)) & 1) === 1

const withBits = (bits: Uint8Array, indexes: readonly number[]): Uint8Array => {
  const next = new Uint8Array(Math.max(bits.length, ...indexes.map((index) => (index >> 3) + 1)))
  next.set(bits)
  for (const index of indexes) next[index >> 3]! |= 1 << (index & 7)
  return next
}

/**
 * Returns a page of the rows that were not shown yet, in their order. The bit of a member is the index of its
 * id, which never changes, since staff are never deleted. The rows without a member come first.
 */
const createStaffPage = (
  ctx: Context,
  limit: number,
  rows: readonly StaffReportRow[],
  names: ReadonlyMap<string, string>,
  position: StaffPosition,
): Pick<Output, 'data' | 'population' | 'next_cursor'> => {
  const indexes = new Map([NOBODY, PHONE_APP, ...names.keys()].map((id, index) => [id, index]))
  const indexOf = (row: StaffReportRow): number => indexes.get(memberOf(row)) ?? Infinity
  const counted = rows.filter((row) => indexOf(row) < MAX_MEMBERS)
  const remaining = counted.filter((row) => !hasBit(position.shown, indexOf(row)))
  const data = remaining.slice(0, limit)
  const capped = counted.length < rows.length
  const { from, to, timezone, reportId } = position
  const sealNext = (): string => {
    const shown = Buffer.from(withBits(position.shown, data.map(indexOf))).toString('base64')
    return ctx.cursors.seal([from, to, timezone, reportId, shown])
  }
  return {
    data,
    population: { total: counted.length, capped, note: formatPopulationNote(capped ? MAX_MEMBERS : null) },
    next_cursor: remaining.length > limit ? sealNext() : null,
  }
}

const showReport = ({
  id,
  name,
  from,
  to,
  timezone,
  generated_at,
}: StaffReport): NonNullable<Output['report']> => ({
  id,
  name,
  from,
  to,
  generated_at,
  timezone,
  covers_more_than_asked: false,
})

/** Throws 403 `report_not_allowed` for an agent without report permission. */
const requireReportPermission = ({ actor }: Context): void => {
  const { staff } = actor
  if (isManager(actor) || staff.reports) return
  throw new Problem(
    'forbidden',
    `${staff.name} has no report permission. An administrator can grant it: ` +
      `wcrm admin staff update ${staff.id} --reports.`,
    { reason: 'report_not_allowed' },
  )
}

type MoreOptions = { channels: readonly string[] | null; withMedians: boolean }

/** Adds medians where they are asked for. */
const addMedians = async (
  { tx, actor }: Context,
  rows: readonly StaffReportRow[],
  range: ReportRange,
  { channels, withMedians }: MoreOptions,
): Promise<StaffReportRow[]> => {
  if (!withMedians) return [...rows]
  const between = { start: range.started_at, end: range.ended_at }
  const medians = await loadMedians(tx, actor.workspace.id, between, channels)
  return rows.map((row) => {
    const own = medians.get(memberOf(row))
    return {
      ...row,
      median_first_response_seconds: own?.firstResponse ?? null,
      median_time_to_close_seconds: own?.close ?? null,
    }
  })
}

/** Returns what the same members did in as many days before, counted live. */
const loadPrevious = async (
  ctx: Context,
  shown: readonly StaffReportRow[],
  range: ReportRange,
  options: MoreOptions,
): Promise<NonNullable<Output['previous']>> => {
  const before = precedingRange(ctx, range)
  const members = new Set(shown.map(memberOf))
  const rows = await computeStaffRows(ctx.tx, ctx.actor.workspace.id, before, ctx.now, options.channels)
  return {
    range: before,
    data: await addMedians(
      ctx,
      rows.filter((row) => members.has(memberOf(row))),
      before,
      options,
    ),
  }
}

export const staffReport: Handler<'reports_staff'> = async (ctx, input) => {
  const { limit, cursor, compare, medians, ...span } = input
  requireReportPermission(ctx)
  const position = openCursor(ctx, cursor)
  const requested = resolveRange(
    ctx,
    position ? { from: position.from, to: position.to, timezone: position.timezone } : span,
  )
  const range: ReportRange =
    position && span.from === undefined ? { ...requested, preset: span.preset ?? 'last_7_days' } : requested
  const {
    tx,
    actor: {
      workspace: { id: workspaceId },
    },
  } = ctx
  const names = await loadStaffNames(tx, workspaceId)
  const channels = listVisibleChannels(ctx.actor)
  // Stored reports are of all channels.
  const findReport = async (): Promise<StaffReport | undefined> => {
    if (channels !== null) return undefined
    if (!position) return await findStoredReport(tx, workspaceId, range)
    return position.reportId === null ? undefined : await loadReport(tx, workspaceId, position.reportId)
  }
  const loadRows = async () => {
    const report = await findReport()
    return {
      report,
      rows: report
        ? parseStoredRows(report, names)
        : await computeStaffRows(tx, workspaceId, range, ctx.now, channels),
    }
  }
  const [{ report, rows }, workload_now] = await Promise.all([loadRows(), loadWorkload(ctx, names)])
  const page = createStaffPage(
    ctx,
    limit,
    rows,
    names,
    position ?? { ...range, reportId: report?.id ?? null, shown: new Uint8Array() },
  )
  const shown = report ? showReport(report) : null
  const options = { channels, withMedians: medians === true }
  return {
    range,
    source: report ? 'generated_report' : 'live_closes',
    report: shown,
    ...page,
    data: await addMedians(ctx, page.data, range, options),
    ...(compare ? { previous: await loadPrevious(ctx, page.data, range, options) } : {}),
    workload_now,
    notes: [...formatNotes(range, shown, ctx.now), ...formatChannelNotes(ctx.actor)],
    unavailable: listUnavailable(page.data, shown !== null),
  }
}

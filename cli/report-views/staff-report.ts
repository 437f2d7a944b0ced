import { Box, Text } from 'ink'
import { createElement as h, type ReactNode } from 'react'
import { escapeControlCharacters } from '../text.ts'
import type { TerminalStyle } from '../table.ts'
import { renderBar, formatCount, formatDuration, formatPercent, renderSparkline } from './format.ts'
import { type ReportColumn, ColumnsView, columnWidth, GAP, NoteList, Title } from './components.ts'
import { formatReportHeading, type ReportDays } from './summary-report.ts'

type NullableNumber = number | null
type StaffRow = {
  staff_id: string | null
  name: string | null
  conversations: NullableNumber
  handled: NullableNumber
  closed: NullableNumber
  replied: NullableNumber
  untouched: NullableNumber
  messages_sent: NullableNumber
  reopened: NullableNumber
  avg_first_response_seconds: NullableNumber
  avg_time_to_close_seconds: NullableNumber
  sla_breaches: { total: NullableNumber } | null
  sla_compliance_rate: NullableNumber
  reason_coverage: NullableNumber
  /** Where they were asked for. */
  median_first_response_seconds?: NullableNumber
  median_time_to_close_seconds?: NullableNumber
}
type WorkloadRow = {
  staff_id: string | null
  name: string | null
  waiting: NullableNumber
  assigned_open: NullableNumber
  window_expired: NullableNumber
  oldest_wait_seconds: NullableNumber
}
export type StaffReportData = {
  range: ReportDays
  source: string
  report: { name: string | null; from: string; to: string } | null
  data: StaffRow[]
  /** The same for the period before, where it was requested. */
  previous?: { range: { from: string; to: string }; data: StaffRow[] }
  population: { total: NullableNumber; note: string | null }
  workload_now: WorkloadRow[]
  notes: string[]
  unavailable: { metric: string; reason: string }[]
}

const MAX_NAME_WIDTH = 24
const MIN_BAR_WIDTH = 6
const MAX_BAR_WIDTH = 30

const formatStaffName = ({ staff_id: id, name }: { staff_id: string | null; name: string | null }): string =>
  escapeControlCharacters(name ?? id ?? 'nobody')
const nameColumn = (rows: readonly { staff_id: string | null; name: string | null }[]): ReportColumn => ({
  title: 'NAME',
  cells: rows.map(formatStaffName),
  maxWidth: MAX_NAME_WIDTH,
})

const numberColumn = <T>(title: string, rows: readonly T[], cell: (row: T) => string): ReportColumn => ({
  title,
  alignRight: true,
  cells: rows.map(cell),
})

/**
 * Inserts a bar column after the names, in the width that the other columns leave. Without enough room there
 * is no bar: the columns matter pageNote.
 */
const insertBarColumn = (
  columns: readonly ReportColumn[],
  values: readonly NullableNumber[],
  style: TerminalStyle,
): ReportColumn[] => {
  const [first, ...others] = columns
  const usedWidth = columns.reduce((sum, one) => sum + columnWidth(one) + GAP, 0)
  const width = Math.min(MAX_BAR_WIDTH, Math.max(MIN_BAR_WIDTH, style.width - usedWidth))
  if (style.width < columnWidth(first!) + GAP + MIN_BAR_WIDTH + GAP + columnWidth(others[0]!))
    return [...columns]
  const max = Math.max(0, ...values.map((value) => value ?? 0))
  return [
    first!,
    { title: ''.padEnd(width), cells: values.map((value) => renderBar(value, max, width)), tone: 'plain' },
    ...others,
  ]
}

/** Columns of the medians, where they were requested. */
const medianColumns = (rows: readonly StaffRow[]): ReportColumn[] =>
  rows.some((row) => row.median_first_response_seconds !== undefined)
    ? [
        numberColumn('MED FIRST', rows, (r) => formatDuration(r.median_first_response_seconds ?? null)),
        numberColumn('MED CLOSE', rows, (r) => formatDuration(r.median_time_to_close_seconds ?? null)),
      ]
    : []

/** Conversations of the same members in the period before; a dash where a member did nothing then. */
const beforeColumns = (rows: readonly StaffRow[], past: readonly StaffRow[] | undefined): ReportColumn[] => {
  if (!past) return []
  const byMember = new Map(past.map((row) => [row.staff_id ?? row.name, row]))
  const before = (row: StaffRow): StaffRow | undefined => byMember.get(row.staff_id ?? row.name)
  return [numberColumn('BEFORE', rows, (r) => formatCount(before(r)?.conversations ?? null))]
}

const staffColumns = (rows: readonly StaffRow[], past: readonly StaffRow[] | undefined): ReportColumn[] => [
  nameColumn(rows),
  numberColumn('CONV', rows, (r) => formatCount(r.conversations)),
  ...beforeColumns(rows, past),
  numberColumn('HANDLED', rows, (r) => formatCount(r.handled)),
  numberColumn('CLOSED', rows, (r) => formatCount(r.closed)),
  numberColumn('REPLIED', rows, (r) => formatCount(r.replied)),
  numberColumn('UNTOUCHED', rows, (r) => formatCount(r.untouched)),
  numberColumn('FIRST', rows, (r) => formatDuration(r.avg_first_response_seconds)),
  numberColumn('TO CLOSE', rows, (r) => formatDuration(r.avg_time_to_close_seconds)),
  ...medianColumns(rows),
  numberColumn('LATE', rows, (r) => formatCount(r.sla_breaches?.total ?? null)),
  numberColumn('IN TIME', rows, (r) => formatPercent(r.sla_compliance_rate)),
  numberColumn('SENT', rows, (r) => formatCount(r.messages_sent)),
  numberColumn('REOPENED', rows, (r) => formatCount(r.reopened)),
  numberColumn('REASONS', rows, (r) => formatPercent(r.reason_coverage)),
]

const workloadColumns = (rows: readonly WorkloadRow[]): ReportColumn[] => [
  nameColumn(rows),
  numberColumn('OPEN', rows, (r) => formatCount(r.assigned_open)),
  numberColumn('WAITING', rows, (r) => formatCount(r.waiting)),
  numberColumn('WINDOW EXPIRED', rows, (r) => formatCount(r.window_expired)),
  numberColumn('LONGEST WAIT', rows, (r) => formatDuration(r.oldest_wait_seconds)),
]

const describeSource = ({ source, report }: StaffReportData): string =>
  report
    ? `From the stored report ${report.name === null ? '' : `"${escapeControlCharacters(report.name)}", `}` +
      `${report.from} to ${report.to}.`
    : source === 'live_closes'
      ? 'Counted live.'
      : escapeControlCharacters(source)

export const StaffReportView = ({
  value,
  pageNote,
  style,
}: {
  value: StaffReportData
  pageNote: string | undefined
  style: TerminalStyle
}): ReactNode => {
  const { data, workload_now: load, previous: past } = value
  const [title, days] = formatReportHeading('Staff', value.range)
  const section = (name: string, values: NullableNumber[], columns: ReportColumn[]): ReactNode =>
    h(
      Box,
      { flexDirection: 'column', marginTop: 1 },
      h(Title, { text: name, aside: renderSparkline(values), style }),
      columns[0]!.cells.length === 0
        ? h(Text, null, 'No data.')
        : h(ColumnsView, { columns: insertBarColumn(columns, values, style), style }),
    )
  return h(
    Box,
    { flexDirection: 'column' },
    h(Title, { text: title, aside: days, style }),
    h(Text, { dimColor: style.color }, describeSource(value)),
    past ? h(Text, { dimColor: style.color }, `Before: ${past.range.from} to ${past.range.to}`) : null,
    section(
      'Conversations',
      data.map((r) => r.conversations),
      staffColumns(data, past?.data),
    ),
    pageNote ? h(Text, { dimColor: style.color }, pageNote) : null,
    section(
      'Open now',
      load.map((r) => r.assigned_open),
      workloadColumns(load),
    ),
    h(NoteList, {
      title: 'Notes',
      lines: [...(value.population.note === null ? [] : [value.population.note]), ...value.notes],
      style,
    }),
    h(NoteList, {
      title: 'Unavailable (–)',
      lines: value.unavailable.map((u) => `${u.metric}: ${u.reason}`),
      style,
    }),
  )
}

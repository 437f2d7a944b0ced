import { Box, Text } from 'ink'
import { createElement as h, type ReactNode } from 'react'
import { visible } from '../text.ts'
import type { Look } from '../views.ts'
import { bar, count, duration, percent, sparkline } from './marks.ts'
import { type Column, Columns, columnWidth, GAP, Remarks, Title } from './parts.ts'
import { heading, type Range } from './summary.ts'

type N = number | null
type Row = {
  staff_id: string | null
  name: string | null
  conversations: N
  handled: N
  closed: N
  replied: N
  untouched: N
  messages_sent: N
  reopened: N
  avg_first_response_seconds: N
  avg_time_to_close_seconds: N
  sla_breaches: { total: N } | null
  sla_compliance_rate: N
  reason_coverage: N
}
type Load = {
  staff_id: string | null
  name: string | null
  waiting: N
  assigned_open: N
  window_expired: N
  oldest_wait_seconds: N
}
export type Staff = {
  range: Range
  source: string
  report: { name: string | null; from: string; to: string } | null
  data: Row[]
  population: { total: N; note: string | null }
  workload_now: Load[]
  notes: string[]
  unavailable: { metric: string; reason: string }[]
}

const LONGEST_NAME = 24
const SHORTEST_BAR = 6
const LONGEST_BAR = 30

const nameOf = ({ staff_id: id, name }: { staff_id: string | null; name: string | null }): string =>
  id === null ? 'nobody' : visible(name ?? id)
const names = (rows: readonly { staff_id: string | null; name: string | null }[]): Column => ({
  title: 'NAME',
  cells: rows.map(nameOf),
  most: LONGEST_NAME,
})

const column = <T>(title: string, rows: readonly T[], cell: (row: T) => string): Column => ({
  title,
  right: true,
  cells: rows.map(cell),
})

/**
 * Puts a bar behind the names as wide as the other columns leave room for; where there is none, the columns
 * are worth more.
 */
const withBar = (columns: readonly Column[], values: readonly N[], look: Look): Column[] => {
  const [first, ...rest] = columns
  const taken = columns.reduce((sum, one) => sum + columnWidth(one) + GAP, 0)
  const width = Math.min(LONGEST_BAR, Math.max(SHORTEST_BAR, look.width - taken))
  if (look.width < columnWidth(first!) + GAP + SHORTEST_BAR + GAP + columnWidth(rest[0]!)) return [...columns]
  const most = Math.max(0, ...values.map((value) => value ?? 0))
  return [
    first!,
    { title: ''.padEnd(width), cells: values.map((value) => bar(value, most, width)), tone: 'plain' },
    ...rest,
  ]
}

const rowColumns = (rows: readonly Row[]): Column[] => [
  names(rows),
  column('CONV', rows, (r) => count(r.conversations)),
  column('HANDLED', rows, (r) => count(r.handled)),
  column('CLOSED', rows, (r) => count(r.closed)),
  column('REPLIED', rows, (r) => count(r.replied)),
  column('UNTOUCHED', rows, (r) => count(r.untouched)),
  column('FIRST', rows, (r) => duration(r.avg_first_response_seconds)),
  column('TO CLOSE', rows, (r) => duration(r.avg_time_to_close_seconds)),
  column('LATE', rows, (r) => count(r.sla_breaches?.total ?? null)),
  column('IN TIME', rows, (r) => percent(r.sla_compliance_rate)),
  column('SENT', rows, (r) => count(r.messages_sent)),
  column('REOPENED', rows, (r) => count(r.reopened)),
  column('REASONS', rows, (r) => percent(r.reason_coverage)),
]

const loadColumns = (rows: readonly Load[]): Column[] => [
  names(rows),
  column('OPEN', rows, (r) => count(r.assigned_open)),
  column('WAITING', rows, (r) => count(r.waiting)),
  column('WINDOW RAN OUT', rows, (r) => count(r.window_expired)),
  column('LONGEST WAIT', rows, (r) => duration(r.oldest_wait_seconds)),
]

const sourceLine = ({ source, report }: Staff): string =>
  report
    ? `From the stored report ${report.name === null ? '' : `"${visible(report.name)}", `}${report.from} to ${report.to}.`
    : source === 'live_closes'
      ? 'Counted live.'
      : visible(source)

export const StaffPicture = ({
  value,
  more,
  look,
}: {
  value: Staff
  more: string | undefined
  look: Look
}): ReactNode => {
  const { data, workload_now: load } = value
  const [title, days] = heading('Staff', value.range)
  const part = (name: string, values: N[], columns: Column[]): ReactNode =>
    h(
      Box,
      { flexDirection: 'column', marginTop: 1 },
      h(Title, { text: name, aside: sparkline(values), look }),
      columns[0]!.cells.length === 0
        ? h(Text, null, 'Nothing to count.')
        : h(Columns, { columns: withBar(columns, values, look), look }),
    )
  return h(
    Box,
    { flexDirection: 'column' },
    h(Title, { text: title, aside: days, look }),
    h(Text, { dimColor: look.color }, sourceLine(value)),
    part(
      'Conversations',
      data.map((r) => r.conversations),
      rowColumns(data),
    ),
    more ? h(Text, { dimColor: look.color }, more) : null,
    part(
      'Open now',
      load.map((r) => r.assigned_open),
      loadColumns(load),
    ),
    h(Remarks, {
      title: 'Notes',
      lines: [...(value.population.note === null ? [] : [value.population.note]), ...value.notes],
      look,
    }),
    h(Remarks, {
      title: 'Unavailable (–)',
      lines: value.unavailable.map((u) => `${u.metric}: ${u.reason}`),
      look,
    }),
  )
}

import { Box, Text } from 'ink'
import { createElement as h, type ReactNode } from 'react'
import { escapeControlCharacters } from '../text.ts'
import type { TerminalStyle } from '../table.ts'
import { renderBar, formatCount, formatDuration, formatPercent, renderSparkline } from './format.ts'
import { GAP, NoteList, Title, type Tone, toneColor } from './components.ts'

type Numbers = Readonly<Record<string, number | null>>
export type ReportDays = { from: string; to: string; days: number; timezone: string }
export type SummaryReportData = {
  range: ReportDays
  workspace: { name: string | null; contacts_total: number | null }
  messages: Numbers
  conversations: Numbers & { oldest_wait_buckets_now: never }
  contacts: { new: number | null; new_is_lower_bound: boolean }
  broadcasts: Numbers
  sla: { running: boolean | null; breaches: number | null; config_problems: number | null }
  agents: Numbers
  /** The same figures for the period before, where they were requested. */
  previous?: {
    range: { from: string; to: string }
    messages: Numbers
    conversations: Numbers
    contacts: { new: number | null; new_is_lower_bound: boolean }
    broadcasts: Numbers
    sla: { breaches: number | null }
  }
  notes: string[]
  unavailable: { metric: string; reason: string }[]
}

/** A line of a section: a count with a bar, or a text. */
type SectionLine = { label: string; before?: string | undefined } & (
  | { value: number | null; tone?: Tone }
  | { text: string }
)

const LABEL_WIDTH = 18
const NUMBER_WIDTH = 9
const MIN_BAR_WIDTH = 6
const MAX_BAR_WIDTH = 40

const joinWords = (...words: (string | undefined)[]): string => words.filter(Boolean).join(' '.repeat(GAP))

const Section = ({
  title,
  spark,
  lines,
  style,
}: {
  title: string
  spark?: boolean
  lines: readonly SectionLine[]
  style: TerminalStyle
}): ReactNode => {
  const values = lines.flatMap((line) => ('value' in line ? [line.value] : []))
  const max = Math.max(0, ...values.map((value) => value ?? 0))
  const label = Math.max(4, Math.min(LABEL_WIDTH, style.width - NUMBER_WIDTH - 2 * GAP))
  const longest = Math.max(0, ...lines.map(({ before }) => before?.length ?? 0))
  const remaining = style.width - LABEL_WIDTH - NUMBER_WIDTH - 3 * GAP - (longest > 0 ? longest + GAP : 0)
  const barWidth = remaining < MIN_BAR_WIDTH ? 0 : Math.min(MAX_BAR_WIDTH, remaining)
  return h(
    Box,
    { flexDirection: 'column', marginTop: 1 },
    h(Title, { text: title, aside: spark ? renderSparkline(values) : undefined, style }),
    ...lines.map((line) =>
      h(
        Box,
        { key: line.label, columnGap: GAP, paddingLeft: GAP },
        h(Box, { width: label, flexShrink: 0 }, h(Text, { wrap: 'truncate' }, line.label)),
        'text' in line
          ? h(Text, { wrap: 'truncate' }, joinWords(line.text, line.before))
          : h(
              Box,
              { columnGap: GAP },
              h(
                Box,
                { width: NUMBER_WIDTH, flexShrink: 0, justifyContent: 'flex-end' },
                h(Text, null, formatCount(line.value)),
              ),
              h(
                Text,
                { wrap: 'truncate', ...toneColor(line.tone ?? 'plain', style) },
                joinWords(renderBar(line.value, max, barWidth), line.before),
              ),
            ),
      ),
    ),
  )
}

/** Formats a figure of the period before; empty where that was not requested. */
const sayBefore = (
  past: Numbers | undefined,
  name: string,
  format: (value: number | null) => string = formatCount,
): { before?: string } => (past ? { before: `before: ${format(past[name] ?? null)}` } : {})

const countLines = (
  numbers: Numbers,
  past: Numbers | undefined,
  names: readonly string[],
  failures: readonly string[] = [],
): SectionLine[] =>
  names.map((name) => ({
    label: name.replaceAll('_', ' '),
    value: numbers[name] ?? null,
    ...sayBefore(past, name),
    ...(failures.includes(name) ? { tone: 'bad' as const } : {}),
  }))

const BUCKET_LABELS: Readonly<Record<string, string>> = {
  under_1h: 'under 1 h',
  '1h_to_4h': '1 h to 4 h',
  '4h_to_24h': '4 h to 24 h',
  over_24h: 'over 24 h',
}
const waitLines = (buckets: Numbers | null): SectionLine[] =>
  Object.entries(buckets ?? {}).map(([name, value], i, all) => ({
    label: BUCKET_LABELS[name] ?? name,
    value,
    ...(i === all.length - 1 ? { tone: 'bad' as const } : {}),
  }))

export const formatReportHeading = (
  name: string | null,
  { from, to, days, timezone }: ReportDays,
): [string, string] => [
  escapeControlCharacters(name ?? 'Report'),
  `${from === to ? from : `${from} to ${to}`} (${days === 1 ? '1 day' : `${days} days`}, ${timezone})`,
]

type SectionData = { readonly title: string; readonly spark?: true; readonly lines: readonly SectionLine[] }

/** A line with a text aligned like the numbers. */
const textLine = (label: string, text: string, before: { before?: string } = {}): SectionLine => ({
  label,
  text: text.padStart(NUMBER_WIDTH),
  ...before,
})

const conversationSections = ({
  messages,
  conversations,
  previous: past,
}: SummaryReportData): SectionData[] => [
  {
    title: 'Messages',
    spark: true,
    lines: [
      ...countLines(messages, past?.messages, ['sent', 'delivered', 'read', 'failed'], ['failed']),
      textLine(
        'delivery rate',
        formatPercent(messages['delivery_rate'] ?? null),
        sayBefore(past?.messages, 'delivery_rate', formatPercent),
      ),
    ],
  },
  {
    title: 'Conversations',
    lines: [
      {
        label: 'closes',
        value: conversations['closes'] ?? null,
        ...sayBefore(past?.conversations, 'closes'),
      },
      {
        label: 'distinct',
        value: conversations['distinct_conversations'] ?? null,
        ...sayBefore(past?.conversations, 'distinct_conversations'),
      },
      {
        label: 'reopened',
        value: conversations['reopened'] ?? null,
        ...sayBefore(past?.conversations, 'reopened'),
      },
      ...(['median_close_seconds', 'median_first_response_seconds'] as const)
        .filter((name) => conversations[name] !== undefined)
        .map((name) =>
          textLine(
            name === 'median_close_seconds' ? 'median to close' : 'median first reply',
            formatDuration(conversations[name]!),
            sayBefore(past?.conversations, name, formatDuration),
          ),
        ),
    ],
  },
  {
    title: 'Waiting now',
    spark: true,
    lines: waitLines(conversations.oldest_wait_buckets_now as Numbers | null),
  },
  {
    title: 'Open now',
    lines: [
      { label: 'waiting', value: conversations['waiting_now'] ?? null },
      { label: 'unassigned', value: conversations['unassigned_now'] ?? null },
    ],
  },
]

const workspaceSections = ({
  workspace,
  contacts,
  broadcasts,
  sla,
  agents,
  previous: past,
}: SummaryReportData): SectionData[] => [
  {
    title: 'Contacts',
    lines: [
      textLine(
        'new',
        `${contacts.new_is_lower_bound ? 'at least ' : ''}${formatCount(contacts.new)}`,
        past
          ? {
              before: `before: ${past.contacts.new_is_lower_bound ? 'at least ' : ''}${formatCount(past.contacts.new)}`,
            }
          : {},
      ),
      textLine('all', formatCount(workspace.contacts_total)),
    ],
  },
  {
    title: 'Broadcasts',
    spark: true,
    lines: [
      textLine('started', formatCount(broadcasts['started'] ?? null), sayBefore(past?.broadcasts, 'started')),
      ...countLines(
        broadcasts,
        past?.broadcasts,
        ['sent', 'delivered', 'read', 'failed', 'opted_out'],
        ['failed', 'opted_out'],
      ),
    ],
  },
  {
    title: 'Service levels',
    lines: [
      textLine('policies', sla.running === null ? '–' : sla.running ? 'in force' : 'none'),
      textLine('breaches', formatCount(sla.breaches), sayBefore(past?.sla, 'breaches')),
      textLine('misconfigured', formatCount(sla.config_problems)),
    ],
  },
  {
    title: 'AI agents',
    lines: [
      textLine('sessions', formatCount(agents['sessions'] ?? null)),
      textLine('handoffs', formatCount(agents['handoffs'] ?? null)),
      textLine('resolution rate', formatPercent(agents['resolution_rate'] ?? null)),
    ],
  },
]

export const SummaryReportView = ({
  value,
  style,
}: {
  value: SummaryReportData
  style: TerminalStyle
}): ReactNode => {
  const [name, days] = formatReportHeading(value.workspace.name, value.range)
  return h(
    Box,
    { flexDirection: 'column' },
    h(Title, { text: name, aside: days, style }),
    value.previous
      ? h(
          Text,
          { dimColor: style.color },
          `Before: ${value.previous.range.from} to ${value.previous.range.to}`,
        )
      : null,
    ...[...conversationSections(value), ...workspaceSections(value)].map((section) =>
      h(Section, { key: section.title, ...section, style }),
    ),
    h(NoteList, { title: 'Notes', lines: value.notes, style }),
    h(NoteList, {
      title: 'Unavailable (–)',
      lines: value.unavailable.map(({ metric, reason }) => `${metric}: ${reason}`),
      style,
    }),
  )
}

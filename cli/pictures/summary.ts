import { Box, Text } from 'ink'
import { createElement as h, type ReactNode } from 'react'
import { visible } from '../text.ts'
import type { Look } from '../views.ts'
import { bar, count, duration, percent, sparkline } from './marks.ts'
import { GAP, Remarks, Title, type Tone, toned } from './parts.ts'

type Numbers = Readonly<Record<string, number | null>>
export type Range = { from: string; to: string; days: number; timezone: string }
export type Summary = {
  range: Range
  workspace: { name: string | null; contacts_total: number | null }
  messages: Numbers
  conversations: Numbers & { oldest_wait_buckets_now: never }
  contacts: { new: number | null; new_is_lower_bound: boolean }
  broadcasts: Numbers
  sla: { running: boolean | null; breaches: number | null; config_problems: number | null }
  agents: Numbers
  notes: string[]
  unavailable: { metric: string; reason: string }[]
}

/** A line of a section: with a bar where it is one of several counts, else a word. */
type Line = { label: string; value: number | null; tone?: Tone } | { label: string; word: string }

const LABEL = 18
const NUMBER = 9
const SHORTEST_BAR = 6
const LONGEST_BAR = 40

const Section = ({
  title,
  spark,
  lines,
  look,
}: {
  title: string
  spark?: boolean
  lines: readonly Line[]
  look: Look
}): ReactNode => {
  const values = lines.flatMap((line) => ('value' in line ? [line.value] : []))
  const most = Math.max(0, ...values.map((value) => value ?? 0))
  const label = Math.max(4, Math.min(LABEL, look.width - NUMBER - 2 * GAP))
  const left = look.width - LABEL - NUMBER - 3 * GAP
  const room = left < SHORTEST_BAR ? 0 : Math.min(LONGEST_BAR, left)
  return h(
    Box,
    { flexDirection: 'column', marginTop: 1 },
    h(Title, { text: title, aside: spark ? sparkline(values) : undefined, look }),
    ...lines.map((line) =>
      h(
        Box,
        { key: line.label, columnGap: GAP, paddingLeft: GAP },
        h(Box, { width: label, flexShrink: 0 }, h(Text, { wrap: 'truncate' }, line.label)),
        'word' in line
          ? h(Text, { wrap: 'truncate' }, line.word)
          : h(
              Box,
              { columnGap: GAP },
              h(
                Box,
                { width: NUMBER, flexShrink: 0, justifyContent: 'flex-end' },
                h(Text, null, count(line.value)),
              ),
              h(
                Text,
                { wrap: 'truncate', ...toned(line.tone ?? 'plain', look) },
                bar(line.value, most, room),
              ),
            ),
      ),
    ),
  )
}

const counted = (numbers: Numbers, names: readonly string[], bad: readonly string[] = []): Line[] =>
  names.map((name) => ({
    label: name.replaceAll('_', ' '),
    value: numbers[name] ?? null,
    ...(bad.includes(name) ? { tone: 'bad' as const } : {}),
  }))

const bucketNames: Readonly<Record<string, string>> = {
  under_1h: 'under 1 h',
  '1h_to_4h': '1 h to 4 h',
  '4h_to_24h': '4 h to 24 h',
  over_24h: 'over 24 h',
}
const waits = (buckets: Numbers | null): Line[] =>
  Object.entries(buckets ?? {}).map(([name, value], i, all) => ({
    label: bucketNames[name] ?? name,
    value,
    ...(i === all.length - 1 ? { tone: 'bad' as const } : {}),
  }))

export const heading = (name: string | null, { from, to, days, timezone }: Range): [string, string] => [
  visible(name ?? 'Report'),
  `${from === to ? from : `${from} to ${to}`} (${days === 1 ? '1 day' : `${days} days`}, ${timezone})`,
]

const yesNo = (value: boolean | null): string => (value === null ? '–' : value ? 'in force' : 'none')

export const SummaryPicture = ({ value, look }: { value: Summary; look: Look }): ReactNode => {
  const { messages, conversations, contacts, broadcasts, sla, agents } = value
  const [name, days] = heading(value.workspace.name, value.range)
  const buckets = conversations.oldest_wait_buckets_now as Numbers | null
  return h(
    Box,
    { flexDirection: 'column' },
    h(Title, { text: name, aside: days, look }),
    h(Section, {
      title: 'Messages',
      spark: true,
      look,
      lines: [
        ...counted(messages, ['sent', 'delivered', 'read', 'failed'], ['failed']),
        { label: 'delivery rate', word: percent(messages['delivery_rate'] ?? null).padStart(NUMBER) },
      ],
    }),
    h(Section, {
      title: 'Conversations',
      look,
      lines: [
        ...counted(conversations, ['closes', 'distinct_conversations', 'reopened']).map((line) =>
          line.label === 'distinct conversations' ? { ...line, label: 'different ones' } : line,
        ),
        {
          label: 'median to close',
          word: duration(conversations['median_close_seconds'] ?? null).padStart(NUMBER),
        },
      ],
    }),
    h(Section, { title: 'Waiting now', spark: true, look, lines: waits(buckets) }),
    h(Section, {
      title: 'Open now',
      look,
      lines: [
        ...counted(
          {
            waiting: conversations['waiting_now'] ?? null,
            unassigned: conversations['unassigned_now'] ?? null,
          },
          ['waiting', 'unassigned'],
        ),
      ],
    }),
    h(Section, {
      title: 'Contacts',
      look,
      lines: [
        {
          label: 'new',
          word: `${contacts.new_is_lower_bound ? 'at least ' : ''}${count(contacts.new)}`.padStart(NUMBER),
        },
        { label: 'all', word: count(value.workspace.contacts_total).padStart(NUMBER) },
      ],
    }),
    h(Section, {
      title: 'Broadcasts',
      spark: true,
      look,
      lines: [
        { label: 'started', word: count(broadcasts['started'] ?? null).padStart(NUMBER) },
        ...counted(broadcasts, ['sent', 'delivered', 'read', 'failed', 'opted_out'], ['failed', 'opted_out']),
      ],
    }),
    h(Section, {
      title: 'Service levels',
      look,
      lines: [
        { label: 'policies', word: yesNo(sla.running).padStart(NUMBER) },
        { label: 'breaches', word: count(sla.breaches).padStart(NUMBER) },
        { label: 'misconfigured', word: count(sla.config_problems).padStart(NUMBER) },
      ],
    }),
    h(Section, {
      title: 'AI agents',
      look,
      lines: [
        ...['sessions', 'handoffs'].map((label) => ({
          label,
          word: count(agents[label] ?? null).padStart(NUMBER),
        })),
        { label: 'resolution rate', word: percent(agents['resolution_rate'] ?? null).padStart(NUMBER) },
      ],
    }),
    h(Remarks, { title: 'Notes', lines: value.notes, look }),
    h(Remarks, {
      title: 'Unavailable (–)',
      lines: value.unavailable.map((u) => `${u.metric}: ${u.reason}`),
      look,
    }),
  )
}

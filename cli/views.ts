import { isObject } from '../catalog/values.ts'
import { createTable, formatValue, indentLines, measure, paint, type TerminalStyle, wrap } from './table.ts'
import { areSentences, escapeControlCharacters, fitsOneCell, type ProblemText } from './text.ts'

// Output for terminals, as text: only what lives on the screen (prompts, reports) is drawn by Ink, which takes
// longer to load than most commands run.

type Row = Readonly<Record<string, unknown>>

const GAP = 2
const MAX_LABEL_WIDTH = 30

/** Formats a value of a record; line breaks are kept. */
const formatBlock = (value: unknown, style: TerminalStyle): string =>
  typeof value === 'string' && value.includes('\n')
    ? value.split('\n').map(escapeControlCharacters).join('\n')
    : formatValue(value, style.time)

/** Values of custom fields are read by their labels. */
const isFieldValue = (item: unknown): item is { label: string; display: unknown } =>
  isObject(item) && typeof item['label'] === 'string' && 'display' in item

const drawField = (name: string, value: unknown, labelWidth: number, style: TerminalStyle): string[] => {
  const inner = { ...style, width: style.width - GAP }
  const title = paint(style, 'bold', escapeControlCharacters(name))
  if (Array.isArray(value) && value.length > 0 && value.every(isFieldValue)) {
    const values = Object.fromEntries(value.map(({ label, display }) => [label, display]))
    return [title, ...indentLines(drawFields(values, inner))]
  }
  if (Array.isArray(value) && areSentences(value))
    return [title, ...indentLines(value.flatMap((item) => wrap(formatBlock(item, inner), inner.width)))]
  if (Array.isArray(value) && !fitsOneCell(value)) {
    const rows = value.map((item): Row => (isObject(item) ? item : { value: item as unknown }))
    const paths = [...new Set(rows.flatMap((row) => Object.keys(row)))]
    const table = createTable(
      paths.map((path) => ({ path, wrap: true as const })),
      inner,
    )
    const drawn = table.page(rows).trimEnd().split('\n')
    // A record leaves nothing out: rows that do not fit are drawn one below the other.
    const blocks = (): string[] =>
      rows.flatMap((row, i) => [...(i > 0 ? [''] : []), ...drawFields(row, inner)])
    return [title, ...indentLines(table.isWhole() ? drawn : blocks())]
  }
  // A filter stays as it is typed.
  if (isObject(value) && name !== 'filter') return [title, ...indentLines(drawFields(value, inner))]
  const label = escapeControlCharacters(name)
  const shown = formatBlock(value, style) || '-'
  // A link is copied: one that does not fit has a line of its own, which the terminal breaks.
  if (/^https?:\S+$/.test(shown) && measure(shown) > style.width - labelWidth)
    return [paint(style, 'dim', label), ...indentLines([shown])]
  const [first = '', ...rest] = wrap(shown, Math.max(20, style.width - labelWidth))
  const gap = ' '.repeat(Math.max(1, labelWidth - measure(label)))
  return [`${paint(style, 'dim', label)}${gap}${first}`, ...indentLines(rest, labelWidth)]
}

const drawFields = (record: Row, style: TerminalStyle): string[] => {
  const entries = Object.entries(record)
  const widest = Math.max(0, ...entries.map(([name]) => measure(escapeControlCharacters(name))))
  const labelWidth = Math.min(MAX_LABEL_WIDTH, widest + GAP)
  return entries.flatMap(([name, value]) => drawField(name, value, labelWidth, style))
}

const toText = (lines: readonly string[]): string => `${lines.map((line) => line.trimEnd()).join('\n')}\n`

/** Draws the rows of a list that was read whole. */
export const drawTable = (rows: readonly Row[], columns: readonly string[], style: TerminalStyle): string =>
  rows.length === 0
    ? 'Nothing found.\n'
    : createTable(
        columns.map((path) => ({ path })),
        style,
      ).page(rows)

export const drawRecord = (record: Row, style: TerminalStyle): string =>
  toText([
    ...(record['dry_run'] === true ? [paint(style, 'yellow', 'Dry run: nothing was changed.')] : []),
    ...drawFields(record, style),
  ])

/** Draws lines in a box. */
const drawBox = (lines: readonly string[], style: TerminalStyle): string => {
  const width = style.width - 4
  const edge = (text: string): string => paint(style, 'red', text)
  const body = lines
    .flatMap((line) => wrap(line, width))
    .map((line) => `${edge('│')} ${line}${' '.repeat(Math.max(0, width - measure(line)))} ${edge('│')}`)
  const bar = '─'.repeat(width + 2)
  return toText([edge(`╭${bar}╮`), ...body, edge(`╰${bar}╯`)])
}

export const drawProblem = (text: ProblemText, style: TerminalStyle): string =>
  drawBox(
    [
      paint(style, ['bold', 'red'], text.title),
      ...(text.detail ? [text.detail] : []),
      ...text.items.flatMap((item) => [
        ...(item.detail
          ? [`  ${item.where ? `${paint(style, 'bold', item.where)}: ` : ''}${item.detail}`]
          : []),
        ...(item.fix ? [`  ${paint(style, 'green', `Fix: ${item.fix}`)}`] : []),
      ]),
      ...(text.fix ? [text.fix] : []),
      ...(text.request ? [paint(style, 'dim', `Request ${text.request}`)] : []),
    ],
    style,
  )

/** Draws a progress bar in one line, without a line break. */
export const drawProgress = (
  { done, total, note }: { done: number; total: number; note: string },
  style: TerminalStyle,
): string => {
  const width = Math.max(10, Math.min(40, style.width - 60))
  const filled = total === 0 ? width : Math.round((done / total) * width)
  const bar = paint(style, 'green', '█'.repeat(filled)) + paint(style, 'dim', '░'.repeat(width - filled))
  const counts = `${done.toLocaleString('en')} of ${total.toLocaleString('en')}`
  return [bar, counts, note].filter((part) => part !== '').join(' '.repeat(GAP))
}

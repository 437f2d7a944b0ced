import { isObject } from '../catalog/values.ts'
import { stripVTControlCharacters } from 'node:util'
import { Box, renderToString, Text } from 'ink'
import { createElement as h, type ReactNode } from 'react'
import { formatCell, type ProblemText, fitsOneCell, escapeControlCharacters } from './text.ts'

// Output for terminals. Everything is rendered once, as a string: nothing stays mounted.

export type TerminalStyle = { readonly width: number; readonly color: boolean }

const TIMESTAMP = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(\.\d+)?Z$/

/** Formats a cell; timestamps to the minute. */
const formatCellValue = (value: unknown): string => formatCell(value).replace(TIMESTAMP, '$1 $2Z')

const GAP = 2
const MAX_COLUMN_WIDTH = 40

/** Returns the columns that are not empty, as many from the left as fit. */
const fitColumns = (
  rows: readonly (readonly string[])[],
  names: readonly string[],
  width: number,
): { name: string; at: number; columnWidth: number }[] => {
  const filled = names
    .map((name, at) => ({
      name,
      at,
      columnWidth: Math.min(MAX_COLUMN_WIDTH, Math.max(name.length, ...rows.map((row) => row[at]!.length))),
    }))
    .filter(({ at }) => rows.some((row) => row[at] !== ''))
  let remaining = width
  return filled.filter(({ columnWidth }, i) => (remaining -= columnWidth + (i > 0 ? GAP : 0)) >= 0 || i === 0)
}

const Table = ({
  rows,
  columns,
  style,
}: {
  rows: readonly Record<string, unknown>[]
  columns: readonly string[]
  style: TerminalStyle
}): ReactNode => {
  const cells = rows.map((row) => columns.map((name) => formatCellValue(row[name])))
  return h(
    Box,
    { columnGap: GAP },
    ...fitColumns(cells, columns, style.width).map(({ name, at, columnWidth }) =>
      h(
        Box,
        {
          key: name,
          flexDirection: 'column',
          flexShrink: columnWidth > 20 ? 1 : 0,
          maxWidth: Math.min(MAX_COLUMN_WIDTH, style.width),
        },
        h(Text, { bold: style.color, wrap: 'truncate' }, name.toUpperCase()),
        ...cells.map((row, i) => h(Text, { key: i, wrap: 'truncate' }, row[at] || ' ')),
      ),
    ),
  )
}

/** Formats a value of a record; line breaks are kept. */
const formatBlock = (value: unknown): string =>
  typeof value === 'string'
    ? value.split('\n').map(escapeControlCharacters).join('\n').replace(TIMESTAMP, '$1 $2Z')
    : formatCellValue(value)

const Section = ({ name, children }: { name: string; children?: ReactNode }): ReactNode =>
  h(
    Box,
    { flexDirection: 'column' },
    h(Text, { bold: true }, escapeControlCharacters(name)),
    h(Box, { flexDirection: 'column', paddingLeft: 2 }, children),
  )

const RecordBox = ({
  record,
  style,
}: {
  record: Record<string, unknown>
  style: TerminalStyle
}): ReactNode => {
  const entries = Object.entries(record)
  const labelWidth = Math.min(30, Math.max(0, ...entries.map(([key]) => key.length)) + GAP)
  const inner = { ...style, width: style.width - 2 }
  return h(
    Box,
    { flexDirection: 'column' },
    ...entries.map(([key, value]) => {
      if (Array.isArray(value) && !fitsOneCell(value)) {
        const rows = value.map((item) => (isObject(item) ? item : { value: item as unknown }))
        return h(
          Section,
          { key, name: key },
          h(Table, { rows, columns: [...new Set(rows.flatMap((row) => Object.keys(row)))], style: inner }),
        )
      }
      if (isObject(value))
        return h(Section, { key, name: key }, h(RecordBox, { record: value, style: inner }))
      return h(
        Box,
        { key },
        h(
          Box,
          { width: labelWidth, flexShrink: 0 },
          h(Text, { dimColor: style.color, wrap: 'truncate' }, escapeControlCharacters(key)),
        ),
        h(Box, { flexShrink: 1 }, h(Text, null, formatBlock(value) || '-')),
      )
    }),
  )
}

const ProblemBox = ({ text, style }: { text: ProblemText; style: TerminalStyle }): ReactNode =>
  h(
    Box,
    {
      flexDirection: 'column',
      borderStyle: 'round',
      paddingX: 1,
      ...(style.color ? { borderColor: 'red' } : {}),
    },
    h(Text, { bold: true, ...(style.color ? { color: 'red' } : {}) }, text.title),
    text.detail ? h(Text, null, text.detail) : null,
    ...text.items.map((e, i) =>
      h(
        Box,
        { key: i, flexDirection: 'column', paddingLeft: 2 },
        e.detail ? h(Text, null, e.where ? h(Text, { bold: true }, `${e.where}: `) : null, e.detail) : null,
        e.fix ? h(Text, style.color ? { color: 'green' } : null, `Fix: ${e.fix}`) : null,
      ),
    ),
    text.fix ? h(Text, null, text.fix) : null,
    text.request ? h(Text, { dimColor: style.color }, `Request ${text.request}`) : null,
  )

/** Renders a node to text. */
export const draw = (node: ReactNode, style: TerminalStyle): string => {
  const drawn = renderToString(node, { columns: style.width })
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
  return `${style.color ? drawn : stripVTControlCharacters(drawn)}\n`
}

export const drawTable = (
  rows: readonly Record<string, unknown>[],
  columns: readonly string[],
  note: string | undefined,
  style: TerminalStyle,
): string =>
  draw(
    h(
      Box,
      { flexDirection: 'column' },
      rows.length > 0 ? h(Table, { rows, columns, style }) : h(Text, null, 'Nothing found.'),
      note ? h(Text, { dimColor: style.color }, note) : null,
    ),
    style,
  )

export const drawRecord = (record: Record<string, unknown>, style: TerminalStyle): string =>
  draw(
    h(
      Box,
      { flexDirection: 'column' },
      record['dry_run'] === true
        ? h(Text, style.color ? { color: 'yellow' } : null, 'Dry run: nothing was changed.')
        : null,
      h(RecordBox, { record, style }),
    ),
    style,
  )

export const drawProblem = (text: ProblemText, style: TerminalStyle): string =>
  draw(h(ProblemBox, { text, style }), style)

/** Draws a progress bar in one line, without a line break. */
export const drawProgress = (
  { done, total, note }: { done: number; total: number; note: string },
  style: TerminalStyle,
): string => {
  const barWidth = Math.max(10, Math.min(40, style.width - 60))
  const filled = total === 0 ? barWidth : Math.round((done / total) * barWidth)
  return draw(
    h(
      Box,
      { columnGap: GAP },
      h(
        Text,
        style.color ? { color: 'green' } : null,
        '█'.repeat(filled),
        h(Text, { dimColor: style.color }, '░'.repeat(barWidth - filled)),
      ),
      h(Text, { wrap: 'truncate' }, `${done.toLocaleString('en')} of ${total.toLocaleString('en')}`),
      note ? h(Text, { wrap: 'truncate' }, note) : null,
    ),
    style,
  ).trimEnd()
}

import { Box, Text } from 'ink'
import { createElement as h, type ReactNode } from 'react'
import type { TerminalStyle } from '../table.ts'
import { escapeControlCharacters } from '../text.ts'

// Components of report views. Widths are terminal columns.

export const GAP = 2

export type Tone = 'good' | 'bad' | 'plain'
const colors = { good: 'green', bad: 'red', plain: 'cyan' } as const
export const toneColor = (tone: Tone, style: TerminalStyle): { color?: string } =>
  style.color ? { color: colors[tone] } : {}

export const Title = ({
  text,
  aside,
  style,
}: {
  text: string
  aside?: string | undefined
  style: TerminalStyle
}): ReactNode =>
  h(
    Text,
    { wrap: 'truncate' },
    h(Text, { bold: style.color }, text),
    aside ? h(Text, { dimColor: style.color }, ' '.repeat(GAP), aside) : null,
  )

/** Dimmed paragraphs under a title. */
export const NoteList = ({
  title,
  lines,
  style,
}: {
  title: string
  lines: readonly string[]
  style: TerminalStyle
}): ReactNode =>
  lines.length === 0
    ? null
    : h(
        Box,
        { flexDirection: 'column', marginTop: 1 },
        h(Title, { text: title, style }),
        ...lines.map((line, i) =>
          h(
            Box,
            { key: i, paddingLeft: GAP },
            h(Text, { dimColor: style.color }, escapeControlCharacters(line)),
          ),
        ),
      )

/** A column of a report table, as wide as its content. */
export type ReportColumn = {
  title: string
  alignRight?: boolean
  cells: readonly string[]
  tone?: Tone | undefined
  maxWidth?: number
}

/** Characters that take two columns: East Asian wide characters and emoji. */
const WIDE_CHARACTERS = new RegExp(
  '[\\u1100-\\u115f\\u2e80-\\ua4cf' +
    '\\uac00-\\ud7a3\\uf900-\\ufaff\\ufe30-\\ufe6f\\uff00-\\uff60\\uffe0-\\uffe6]|\\p{Emoji_Presentation}',
  'gu',
)
const displayWidth = (text: string): number => [...text].length + (text.match(WIDE_CHARACTERS)?.length ?? 0)
export const columnWidth = ({ title, cells, maxWidth = Infinity }: ReportColumn): number =>
  Math.min(maxWidth, Math.max(displayWidth(title), ...cells.map(displayWidth)))

const fitReportColumns = (columns: readonly ReportColumn[], width: number): ReportColumn[] => {
  let remaining = width
  return columns.filter((column, i) => (remaining -= columnWidth(column) + (i > 0 ? GAP : 0)) >= 0 || i === 0)
}

/** A table. Columns that do not fit are dropped from the right. */
export const ColumnsView = ({
  columns,
  style,
}: {
  columns: readonly ReportColumn[]
  style: TerminalStyle
}): ReactNode =>
  h(
    Box,
    { columnGap: GAP },
    ...fitReportColumns(columns, style.width).map((column, n) =>
      h(
        Box,
        {
          key: n,
          flexDirection: 'column',
          flexShrink: 0,
          width: Math.min(style.width, columnWidth(column)),
          alignItems: column.alignRight ? 'flex-end' : 'flex-start',
        },
        h(Text, { bold: style.color, wrap: 'truncate' }, column.title || ' '),
        ...column.cells.map((cell, i) =>
          h(
            Text,
            { key: i, wrap: 'truncate', ...(column.tone ? toneColor(column.tone, style) : {}) },
            cell || ' ',
          ),
        ),
      ),
    ),
  )

import { Box, Text } from 'ink'
import { createElement as h, type ReactNode } from 'react'
import type { Look } from '../views.ts'
import { visible } from '../text.ts'

// What pictures are made of. Widths are columns of the terminal.

export const GAP = 2

export type Tone = 'good' | 'bad' | 'plain'
const colors = { good: 'green', bad: 'red', plain: 'cyan' } as const
export const toned = (tone: Tone, look: Look): { color?: string } =>
  look.color ? { color: colors[tone] } : {}

export const Title = ({
  text,
  aside,
  look,
}: {
  text: string
  aside?: string | undefined
  look: Look
}): ReactNode =>
  h(
    Text,
    { wrap: 'truncate' },
    h(Text, { bold: look.color }, text),
    aside ? h(Text, { dimColor: look.color }, ' '.repeat(GAP), aside) : null,
  )

/** Paragraphs under a title, dim. */
export const Remarks = ({
  title,
  lines,
  look,
}: {
  title: string
  lines: readonly string[]
  look: Look
}): ReactNode =>
  lines.length === 0
    ? null
    : h(
        Box,
        { flexDirection: 'column', marginTop: 1 },
        h(Title, { text: title, look }),
        ...lines.map((line, i) =>
          h(Box, { key: i, paddingLeft: GAP }, h(Text, { dimColor: look.color }, visible(line))),
        ),
      )

/**
 * Columns as wide as what they hold; numbers stand to the right. Those that do not fit are left out from
 * the right.
 */
export type Column = {
  title: string
  right?: boolean
  cells: readonly string[]
  tone?: Tone | undefined
  most?: number
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/gu
const widthOf = (text: string): number => [...text].length + (text.match(WIDE)?.length ?? 0)
export const columnWidth = ({ title, cells, most = Infinity }: Column): number =>
  Math.min(most, Math.max(widthOf(title), ...cells.map(widthOf)))

const fitting = (columns: readonly Column[], width: number): Column[] => {
  let left = width
  return columns.filter((column, i) => (left -= columnWidth(column) + (i > 0 ? GAP : 0)) >= 0 || i === 0)
}

export const Columns = ({ columns, look }: { columns: readonly Column[]; look: Look }): ReactNode =>
  h(
    Box,
    { columnGap: GAP },
    ...fitting(columns, look.width).map((column, n) =>
      h(
        Box,
        {
          key: n,
          flexDirection: 'column',
          flexShrink: 0,
          width: Math.min(look.width, columnWidth(column)),
          alignItems: column.right ? 'flex-end' : 'flex-start',
        },
        h(Text, { bold: look.color, wrap: 'truncate' }, column.title || ' '),
        ...column.cells.map((cell, i) =>
          h(
            Text,
            { key: i, wrap: 'truncate', ...(column.tone ? toned(column.tone, look) : {}) },
            cell || ' ',
          ),
        ),
      ),
    ),
  )

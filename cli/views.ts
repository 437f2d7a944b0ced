import { stripVTControlCharacters } from 'node:util'
import { Box, renderToString, Text } from 'ink'
import { createElement as h, type ReactNode } from 'react'
import { cell, type FaultText, isFlat, visible } from './text.ts'

// What a person looks at. Everything is drawn once, as a string: nothing stays mounted on the terminal.

export type Look = { readonly width: number; readonly color: boolean }

const TIMESTAMP = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(\.\d+)?Z$/

/** A cell as a person reads it: timestamps to the minute. */
const shown = (value: unknown): string => cell(value).replace(TIMESTAMP, '$1 $2Z')

const GAP = 2
const WIDEST = 40

/** The columns that hold something, as many from the left as fit. */
const fittingColumns = (
  rows: readonly (readonly string[])[],
  names: readonly string[],
  width: number,
): { name: string; at: number; wide: number }[] => {
  const filled = names
    .map((name, at) => ({
      name,
      at,
      wide: Math.min(WIDEST, Math.max(name.length, ...rows.map((row) => row[at]!.length))),
    }))
    .filter(({ at }) => rows.some((row) => row[at] !== ''))
  let left = width
  return filled.filter(({ wide }, i) => (left -= wide + (i > 0 ? GAP : 0)) >= 0 || i === 0)
}

const Table = ({
  rows,
  columns,
  look,
}: {
  rows: readonly Record<string, unknown>[]
  columns: readonly string[]
  look: Look
}): ReactNode => {
  const cells = rows.map((row) => columns.map((name) => shown(row[name])))
  return h(
    Box,
    { columnGap: GAP },
    ...fittingColumns(cells, columns, look.width).map(({ name, at, wide }) =>
      h(
        Box,
        {
          key: name,
          flexDirection: 'column',
          flexShrink: wide > 20 ? 1 : 0,
          maxWidth: Math.min(WIDEST, look.width),
        },
        h(Text, { bold: look.color, wrap: 'truncate' }, name.toUpperCase()),
        ...cells.map((row, i) => h(Text, { key: i, wrap: 'truncate' }, row[at] || ' ')),
      ),
    ),
  )
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Line breaks stay where there is room for them. */
const block = (value: unknown): string =>
  typeof value === 'string'
    ? value.split('\n').map(visible).join('\n').replace(TIMESTAMP, '$1 $2Z')
    : shown(value)

const Section = ({ name, children }: { name: string; children?: ReactNode }): ReactNode =>
  h(
    Box,
    { flexDirection: 'column' },
    h(Text, { bold: true }, visible(name)),
    h(Box, { flexDirection: 'column', paddingLeft: 2 }, children),
  )

const RecordBox = ({ record, look }: { record: Record<string, unknown>; look: Look }): ReactNode => {
  const entries = Object.entries(record)
  const labelWidth = Math.min(30, Math.max(0, ...entries.map(([key]) => key.length)) + GAP)
  const inner = { ...look, width: look.width - 2 }
  return h(
    Box,
    { flexDirection: 'column' },
    ...entries.map(([key, value]) => {
      if (Array.isArray(value) && !isFlat(value)) {
        const rows = value.map((item) => (isObject(item) ? item : { value: item as unknown }))
        return h(
          Section,
          { key, name: key },
          h(Table, { rows, columns: [...new Set(rows.flatMap((row) => Object.keys(row)))], look: inner }),
        )
      }
      if (isObject(value)) return h(Section, { key, name: key }, h(RecordBox, { record: value, look: inner }))
      return h(
        Box,
        { key },
        h(
          Box,
          { width: labelWidth, flexShrink: 0 },
          h(Text, { dimColor: look.color, wrap: 'truncate' }, visible(key)),
        ),
        h(Box, { flexShrink: 1 }, h(Text, null, block(value) || '-')),
      )
    }),
  )
}

const ProblemBox = ({ text, look }: { text: FaultText; look: Look }): ReactNode =>
  h(
    Box,
    {
      flexDirection: 'column',
      borderStyle: 'round',
      paddingX: 1,
      ...(look.color ? { borderColor: 'red' } : {}),
    },
    h(Text, { bold: true, ...(look.color ? { color: 'red' } : {}) }, text.title),
    text.detail ? h(Text, null, text.detail) : null,
    ...text.items.map((e, i) =>
      h(
        Box,
        { key: i, flexDirection: 'column', paddingLeft: 2 },
        e.detail ? h(Text, null, e.where ? h(Text, { bold: true }, `${e.where}: `) : null, e.detail) : null,
        e.fix ? h(Text, look.color ? { color: 'green' } : null, `Fix: ${e.fix}`) : null,
      ),
    ),
    text.mend ? h(Text, null, text.mend) : null,
    text.request ? h(Text, { dimColor: look.color }, `Request ${text.request}`) : null,
  )

/** A node as text, drawn once. */
export const draw = (node: ReactNode, look: Look): string => {
  const drawn = renderToString(node, { columns: look.width })
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
  return `${look.color ? drawn : stripVTControlCharacters(drawn)}\n`
}

export const drawTable = (
  rows: readonly Record<string, unknown>[],
  columns: readonly string[],
  note: string | undefined,
  look: Look,
): string =>
  draw(
    h(
      Box,
      { flexDirection: 'column' },
      rows.length > 0 ? h(Table, { rows, columns, look }) : h(Text, null, 'Nothing found.'),
      note ? h(Text, { dimColor: look.color }, note) : null,
    ),
    look,
  )

export const drawRecord = (record: Record<string, unknown>, look: Look): string =>
  draw(
    h(
      Box,
      { flexDirection: 'column' },
      record['dry_run'] === true
        ? h(Text, look.color ? { color: 'yellow' } : null, 'Dry run: nothing was changed.')
        : null,
      h(RecordBox, { record, look }),
    ),
    look,
  )

export const drawProblem = (text: FaultText, look: Look): string => draw(h(ProblemBox, { text, look }), look)

/** A bar and how far it is, in one line without a line break. */
export const drawProgress = (
  { done, total, note }: { done: number; total: number; note: string },
  look: Look,
): string => {
  const wide = Math.max(10, Math.min(40, look.width - 60))
  const filled = total === 0 ? wide : Math.round((done / total) * wide)
  return draw(
    h(
      Box,
      { columnGap: GAP },
      h(
        Text,
        look.color ? { color: 'green' } : null,
        '█'.repeat(filled),
        h(Text, { dimColor: look.color }, '░'.repeat(wide - filled)),
      ),
      h(Text, { wrap: 'truncate' }, `${done.toLocaleString('en')} of ${total.toLocaleString('en')}`),
      note ? h(Text, { wrap: 'truncate' }, note) : null,
    ),
    look,
  ).trimEnd()
}

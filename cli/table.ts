import { styleText } from 'node:util'
import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'
import type { TableColumn } from '../catalog/operation.ts'
import { escapeControlCharacters, formatCell, readPath } from './text.ts'

/** `color`: styles may be used. `width`: cells of the terminal. `time`: how times are written. */
export type TerminalStyle = {
  readonly width: number
  readonly color: boolean
  readonly time?: TimeStyle
}

/** `zone`: of the workspace; times are in UTC without it. `now`: what recent times are relative to. */
export type TimeStyle = { readonly zone: string; readonly now: number; readonly utc: boolean }

type Row = Readonly<Record<string, unknown>>

/** Cells that a text takes on a terminal; every width here is measured by it. */
export const measure = (text: string): number =>
  /^[\x20-\x7e]*$/.test(text) ? text.length : stringWidth(text)

/** Cuts a text to a width, between grapheme clusters. */
export const cut = (text: string, width: number): string => {
  if (measure(text) <= width) return text
  let [used, kept] = [0, '']
  for (const { segment } of new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(
    text.slice(0, width * 16),
  )) {
    const size = measure(segment)
    if (used + size > width - 1) break
    used += size
    kept += segment
  }
  return `${kept}…`
}

const pad = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - measure(text)))

/** Breaks a text into lines of at most this width, between words where that is possible. */
export const wrap = (text: string, width: number): string[] =>
  text.split('\n').flatMap((line) => wrapAnsi(line, width, { hard: true, trim: true }).split('\n'))

/** Moves lines to the right. */
export const indentLines = (lines: readonly string[], by = 2): string[] =>
  lines.map((line) => ' '.repeat(by) + line)

export const paint = (style: TerminalStyle, format: Parameters<typeof styleText>[0], text: string): string =>
  style.color ? styleText(format, text, { validateStream: false }) : text

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const formatters = new Map<string, Intl.DateTimeFormat>()
const formatInZone = (at: Date, zone: string): string => {
  let formatter = formatters.get(zone)
  if (!formatter)
    formatters.set(
      zone,
      (formatter = new Intl.DateTimeFormat('sv', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' })),
    )
  return formatter.format(at)
}

/** Formats milliseconds in the largest unit that they fill. */
export const formatDuration = (ms: number): string => {
  if (ms < MINUTE) return 'now'
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`
  return ms < 2 * DAY ? `${Math.floor(ms / HOUR)} h` : `${Math.floor(ms / DAY)} d`
}

/** Formats a timestamp: relative within a day, else to the minute in the zone. */
export const formatTime = (text: string, time: TimeStyle | undefined): string => {
  const at = new Date(text)
  if (!time || time.utc) return `${at.toISOString().slice(0, 16).replace('T', ' ')}Z`
  const distance = time.now - at.getTime()
  const size = Math.abs(distance)
  if (size >= DAY) return formatInZone(at, time.zone)
  const amount = formatDuration(size)
  return amount === 'now' ? amount : distance > 0 ? `${amount} ago` : `in ${amount}`
}

/** Formats a value as one line; a timestamp as people read it. */
export const formatValue = (value: unknown, time: TimeStyle | undefined): string =>
  typeof value === 'string' && TIMESTAMP.test(value) ? formatTime(value, time) : formatCell(value)

/** Returns the lines of a cell: one, but for a text whose column keeps its line breaks. */
const readCell = (row: Row, column: TableColumn, time: TimeStyle | undefined): string[] => {
  const { path, wrap, words, age } = column
  const value = readPath(row, path) ?? (column.else === undefined ? undefined : readPath(row, column.else))
  const word = words?.[String(value)]
  if (word !== undefined) return [word]
  if (age && time && !time.utc && typeof value === 'string' && TIMESTAMP.test(value))
    return [formatDuration(time.now - Date.parse(value))]
  return wrap && typeof value === 'string' && value.includes('\n')
    ? value.split('\n').map(escapeControlCharacters)
    : [formatValue(value, time)]
}

const GAP = 2
/** A column of at most this width is shown whole: a time fits. */
const WHOLE_WIDTH = 16
/** The minimum of a wider column, and what it gets before others get their natural width. */
const MIN_WIDTH = 12
const MIN_WRAPPED_WIDTH = 24
const USUAL_WIDTH = 40
const MAX_WHOLE_LINES = 3

const isLink = (cells: readonly string[]): boolean => cells.some((cell) => /^https?:/.test(cell))

/** Ids and links are copied from the screen, so that they are never cut. */
const isUncut = ({ path, whole }: TableColumn, cells: readonly string[]): boolean =>
  whole === true || /(?:^|[._])(?:id|ids|url|link|code|cursor)$/.test(path) || isLink(cells)

type Placed = TableColumn & {
  readonly natural: number
  readonly uncut: boolean
  readonly link: boolean
  width: number
}

/** What a text that wraps needs, so that no usual word of it is broken. */
const wordWidth = (cells: readonly string[]): number => {
  const words = cells.flatMap((cell) => cell.split(' ').filter((word) => /^[\w.,/-]+$/.test(word)))
  return Math.max(0, ...words.map((word) => word.length).filter((length) => length <= USUAL_WIDTH))
}

type Layout = {
  readonly placed: readonly Placed[]
  /** Links that are wider than the terminal: each has a line of its own below its row. */
  readonly below: readonly Placed[]
  readonly left: readonly TableColumn[]
}

/**
 * Returns the columns that have a value, as many in their order as fit, with their widths. `all`: every one is placed,
 * at the least width that it takes.
 */
const place = (
  columns: readonly TableColumn[],
  rows: readonly Row[],
  style: TerminalStyle,
  all: boolean,
): Layout => {
  const filled = columns.flatMap((column): Placed[] => {
    const cells = rows.flatMap((row) => readCell(row, column, style.time))
    if (cells.every((cell) => cell === '')) return []
    const natural = Math.max(measure(toTitle(column)), ...cells.map(measure))
    const uncut = isUncut(column, cells)
    const least = column.wrap ? Math.max(MIN_WRAPPED_WIDTH, wordWidth(cells)) : MIN_WIDTH
    const isWhole = uncut || natural <= Math.max(WHOLE_WIDTH, least)
    const width = isWhole ? natural : least
    const link = uncut && isLink(cells)
    return [{ ...column, natural, uncut, link, width: uncut ? width : Math.min(width, style.width) }]
  })
  const ids = filled.length > 1 ? filled[0]!.width + GAP : 0
  const below = all ? [] : filled.filter(({ link, width }) => link && width + ids > style.width)
  const beside = filled.filter((column) => !below.includes(column))
  let free = style.width
  const fitting = beside.findIndex(({ width }, i) => (free -= width + (i > 0 ? GAP : 0)) < 0 && i > 0)
  const placed = fitting === -1 || all ? beside : beside.slice(0, fitting)
  free = style.width - placed.reduce((sum, { width }) => sum + width + GAP, -GAP)
  // First what is usual, in their order; then what wraps gets all it can use, then what is cut.
  for (const limit of [USUAL_WIDTH, Infinity])
    for (const column of [...placed].sort((a, b) => Number(a.wrap ?? false) - Number(b.wrap ?? false))) {
      const more = Math.max(0, Math.min(column.natural - column.width, limit - column.width, free))
      column.width += more
      free -= more
    }
  return { placed, below, left: beside.filter((column) => !placed.includes(column)) }
}

const toTitle = ({ path, title }: TableColumn): string =>
  (title ?? path.replaceAll('_', ' ').replaceAll('.', ' ')).toUpperCase()

/** Keeps the first lines of a text; the last one says that there are more. */
const cutLines = (lines: readonly string[], most: number, width: number): readonly string[] =>
  lines.length <= most
    ? lines
    : [...lines.slice(0, most - 1), cut(`${lines[most - 1]}…`.padEnd(width + 1), width)]

const drawRow = (
  row: Row,
  { placed: columns, below }: Layout,
  style: TerminalStyle,
  maxLines: number,
): string => {
  const cells = columns.map((column) => {
    const lines = readCell(row, column, style.time)
    if (column.uncut) return lines
    if (!column.wrap) return lines.map((line) => cut(line, column.width))
    const wrapped = lines.flatMap((line) => wrap(line, column.width))
    return cutLines(wrapped, maxLines, column.width)
  })
  const links = below.flatMap((column) => readCell(row, column, style.time)).filter((link) => link !== '')
  const height = Math.max(1, ...cells.map((lines) => lines.length))
  return Array.from({ length: height }, (_, i) =>
    columns
      .map(({ width }, at) => pad(cells[at]![i] ?? '', width))
      .join(' '.repeat(GAP))
      .trimEnd(),
  )
    .concat(indentLines(links))
    .join('\n')
}

export type TableOptions = {
  /** Every column at its full width, whatever the terminal has. */
  readonly wide?: boolean
  /** No column is left out; texts take as many lines as they need. */
  readonly all?: boolean
  /** Lines that a text may take; the last one says that there are more. */
  readonly maxLines?: number
}

type Table = {
  /** Draws the next rows. */
  readonly page: (rows: readonly Row[]) => string
  /** The columns that have values, but did not fit. */
  readonly left: () => readonly TableColumn[]
  /** Whether the first page is shown whole, with no text in more than a few lines. */
  readonly isWhole: () => boolean
}

/**
 * Returns a table that is drawn page by page: the first page decides which columns fit and how wide they are.
 */
export const createTable = (
  columns: readonly TableColumn[],
  style: TerminalStyle,
  { wide = false, all = false, maxLines = Infinity }: TableOptions = {},
): Table => {
  let layout: Layout | undefined
  return {
    page: (rows) => {
      if (rows.length === 0) return ''
      const head = layout === undefined
      layout ??= place(columns, rows, wide ? { ...style, width: Number.MAX_SAFE_INTEGER } : style, all)
      const { placed } = layout
      const titles = placed.map((column) =>
        paint(style, 'bold', pad(cut(toTitle(column), column.width), column.width)),
      )
      const lines = rows.map((row) => drawRow(row, layout!, style, maxLines))
      return `${[...(head ? [titles.join(' '.repeat(GAP)).trimEnd()] : []), ...lines].join('\n')}\n`
    },
    left: () => layout?.left ?? [],
    isWhole: () =>
      layout?.left.length === 0 &&
      layout.below.length === 0 &&
      layout.placed.every(({ width, natural, wrap }) => natural <= (wrap ? MAX_WHOLE_LINES * width : width)),
  }
}

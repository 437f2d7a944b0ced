import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import stringWidth from 'string-width'
import { readManifest } from '../../cli/manifest.ts'
import { createTable, cut, type TerminalStyle, wrap } from '../../cli/table.ts'
import { printPages } from '../../cli/output.ts'
import { drawThread } from '../../cli/thread.ts'
import { drawRecord } from '../../cli/views.ts'

const now = Date.parse('2026-10-01T12:00:00.000Z')
const style = (width: number): TerminalStyle => ({
  width,
  color: false,
  time: { zone: 'Asia/Tokyo', now, utc: false },
})
const rows = [
  {
    id: '9007199254740993',
    name: '佐藤 美咲',
    at: '2026-10-01T11:18:00.000Z',
    text: 'สวัสดีค่ะ 👨‍👩‍👧‍👦 '.repeat(6),
    n: 3,
  },
  { id: '2', name: 'Катерина Юрій Єременко', at: '2026-10-01T12:00:20.000Z', text: 'هل لديكم قهوة؟', n: 0 },
  { id: '3', name: null, at: '2025-12-31T20:00:00.000Z', text: 'x'.repeat(4096), n: null },
  { id: '4', name: 'A\u001b[2J\nB', at: '2026-10-02T07:00:00.000Z', text: 'one\ntwo', n: 12 },
]
const columns = [
  { path: 'id' },
  { path: 'name' },
  { path: 'at', title: 'waiting' },
  { path: 'text', title: 'last words', wrap: true as const },
  { path: 'n', title: 'unread' },
]

describe('CLI: tables', () => {
  it('what stands below a table fits the terminal; a cursor is shown whole or not at all', async () => {
    const spec = readManifest().commands.find(({ operation }) => operation === 'inbox_search_conversations')!
    const value = {
      data: rows.map((row) => ({ ...row, state: 'open', unread_count: 1, waiting_since: row.at })),
      total: 5000,
      total_is_lower_bound: true,
      next_cursor: 'c'.repeat(70),
    }
    for (const [width, shown] of [
      [36, 'next_cursor of --json'],
      [60, 'next_cursor of --json'],
      [90, `\n--cursor ${value.next_cursor}\n`],
      [200, `Next page: --cursor ${value.next_cursor}\n`],
    ] as const) {
      const stdout = Object.assign(new PassThrough(), { columns: width })
      const io = { stdin: process.stdin, stdout, stderr: stdout, env: { NO_COLOR: '1' }, isPane: true }
      await printPages({ io, spec, flags: { wide: false, utc: false } }, [
        { value, clock: { now, zone: 'UTC' } },
      ])
      const lines = (await stdout.end().toArray()).join('')
      assert.ok(lines.includes(shown) || lines.replaceAll(/\s+/g, ' ').includes(shown), lines)
      assert.match(lines, /\+\d+ columns?: --wide/)
      for (const line of lines.split('\n')) assert.ok(stringWidth(line) <= width, `${width}: ${line}`)
    }
  })

  it('80, 120 and 200 columns: ids are whole, times relative, long texts in several lines', () => {
    const drawn = createTable(columns.slice(0, 3), style(60)).page(rows)
    assert.equal(
      drawn,
      [
        'ID                NAME                    WAITING',
        '9007199254740993  佐藤 美咲               42 min ago',
        '2                 Катерина Юрій Єременко  now',
        '3                                         2026-01-01 05:00',
        '4                 A\\u{1b}[2J\\nB           in 19 h',
        '',
      ].join('\n'),
    )
    for (const width of [80, 120, 200]) {
      const table = createTable(columns, style(width))
      const lines = table.page(rows).split('\n')
      assert.ok(
        lines.every((line) => stringWidth(line) <= width),
        lines.join('\n'),
      )
      assert.deepEqual(
        table.left().map(({ path }) => path),
        width === 80 ? ['n'] : [],
      )
      assert.equal(lines.join('').match(/x/g)!.length, 4096)
    }
  })

  it('what does not fit is left out from the end, and named', () => {
    const table = createTable(columns, style(50))
    assert.match(table.page(rows), /^ID {16}NAME/)
    assert.deepEqual(
      table.left().map(({ path }) => path),
      ['text', 'n'],
    )
    assert.deepEqual(createTable(columns, style(10), { wide: true }).left(), [])
  })

  it('a link that does not fit stands whole below its row; what is copied is never cut', () => {
    const url = `https://example.com/${'hooks/'.repeat(12)}`
    const operation = 'messaging_list_broadcast_recipients'
    const drawn = createTable(
      [{ path: 'id' }, { path: 'status' }, { path: 'url' }, { path: 'operation', whole: true }],
      style(60),
    ).page([{ id: '1', status: 'active', url, operation }])
    assert.equal(drawn, `ID  STATUS  OPERATION\n1   active  ${operation}\n  ${url}\n`)
    assert.ok(drawRecord({ url }, style(60)).includes(`\n  ${url}\n`))
  })

  it('ages, words for values, and a field for one that is missing', () => {
    const table = createTable(
      [
        { path: 'at', title: 'waiting', age: true },
        { path: 'until', title: 'window', else: 'open', words: { true: 'open', false: 'shut' } },
        { path: 'n', title: 'unread', words: { 0: '' } },
        { path: 'options.label', title: 'options' },
      ],
      style(60),
    )
    const at = '2026-09-28T12:00:00.000Z'
    assert.equal(
      table.page([
        { at, until: null, open: false, n: 0, options: [{ label: 'S' }, { label: 'M' }] },
        { at, until: '2026-10-01T13:00:00.000Z', open: true, n: 2, options: [] },
      ]),
      'WAITING  WINDOW  UNREAD  OPTIONS\n3 d      shut            S, M\n3 d      in 1 h  2\n',
    )
  })

  it('texts take the lines that they may, and say that there are more; every column that is asked for is there', () => {
    const row = { id: '1', text: 'word '.repeat(40), more: 'last' }
    const shown = [{ path: 'id' }, { path: 'text', wrap: true as const }, { path: 'more' }]
    const lines = createTable(shown, style(40), { maxLines: 2 }).page([row]).trimEnd().split('\n')
    assert.equal(lines.length, 3)
    assert.match(lines[2]!, /word…$/)
    const all = createTable(shown, style(20), { all: true })
    assert.match(all.page([row]), /^ID  TEXT +MORE\n/)
    assert.deepEqual(all.left(), [])
  })

  it('a column may be the last of a list', () => {
    const row = { messages: [{ text: 'one' }, { text: 'two' }] }
    const drawn = createTable([{ path: 'messages.last.text', title: 'last words' }], style(60)).page([
      row,
      {},
    ])
    assert.equal(drawn, 'LAST WORDS\ntwo\n\n')
  })

  it('later pages keep the columns and widths of the first', () => {
    const table = createTable(columns.slice(0, 2), style(60))
    table.page([{ id: '1', name: 'Ada' }])
    assert.equal(table.page([{ id: '2', name: 'A name that is longer' }]), '2   A n…\n')
    assert.equal(table.page([]), '')
  })

  it('any text: lines within the width, clusters whole, nothing but the cut is lost', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 200 })
    fc.assert(
      fc.property(text, fc.integer({ min: 4, max: 60 }), (value, width) => {
        assert.ok(stringWidth(cut(value, width)) <= width)
        for (const line of wrap(value.replaceAll(/\s+/g, ''), width)) assert.ok(stringWidth(line) <= width)
        const drawn = createTable([{ path: 'name', wrap: true }], style(width)).page([{ name: value }])
        assert.ok(drawn.split('\n').every((line) => stringWidth(line) <= Math.max(width, 4)))
      }),
    )
  })
})

describe('CLI: records and threads', () => {
  it('a record leaves nothing out, and reads custom fields by their labels', () => {
    const wide = { message: 'm'.repeat(100), fix: 'f'.repeat(100), rule: 'R1' }
    const drawn = drawRecord(
      { issues: [wide, wide], attributes: [{ key: 'city', label: 'City', display: 'Łódź', type: 'text' }] },
      style(60),
    )
    assert.equal(drawn.match(/m/g)!.length, 200 + 'message'.match(/m/g)!.length * 2)
    assert.match(drawn, /attributes\n {2}City {2}Łódź\n/)
    assert.ok(drawn.split('\n').every((line) => stringWidth(line) <= 60))
  })

  it('messages are a chat with the newest at the bottom', () => {
    const message = {
      type: 'TEXT',
      direction: 'inbound',
      status: 'received',
      from: null,
      note: false,
      error: null,
      edited_at: null,
      deleted_at: null,
      media: null,
      template: null,
      reactions: [],
    }
    const drawn = drawThread(
      [
        {
          ...message,
          id: '3',
          direction: 'outbound',
          status: 'failed',
          from: { name: 'Mara' },
          text: 'Here you are.',
          error: 'Number unknown',
          created_at: '2026-10-01T11:59:00.000Z',
        },
        {
          ...message,
          id: '2',
          direction: 'system',
          note: true,
          from: { name: 'Mara' },
          text: 'VIP',
          created_at: '2026-10-01T11:30:00.000Z',
        },
        { ...message, id: '1', text: 'Where is\nmy order?\u001b[2J', created_at: '2026-09-01T11:30:00.000Z' },
      ],
      style(80),
    )
    assert.equal(
      drawn,
      [
        '2026-09-01 20:30  customer  #1',
        '  Where is',
        '  my order?\\u{1b}[2J',
        '',
        '30 min ago  note by Mara  #2',
        '  VIP',
        '',
        '1 min ago  Mara  failed  #3',
        '  Here you are.',
        '  Failed: Number unknown',
        '',
      ].join('\n'),
    )
  })
})

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type Operation, catalog, findOperation } from '../../catalog/index.ts'
import { runCommandLine } from '../../cli/main.ts'
import {
  renderBar,
  formatCount,
  formatDuration,
  formatPercent,
  renderSparkline,
} from '../../cli/report-views/format.ts'
import { doAs } from '../calls.ts'
import { plantConversation, staffReplies } from '../inbox/conversations.ts'
import { runCli } from '../doors.ts'
import { makeWorkspace, startServer } from '../servers.ts'

const operations: readonly Operation[] = catalog

describe('reports: number formats', () => {
  it('bars are proportional, in eighths, and never exceed their width', () => {
    assert.deepEqual(
      [
        renderBar(8, 8, 4),
        renderBar(4, 8, 4),
        renderBar(1, 8, 4),
        renderBar(0, 8, 4),
        renderBar(null, 8, 4),
        renderBar(1, 1_000_000, 4),
        renderBar(5, 0, 4),
        renderBar(9, 8, 4),
      ],
      ['████', '██', '▌', '', '', '▏', '', '████'],
    )
    fc.assert(
      fc.property(
        fc.nat(),
        fc.nat(),
        fc.nat(200),
        (value, most, width) => renderBar(value, most, width).length <= width,
      ),
    )
    // A longer value has no shorter bar.
    const length = (text: string): number =>
      [...text].reduce((sum, c) => sum + (c === '█' ? 8 : ' ▏▎▍▌▋▊▉'.indexOf(c)), 0)
    fc.assert(
      fc.property(
        fc.nat(1000),
        fc.nat(1000),
        (a, b) => a <= b === length(renderBar(a, 1000, 1000)) <= length(renderBar(b, 1000, 1000)) || a === b,
      ),
    )
  })

  it('sparklines have one step per value and a gap for null', () => {
    assert.deepEqual(
      [
        renderSparkline([0, 1, 4, 8]),
        renderSparkline([null, 3]),
        renderSparkline([0, 0]),
        renderSparkline([]),
      ],
      ['▁▂▅█', ' █', '▁▁', ''],
    )
  })

  it('null is formatted as a dash, not as zero', () => {
    assert.deepEqual([formatCount(null), formatCount(0), formatCount(1234567)], ['–', '0', '1,234,567'])
    assert.deepEqual(
      [formatPercent(null), formatPercent(0), formatPercent(0.9625), formatPercent(1)],
      ['–', '0 %', '96.3 %', '100 %'],
    )
    assert.deepEqual([null, 0, 0.4, 59.6, 61, 3599.7, 5400, 7200, 93_784, 200_000].map(formatDuration), [
      '–',
      '0 s',
      '0 s',
      '1 min',
      '1 min 1 s',
      '1 h',
      '1 h 30 min',
      '2 h',
      '1 d 2 h',
      '2 d 8 h',
    ])
  })
})

/** A terminal of this width before which a person sits. */
const onTerminal = async (words: string[], env: Record<string, string>, columns: number, answer: unknown) => {
  const out = Object.assign(new PassThrough(), { isTTY: true, columns })
  const input = Object.assign(new PassThrough(), { isTTY: true })
  let text = ''
  out.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  const answering = (async () =>
    new Response(JSON.stringify(answer), { headers: { 'Content-Type': 'application/json' } })) as typeof fetch
  const exit = await runCommandLine(words, {
    stdin: input,
    stdout: out,
    stderr: new PassThrough(),
    fetch: answering,
    env: {
      WCRM_URL: 'http://127.0.0.1:9',
      WCRM_API_KEY: 'wc_test_key',
      XDG_CONFIG_HOME: '/nonexistent',
      ...env,
    },
  })
  assert.equal(exit, 0)
  return text
}

const exampleOf = (name: string): any => structuredClone(findOperation(name)!.examples[0]!.output)
const staffAnswer = () => {
  const answer = exampleOf('reports_staff')
  const [row] = answer.data
  answer.data = [
    row,
    {
      ...row,
      staff_id: '9',
      name: '山田太郎',
      conversations: 9,
      avg_first_response_seconds: 93_784,
      reason_coverage: 1,
    },
    { ...row, staff_id: null, name: null, conversations: 2, sla_compliance_rate: null, sla_breaches: null },
  ]
  answer.workload_now.push({
    staff_id: null,
    name: null,
    waiting: 0,
    assigned_open: 3,
    window_expired: 0,
    oldest_wait_seconds: null,
  })
  return {
    ...answer,
    notes: ['The last day is not over.'],
    unavailable: [{ metric: 'data.sla_compliance_rate', reason: 'Null for some.' }],
  }
}
const summaryAnswer = () => ({
  ...exampleOf('reports_workspace_summary'),
  notes: ['A note.'],
  unavailable: [{ metric: 'agents.sessions', reason: 'No agents.' }],
})
const plain = { NO_COLOR: '1' }
const lines = (text: string): string[] => text.split('\n')
const wide = (text: string): number => [...text].length + (text.match(/[\u2e80-\u9fff]/g)?.length ?? 0)

describe('reports: terminal output', () => {
  it('the summary has bars and sparklines', async () => {
    const text = await onTerminal(['reports', 'summary'], plain, 60, summaryAnswer())
    assert.equal(
      text,
      `${[
        'Demo Coffee  2026-10-01 to 2026-10-07 (7 days, Europe/Berli…',
        '',
        'Messages  ██▇▂',
        '  sent                      240  ███████████████████████████',
        '  delivered                 231  ██████████████████████████',
        '  read                      190  █████████████████████▍',
        '  failed                      4  ▌',
        '  delivery rate          96.3 %',
        '',
        'Conversations',
        '  closes                     31  ███████████████████████████',
        '  distinct                   29  █████████████████████████▎',
        '  reopened                    6  █████▎',
        '  median to close     1 h 30 min',
        '',
        'Waiting now  █▃▃▁',
        '  under 1 h                   5  ███████████████████████████',
        '  1 h to 4 h                  1  █████▍',
        '  4 h to 24 h                 1  █████▍',
        '  over 24 h                   0',
        '',
        'Open now',
        '  waiting                     7  ███████████████████████████',
        '  unassigned                  4  ███████████████▍',
        '',
        'Contacts',
        '  new                        12',
        '  all                       200',
        '',
        'Broadcasts  ██▆▂▂',
        '  started                     1',
        '  sent                      300  ███████████████████████████',
        '  delivered                 290  ██████████████████████████▏',
        '  read                      214  ███████████████████▎',
        '  failed                      4  ▍',
        '  opted out                   2  ▏',
        '',
        'Service levels',
        '  policies             in force',
        '  breaches                    3',
        '  misconfigured               0',
        '',
        'AI agents',
        '  sessions                    –',
        '  handoffs                    –',
        '  resolution rate             –',
        '',
        'Notes',
        '  A note.',
        '',
        'Unavailable (–)',
        '  agents.sessions: No agents.',
      ].join('\n')}\n`,
    )
  })

  it('the staff report has an aligned bar for each member', async () => {
    const text = await onTerminal(['reports', 'staff'], plain, 90, staffAnswer())
    assert.equal(
      text,
      `${[
        'Staff  2026-10-01 to 2026-10-07 (7 days, Europe/Berlin)',
        'Counted live.',
        '',
        'Conversations  █▅▂',
        'NAME              CONV  HANDLED  CLOSED  REPLIED  UNTOUCHED        FIRST  TO CLOSE  LATE',
        'Grace     ██████    20       18      15       17          2  10 min 40 s       2 h     1',
        '山田太郎  ██▊        9       18      15       17          2      1 d 2 h       2 h     1',
        'nobody    ▋          2       18      15       17          2  10 min 40 s       2 h     –',
        '',
        'Open now  █▅',
        'NAME                                    OPEN  WAITING  WINDOW EXPIRED  LONGEST WAIT',
        'Grace   ██████████████████████████████     6        2               1        30 min',
        'nobody  ███████████████                    3        0               0             –',
        '',
        'Notes',
        '  The last day is not over.',
        '',
        'Unavailable (–)',
        '  data.sla_compliance_rate: Null for some.',
      ].join('\n')}\n`,
    )
  })

  it('output fits any width by dropping columns and bars', async () => {
    for (const columns of [20, 30, 44, 80, 120, 200]) {
      for (const [verb, answer] of [
        ['summary', summaryAnswer()],
        ['staff', staffAnswer()],
      ] as const) {
        const drawn = lines(await onTerminal(['reports', verb], plain, columns, answer))
        for (const line of drawn) assert.ok(wide(line) <= columns, `${columns}: ${line}`)
        if (verb === 'staff')
          for (const name of ['Grace', '山田太郎', 'nobody'])
            assert.ok(
              drawn.some((line) => line.startsWith(name)),
              `${columns}: ${name}`,
            )
        assert.equal(
          drawn.some((line) => line.includes('██████')),
          verb === 'staff' || columns >= 44,
          `${verb} ${columns}`,
        )
      }
    }
    assert.match(await onTerminal(['reports', 'staff'], plain, 200, staffAnswer()), /REASONS/)
  })

  it('control characters in names are escaped', async () => {
    const answer = staffAnswer()
    answer.data[0].name = 'Grace\u001b[2J'
    const drawn = await onTerminal(['reports', 'staff'], plain, 90, answer)
    assert.ok(!drawn.includes('\u001b') && drawn.includes('Grace\\u001b'), drawn)
  })

  it('the next page and the stored report are named', async () => {
    const report = {
      id: '3',
      name: '7 days',
      from: '2026-09-30',
      to: '2026-10-06',
      generated_at: null,
      timezone: 'UTC',
      covers_more_than_asked: true,
    }
    const text = await onTerminal(['reports', 'staff'], plain, 90, {
      ...staffAnswer(),
      source: 'generated_report',
      report,
      next_cursor: 'abc',
    })
    assert.match(text, /From the stored report "7 days", 2026-09-30 to 2026-10-06\./)
    assert.match(text, /3 shown\. All rows: --all\. Next page: --cursor abc/)
    assert.match(
      await onTerminal(['reports', 'staff'], plain, 90, { ...staffAnswer(), data: [], workload_now: [] }),
      /No data\./,
    )
  })

  it('every null and zero of a response is rendered', async () => {
    const nulls = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(nulls)
        : typeof value === 'object' && value !== null
          ? Object.fromEntries(
              Object.entries(value).map(([key, inner]) => [
                key,
                key === 'range'
                  ? inner
                  : typeof inner === 'number' ||
                      typeof inner === 'boolean' ||
                      key === 'oldest_wait_buckets_now' ||
                      key === 'sla_breaches'
                    ? null
                    : nulls(inner),
              ]),
            )
          : value
    for (const op of operations.filter((o) => o.cli.startsWith('reports '))) {
      const text = await onTerminal(
        op.cli.split(' '),
        plain,
        80,
        nulls(op.name === 'reports_staff' ? staffAnswer() : summaryAnswer()),
      )
      assert.ok(text.includes('–') && !/NaN|undefined|null/.test(text), text)
    }
  })
})

it('Reports in a pipe are plain lines, and JSON when asked; Ink is not loaded for them', async () => {
  const server = await startServer('embedded', { now: () => '2026-10-07T12:00:00.000Z' })
  try {
    const workspace = await makeWorkspace(server, { name: 'Coffee' })
    const { id } = await plantConversation(server, workspace.id, {})
    await staffReplies(server, workspace.id, id, { staffId: workspace.owner.staffId })
    const env = { WCRM_URL: server.url, WCRM_API_KEY: workspace.owner.key, XDG_CONFIG_HOME: '/nonexistent' }
    const staff = await runCli(['reports', 'staff'], env)
    assert.equal(
      staff.stdout,
      `${[workspace.owner.staffId, 'Owner', 1, 1, 0, 1, 0, 1, 0, 0, '', '', ''].join('\t')}\n`,
    )
    const summary = await runCli(['reports', 'summary', '--preset', 'today'], env)
    for (const line of [
      'range.from: 2026-10-07',
      'workspace.name: Coffee',
      'messages.sent: 1',
      'messages.delivery_rate: 0',
      'conversations.oldest_wait_buckets_now.under_1h: 0',
      'agents.sessions:',
    ]) {
      assert.ok(lines(summary.stdout).includes(line), `${line} in ${summary.stdout}`)
    }
    const json = JSON.parse((await runCli(['reports', 'staff', '--json'], env)).stdout)
    assert.deepEqual(json, await doAs(server, workspace.owner.key)('reports_staff'))
    const picked = JSON.parse((await runCli(['reports', 'staff', '--json=name,messages_sent'], env)).stdout)
    assert.deepEqual(picked.data, [{ name: 'Owner', messages_sent: 1 }])
  } finally {
    await server.close()
  }
  const loaded = spawnSync(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `
    import { registerHooks } from 'node:module'
    const seen = []
    registerHooks({ load: (url, context, next) => { seen.push(url); return next(url, context) } })
    const { printResponse } = await import('./cli/output.ts')
    const io = { stdin: {}, stdout: { write() {} }, stderr: { write() {} }, env: {} }
    await printResponse(io, { group: 'reports', verb: 'summary', output: {} }, { range: {} })
    console.log(JSON.stringify(seen.filter((url) => /node_modules\\/(ink|react)\\/|report-views/.test(url))))
  `,
    ],
    { encoding: 'utf8' },
  )
  assert.equal(loaded.stdout.trim(), '[]', loaded.stderr)
})

it('wcrm admin reports, beside a running server', async () => {
  const server = await startServer('embedded')
  try {
    const workspace = await makeWorkspace(server, { timezone: 'Asia/Kolkata' })
    const at = ['--data', (server.location as { dataDir: string }).dataDir, '--json']
    const admin = async (...words: string[]) => await runCli(['admin', 'reports', ...words, ...at], {})
    const done = async (...words: string[]) => {
      const { exit, stdout, stderr } = await admin(...words)
      assert.equal(exit, 0, stderr)
      return JSON.parse(stdout)
    }
    const day = (back: number): string =>
      Temporal.Now.plainDateISO('Asia/Kolkata').subtract({ days: back }).toString()
    const { data } = await done('generate')
    assert.deepEqual(
      data.map(({ id: _, generated_at: __, ...rest }: Record<string, unknown>) => rest),
      [
        { name: 'Yesterday', from: day(1), to: day(1), timezone: 'Asia/Kolkata', rows: 0 },
        { name: '7 days', from: day(7), to: day(1), timezone: 'Asia/Kolkata', rows: 0 },
        { name: '30 days', from: day(30), to: day(1), timezone: 'Asia/Kolkata', rows: 0 },
      ],
    )
    const {
      data: [made],
    } = await done(
      'generate',
      '--from',
      '2026-01-01',
      '--to',
      '2026-03-31',
      '--timezone',
      'utc',
      '--name',
      'Quarter',
    )
    assert.deepEqual(
      [made.name, made.from, made.to, made.timezone],
      ['Quarter', '2026-01-01', '2026-03-31', 'UTC'],
    )
    assert.deepEqual(
      (await done('list')).data.map((r: { id: string }) => r.id),
      [made.id, ...data.map((r: { id: string }) => r.id).toReversed()],
    )
    const answer = await doAs(server, workspace.owner.key)('reports_staff', {
      from: '2026-01-01',
      to: '2026-03-31',
      timezone: 'UTC',
    })
    assert.deepEqual([answer.report.id, answer.report.name], [made.id, 'Quarter'])
    for (const [words, told] of [
      [['--from', day(3), '--to', day(-1)], /--to must not be after today/],
      [['--from', day(3), '--to', day(0)], /--to must be a day that is over/],
      [['--from', day(1)], /--to is required with from/],
      [['--from', 'soon', '--to', day(1)], /--from is not a day/],
      [['--timezone', 'Mars/Olympus'], /--timezone is not an IANA/],
      [['--name', 'Quarter'], /--name requires --from and --to/],
    ] as const) {
      const reply = await admin('generate', ...words)
      assert.deepEqual([reply.exit, reply.stdout], [2, ''], reply.stderr)
      assert.match(JSON.parse(reply.stderr).detail, told)
    }
    assert.equal((await done('list')).data.length, 4)
  } finally {
    await server.close()
  }
})

import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { catalog, findOperation } from '../../catalog/index.ts'
import { runCommandLine } from '../../cli/main.ts'
import {
  renderBar,
  formatCount,
  formatDuration,
  formatPercent,
  renderSparkline,
} from '../../cli/report-views/format.ts'

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
        (value, max, width) => renderBar(value, max, width).length <= width,
      ),
    )
    // A larger value never has a shorter bar.
    const length = (text: string): number =>
      [...text].reduce((sum, char) => sum + (char === '█' ? 8 : ' ▏▎▍▌▋▊▉'.indexOf(char)), 0)
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

/** Runs a command on a terminal of this width; the server responds with `response`. Returns the output. */
const runOnTerminal = async (
  argv: string[],
  env: Record<string, string>,
  columns: number,
  response: unknown,
): Promise<string> => {
  const out = Object.assign(new PassThrough(), { isTTY: true, columns })
  const input = Object.assign(new PassThrough(), { isTTY: true })
  let text = ''
  out.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  const fakeFetch = (async () =>
    new Response(JSON.stringify(response), {
      headers: { 'Content-Type': 'application/json' },
    })) as typeof fetch
  const exit = await runCommandLine(argv, {
    stdin: input,
    stdout: out,
    stderr: new PassThrough(),
    fetch: fakeFetch,
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

const exampleOutput = (name: string): any => structuredClone(findOperation(name)!.examples[0]!.output)
const staffResponse = () => {
  const response = exampleOutput('reports_staff')
  const [row] = response.data
  response.data = [
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
  response.workload_now.push({
    staff_id: null,
    name: null,
    waiting: 0,
    assigned_open: 3,
    window_expired: 0,
    oldest_wait_seconds: null,
  })
  return {
    ...response,
    notes: ['The last day is not over.'],
    unavailable: [{ metric: 'data.sla_compliance_rate', reason: 'Null for some.' }],
  }
}
const summaryResponse = () => ({
  ...exampleOutput('reports_workspace_summary'),
  notes: ['A note.'],
  unavailable: [{ metric: 'agents.sessions', reason: 'No agents.' }],
})
const plain = { NO_COLOR: '1' }
/** Terminal columns of a text: Chinese characters take two. */
const displayWidth = (text: string): number =>
  [...text].length + (text.match(/[\u2e80-\u9fff]/g)?.length ?? 0)

describe('reports: terminal output', () => {
  it('the summary shows medians and the period before where they were asked for', async () => {
    const { messages, conversations, contacts, broadcasts, sla, ...rest } = summaryResponse()
    const medians = { ...conversations, median_first_response_seconds: 600 }
    const text = await runOnTerminal(['reports', 'summary', '--medians', '--compare'], plain, 70, {
      ...rest,
      messages,
      contacts,
      broadcasts,
      sla,
      conversations: medians,
      previous: {
        range: { ...rest.range, from: '2026-09-24', to: '2026-09-30' },
        messages: { ...messages, sent: 120, delivery_rate: 0.5 },
        conversations: { ...medians, closes: null, median_first_response_seconds: 1200 },
        contacts,
        broadcasts,
        sla,
      },
    })
    for (const line of [
      'Before: 2026-09-24 to 2026-09-30',
      '  sent                      240  ███████████████████████  before: 120',
      '  delivery rate          96.3 %  before: 50 %',
      '  closes                     31  █████████████████  before: –',
      '  median first reply     10 min  before: 20 min',
      '  new                        12  before: 12',
      '  breaches                    3  before: 3',
    ])
      assert.ok(text.split('\n').includes(line), `${line}\n${text}`)
  })

  it('the staff report has medians and the period before where they were asked for', async () => {
    const response = staffResponse()
    const { from: _, to: __, ...range } = response.range
    for (const row of response.data) {
      row.median_first_response_seconds = 300
      row.median_time_to_close_seconds = null
    }
    const text = await runOnTerminal(['reports', 'staff'], plain, 120, {
      ...response,
      previous: {
        range: { ...range, from: '2026-09-24', to: '2026-09-30' },
        data: [{ ...response.data[0], conversations: 14 }],
      },
    })
    const lines = text.split('\n').map((line) => line.replaceAll(/\s+/g, ' '))
    for (const line of [
      'Before: 2026-09-24 to 2026-09-30',
      'NAME CONV BEFORE HANDLED CLOSED REPLIED UNTOUCHED FIRST TO CLOSE MED FIRST MED CLOSE LATE',
      'Grace ██████ 20 14 18 15 17 2 10 min 40 s 2 h 5 min – 1',
      'nobody ▋ 2 – 18 15 17 2 10 min 40 s 2 h 5 min – –',
    ])
      assert.ok(lines.includes(line), `${line}\n${text}`)
  })

  it('output fits any width by dropping columns and bars', async () => {
    for (const columns of [20, 30, 44, 80, 120, 200]) {
      for (const [verb, response] of [
        ['summary', summaryResponse()],
        ['staff', staffResponse()],
      ] as const) {
        const drawn = (await runOnTerminal(['reports', verb], plain, columns, response)).split('\n')
        for (const line of drawn) assert.ok(displayWidth(line) <= columns, `${columns}: ${line}`)
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
    assert.match(await runOnTerminal(['reports', 'staff'], plain, 200, staffResponse()), /REASONS/)
  })

  it('control characters in names are escaped', async () => {
    const response = staffResponse()
    response.data[0].name = 'Grace\u001b[2J'
    const drawn = await runOnTerminal(['reports', 'staff'], plain, 90, response)
    assert.ok(!drawn.includes('\u001b') && drawn.includes('Grace\\u{1b}'), drawn)
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
    const text = await runOnTerminal(['reports', 'staff'], plain, 90, {
      ...staffResponse(),
      source: 'generated_report',
      report,
      next_cursor: 'abc',
    })
    assert.match(text, /From the stored report "7 days", 2026-09-30 to 2026-10-06\./)
    assert.match(text, /3 shown\. All rows: --all\. Next page: --cursor abc/)
    assert.match(
      await runOnTerminal(['reports', 'staff'], plain, 90, {
        ...staffResponse(),
        data: [],
        workload_now: [],
      }),
      /No data\./,
    )
  })

  it('every null and zero of a response is rendered', async () => {
    const withNulls = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(withNulls)
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
                    : withNulls(inner),
              ]),
            )
          : value
    for (const op of catalog.filter(({ cli }) => cli.startsWith('reports '))) {
      const text = await runOnTerminal(
        op.cli.split(' '),
        plain,
        80,
        withNulls(op.name === 'reports_staff' ? staffResponse() : summaryResponse()),
      )
      assert.ok(text.includes('–') && !/NaN|undefined|null/.test(text), text)
    }
  })
})

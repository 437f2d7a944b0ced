import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { escapeControlCharacters, formatRecord, formatTsv } from '../../cli/text.ts'
import { drawProblem, drawRecord, drawTable } from '../../cli/views.ts'
import { problemBody, useFakeServer } from './fake-server.ts'

const fake = useFakeServer()

describe('CLI: output', () => {
  const page = (ids: string[], cursor: string | null, total: number | null) => ({
    body: {
      data: ids.map((id) => ({ id, name: `G${id}`, emoji: null, contacts_count: 1 })),
      total,
      next_cursor: cursor,
    },
  })

  it('--json prints the response body byte for byte', async () => {
    fake.responses = [{ body: '{"data" :[],"next_cursor":null}' }]
    assert.equal((await fake.wcrm(['groups', 'list', '--json'])).stdout, '{"data" :[],"next_cursor":null}\n')
  })

  it('--json=a,b selects fields of rows and of the envelope', async () => {
    fake.responses = [page(['1', '2'], 'c', 7)]
    assert.deepEqual(JSON.parse((await fake.wcrm(['groups', 'list', '--json=id,total'])).stdout), {
      data: [{ id: '1' }, { id: '2' }],
      total: 7,
      next_cursor: 'c',
    })
  })

  it('--json=? lists the fields without a request', async () => {
    const { stdout } = await fake.wcrm(['groups', 'list', '--json=?'])
    assert.deepEqual(
      [stdout, fake.requests.length],
      ['id\nname\nemoji\ncontacts_count\ncreated_at\ntotal\n', 0],
    )
  })

  it('--all fetches all pages, waits for the rate limit, and prints one response', async () => {
    fake.responses = [
      page(['1'], 'c1', 2),
      { status: 429, headers: { 'Retry-After': '1' }, body: problemBody('rate_limited') },
      page(['2'], null, null),
    ]
    const { stdout, exit } = await fake.wcrm(['groups', 'list', '--all', '--json'])
    assert.equal(exit, 0)
    assert.deepEqual(
      (JSON.parse(stdout) as { data: { id: string }[] }).data.map((row) => row.id),
      ['1', '2'],
    )
    assert.deepEqual(
      fake.requests.map((request) => request.input),
      [{ limit: 100 }, { limit: 100, cursor: 'c1' }, { limit: 100, cursor: 'c1' }],
    )
  })

  it('says how far a page has searched, and of all pages that they came to the end', async () => {
    const search = ['messages', 'search', '--query', 'coffee']
    const found = (data: object[], cursor: string | null, searchedTo: string | null) => ({
      body: { data, next_cursor: cursor, searched_to: searchedTo },
    })
    const early = found([], 'c1', '2026-10-02T10:00:00.000Z')
    fake.responses = [early, found([{ id: '7' }], null, null)]
    const { stdout } = await fake.wcrm([...search, '--all', '--json'])
    assert.deepEqual(JSON.parse(stdout), found([{ id: '7' }], null, null).body)
    fake.responses = [early]
    const note =
      '0 shown, searched back to 2026-10-02T10:00:00.000Z. All rows: --all. Next page: --cursor c1\n'
    assert.equal((await fake.wcrm(search)).stderr, note)
    const drawn = await fake.wcrm(search, { terminal: { columns: 200, rows: 50 } })
    assert.match(drawn.stdout, /^Nothing found so far\.\n.*, searched back to 2026-10-02T/)
  })

  it('--all: after a failure on a later page there are the lines before, and of JSON nothing', async () => {
    const failing = () => [page(['1'], 'c1', 2), { status: 500, body: problemBody('internal_error') }]
    fake.responses = failing()
    const lines = await fake.wcrm(['groups', 'list', '--all'])
    assert.deepEqual([lines.stdout, lines.exit], ['1\tG1\t\t1\t\n', 1])
    fake.responses = failing()
    const json = await fake.wcrm(['groups', 'list', '--all', '--json'])
    assert.deepEqual([json.stdout, json.exit], ['', 1])
  })

  it('a piped list is tab-separated, and stderr names the next page', async () => {
    fake.responses = [page(['1', '2'], 'c1', 9)]
    const { stdout, stderr } = await fake.wcrm(['groups', 'list'])
    assert.equal(stdout, '1\tG1\t\t1\t\n2\tG2\t\t1\t\n')
    assert.match(stderr, /2 of 9 shown.*--cursor c1/)
  })

  it('--ndjson, --csv and --header write rows page by page', async () => {
    const two = [page(['1', '2'], 'c1', 3), page(['3'], null, null)]
    fake.responses = [...two]
    const { stdout, stderr } = await fake.wcrm(['groups', 'list', '--all', '--ndjson'])
    assert.deepEqual(
      [stdout.split('\n').map((line) => (line ? (JSON.parse(line) as { id: string }).id : '')), stderr],
      [['1', '2', '3', ''], ''],
    )
    fake.responses = [...two]
    const csv = await fake.wcrm(['groups', 'list', '--all', '--csv', '--columns', 'name,id'])
    assert.equal(csv.stdout, 'name,id\r\nG1,1\r\nG2,2\r\nG3,3\r\n')
    fake.responses = [page(['1'], 'c1', 9)]
    const tsv = await fake.wcrm(['groups', 'list', '--header', '--columns', 'id,name'])
    assert.equal(tsv.stdout, 'id\tname\n1\tG1\n')
    assert.match(tsv.stderr, /1 of 9 shown.*--cursor c1/)
    fake.responses = [{ body: { data: [{ id: '7', contact: { name: 'Ada' } }], next_cursor: null } }]
    const search = ['conversations', 'search', '--columns', 'id,contact.name']
    assert.equal((await fake.wcrm(search)).stdout, '7\tAda\n')
    assert.equal((await fake.wcrm([...search, '--csv'])).stdout, 'id,contact.name\r\n7,Ada\r\n')
    fake.requests = []
    for (const words of [
      ['--csv', '--ndjson'],
      ['--header', '--json'],
      ['--columns', 'nam'],
    ])
      assert.equal((await fake.wcrm(['groups', 'list', ...words])).exit, 2)
    assert.equal(fake.requests.length, 0)
  })

  it('contacts export: writes all pages as CSV with escaped formulas and all custom fields', async () => {
    const contact = {
      id: '1',
      name: '=cmd()',
      tags: [
        { id: '7', name: 'a,b' },
        { id: '8', name: 'c' },
      ],
      attributes: [{ key: 'plan', type: 'select', value: 'pro', typed_value: 'pro' }],
    }
    fake.responses = [
      { body: { data: [{ key: 'email' }, { key: 'plan' }, { key: 'city' }], next_cursor: null } },
      page(['2'], 'c1', 2),
      { body: { data: [contact], next_cursor: null } },
    ]
    const { stdout } = await fake.wcrm(['contacts', 'export', '--starred'])
    assert.deepEqual(
      fake.requests.slice(1).map((request) => request.input),
      [
        { starred: true, detail: 'full', limit: 100 },
        { starred: true, detail: 'full', limit: 100, cursor: 'c1' },
      ],
    )
    const [head, first, second] = stdout.split('\r\n')
    assert.match(head!, /,tags,groups,attributes\.plan,attributes\.city$/)
    assert.match(first!, /^2,G2,/)
    assert.match(second!, /^1,'=cmd\(\),.*,"""a,b"", c",,pro,$/)
  })

  it('contacts export: leaves no file when a later page fails', async () => {
    const file = join(fake.home, 'out.ndjson')
    fake.responses = [page(['1'], 'c1', 2), { status: 500, body: problemBody('internal_error') }]
    assert.equal((await fake.wcrm(['contacts', 'export', '--format', 'ndjson'])).stdout, '')
    fake.responses = [page(['1'], 'c1', 2), { status: 500, body: problemBody('internal_error') }]
    assert.equal((await fake.wcrm(['contacts', 'export', '--format', 'ndjson', '--output', file])).exit, 1)
    assert.ok(!existsSync(file))
    fake.responses = [page(['1'], 'c1', 2), page(['2'], null, null)]
    const { exit, stdout } = await fake.wcrm(['contacts', 'export', '--format', 'ndjson', '--output', file])
    assert.deepEqual([exit, stdout, readFileSync(file, 'utf8').split('\n').length], [0, '', 3])
    fake.responses = [page(['1'], 'c1', 2), page(['2'], null, null)]
    assert.deepEqual(
      (
        JSON.parse((await fake.wcrm(['contacts', 'export', '--json'])).stdout) as { data: { id: string }[] }
      ).data.map(({ id }) => id),
      ['1', '2'],
    )
  })

  it('what nobody sees is written out wherever people read it, and stays in JSON', async () => {
    const hidden = String.fromCodePoint(0x200b, 0x2060, 0xfeff, 0xe0041, 0x202e, 0xad, 0x3164)
    const name = `Ada${hidden}👩‍💻`
    const shown = 'Ada\\u{200b}\\u{2060}\\u{feff}\\u{e0041}\\u{202e}\\u{ad}\\u{3164}👩‍💻'
    const body = {
      id: '1',
      name,
      summary: [`Text: ${name}, and more`],
      input: { text: name },
      tags: [{ name }],
    }
    const terminal = { columns: 200, rows: 50 }
    for (const argv of [
      ['contacts', 'get', '1'],
      ['approvals', 'get', '1'],
    ])
      for (const options of [{ terminal }, {}]) {
        fake.responses = [{ body }]
        const { stdout } = await fake.wcrm(argv, options)
        assert.equal(stdout.split(shown).length - 1, 4, stdout)
        assert.ok(![...hidden].some((character) => stdout.includes(character)), stdout)
      }
    fake.responses = [{ body }]
    assert.ok((await fake.wcrm(['contacts', 'get', '1', '--json'])).stdout.includes(name))
    fake.responses = [{ body: { failures: [{ id: '1', message: name }] } }]
    const { stderr } = await fake.wcrm(['contacts', 'untag', '--contact-ids', '1', '--tags', '2', '--quiet'])
    assert.ok(stderr.includes(shown), stderr)
  })

  it('tab-separated lines and CSV hold every text: line breaks, tabs, backslashes and quotes', async () => {
    const unescape = (cell: string): string =>
      cell.replace(/\\(.)/g, (_, c: string) => ({ n: '\n', t: '\t', r: '\r' })[c] ?? c)
    const texts = ['a\tb', 'a\nb', 'a\\nb', 'a\\', '\\\n\\t', 'a "b", c', 'C:\\new\\temp']
    const groups = ['groups', 'list', '--columns', 'id,name']
    for (const name of texts) {
      fake.responses = [{ body: { data: [{ id: '1', name }], next_cursor: null } }]
      const line = (await fake.wcrm(groups)).stdout
      assert.deepEqual(line.slice(0, -1).split('\t').map(unescape), ['1', name])
      const csv = (await fake.wcrm([...groups, '--csv'])).stdout
      const quoted = /[",\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name
      assert.equal(csv, `id,name\r\n1,${quoted}\r\n`)
    }
  })

  it('control characters in customer text are escaped', () => {
    fc.assert(
      fc.property(
        fc
          .array(fc.oneof(fc.integer({ max: 0x2100, min: 0 }), fc.integer({ max: 0xe01ef, min: 0xe0000 })))
          .map((codes) => String.fromCodePoint(...codes)),
        (text) => {
          const drawn = [
            escapeControlCharacters(text),
            formatTsv([{ a: text, b: [text] }], ['a', 'b'])
              .replace(/\t/, '')
              .slice(0, -1),
            ...formatRecord({ a: { [text]: text } }),
          ].join('')
          // eslint-disable-next-line no-control-regex -- the characters that must not occur
          const hidden = /[\u0000-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e01ef}]/u
          assert.doesNotMatch(drawn, hidden)
        },
      ),
    )
    const plain = { width: 60, color: false }
    const evil = '\u001b]0;title\u0007\u001b[2J'
    for (const drawn of [
      drawTable([{ id: '1', name: evil }], ['id', 'name'], plain),
      drawRecord({ name: evil, [evil]: { deep: [{ name: evil, x: evil }] } }, plain),
      drawProblem(
        { title: 'No', detail: escapeControlCharacters(evil), items: [], fix: undefined, request: undefined },
        plain,
      ),
    ])
      assert.ok(!drawn.includes('\u001b') && !drawn.includes('\u0007'))
  })

  it('a terminal that prints lines and nothing else gets them', async () => {
    const terminal = { columns: 80, rows: 24 }
    fake.responses = [{ status: 404, body: problemBody('not_found') }]
    for (const [TERM, isBoxed] of [
      ['dumb', false],
      ['xterm', true],
    ] as const) {
      const { stderr } = await fake.wcrm(['contacts', 'get', '1'], { terminal, env: { TERM } })
      assert.match(stderr, /What happened\./)
      assert.equal(stderr.includes('│'), isBoxed)
    }
    const file = join(fake.home, 'rows.csv')
    writeFileSync(file, 'phone\n+15550100042\n')
    const done = { requested: 1, created: 1, updated: 0, unchanged: 0, failed: 0, failures: [] }
    fake.responses = [
      { body: { data: [], next_cursor: null, workspace: { id: '1' }, key: { id: '2' }, ...done } },
    ]
    const { exit, stderr } = await fake.wcrm(['contacts', 'import', file], {
      terminal,
      env: { TERM: 'dumb', XDG_STATE_HOME: fake.home },
    })
    assert.equal(exit, 0, stderr)
    assert.ok(!stderr.includes('\u001b'), JSON.stringify(stderr))
  })
})

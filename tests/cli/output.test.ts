import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { escapeControlCharacters, formatRecord, formatTsv } from '../../cli/text.ts'
import { drawProblem, drawRecord, drawTable } from '../../cli/views.ts'
import { listen, problemBody, useFakeServer } from './fake-server.ts'

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

const page = (ids: string[], cursor: string | null) => ({
  body: {
    data: ids.map((id) => ({ id, name: `G ${id}`, emoji: null, contacts_count: 1 })),
    next_cursor: cursor,
  },
})

describe('CLI: --jq, --template and --quiet', () => {
  it('--jq is applied to the answer: strings as they are, the rest as JSON', async () => {
    fake.responses = [page(['1', '2'], null)]
    const { stdout } = await fake.wcrm([
      'groups',
      'list',
      '--jq',
      '.data[].name, (.data|length), .data[0].emoji',
    ])
    assert.equal(stdout, 'G 1\nG 2\n2\nnull\n')
    fake.responses = [page(['1'], 'c'), page(['2'], null)]
    const all = await fake.wcrm(['groups', 'list', '--all', '--json=id', '--jq', '[.data[].id]'])
    assert.equal(all.stdout, '["1","2"]\n')
    fake.responses = [{ body: { id: '1' } }]
    const blanks = await fake.wcrm(['contacts', 'get', '1', '--jq', '" a", "", "\\n", empty, ""'])
    assert.equal(blanks.stdout, ' a\n\n\n\n\n')
    fake.responses = [{ body: '{"id":9007199254740993}' }]
    assert.equal((await fake.wcrm(['contacts', 'get', '1', '--jq', '.id'])).stdout, '9007199254740993\n')
  })

  it('with --ndjson, --jq is applied to each row', async () => {
    fake.responses = [page(['1', '2'], 'c'), page(['3'], null)]
    const words = ['groups', 'list', '--all', '--ndjson', '--jq', 'select(.id != "2") | {id}']
    assert.equal((await fake.wcrm(words)).stdout, '{"id":"1"}\n{"id":"3"}\n')
  })

  it('an expression that does not compile exits 2 before anything is sent, and names the place', async () => {
    const { exit, stdout, stderr } = await fake.wcrm(['groups', 'create', '--name', 'A', '--jq', '.a['])
    assert.deepEqual([exit, stdout, fake.requests.length], [2, '', 0])
    assert.match(stderr, /--jq: syntax error, .*\(line 1, column 3\)/)
    const unknown = await fake.wcrm(['groups', 'list', '--jq', '.data | nope'])
    assert.deepEqual([unknown.exit, fake.requests.length], [2, 0])
    assert.match(unknown.stderr, /nope\/0 is not defined/)
  })

  it('an expression that fails on the answer exits 2 and says why', async () => {
    fake.responses = [page(['1'], null)]
    const { exit, stdout, stderr } = await fake.wcrm(['groups', 'list', '--jq', '.data.x'])
    assert.deepEqual([exit, stdout], [2, ''])
    assert.match(stderr, /--jq: Cannot index array with (?:string )?\(?"x"\)?/)
  })

  it('--template prints a line for each row, or for the record', async () => {
    fake.responses = [page(['1', '2'], 'c'), page(['3'], null)]
    const list = ['groups', 'list', '--all', '--template', '{id}\\t{name}{emoji} {{x}}']
    assert.equal((await fake.wcrm(list)).stdout, '1\tG 1 {x}\n2\tG 2 {x}\n3\tG 3 {x}\n')
    fake.responses = [{ body: { group: { id: '3', name: 'VIP' }, created: true } }]
    const create = ['groups', 'create', '--name', 'VIP', '--template', '{group.id}:\\n{created}']
    assert.equal((await fake.wcrm(create)).stdout, '3:\ntrue\n')
    fake.requests = []
    for (const text of ['{nope}', '{id', 'id}'])
      assert.equal((await fake.wcrm(['groups', 'list', '--template', text])).exit, 2, text)
    assert.equal(fake.requests.length, 0)
  })

  it('--template stays the field where a command has one', async () => {
    await fake.wcrm(['templates', 'lint', '--template', '{"name":"a"}'])
    assert.deepEqual(fake.requests[0]!.input, { template: { name: 'a' } })
  })

  it('--quiet prints ids alone', async () => {
    fake.responses = [page(['1', '2'], 'c')]
    assert.deepEqual(await fake.wcrm(['groups', 'list', '--quiet']), {
      exit: 0,
      stdout: '1\n2\n',
      stderr: '',
    })
    fake.responses = [{ body: { group: { id: '3', name: 'VIP' }, created: true } }]
    assert.equal((await fake.wcrm(['groups', 'create', '--name', 'VIP', '--quiet'])).stdout, '3\n')
    fake.responses = [{ body: { group: { id: null, name: 'VIP' }, created: true, dry_run: true } }]
    assert.equal((await fake.wcrm(['groups', 'create', '--name', 'VIP', '--dry-run', '--quiet'])).stdout, '')
    fake.responses = [{ body: { failed: 1, failures: [{ id: '9', code: 'not_found', message: 'Gone.' }] } }]
    const tag = ['contacts', 'tag', '--contact-ids', '9', '--tags', 'VIP', '--quiet']
    assert.deepEqual(await fake.wcrm(tag), { exit: 9, stdout: '', stderr: '9: Gone.\n' })
  })

  it('--quiet leaves out rows without an id', async () => {
    fake.responses = [{ body: { data: [{ contact: { id: '4' } }, { contact: null }], next_cursor: null } }]
    assert.equal((await fake.wcrm(['broadcasts', 'recipients', '1', '--quiet'])).stdout, '4\n')
  })

  it('an export has formats of its own', async () => {
    for (const words of [['--jq', '.'], ['--quiet'], ['--template', '{id}']])
      assert.equal((await fake.wcrm(['contacts', 'export', ...words])).exit, 2)
  })

  it('formats that exclude each other are refused', async () => {
    for (const words of [
      ['--jq', '.', '--csv'],
      ['--jq', '.', '--template', '{id}'],
      ['--quiet', '--ndjson'],
      ['--quiet', '--json'],
    ])
      assert.equal((await fake.wcrm(['groups', 'list', ...words])).exit, 2, words.join(' '))
    assert.equal(fake.requests.length, 0)
  })

  it('a flag that the command would ignore is refused, by its name', async () => {
    const create = ['groups', 'create', '--name', 'One', '--plan', 'plan.ndjson']
    const follow = ['events', 'list', '--follow']
    for (const [words, flag] of [
      [['groups', 'list', '--columns', 'id', '--quiet'], '--columns'],
      [['groups', 'list', '--columns', 'id', '--jq', '.'], '--columns'],
      [['groups', 'list', '--columns', 'id', '--json'], '--columns'],
      [['groups', 'list', '--columns', 'id', '--template', '{id}'], '--columns'],
      [['groups', 'list', '--columns', 'id', '--ndjson'], '--columns'],
      [['contacts', 'export', '--json=id'], '--json'],
      [[...create, '--quiet'], '--quiet'],
      [[...create, '--jq', '.'], '--jq'],
      [[...create, '--template', '{id}'], '--template'],
      [[...create, '--json=group'], '--json'],
      [[...follow, '--limit', '5'], '--limit'],
      [[...follow, '--cursor', 'evt_1'], '--cursor'],
      [[...follow, '--all'], '--all'],
    ] as const) {
      const { exit, stderr } = await fake.wcrm([...words])
      assert.deepEqual([exit, stderr.includes(flag)], [2, true], `${words.join(' ')}: ${stderr}`)
    }
    assert.equal(fake.requests.length, 0)
  })
})

describe('CLI: a reader that ends early', () => {
  for (const words of [['--ndjson'], ['--csv'], []])
    it(`ends --all ${words.join(' ')} without a message`, async () => {
      let pages = 0
      const server = createServer((_request, response) => {
        pages++
        const rows = Array.from({ length: 100 }, (_, i) => ({
          id: String(pages * 100 + i),
          name: 'x'.repeat(900),
        }))
        response.setHeader('Content-Type', 'application/json')
        response.end(JSON.stringify({ data: rows, next_cursor: pages < 200 ? String(pages) : null }))
      })
      await listen(server)
      const child = spawn(process.execPath, ['bin/wcrm.js', 'groups', 'list', '--all', ...words], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          PATH: process.env.PATH,
          NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
          HOME: fake.home,
          WCRM_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
          WCRM_API_KEY: 'wc_live_x',
          WCRM_KEYCHAIN: 'off',
        },
      })
      let errors = ''
      child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
      const exited = once(child, 'exit')
      await once(child.stdout, 'data')
      child.stdout.destroy()
      assert.deepEqual([(await exited)[0], errors], [0, ''])
      assert.ok(pages < 20, `${pages} pages were read`)
      server.closeAllConnections()
      server.close()
    })
})

describe('CLI: fields that flags name', () => {
  it('rows come in full where the output has a field that they lack otherwise', async () => {
    fake.responses = [{ body: { data: [{ id: '1' }], next_cursor: null } }]
    const search = ['contacts', 'search']
    const details = async (...words: string[]): Promise<unknown> => {
      fake.requests.length = 0
      assert.equal((await fake.wcrm([...search, ...words])).exit, 0)
      return fake.requests[0]!.input['detail']
    }
    // A line without a format has all columns, by their places.
    for (const words of [
      ['--columns', 'id,tags'],
      ['--template', '{email}'],
      ['--json=tags'],
      ['--csv'],
      ['--header'],
      ['--all'],
      [],
    ])
      assert.equal(await details(...words), 'full', words.join(' '))
    for (const words of [
      ['--columns', 'id,name'],
      ['--template', '{name}'],
      ['--json=id'],
      ['--json'],
      ['--ndjson'],
      ['--quiet'],
      ['--jq', '.data'],
    ])
      assert.equal(await details(...words), undefined, words.join(' '))
    assert.equal(await details('--columns', 'tags', '--detail', 'compact'), 'compact')
  })

  it('the next page may be printed in another form', async () => {
    const refused = { code: 'invalid_input', reason: 'cursor_invalid', title: 'No', detail: 'No' }
    const page = ['contacts', 'search', '--cursor', 'c1']
    const details = async (...words: string[]): Promise<unknown[]> => {
      fake.requests.length = 0
      fake.responses = [{ status: 400, body: refused }, { body: { data: [{ id: '1' }], next_cursor: null } }]
      await fake.wcrm([...page, ...words])
      return fake.requests.map(({ input }) => input['detail'])
    }
    assert.deepEqual(await details(), ['full', undefined])
    assert.deepEqual(await details('--all'), ['full', undefined])
    assert.deepEqual(await details('--json'), [undefined, 'full'])
    assert.deepEqual(await details('--detail', 'full'), ['full'])
    // A later page that is refused ends the command: no row is printed twice.
    fake.requests.length = 0
    fake.responses = [
      { body: { data: [{ id: '1' }], next_cursor: 'c2' } },
      { status: 400, body: refused },
      { body: { data: [{ id: '1' }], next_cursor: null } },
    ]
    const { stdout, exit } = await fake.wcrm(['contacts', 'search', '--all', '--columns', 'id'])
    assert.deepEqual([stdout, exit, fake.requests.length], ['1\n', 2, 2])
  })

  it('a flag of the command is no value of the flag before it', async () => {
    const note = ['conversations', 'note', '381', '--text']
    const { exit, stderr } = await fake.wcrm([...note, '--dry-run'])
    assert.deepEqual([exit, fake.requests.length], [2, 0])
    assert.match(stderr, /--text=--dry-run/)
    const search = ['contacts', 'search', '--query', 'Ada']
    for (const words of [
      [...search, '--template', '--all'],
      [...search, '--sort', '--utc'],
      ['contacts', 'update', '42', '--name', '--no-dnd'],
      ['events', 'list', '--since', '--csv'],
    ]) {
      const refused = await fake.wcrm(words)
      assert.deepEqual([refused.exit, fake.requests.length], [2, 0], words.join(' '))
      assert.match(refused.stderr, /has no value/, words.join(' '))
    }
    for (const words of [
      [...note, '-x'],
      [...note.slice(0, 3), '--text=--dry-run'],
    ])
      assert.equal((await fake.wcrm(words)).exit, 0)
    assert.deepEqual(
      fake.requests.map(({ input }) => input['text']),
      ['-x', '--dry-run'],
    )
  })

  it('an integer has digits alone', async () => {
    for (const text of ['5.0', ' 5', '1e2'])
      assert.equal((await fake.wcrm(['groups', 'list', '--limit', text])).exit, 2, text)
  })

  it('fields in the path may be flags too', async () => {
    for (const words of [
      ['ops', 'crm_get_contact', '--contact-id', '42'],
      ['contacts', 'get', '--contact-id=42', '--json'],
      ['--json', 'contacts', 'get', '--detail', 'ids', '--contact-id', '42'],
    ]) {
      fake.requests.length = 0
      assert.equal((await fake.wcrm(words)).exit, 0, words.join(' '))
      assert.equal(fake.requests[0]!.input['contact_id'], '42')
    }
    fake.requests.length = 0
    for (const [words, message] of [
      [['contacts', 'get', '42', '--contact-id', '43'], /too many arguments/],
      [['contacts', 'get', '--contact-id'], /--contact-id has no value/],
      [['contacts', 'get', '--contact-id', '--json'], /--contact-id has no value/],
      [['contacts', 'get', '--contact-id', '--utc'], /--contact-id has no value/],
      [['contacts', 'get', '--contact-id', '1', '--contact-id', '2'], /--contact-id is given twice/],
    ] as [string[], RegExp][]) {
      const { exit, stderr } = await fake.wcrm(words)
      assert.deepEqual([exit, fake.requests.length], [2, 0], words.join(' '))
      assert.match(stderr, message)
    }
  })
})

const groupsPage = (first: number, last: number, cursor: string | null) => ({
  body: {
    data: Array.from({ length: last - first + 1 }, (_, i) => ({
      id: String(first + i),
      name: `Group ${first + i}`,
      emoji: null,
      contacts_count: 1,
      created_at: '2026-01-01T00:00:00.000Z',
    })),
    total: null,
    next_cursor: cursor,
  },
})

const runWith = (pager: string, argv: readonly string[] = [], env: Record<string, string> = {}) =>
  fake.wcrm(['groups', 'list', ...argv], {
    env: { PATH: process.env.PATH!, NO_COLOR: '1', PAGER: pager, ...env },
    terminal: { columns: 80, rows: 24 },
  })

const readLines = (file: string): string[] => readFileSync(file, 'utf8').trimEnd().split('\n')

describe('CLI: the pager', () => {
  it('shows a list that is longer than the screen', async () => {
    const file = join(fake.home, 'long')
    fake.responses = [groupsPage(1, 20, 'c1'), groupsPage(21, 30, null)]
    assert.deepEqual(await runWith(`cat > ${file}`, ['--all']), { exit: 0, stdout: '', stderr: '' })
    assert.equal(readLines(file).length, 31)
  })

  it('a shorter list is printed, and so is what programs read', async () => {
    const file = join(fake.home, 'short')
    fake.responses = [groupsPage(1, 5, null)]
    assert.equal((await runWith(`cat > ${file}`)).stdout.trimEnd().split('\n').length, 6)
    fake.responses = [groupsPage(1, 30, null)]
    for (const argv of [['--json'], ['--ndjson'], ['--csv'], ['--quiet'], ['--jq', '.data[].id']])
      assert.match((await runWith(`cat > ${file}`, argv)).stdout, /30/, argv.join(' '))
    for (const [name, value] of [
      ['CI', '1'],
      ['TERM', 'dumb'],
      ['WCRM_PAGER', ''],
      ['WCRM_PAGER', 'cat'],
    ] as const)
      assert.match((await runWith(`cat > ${file}`, [], { [name]: value })).stdout, /Group 30/, name)
    assert.throws(() => readFileSync(file), /ENOENT/)
  })

  it('WCRM_PAGER goes before PAGER', async () => {
    const file = join(fake.home, 'own')
    fake.responses = [groupsPage(1, 30, null)]
    await runWith('false', [], { WCRM_PAGER: `cat > ${file}` })
    assert.equal(readLines(file).length, 31)
  })

  it('a pager that was left ends the list: no further page is fetched', async () => {
    const file = join(fake.home, 'left')
    // More than the pipe and the stream before it take, on every page.
    fake.responses = Array.from({ length: 50 }, (_, i) => groupsPage(i * 1000 + 1, (i + 1) * 1000, `c${i}`))
    assert.equal((await runWith(`head -n 3 > ${file}`, ['--all'])).exit, 0)
    assert.equal(readLines(file).length, 3)
    assert.ok(fake.requests.length < 20, `${fake.requests.length} requests`)
  })

  it('a failure in the middle is reported after the pager was left, with its exit code', async () => {
    const file = join(fake.home, 'failed')
    fake.responses = [
      groupsPage(1, 30, 'c1'),
      { status: 404, body: { status: 404, code: 'not_found', detail: 'Gone.' } },
    ]
    const { exit, stderr } = await runWith(`cat > ${file}`, ['--all'])
    assert.equal(exit, 3)
    assert.match(stderr, /Gone/)
    assert.equal(readLines(file).length, 31)
  })

  it('a pager that does not exist is named, and everything is printed', async () => {
    fake.responses = [groupsPage(1, 30, null)]
    const { exit, stdout, stderr } = await runWith('no-such-pager -R')
    assert.equal(exit, 0)
    assert.match(stdout, /Group 30/)
    assert.match(stderr, /pager was not found.*no-such-pager/)
  })
})

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { after, before, beforeEach, describe, it } from 'node:test'
import fc from 'fast-check'
import { errors } from '../../catalog/errors.ts'
import { catalog, type Operation } from '../../catalog/index.ts'
import { toArgv } from '../../cli/argv.ts'
import { loadCredentials, credentialsPath, storeCredentials } from '../../cli/credentials.ts'
import { exitCodeForStatus } from '../../cli/error.ts'
import { runCommandLine } from '../../cli/main.ts'
import { commandName, readManifest } from '../../cli/manifest.ts'
import { formatRecord, formatTsv, escapeControlCharacters } from '../../cli/text.ts'
import { drawProblem, drawRecord, drawTable } from '../../cli/views.ts'
import { renderManPages } from '../../scripts/man.ts'
import { renderManifest } from '../../scripts/manifest.ts'

const operations: readonly Operation[] = catalog
const manifest = readManifest()
const specOf = (name: string) => manifest.commands.find((c) => commandName(c) === name)!

type Seen = { path: string; headers: IncomingHttpHeaders; input: Record<string, unknown> }
type Canned = { status?: number; body: unknown; headers?: Record<string, string>; cut?: boolean }

// The network peer: what a server would answer, and what it was asked.
const seen: Seen[] = []
let answers: Canned[] = []
let peer: Server
let url: string
const home = mkdtempSync(join(tmpdir(), 'wcrm-cli-'))

const listen = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })

before(async () => {
  peer = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    request.on('end', () => {
      seen.push({
        path: request.url!,
        headers: request.headers,
        input: JSON.parse(text) as Record<string, unknown>,
      })
      const { status = 200, body, headers = {}, cut } = answers.length > 1 ? answers.shift()! : answers[0]!
      if (cut) return request.socket.destroy()
      response
        .writeHead(status, { 'Content-Type': 'application/json', ...headers })
        .end(typeof body === 'string' ? body : JSON.stringify(body))
    })
  })
  await listen(peer)
  url = `http://127.0.0.1:${(peer.address() as AddressInfo).port}`
})
after(() => {
  peer.closeAllConnections()
  peer.close()
  rmSync(home, { recursive: true })
})
beforeEach(() => {
  seen.length = 0
  answers = [{ body: {} }]
})

const wcrm = async (
  words: string[],
  { stdin = '', env = {} }: { stdin?: string; env?: Record<string, string> } = {},
) => {
  const collect = () => {
    const stream = new PassThrough()
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    return { stream, text: () => Buffer.concat(chunks).toString() }
  }
  const [out, err] = [collect(), collect()]
  const input = new PassThrough()
  input.end(stdin)
  const exit = await runCommandLine(words, {
    stdin: input,
    stdout: out.stream,
    stderr: err.stream,
    env: { WCRM_URL: url, WCRM_API_KEY: 'wc_test_key', WCRM_KEYCHAIN: 'off', XDG_CONFIG_HOME: home, ...env },
  })
  return { exit, stdout: out.text(), stderr: err.text() }
}

const problem = (code: keyof typeof errors, more: object = {}) => ({
  type: `https://example.com/errors/${code}`,
  title: errors[code].title,
  status: errors[code].status,
  detail: 'What happened.',
  code,
  request_id: 'req_1',
  ...more,
})

describe('CLI: generated files', () => {
  it('cli/manifest.json is up to date with the catalog (node scripts/manifest.ts)', () => {
    assert.equal(readFileSync('cli/manifest.json', 'utf8'), renderManifest())
  })

  it('man pages are up to date with the manifest (node scripts/man.ts)', () => {
    for (const [name, text] of renderManPages())
      assert.equal(readFileSync(join('man', name), 'utf8'), text, name)
  })

  it('every operation has exactly one command', () => {
    for (const op of operations)
      assert.ok(
        manifest.commands.some((c) => c.operation === op.name && commandName(c) === op.cli),
        op.name,
      )
    assert.equal(new Set(manifest.commands.map(commandName)).size, manifest.commands.length)
  })
})

describe('CLI: arguments and input', () => {
  for (const op of operations) {
    it(`${op.cli}: every example reaches the server unchanged`, async () => {
      const spec = specOf(op.cli)
      for (const example of op.examples) {
        const input = example.input as Record<string, unknown>
        answers = [{ body: example.output }]
        seen.length = 0
        const { exit, stdout, stderr } = await wcrm([
          ...toArgv(spec, input),
          '--json',
          ...(op.confirm ? ['--confirm', op.confirm] : []),
        ])
        assert.ok(exit === 0 || exit === 9, stderr)
        assert.equal(stdout, `${JSON.stringify(example.output)}\n`)
        assert.equal(seen[0]!.path, `/v1/ops/${op.name}`)
        assert.deepEqual(seen[0]!.input, input)
      }
    })

    it(`${op.cli} --help lists its flags, scope and confirmation`, async () => {
      const { exit, stdout } = await wcrm([...op.cli.split(' '), '--help'])
      const spec = specOf(op.cli)
      assert.equal(exit, 0)
      for (const field of spec.fields)
        assert.ok(
          stdout.includes(
            spec.args.includes(field.name)
              ? `<${field.name}>`
              : field.type === 'boolean'
                ? `--[no-]${field.flag.slice(2)}`
                : field.flag,
          ),
          field.name,
        )
      assert.ok(stdout.includes(op.scope))
      if (op.confirm) assert.ok(stdout.includes(`--confirm ${op.confirm}`))
    })
  }

  it('any text and list value reaches the server unchanged', async () => {
    const spec = specOf('contacts upsert')
    const value = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constant('null'),
      fc.constant('-'),
      fc.constant('@x'),
      fc.constant('--json'),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.record(
          {
            phone: value,
            name: value,
            tags: fc.array(value, { maxLength: 3 }),
            attributes: fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 }),
          },
          { requiredKeys: [] },
        ),
        async (input) => {
          seen.length = 0
          const { exit, stderr } = await wcrm([...toArgv(spec, input), '--json'])
          assert.equal(exit, 0, stderr)
          assert.deepEqual(seen[0]!.input, JSON.parse(JSON.stringify(input)))
        },
      ),
      { numRuns: 60 },
    )
  })

  it('list flags accept commas, repetition, JSON, a file and standard input', async () => {
    const file = join(home, 'ids.txt')
    writeFileSync(file, '1\n2\n')
    for (const [words, stdin] of [
      [['1,2'], ''],
      [['1', '2'], ''],
      [['["1","2"]'], ''],
      [[`@${file}`], ''],
      [['-'], '1\n2\n'],
    ] as [string[], string][]) {
      await wcrm(['contacts', 'tag', '--tags', 'VIP', ...words.flatMap((word) => ['--contact-ids', word])], {
        stdin,
      })
      assert.deepEqual(seen.at(-1)!.input, { contact_ids: ['1', '2'], tags: ['VIP'] })
    }
  })

  it('boolean flags accept =value, --no- and null, and do not consume the next word', async () => {
    await wcrm(['contacts', 'update', '--starred', '42', '--dnd=false'])
    assert.deepEqual(seen.at(-1)!.input, { contact_id: '42', starred: true, dnd: false })
    await wcrm(['contacts', 'update', '--no-starred', '42', '--json', '--name', 'null'])
    assert.deepEqual(seen.at(-1)!.input, { contact_id: '42', starred: false, name: null })
  })

  it('--input holds the whole input including path fields; flags override it', async () => {
    await wcrm(['contacts', 'update', '--input', '-', '--name', 'B'], {
      stdin: '{"contact_id":"42","name":"A","dnd":true}',
    })
    assert.deepEqual(seen[0]!.input, { contact_id: '42', name: 'B', dnd: true })
  })

  for (const [words, about] of [
    [['contacts', 'search', '--limit', 'ten'], 'a number that is none'],
    [['contacts', 'update', '1', '--attributes', '{'], 'broken JSON'],
    [['contacts', 'update', '1', '--attributes', '@/nonexistent'], 'a file that is missing'],
    [['contacts', 'serch'], 'an unknown verb'],
    [['nope'], 'an unknown group'],
    [['contacts', 'get'], 'a missing id'],
    [['contacts', 'get', '1', '2'], 'a word too many'],
    [['contacts', 'get', '1', '--nope'], 'an unknown flag'],
    [['contacts', 'get', '1', '--json=nope'], 'an unknown JSON field'],
    [['contacts', 'update', '1', '--starred=maybe'], 'a boolean that is none'],
    [['whoami', '--url', 'nope'], 'an odd URL'],
  ] as [string[], string][]) {
    it(`usage error: exits 2 without a request: ${about}`, async () => {
      const plain = await wcrm(words)
      assert.deepEqual([plain.exit, plain.stdout, seen.length], [2, '', 0])
      if (!words.includes('--json=nope')) assert.match(plain.stderr, /^Error: /)
      const json = await wcrm([...words, '--json'])
      assert.deepEqual([json.exit, json.stdout], [2, ''])
      assert.equal((JSON.parse(json.stderr) as { code: string }).code, 'invalid_input')
    })
  }
})

describe('CLI: calls', () => {
  it('requests identify the client', async () => {
    await wcrm(['whoami'])
    const { headers } = seen[0]!
    assert.deepEqual(
      [headers.authorization, headers['wcrm-door'], headers['idempotency-key']],
      ['Bearer wc_test_key', 'cli', undefined],
    )
    assert.match(headers['user-agent']!, /^wcrm-cli\/\d/)
  })

  it('a write sends the given idempotency key, or a generated one', async () => {
    await wcrm(['groups', 'create', '--name', 'A', '--idempotency-key', 'mine'])
    await wcrm(['groups', 'create', '--name', 'A'])
    assert.equal(seen[0]!.headers['idempotency-key'], 'mine')
    assert.match(String(seen[1]!.headers['idempotency-key']), /^[\da-f-]{36}$/)
  })

  for (const [name, first] of [
    ['a cut connection', { body: '', cut: true }],
    ['a 503', { status: 503, body: problem('upstream_unavailable') }],
    ['a 504', { status: 504, body: problem('timeout') }],
  ] as [string, Canned][]) {
    it(`retries once under the same key after ${name}`, async () => {
      answers = [first, { body: { group: {}, created: true } }]
      const { exit } = await wcrm(['groups', 'create', '--name', 'A'])
      assert.deepEqual(
        [exit, seen.length, seen[0]!.headers['idempotency-key']],
        [0, 2, seen[1]!.headers['idempotency-key']],
      )
    })
  }

  it('an unreachable server exits 8 and says how to retry', async () => {
    const closed = createServer()
    await listen(closed)
    const { port } = closed.address() as AddressInfo
    await new Promise((resolve) => {
      closed.close(resolve)
    })
    const { exit, stdout, stderr } = await wcrm([
      'groups',
      'create',
      '--name',
      'A',
      '--url',
      `http://127.0.0.1:${port}`,
    ])
    assert.deepEqual([exit, stdout], [8, ''])
    assert.match(stderr, /ECONNREFUSED[^]*--idempotency-key/)
  })

  const exits = {
    invalid_input: 2,
    unauthenticated: 4,
    forbidden: 4,
    insufficient_scope: 4,
    entitlement_required: 4,
    not_found: 3,
    conflict: 5,
    confirm_required: 6,
    rate_limited: 7,
    upstream_error: 8,
    service_unconfigured: 8,
    internal_error: 1,
    payload_too_large: 2,
  } as const
  for (const [code, exit] of Object.entries(exits) as [keyof typeof exits, number][]) {
    it(`${code} exits ${exit} with the problem on stderr only`, async () => {
      const body = JSON.stringify(problem(code))
      answers = [{ status: errors[code].status, body }]
      const json = await wcrm(['contacts', 'get', '1', '--json'])
      assert.deepEqual(json, { exit, stdout: '', stderr: `${body}\n` })
      const plain = await wcrm(['contacts', 'get', '1'])
      assert.deepEqual([plain.exit, plain.stdout], [exit, ''])
      assert.match(plain.stderr, /What happened\.[^]*req_1/)
    })
  }

  it('every status of the catalog has a specified exit code', () => {
    for (const { status } of Object.values(errors))
      assert.ok(exitCodeForStatus(status) >= 1 && exitCodeForStatus(status) <= 8)
  })

  it('a response that is not from the service exits by its status', async () => {
    answers = [{ status: 502, body: '<html>' }]
    const { exit, stderr } = await wcrm(['whoami'])
    assert.equal(exit, 8)
    assert.match(stderr, /502/)
  })

  it('an error names the flag of its pointer, and the fix', async () => {
    answers = [
      {
        status: 400,
        body: problem('invalid_input', {
          errors: [
            { pointer: '#/group_ids/0', code: 'unknown', detail: 'No such group.', fix: 'List them.' },
          ],
        }),
      },
    ]
    const { stderr } = await wcrm(['contacts', 'upsert', '--phone', '+15550100042', '--group-ids', '9'])
    assert.match(stderr, /--group-ids \(0\): No such group\.\n {4}Fix: List them\./)
  })

  it('a gated write without --confirm is sent, and the error names the flag', async () => {
    answers = [{ status: 428, body: problem('confirm_required') }]
    const { exit, stderr } = await wcrm(['contacts', 'delete', '42'])
    assert.deepEqual([exit, seen[0]!.headers['api-confirm']], [6, undefined])
    assert.match(stderr, /--confirm delete/)
    await wcrm(['contacts', 'delete', '42', '--confirm', 'delete'])
    assert.equal(seen[1]!.headers['api-confirm'], 'delete')
  })

  it('a partly failed bulk call prints the response and exits 9', async () => {
    answers = [
      {
        body: {
          requested: 2,
          succeeded: 1,
          failed: 1,
          failures: [{ id: '43', code: 'not_found', message: 'Gone.' }],
          stopped_early: false,
        },
      },
    ]
    const { exit, stdout } = await wcrm(['contacts', 'tag', '--contact-ids', '42,43', '--tags', 'VIP'])
    assert.equal(exit, 9)
    assert.match(stdout, /failures\.0\.id: 43/)
  })
})

describe('CLI: output', () => {
  const page = (ids: string[], cursor: string | null, total: number | null) => ({
    body: {
      data: ids.map((id) => ({ id, name: `G${id}`, emoji: null, contacts_count: 1 })),
      total,
      next_cursor: cursor,
    },
  })

  it('--json prints the response body byte for byte', async () => {
    answers = [{ body: '{"data" :[],"next_cursor":null}' }]
    assert.equal((await wcrm(['groups', 'list', '--json'])).stdout, '{"data" :[],"next_cursor":null}\n')
  })

  it('--json=a,b selects fields of rows and of the envelope', async () => {
    answers = [page(['1', '2'], 'c', 7)]
    assert.deepEqual(JSON.parse((await wcrm(['groups', 'list', '--json=id,total'])).stdout), {
      data: [{ id: '1' }, { id: '2' }],
      total: 7,
      next_cursor: 'c',
    })
  })

  it('--json=? lists the fields without a request', async () => {
    const { stdout } = await wcrm(['groups', 'list', '--json=?'])
    assert.deepEqual([stdout, seen.length], ['id\nname\nemoji\ncontacts_count\ncreated_at\ntotal\n', 0])
  })

  it('--all fetches all pages, waits for the rate limit, and prints one response', async () => {
    answers = [
      page(['1'], 'c1', 2),
      { status: 429, headers: { 'Retry-After': '1' }, body: problem('rate_limited') },
      page(['2'], null, null),
    ]
    const { stdout, exit } = await wcrm(['groups', 'list', '--all', '--json'])
    assert.equal(exit, 0)
    assert.deepEqual(
      (JSON.parse(stdout) as { data: { id: string }[] }).data.map((row) => row.id),
      ['1', '2'],
    )
    assert.deepEqual(
      seen.map((s) => s.input),
      [{ limit: 100 }, { limit: 100, cursor: 'c1' }, { limit: 100, cursor: 'c1' }],
    )
  })

  it('--all: a failure on a later page leaves stdout empty', async () => {
    answers = [page(['1'], 'c1', 2), { status: 500, body: problem('internal_error') }]
    const { stdout, exit } = await wcrm(['groups', 'list', '--all'])
    assert.deepEqual([stdout, exit], ['', 1])
  })

  it('a piped list is tab-separated, and stderr names the next page', async () => {
    answers = [page(['1', '2'], 'c1', 9)]
    const { stdout, stderr } = await wcrm(['groups', 'list'])
    assert.equal(stdout, '1\tG1\t\t1\t\n2\tG2\t\t1\t\n')
    assert.match(stderr, /2 of 9 shown.*--cursor c1/)
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
    answers = [
      { body: { data: [{ key: 'email' }, { key: 'plan' }, { key: 'city' }], next_cursor: null } },
      page(['2'], 'c1', 2),
      { body: { data: [contact], next_cursor: null } },
    ]
    const { stdout } = await wcrm(['contacts', 'export', '--starred'])
    assert.deepEqual(
      seen.slice(1).map((s) => s.input),
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
    const file = join(home, 'out.ndjson')
    answers = [page(['1'], 'c1', 2), { status: 500, body: problem('internal_error') }]
    assert.equal((await wcrm(['contacts', 'export', '--format', 'ndjson'])).stdout, '')
    answers = [page(['1'], 'c1', 2), { status: 500, body: problem('internal_error') }]
    assert.equal((await wcrm(['contacts', 'export', '--format', 'ndjson', '--output', file])).exit, 1)
    assert.ok(!existsSync(file))
    answers = [page(['1'], 'c1', 2), page(['2'], null, null)]
    const { exit, stdout } = await wcrm(['contacts', 'export', '--format', 'ndjson', '--output', file])
    assert.deepEqual([exit, stdout, readFileSync(file, 'utf8').split('\n').length], [0, '', 3])
    answers = [page(['1'], 'c1', 2), page(['2'], null, null)]
    assert.deepEqual(
      (
        JSON.parse((await wcrm(['contacts', 'export', '--json'])).stdout) as { data: { id: string }[] }
      ).data.map(({ id }) => id),
      ['1', '2'],
    )
  })

  it('control characters in customer text are escaped', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ max: 0x2100, min: 0 })).map((codes) => String.fromCodePoint(...codes)),
        (text) => {
          const drawn = [
            escapeControlCharacters(text),
            formatTsv([{ a: text, b: [text] }], ['a', 'b'])
              .replace(/\t/, '')
              .slice(0, -1),
            ...formatRecord({ a: { [text]: text } }),
          ].join('')
          // eslint-disable-next-line no-control-regex -- what must not be there
          assert.doesNotMatch(drawn, /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/)
        },
      ),
    )
    const plain = { width: 60, color: false }
    const evil = '\u001b]0;title\u0007\u001b[2J'
    for (const drawn of [
      drawTable([{ id: '1', name: evil }], ['id', 'name'], undefined, plain),
      drawRecord({ name: evil, [evil]: { deep: [{ name: evil, x: evil }] } }, plain),
      drawProblem(
        { title: 'No', detail: escapeControlCharacters(evil), items: [], fix: undefined, request: undefined },
        plain,
      ),
    ])
      assert.ok(!drawn.includes('\u001b') && !drawn.includes('\u0007'))
  })

  it('tables stay within the terminal width', () => {
    const rows = [{ id: '1', name: 'A'.repeat(200), note: 'x'.repeat(50), empty: null }]
    const drawn = drawTable(rows, ['id', 'name', 'note', 'empty'], undefined, { width: 50, color: false })
    assert.ok(
      drawn.split('\n').every((line) => line.length <= 50),
      drawn,
    )
    assert.match(drawn, /^ID +NAME/)
    assert.doesNotMatch(drawn, /EMPTY/)
  })
})

describe('CLI: credentials', () => {
  it('login verifies and stores the key for one server; logout deletes it', async () => {
    const env = { WCRM_API_KEY: '', WCRM_URL: '' }
    answers = [
      {
        body: {
          workspace: { id: '1', name: 'Demo' },
          staff: { name: 'Olivia', role: 'owner' },
          key: { scopes: [], test: false },
        },
      },
    ]
    const { exit, stdout, stderr } = await wcrm(['login', '--url', url], { stdin: 'wc_live_kept\n', env })
    assert.deepEqual([exit, seen[0]!.headers.authorization], [0, 'Bearer wc_live_kept'])
    assert.match(stdout, /Olivia/)
    assert.match(stderr, /No keychain/)
    assert.equal(statSync(credentialsPath({ XDG_CONFIG_HOME: home })).mode & 0o777, 0o600)
    await wcrm(['whoami'], { env })
    assert.equal(seen[1]!.headers.authorization, 'Bearer wc_live_kept')
    await wcrm(['whoami'], { env: { WCRM_URL: '' } })
    assert.equal(seen[2]!.headers.authorization, 'Bearer wc_test_key')
    const elsewhere = await loadCredentials(
      { XDG_CONFIG_HOME: home, WCRM_KEYCHAIN: 'off' },
      'http://elsewhere.example',
    )
    assert.equal(elsewhere.key, undefined)
    await wcrm(['logout', '--url', url], { env })
    assert.equal((await loadCredentials({ XDG_CONFIG_HOME: home, WCRM_KEYCHAIN: 'off' }, url)).key, undefined)
  })

  it('login: a refused key is not stored', async () => {
    answers = [{ status: 401, body: problem('unauthenticated') }]
    const { exit } = await wcrm(['login', '--url', url], { stdin: 'bad', env: { WCRM_API_KEY: '' } })
    assert.equal(exit, 4)
    assert.equal((await loadCredentials({ XDG_CONFIG_HOME: home, WCRM_KEYCHAIN: 'off' }, url)).key, undefined)
  })

  it('storeCredentials never throws', async () => {
    const stored = await storeCredentials({
      url,
      key: 'k',
      env: { XDG_CONFIG_HOME: '/dev/null', WCRM_KEYCHAIN: 'off' },
    })
    assert.equal(stored.store, 'none')
  })
})

describe('CLI: help and completion', () => {
  it('help lists the groups; wcrm without arguments prints help', async () => {
    const [bare, help, version] = [await wcrm([]), await wcrm(['--help']), await wcrm(['--version'])]
    assert.deepEqual([bare.exit, help.exit, bare.stdout], [0, 0, help.stdout])
    for (const group of new Set(manifest.commands.map((c) => c.group)))
      assert.ok(help.stdout.includes(`\n  ${group} `), group)
    assert.equal(version.stdout, `${manifest.version}\n`)
  })

  it('help <group> <verb> equals <group> <verb> --help', async () => {
    assert.equal(
      (await wcrm(['help', 'contacts', 'get'])).stdout,
      (await wcrm(['contacts', 'get', '--help'])).stdout,
    )
  })

  it('a group without a verb lists its verbs on stderr and exits 2', async () => {
    const { exit, stdout, stderr } = await wcrm(['contacts'])
    assert.deepEqual([exit, stdout], [2, ''])
    assert.match(stderr, /search/)
  })

  for (const shell of ['bash', 'zsh', 'fish']) {
    it(`completion ${shell} contains every command`, async () => {
      const { stdout, exit } = await wcrm(['completion', shell])
      assert.equal(exit, 0)
      for (const spec of manifest.commands)
        assert.ok(stdout.includes(spec.group) && stdout.includes(spec.verb), commandName(spec))
    })
  }
})

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { listen, useFakeServer } from './fake-server.ts'

const fake = useFakeServer()

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

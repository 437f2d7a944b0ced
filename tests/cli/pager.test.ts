import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { useFakeServer } from './fake-server.ts'

const fake = useFakeServer()

const page = (first: number, last: number, cursor: string | null) => ({
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
    fake.responses = [page(1, 20, 'c1'), page(21, 30, null)]
    assert.deepEqual(await runWith(`cat > ${file}`, ['--all']), { exit: 0, stdout: '', stderr: '' })
    assert.equal(readLines(file).length, 31)
  })

  it('a shorter list is printed, and so is what programs read', async () => {
    const file = join(fake.home, 'short')
    fake.responses = [page(1, 5, null)]
    assert.equal((await runWith(`cat > ${file}`)).stdout.trimEnd().split('\n').length, 6)
    fake.responses = [page(1, 30, null)]
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
    fake.responses = [page(1, 30, null)]
    await runWith('false', [], { WCRM_PAGER: `cat > ${file}` })
    assert.equal(readLines(file).length, 31)
  })

  it('a pager that was left ends the list: no further page is fetched', async () => {
    const file = join(fake.home, 'left')
    // More than the pipe and the stream before it take, on every page.
    fake.responses = Array.from({ length: 50 }, (_, i) => page(i * 1000 + 1, (i + 1) * 1000, `c${i}`))
    assert.equal((await runWith(`head -n 3 > ${file}`, ['--all'])).exit, 0)
    assert.equal(readLines(file).length, 3)
    assert.ok(fake.requests.length < 20, `${fake.requests.length} requests`)
  })

  it('a failure in the middle is reported after the pager was left, with its exit code', async () => {
    const file = join(fake.home, 'failed')
    fake.responses = [
      page(1, 30, 'c1'),
      { status: 404, body: { status: 404, code: 'not_found', detail: 'Gone.' } },
    ]
    const { exit, stderr } = await runWith(`cat > ${file}`, ['--all'])
    assert.equal(exit, 3)
    assert.match(stderr, /Gone/)
    assert.equal(readLines(file).length, 31)
  })

  it('a pager that does not exist is named, and everything is printed', async () => {
    fake.responses = [page(1, 30, null)]
    const { exit, stdout, stderr } = await runWith('no-such-pager -R')
    assert.equal(exit, 0)
    assert.match(stdout, /Group 30/)
    assert.match(stderr, /pager was not found.*no-such-pager/)
  })
})

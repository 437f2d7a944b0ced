import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { problemBody, useFakeServer } from './fake-server.ts'

const fake = useFakeServer()

const answer = (succeeded: number, failures: object[] = []) => ({
  body: {
    requested: succeeded + failures.length,
    succeeded,
    failed: failures.length,
    failures,
    stopped_early: false,
  },
})
const ids = (count: number) => Array.from({ length: count }, (_, i) => String(i + 1))
const tag = ['contacts', 'tag', '--tags', 'VIP', '--contact-ids', '-']
const keys = () => fake.requests.map(({ headers }) => headers['idempotency-key'])

describe('CLI: ids from standard input', () => {
  it('are lines, JSON lines with id, or the first column of piped lines', async () => {
    for (const stdin of ['1\n2\n', '{"id":"1"}\n\n{"id":2}\n', '1\tAda\t\n2\tBob\r\n', '1, 2']) {
      fake.responses = [answer(2)]
      await fake.wcrm(tag, { stdin })
      assert.deepEqual(fake.requests.at(-1)!.input['contact_ids'], ['1', '2'], stdin)
    }
    const { exit, stderr } = await fake.wcrm(tag, { stdin: '1\n{"name":"x"}\n' })
    assert.equal(exit, 2)
    assert.match(stderr, /line 2 has no id/)
  })

  it('any number is sent in batches with a key each; the answer is their sum, and exits 9 for a failure', async () => {
    const failure = { id: '700', code: 'not_found', message: 'Gone.' }
    fake.responses = [answer(500), answer(499, [failure]), answer(200)]
    const { exit, stdout, stderr } = await fake.wcrm(
      [...tag, '--json', '--idempotency-key', 'a-run-of-mine'],
      {
        stdin: [...ids(1200), '3'].join('\n'),
      },
    )
    assert.deepEqual([exit, stderr], [9, ''])
    assert.deepEqual(JSON.parse(stdout), {
      requested: 1200,
      succeeded: 1199,
      failed: 1,
      failures: [failure],
      stopped_early: false,
    })
    assert.deepEqual(
      fake.requests.map(({ input }) => (input['contact_ids'] as string[]).length),
      [500, 500, 200],
    )
    const first = keys()
    assert.equal(new Set(first).size, 3)
    fake.requests = []
    fake.responses = [answer(500)]
    await fake.wcrm([...tag, '--idempotency-key', 'a-run-of-mine'], { stdin: ids(1200).join('\n') })
    assert.deepEqual(keys(), first)
    fake.requests = []
    await fake.wcrm(tag, { stdin: ids(1200).join('\n') })
    assert.equal(new Set([...first, ...keys()]).size, 6)
  })

  it('a run that fails says how far it came, and the key that continues it', async () => {
    fake.responses = [
      answer(500),
      { status: 429, headers: { 'Retry-After': '1' }, body: problemBody('rate_limited') },
      answer(500),
      { status: 403, body: problemBody('forbidden') },
    ]
    const { exit, stdout, stderr } = await fake.wcrm(tag, { stdin: ids(1200).join('\n') })
    assert.deepEqual([exit, stdout], [4, ''])
    assert.match(
      stderr,
      /Rate limited: continuing in 1 s\.[^]*Stopped after 1000 of 1200 ids.*--idempotency-key [\da-f-]{36}/,
    )
    fake.requests = []
    fake.responses = [answer(500), { status: 403, body: problemBody('forbidden') }]
    const json = await fake.wcrm([...tag, '--json', '--idempotency-key', 'a-run-of-mine'], {
      stdin: ids(600).join('\n'),
    })
    assert.equal((JSON.parse(json.stderr) as { idempotency_key: string }).idempotency_key, 'a-run-of-mine')
  })

  it('a first call that is refused is told as such: there is nothing to continue', async () => {
    fake.responses = [{ status: 403, body: problemBody('forbidden') }]
    const { exit, stderr } = await fake.wcrm(tag, { stdin: ids(1200).join('\n') })
    assert.deepEqual(
      [exit, fake.requests.length, /Stopped after|--idempotency-key/.test(stderr)],
      [4, 1, false],
    )
  })

  it('ends where a person has to approve a call: the others are not asked for', async () => {
    const approval = { body: { approval: { id: '12', status: 'pending' } }, headers: { 'Approval-Id': '12' } }
    fake.responses = [answer(500), { status: 202, ...approval }]
    const { exit, stderr } = await fake.wcrm(tag, { stdin: ids(1600).join('\n') })
    assert.deepEqual([exit, fake.requests.length], [10, 2])
    assert.match(stderr, /Asked for 1000 of 1600 ids; the others were not sent\.\n/)
    assert.match(stderr, /wcrm approvals get 12/)
  })

  it('a dry run rehearses all of them', async () => {
    fake.responses = [
      { body: { ...answer(500).body, dry_run: true } },
      { body: { ...answer(1).body, dry_run: true } },
    ]
    const { stdout } = await fake.wcrm([...tag, '--dry-run', '--json'], { stdin: ids(501).join('\n') })
    assert.deepEqual(
      [
        (JSON.parse(stdout) as { succeeded: number; dry_run: true }).succeeded,
        stdout.includes('"dry_run":true'),
      ],
      [501, true],
    )
    assert.deepEqual(
      fake.requests.map(({ input }) => input['dry_run']),
      [true, true],
    )
  })

  it('the list decides, not its name; one confirmation is for all', async () => {
    fake.responses = [
      { body: { archived: [{ id: '1' }], failed: [] } },
      { body: { archived: [{ id: '21' }], failed: [] } },
    ]
    const { exit, stdout } = await fake.wcrm(
      ['templates', 'archive', '--ids', '-', '--confirm', 'archive', '--json'],
      {
        stdin: ids(21).join('\n'),
      },
    )
    assert.deepEqual([exit, JSON.parse(stdout)], [0, { archived: [{ id: '1' }, { id: '21' }], failed: [] }])
    assert.deepEqual(
      fake.requests.map(({ headers }) => headers['api-confirm']),
      ['archive', 'archive'],
    )
  })

  it('a long list on the command line itself is one call, which the server refuses', async () => {
    await fake.wcrm(['contacts', 'tag', '--tags', 'VIP', '--contact-ids', ids(501).join(',')])
    assert.equal(fake.requests.length, 1)
  })
})

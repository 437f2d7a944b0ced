import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { errors } from '../../catalog/errors.ts'
import { loadCredentials, storeCredentials } from '../../cli/credentials.ts'
import { credentialsPath } from '../../cli/credentials-file.ts'
import { type FakeResponse, listen, problemBody, useFakeServer } from './fake-server.ts'

const fake = useFakeServer()

describe('CLI: calls', () => {
  it('requests identify the client', async () => {
    await fake.wcrm(['whoami'])
    const { headers } = fake.requests[0]!
    assert.deepEqual(
      [headers.authorization, headers['wcrm-door'], headers['idempotency-key']],
      ['Bearer wc_test_key', 'cli', undefined],
    )
    assert.match(headers['user-agent']!, /^wcrm-cli\/\d/)
  })

  it('a write sends the given idempotency key, or a generated one', async () => {
    await fake.wcrm(['groups', 'create', '--name', 'A', '--idempotency-key', 'mine'])
    await fake.wcrm(['groups', 'create', '--name', 'A'])
    assert.equal(fake.requests[0]!.headers['idempotency-key'], 'mine')
    assert.match(String(fake.requests[1]!.headers['idempotency-key']), /^[\da-f-]{36}$/)
  })

  for (const [name, first] of [
    ['a cut connection', { body: '', disconnect: true }],
    ['a 503', { status: 503, body: problemBody('upstream_unavailable') }],
    ['a 504', { status: 504, body: problemBody('timeout') }],
  ] as [string, FakeResponse][]) {
    it(`retries once under the same key after ${name}`, async () => {
      fake.responses = [first, { body: { group: {}, created: true } }]
      const { exit } = await fake.wcrm(['groups', 'create', '--name', 'A'])
      assert.deepEqual(
        [exit, fake.requests.length, fake.requests[0]!.headers['idempotency-key']],
        [0, 2, fake.requests[1]!.headers['idempotency-key']],
      )
    })
  }

  it('https for a server without TLS, and an unknown name, are named', async () => {
    const plain = createServer()
    await listen(plain)
    const { port } = plain.address() as AddressInfo
    for (const [url, hint] of [
      [`https://127.0.0.1:${port}`, /EPROTO\.\n.*begin its URL with http:\/\//],
      ['https://no-such-server.invalid', /(ENOTFOUND\.\n.*check --url or WCRM_URL|EAI_AGAIN)/],
    ] as const) {
      const { exit, stderr } = await fake.wcrm(['whoami', '--url', url])
      assert.equal(exit, 8, stderr)
      assert.match(stderr, hint)
    }
    plain.close()
  })

  it('an unreachable server exits 8 and says how to retry', async () => {
    const closed = createServer()
    await listen(closed)
    const { port } = closed.address() as AddressInfo
    await new Promise((resolve) => {
      closed.close(resolve)
    })
    const { exit, stdout, stderr } = await fake.wcrm([
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

  it('a failure after which the change may have been made prints the command that repeats it', async () => {
    const words = ['groups', 'create', '--name', "A 'b'"]
    for (const first of [
      { status: 504, body: '<html>' },
      { status: 502, body: '<html>' },
      { status: 500, body: problemBody('internal_error') },
      { body: '', disconnect: true },
    ]) {
      fake.requests = []
      fake.responses = [first]
      const { exit, stdout, stderr } = await fake.wcrm(words)
      const key = String(fake.requests[0]!.headers['idempotency-key'])
      assert.ok(exit > 0 && stdout === '')
      assert.ok(
        stderr.includes(`wcrm groups create --name 'A '\\''b'\\''' --idempotency-key ${key}\n`),
        stderr,
      )
      const again = [...words, '--idempotency-key', key, '--json']
      const json = JSON.parse((await fake.wcrm(again)).stderr) as Record<string, unknown>
      assert.equal(json['idempotency_key'], key)
      assert.match((await fake.wcrm(again.slice(0, -1))).stderr, new RegExp(`'' --idempotency-key ${key}\n`))
    }
    fake.responses = [{ status: 409, body: problemBody('conflict') }]
    assert.doesNotMatch((await fake.wcrm(words)).stderr, /--idempotency-key/)
  })

  it('--retry obeys Retry-After under the same key, and ends after so many times', async () => {
    const limited = { status: 429, headers: { 'Retry-After': '1' }, body: problemBody('rate_limited') }
    fake.responses = [
      limited,
      { status: 503, body: problemBody('upstream_unavailable') },
      { body: { group: {} } },
    ]
    const done = await fake.wcrm(['groups', 'create', '--retry', '--name', 'A'])
    assert.deepEqual(
      [done.exit, new Set(fake.requests.map((r) => r.headers['idempotency-key'])).size],
      [0, 1],
    )
    assert.match(done.stderr, /trying again in 1 s\.\n/)
    fake.requests = []
    fake.responses = [{ ...limited, headers: { 'Retry-After': '1' } }]
    const { exit, stderr } = await fake.wcrm(['contacts', 'get', '1', '--retry=1', '--json'])
    assert.deepEqual([exit, fake.requests.length], [7, 2])
    assert.equal((JSON.parse(stderr.split('\n').at(-2)!) as { retry_after: number }).retry_after, 1)
    assert.equal((await fake.wcrm(['contacts', 'get', '1', '--retry=x'])).exit, 2)
  })

  it('JSON problems of a change whose outcome is open carry its key, and when to try again', async () => {
    const running = problemBody('conflict', { reason: 'still_running' })
    for (const [status, body] of [
      [503, problemBody('upstream_unavailable')],
      [409, running],
    ] as const) {
      fake.requests = []
      fake.responses = [{ status, headers: { 'Retry-After': '7' }, body }]
      const { stderr } = await fake.wcrm(['groups', 'create', '--name', 'A', '--json'])
      const problem = JSON.parse(stderr) as Record<string, unknown>
      assert.deepEqual(
        [problem['idempotency_key'], problem['retry_after']],
        [fake.requests[0]!.headers['idempotency-key'], 7],
      )
    }
    fake.responses = [{ body: '', disconnect: true }, { status: 409, body: running }, { body: { group: {} } }]
    assert.equal((await fake.wcrm(['groups', 'create', '--name', 'A', '--retry'])).exit, 0)
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
    unsupported_media_type: 2,
    method_not_allowed: 1,
    declined: 4,
    precondition_failed: 5,
    window_closed: 5,
    upstream_unavailable: 8,
    timeout: 8,
  } as const satisfies Record<keyof typeof errors, number>
  for (const [code, exit] of Object.entries(exits) as [keyof typeof exits, number][]) {
    it(`${code} exits ${exit} with the problem on stderr only`, async () => {
      const body = JSON.stringify(problemBody(code))
      fake.responses = [{ status: errors[code].status, body }]
      const json = await fake.wcrm(['contacts', 'get', '1', '--json'])
      assert.deepEqual(json, { exit, stdout: '', stderr: `${body}\n` })
      const plain = await fake.wcrm(['contacts', 'get', '1'])
      assert.deepEqual([plain.exit, plain.stdout], [exit, ''])
      assert.match(plain.stderr, /What happened\.[^]*req_1/)
    })
  }

  it('a response that is not from the service exits by its status', async () => {
    fake.responses = [{ status: 502, body: '<html>' }]
    const { exit, stderr } = await fake.wcrm(['whoami'])
    assert.equal(exit, 8)
    assert.match(stderr, /502/)
  })

  it('an unexpected error of the command line has no advice about the server', async () => {
    fake.responses = [{ body: { data: null } }]
    const { exit, stderr } = await fake.wcrm(['groups', 'list', '--all'])
    assert.equal(exit, 1)
    assert.match(stderr, /^Error: Unexpected error\n[^\n]+\n$/)
  })

  it('an error names the flag of its pointer, and the fix', async () => {
    fake.responses = [
      {
        status: 400,
        body: problemBody('invalid_input', {
          errors: [
            { pointer: '#/group_ids/0', code: 'unknown', detail: 'No such group.', fix: 'List them.' },
          ],
        }),
      },
    ]
    const { stderr } = await fake.wcrm(['contacts', 'upsert', '--phone', '+15550100042', '--group-ids', '9'])
    assert.match(stderr, /--group-ids \(0\): No such group\.\n {4}Fix: List them\./)
  })

  it('a gated write without --confirm is sent, and the error names the flag', async () => {
    fake.responses = [{ status: 428, body: problemBody('confirm_required') }]
    const { exit, stderr } = await fake.wcrm(['contacts', 'delete', '42'])
    assert.deepEqual([exit, fake.requests[0]!.headers['api-confirm']], [6, undefined])
    assert.match(stderr, /--confirm delete/)
    await fake.wcrm(['contacts', 'delete', '42', '--confirm', 'delete'])
    assert.equal(fake.requests[1]!.headers['api-confirm'], 'delete')
  })

  it('nobody is asked to confirm where --json is given, on a terminal too', async () => {
    fake.responses = [{ status: 428, body: problemBody('confirm_required') }]
    const terminal = { columns: 100, rows: 30 }
    const { exit } = await fake.wcrm(['contacts', 'delete', '42', '--json'], { terminal })
    assert.deepEqual([exit, fake.requests.map(({ input }) => input['dry_run'])], [6, [undefined]])
  })

  it('a call that waits for a person exits 10, and is no answer to what reads a field of one', async () => {
    const body = {
      approval: { id: '12', status: 'pending', operation: 'messaging_send_reply' },
      message: null,
    }
    fake.responses = [{ status: 202, headers: { 'Approval-Id': '12' }, body }]
    const reply = ['conversations', 'reply', '7', '--text', 'Hi', '--confirm', 'send']
    for (const [flags, pattern] of [
      [[], /12/],
      [['--json'], /"approval":\{"id":"12"/],
      [['--quiet'], /^$/],
      [['--jq', '.message.id'], /^$/],
      [['--template', '{message.id}'], /^$/],
    ] as const) {
      const { exit, stdout, stderr } = await fake.wcrm([...reply, ...flags])
      assert.equal(exit, 10, `${flags.join(' ')}: ${stderr}`)
      assert.match(stdout, pattern, flags.join(' '))
      assert.equal(/wcrm approvals get 12/.test(stderr), flags[0] !== '--json', flags.join(' '))
    }
  })

  it('a partly failed bulk call prints the response and exits 9', async () => {
    fake.responses = [
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
    const { exit, stdout } = await fake.wcrm(['contacts', 'tag', '--contact-ids', '42,43', '--tags', 'VIP'])
    assert.equal(exit, 9)
    assert.match(stdout, /failures\.0\.id: 43/)
  })

  it('a bulk call that stopped early exits 9 as well; a job of which some failed is an answer like any', async () => {
    fake.responses = [
      { body: { requested: 2, succeeded: 1, failed: 0, failures: [], stopped_early: true } },
      { body: { id: '7', state: 'done', done: 5, failed: 3 } },
    ]
    const untag = ['contacts', 'untag', '--contact-ids', '42,43', '--tags', 'VIP', '--json']
    assert.equal((await fake.wcrm(untag)).exit, 9)
    assert.equal((await fake.wcrm(['jobs', 'get', '7', '--json'])).exit, 0)
  })

  it('a check that finds errors prints the response and exits 2', async () => {
    const lint = ['templates', 'lint', '--template', '{"name":"Sale"}', '--json=valid']
    fake.responses = [{ body: { valid: false, errors: 1, issues: [] } }, { body: { valid: true } }]
    const failed = await fake.wcrm(lint)
    assert.deepEqual([failed.exit, failed.stdout], [2, '{"valid":false}\n'])
    assert.equal((await fake.wcrm(lint)).exit, 0)
  })
})

describe('CLI: credentials', () => {
  it('login verifies and stores the key for one server; logout deletes it', async () => {
    const env = { WCRM_API_KEY: '', WCRM_URL: '' }
    fake.responses = [
      {
        body: {
          workspace: { id: '1', name: 'Demo' },
          staff: { name: 'Olivia', role: 'owner' },
          key: { scopes: [], test: false },
        },
      },
    ]
    const { exit, stdout, stderr } = await fake.wcrm(['login', '--url', fake.url], {
      stdin: 'wc_live_kept\n',
      env,
    })
    assert.deepEqual([exit, fake.requests[0]!.headers.authorization], [0, 'Bearer wc_live_kept'])
    assert.match(stdout, /Olivia/)
    assert.match(stderr, /No keychain/)
    assert.equal(statSync(credentialsPath({ XDG_CONFIG_HOME: fake.home })).mode & 0o777, 0o600)
    await fake.wcrm(['whoami'], { env })
    assert.equal(fake.requests[1]!.headers.authorization, 'Bearer wc_live_kept')
    await fake.wcrm(['whoami'], { env: { WCRM_URL: '' } })
    assert.equal(fake.requests[2]!.headers.authorization, 'Bearer wc_test_key')
    const elsewhere = await loadCredentials(
      { XDG_CONFIG_HOME: fake.home, WCRM_KEYCHAIN: 'off' },
      'http://elsewhere.example',
    )
    assert.equal(elsewhere.key, undefined)
    await fake.wcrm(['logout', '--url', fake.url], { env })
    assert.equal(
      (await loadCredentials({ XDG_CONFIG_HOME: fake.home, WCRM_KEYCHAIN: 'off' }, fake.url)).key,
      undefined,
    )
  })

  it('the address of an interface is taken for that of its server', async () => {
    for (const path of ['/v1', '/v1/', '//v1', '/v1/ops', '/mcp']) {
      const { exit } = await fake.wcrm(['whoami', '--url', `${fake.url}${path}`])
      assert.deepEqual([exit, fake.requests.at(-1)!.path], [0, '/v1/ops/workspace_whoami'], path)
    }
    for (const path of ['/wcrm', '/wcrm/v1', '/wcrm/mcp/']) {
      await fake.wcrm(['whoami'], { env: { WCRM_URL: `${fake.url}${path}` } })
      assert.equal(fake.requests.at(-1)!.path, '/wcrm/v1/ops/workspace_whoami', path)
    }
    await fake.wcrm(['whoami', '--url', `${fake.url}/env1`])
    assert.equal(fake.requests.at(-1)!.path, '/env1/v1/ops/workspace_whoami')
  })

  it('login: a refused key is not stored', async () => {
    fake.responses = [{ status: 401, body: problemBody('unauthenticated') }]
    const { exit } = await fake.wcrm(['login', '--url', fake.url], {
      stdin: 'bad',
      env: { WCRM_API_KEY: '' },
    })
    assert.equal(exit, 4)
    assert.equal(
      (await loadCredentials({ XDG_CONFIG_HOME: fake.home, WCRM_KEYCHAIN: 'off' }, fake.url)).key,
      undefined,
    )
  })

  it('storeCredentials never throws', async () => {
    const stored = await storeCredentials({
      url: fake.url,
      key: 'k',
      env: { XDG_CONFIG_HOME: '/dev/null', WCRM_KEYCHAIN: 'off' },
    })
    assert.equal(stored.store, 'none')
  })
})

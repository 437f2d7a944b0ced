import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, type BlockList, connect } from 'node:net'
import { before, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { parseProxyList } from '../../server/http/address.ts'
import { createHttpApp } from '../../server/http/app.ts'
import { createListener } from '../../server/http/listener.ts'
import { nodeHandler } from '../../server/http/node.ts'
import { resolveSandboxSettings, SANDBOX_PATH, WEBHOOK_PATH } from '../../server/provider/settings.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { exchange, parseResponses, type RawResponse } from './raw-socket.ts'

const MIB = 1024 * 1024
const HEAD_END = /\r\n\r\n/

const head = (line: string, ...headers: string[]): string =>
  [line, 'Host: localhost', ...headers, '', ''].join('\r\n')

everyDatabase('HTTP: sockets', (server) => {
  let key: string
  before(async () => {
    key = (await makeWorkspace(server())).owner.key
  })

  const send = async (bytes: string, options = {}): Promise<RawResponse[]> =>
    parseResponses((await exchange(server().url, bytes, options)).text)

  it('what is no request is answered by a problem', async () => {
    const cases: [status: number, bytes: string][] = [
      [400, 'nonsense\r\n\r\n'],
      [400, 'GET /v1/me HTTP/1.1\r\nConnection: close\r\n\r\n'],
      [400, head('GET /v1/me HTTP/1.1', 'X Bad: 1')],
      [400, head('GET /v1/me HTTP/1.1', 'X-Nul: a\x00b')],
      [400, head('GET /v1/me HTTP/1.1', 'Expect: the-impossible', 'Connection: close')],
      [400, head('BREW /v1/me HTTP/1.1')],
      [400, head('POST /v1/groups HTTP/1.1', 'Content-Length: 2', 'Transfer-Encoding: chunked') + '{}'],
      [400, head('POST /v1/groups HTTP/1.1', 'Content-Length: x')],
      [
        400,
        head('POST /mcp HTTP/1.1', `Authorization: Bearer ${key}`, 'Transfer-Encoding: chunked') + 'zz\r\n',
      ],
      [405, head('CONNECT localhost:80 HTTP/1.1')],
      [405, head('TRACE /v1/me HTTP/1.1', 'Connection: close')],
      [431, head('GET /v1/me HTTP/1.1', `X-Large: ${'x'.repeat(20_000)}`)],
    ]
    for (const [status, bytes] of cases) {
      const [response, ...more] = await send(bytes)
      const shown = `${JSON.stringify(bytes.slice(0, 200))} → ${response?.status} ${response?.body}`
      assert.equal(more.length, 0, shown)
      assert.equal(response?.status, status, shown)
      assert.equal(response.headers.get('content-type'), 'application/problem+json', shown)
      const problem = JSON.parse(response.body)
      assert.equal(problem.status, status, shown)
      assert.equal(problem.request_id, response.headers.get('request-id'), shown)
      assert.ok(problem.detail.length > 0, shown)
    }
  })

  it('mistakes of shell scripts are named: letters outside ASCII, spaces, a key with a line break', async () => {
    const cases: [bytes: string, detail: RegExp][] = [
      [head('GET /v1/contacts?query=M\xc3\xbcller HTTP/1.1'), /URL .* Percent-encode it/],
      [head('GET /v1/contacts?query=Ada King HTTP/1.1'), /URL .* Percent-encode it/],
      [head('GET /v1/me HTTP/1.1', `Authorization: Bearer ${key}\r`), /header .* line break/],
      [head('GET /v1/me HTTP/1.1', `Authorization: Bearer ${key}\n`), /header .* line break/],
      [head('POST /v1/groups HTTP/1.1', 'Content-Length: x'), /Content-Length/],
    ]
    for (const [bytes, detail] of cases) {
      const [response] = await send(bytes)
      const problem = JSON.parse(response!.body)
      assert.deepEqual([problem.status, problem.reason], [400, 'malformed_request'])
      assert.match(problem.detail, detail)
    }
  })

  it('an upgrade is a plain request', async () => {
    for (const upgrade of ['websocket', 'h2c']) {
      const [response] = await send(
        head('GET /healthz HTTP/1.1', 'Connection: Upgrade', `Upgrade: ${upgrade}`),
        { enough: HEAD_END },
      )
      assert.equal(response!.status, 200)
    }
  })

  it('a request names one host', async () => {
    for (const more of ['Host: localhost', 'HOST: example.com']) {
      const [response] = await send(head('GET /healthz HTTP/1.1', more))
      assert.equal(response!.status, 400, more)
      assert.equal(JSON.parse(response!.body).errors[0].header, 'Host')
    }
  })

  it('a Host that is no authority is refused on every path, and one that is is not', async () => {
    const statuses = async (host: string): Promise<(number | undefined)[]> => {
      const answers: (number | undefined)[] = []
      for (const path of ['/healthz', '/readyz', '/v1/me', '/docs', '/mcp']) {
        const [response] = await send(
          `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n\r\n`,
        )
        if (response?.status === 400) assert.equal(JSON.parse(response.body).errors[0].header, 'Host')
        answers.push(response?.status)
      }
      return answers
    }
    const wrong = [
      'a b<script>',
      '<script>',
      'a/b',
      'user@localhost',
      'localhost:80:80',
      'localhost:x',
      '[::1',
      'h\xe9',
    ]
    for (const host of wrong) assert.deepEqual(await statuses(host), [400, 400, 400, 400, 400], host)
    const right = [
      'localhost',
      'localhost:',
      '127.0.0.1:99',
      '[::1]:8080',
      'a_b.example',
      '300.1.1.1',
      'a%20b',
      '',
    ]
    for (const host of right) {
      const [health, ready, me, docs] = await statuses(host)
      assert.deepEqual([health, ready, me, docs], [200, 200, 200, 200], host)
    }
  })

  it('when all connections are open, the oldest without a key is closed, and those with one stay', async () => {
    const { app } = server()
    const trustedProxies = parseProxyList('127.0.0.1')
    const { server: listening, listener, url } = await listen({ maxConnections: 4, trustedProxies })
    const http = createHttpApp(app)
    listener.serve(nodeHandler((request) => http.fetch(request), { publicUrl: url, log: app.log }))
    const me = head('GET /v1/me HTTP/1.1', `Authorization: Bearer ${key}`)
    const open = async (bytes: string) => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
      const closed = once(socket, 'close').then(() => 'closed')
      await once(listening, 'connection')
      /** Sends a request. Returns the status, or that there is none. */
      const ask = async (request: string): Promise<string> => {
        socket.write(request)
        return await Promise.race([once(socket, 'data').then(([text]) => String(text).slice(9, 12)), closed])
      }
      return { socket, closed, ask, first: bytes === '' ? '' : await ask(bytes) }
    }
    const [keyed, anonymous] = [await open(me), await open(head('GET /healthz HTTP/1.1'))]
    const slow = await open('')
    slow.socket.write('GET /v1/me HTTP/1.1\r\nHost: x\r\n')
    const other = await open(me)
    const firsts = [keyed, anonymous, other].map(({ first }) => first)
    assert.deepEqual(firsts, ['200', '200', '200'])
    const newcomers = [await open(me), await open(me)]
    assert.deepEqual(await Promise.all([anonymous.closed, slow.closed]), ['closed', 'closed'])
    for (const each of [keyed, other, ...newcomers]) assert.equal(await each.ask(me), '200')
    assert.equal(await (await open('')).closed, 'closed', 'all others have a key')
    for (const each of [keyed, other, ...newcomers]) {
      assert.equal(await each.ask(me), '200')
      each.socket.destroy()
    }
    await listener.drain()
  })

  it('pipelined requests are answered in order, also when the last one is broken', async () => {
    const me = head('GET /v1/me HTTP/1.1', `Authorization: Bearer ${key}`)
    const missing = head('GET /v1/contacts/999999 HTTP/1.1', `Authorization: Bearer ${key}`)
    const responses = await send(`${me}${missing}${head('GET /healthz HTTP/1.1')}nonsense\r\n\r\n`)
    assert.deepEqual(
      responses.map(({ status }) => status),
      [200, 404, 200, 400],
    )
  })

  it('requests that are pipelined without end are refused after the responses to the first', async () => {
    const responses = await send(head('GET /healthz HTTP/1.1').repeat(200))
    const statuses = responses.map(({ status }) => status)
    assert.deepEqual(statuses.slice(0, 2), [200, 200])
    assert.equal(statuses.at(-1), 429)
    assert.ok(statuses.length < 200 && statuses.slice(0, -1).every((status) => status === 200))
  })

  it('a client that closes its side after the request still gets the response', async () => {
    const responses = await send(head('GET /v1/me HTTP/1.1', `Authorization: Bearer ${key}`), {
      halfClose: true,
    })
    assert.deepEqual(
      responses.map(({ status }) => status),
      [200],
    )
    const cut = await send(
      head(
        'POST /v1/groups HTTP/1.1',
        `Authorization: Bearer ${key}`,
        'Content-Type: application/json',
      ).replace('\r\n\r\n', '\r\nContent-Length: 50\r\n\r\n{"name"'),
      { halfClose: true },
    )
    assert.deepEqual([cut.length, cut[0]!.status], [1, 400])
  })

  it('a connection that the client wants closed is closed after the response, whoever writes it', async () => {
    const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    const paths = [
      '/healthz',
      '/v1/me',
      '/docs',
      '/openapi.json',
      '/message/NONE',
      '/approvals/1',
      '/nothing',
    ]
    const requests = [
      ...paths.map((path) =>
        head(`GET ${path} HTTP/1.1`, `Authorization: Bearer ${key}`, 'Connection: close'),
      ),
      head(
        'POST /mcp HTTP/1.1',
        `Authorization: Bearer ${key}`,
        'Connection: close',
        'Content-Type: application/json',
        'Accept: application/json, text/event-stream',
        `Content-Length: ${ping.length}`,
      ) + ping,
    ]
    for (const request of requests) {
      const { text, end } = await exchange(server().url, request, { quietMs: 20_000 })
      const shown = request.split('\r\n', 1)[0]!
      assert.match(text, /^HTTP\/1\.1 \d{3} [^]*\r\nConnection: close\r\n/i, shown)
      assert.equal(end, 'server', shown)
    }
  })

  it('a body is asked for only from who may send it', async () => {
    const post = (authorization: string): string =>
      head(
        'POST /v1/ops/crm_import_contacts HTTP/1.1',
        `Authorization: Bearer ${authorization}`,
        'Content-Type: application/json',
        `Content-Length: ${24 * MIB}`,
        'Expect: 100-continue',
      )
    const refused = await exchange(server().url, post('wc_live_wrong'), { enough: HEAD_END })
    assert.match(refused.text, /^HTTP\/1\.1 401 /)
    const asked = await exchange(server().url, post(key), { enough: HEAD_END })
    assert.match(asked.text, /^HTTP\/1\.1 100 Continue\r\n\r\n$/)
  })

  it('413 on every mount: 26 MB in chunks with a key, 401 without; nothing is kept', async () => {
    const body = `${MIB.toString(16)}\r\n${' '.repeat(MIB)}\r\n`.repeat(26) + '0\r\n\r\n'
    const [type, chunked] = ['Content-Type: application/json', 'Transfer-Encoding: chunked']
    const paths = ['/v1/groups', '/v1/contacts/import', '/v1/ops/crm_import_contacts', '/mcp', '/sandbox/say']
    for (const path of paths) {
      for (const [authorization, expected] of [
        [key, 413],
        ['wc_live_wrong', 401],
      ] as const) {
        const request = head(`POST ${path} HTTP/1.1`, `Authorization: Bearer ${authorization}`, type, chunked)
        const [response] = await send(request + body, { enough: HEAD_END })
        assert.equal(response?.status, expected, `${path} ${response?.body}`)
        assert.equal(response.headers.get('connection'), 'close')
      }
    }
    const signature = `X-Hub-Signature-256: sha256=${'0'.repeat(64)}`
    const [unsigned] = await send(head(`POST ${WEBHOOK_PATH} HTTP/1.1`, signature, chunked) + body, {
      enough: HEAD_END,
    })
    assert.equal(unsigned?.status, 413)
    const { token } = resolveSandboxSettings('a secret of at least sixteen', server().url)
    const provider = head(
      `POST ${SANDBOX_PATH}/v23.0/1/messages HTTP/1.1`,
      `Authorization: Bearer ${token}`,
      type,
      chunked,
    )
    // The emulated provider answers in its own form, which has no 413.
    assert.equal((await send(provider + body, { enough: HEAD_END }))[0]?.status, 400)
    assert.equal(server().app.bodyBudget.total, 0)
    assert.equal((await fetch(`${server().url}/healthz`)).status, 200)
  })

  it('an aborted body is no error of the server, and nothing of it is kept', async () => {
    const request =
      head(
        'POST /mcp HTTP/1.1',
        `Authorization: Bearer ${key}`,
        'Content-Type: application/json',
        'Transfer-Encoding: chunked',
      ) + `100000\r\n${' '.repeat(1000)}`
    for (const part of [0, 50, 150, request.length])
      await exchange(server().url, request, { abortAfter: part })
    await untilReleased(server())
    assert.equal((await fetch(`${server().url}/healthz`)).status, 200)
  })
})

/** The server learns of a closed connection a moment later. */
const untilReleased = async ({ app }: TestServer): Promise<void> => {
  while (app.bodyBudget.total > 0) await new Promise((resolve) => setImmediate(resolve))
}

const listen = async (options: { maxConnections?: number; trustedProxies?: BlockList } = {}) => {
  const server = createServer({ connectionsCheckingInterval: 20 })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const listener = createListener(server, { publicUrl: url, log: pino({ level: 'silent' }), ...options })
  return { server, listener, url }
}

describe('HTTP: the listener', () => {
  it('a server that starts or stops answers by a problem, and closes', async () => {
    const { server, listener, url } = await listen()
    const post = head('POST /v1/groups HTTP/1.1', `Content-Length: ${MIB}`) + ' '.repeat(MIB)
    const check = async (bytes: string): Promise<void> => {
      const { text, end } = await exchange(url, bytes)
      const [response, ...more] = parseResponses(text)
      assert.equal(more.length, 0)
      assert.deepEqual([response?.status, end], [503, 'server'], text)
      for (const [name, value] of [
        ['content-type', 'application/problem+json'],
        ['retry-after', '1'],
        ['connection', 'close'],
        ['cache-control', 'no-store'],
      ] as const)
        assert.equal(response!.headers.get(name), value, text)
      const problem = JSON.parse(response!.body)
      assert.deepEqual([problem.code, problem.status], ['upstream_unavailable', 503])
      assert.match(problem.detail, /starting or stopping/)
      assert.equal(problem.request_id, response!.headers.get('request-id'))
    }
    for (const bytes of [head('GET /v1/me HTTP/1.1'), post]) await check(bytes)
    const [release, working] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    listener.serve(async (_req, res) => {
      working.resolve()
      await release.promise
      res.end()
    })
    const first = exchange(url, head('GET /first HTTP/1.1', 'Connection: close'))
    await working.promise
    const drained = listener.drain((path) => path === '/first')
    for (const bytes of [head('GET /v1/me HTTP/1.1'), post]) await check(bytes)
    release.resolve()
    assert.match((await first).text, /^HTTP\/1\.1 200 /)
    await drained
    assert.equal(server.listening, false)
  })

  it('a body that is refused may be sent to its end, for half a minute, and while it goes on', async (test) => {
    const { server, listener, url } = await listen()
    const begin = async () => {
      const arrived = once(server, 'request') as Promise<[IncomingMessage]>
      const socket = connect(Number(new URL(url).port), '127.0.0.1')
      const answered = once(socket, 'data')
      const ended = once(socket, 'end').then(() => 'closed')
      socket.write(head('POST /v1/groups HTTP/1.1', `Content-Length: ${MIB}`))
      const [incoming] = await arrived
      await answered
      /** Sends a part after so much time. Returns what becomes of it. */
      const send = async (bytes: number, afterMs: number): Promise<string> => {
        test.mock.timers.tick(afterMs)
        const read = once(incoming, 'data').then(() => 'read')
        socket.write(' '.repeat(bytes))
        return await Promise.race([read, ended])
      }
      return { socket, ended, send }
    }
    test.mock.timers.enable({ apis: ['setTimeout'] })
    const slow = await begin()
    for (let n = 0; n < 15; n++) assert.equal(await slow.send(1000, 1900), 'read')
    const endless = await begin()
    for (let n = 0; n < 15; n++) await endless.send(1000, 1900)
    test.mock.timers.tick(1900)
    assert.equal(await endless.ended, 'closed')
    const silent = await begin()
    test.mock.timers.tick(2100)
    assert.equal(await silent.ended, 'closed')
    test.mock.timers.reset()
    for (const { socket } of [slow, endless, silent]) socket.destroy()
    await listener.drain()
  })

  it('a request that never ends is answered by 408', async () => {
    const { server, url } = await listen()
    server.headersTimeout = 60
    server.requestTimeout = 60
    for (const bytes of ['', 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ']) {
      const { text, end } = await exchange(url, bytes)
      assert.match(text, /^HTTP\/1\.1 408 /)
      assert.equal(end, 'server')
    }
    server.close()
  })

  it('an address has a quarter of the connections: its oldest one makes room for another', async () => {
    const { server, url } = await listen({ maxConnections: 8 })
    const oldest = exchange(url, '')
    await once(server, 'connection')
    const others = [exchange(url, '', { quietMs: 300 }), exchange(url, '', { quietMs: 300 })]
    assert.match((await oldest).text, /^HTTP\/1\.1 429 .*too_many_connections/s)
    assert.deepEqual(await Promise.all(others), Array(2).fill({ text: '', end: 'quiet' }))
    server.close()
  })

  it('draining ends, whatever clients and handlers do', async () => {
    const { server, listener, url } = await listen()
    const [started, finished]: string[][] = [[], []]
    listener.serve(async (req, res) => {
      started!.push(req.url!)
      await pause(100)
      finished!.push(req.url!)
      res.end('done')
    })
    const { port, hostname } = new URL(url)
    const silent = connect(Number(port), hostname)
    const working = exchange(url, 'GET /work HTTP/1.1\r\nHost: x\r\n\r\n')
    await exchange(url, 'GET /gone HTTP/1.1\r\nHost: x\r\n\r\n', { abortAfter: 100 })
    while (started!.length < 2) await pause(5)
    silent.destroy()
    await listener.drain()
    assert.match((await working).text, /done$/)
    assert.deepEqual(finished!.toSorted(), ['/gone', '/work'])
    assert.equal(server.listening, false)
  })
})

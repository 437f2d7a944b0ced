import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { text as readText } from 'node:stream/consumers'
import { describe, it, mock } from 'node:test'
import { bridgeStdio } from '../../mcp/stdio.ts'
import { eventStreamResponse, eventStreams } from '../event-streams.ts'
import { readBridgeSettings, toBridgePath } from '../../mcp/bridge-settings.ts'

type Seen = { headers: IncomingMessage['headers']; body: any }
type Reply = (seen: Seen, response: ServerResponse) => void

/**
 * Runs the bridge with these lines as input against a server with this handler. Returns its output once the
 * input has ended.
 */
const runBridge = async (lines: readonly (object | string)[], reply: Reply, url?: string) => {
  const seen: Seen[] = []
  const server = createServer((request, response) => {
    void readText(request).then((body) => {
      const received = { headers: request.headers, body: JSON.parse(body) }
      seen.push(received)
      reply(received, response)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const [input, output, notes] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const address = url ?? `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  const done = bridgeStdio({ url: address, apiKey: 'wc_test_x', input, output, notes })
  for (const line of lines) input.write(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`)
  input.end()
  await done
  server.close()
  server.closeAllConnections()
  const text = async (stream: PassThrough): Promise<string> => (await stream.end().toArray()).join('')
  return {
    seen,
    out: (await text(output))
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line)),
    notes: await text(notes),
  }
}

const json = (response: ServerResponse, value: unknown, status = 200, type = 'application/json') =>
  void response.writeHead(status, { 'content-type': type }).end(JSON.stringify(value))
const result = (seen: Seen, value: object) => ({ jsonrpc: '2.0', id: seen.body.id, result: value })
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

describe('stdio bridge', () => {
  it('sends the headers of 2026-07-28', async () => {
    const { seen, out } = await runBridge(
      [
        {
          jsonrpc: '2.0',
          id: 'a',
          method: 'tools/call',
          params: { name: 'crm_get_contact', arguments: {}, _meta: meta },
        },
        {
          jsonrpc: '2.0',
          id: 'b',
          method: 'resources/read',
          params: { uri: 'wcrm://ünicode', _meta: meta },
        },
      ],
      (one, response) => json(response, result(one, { ok: true })),
    )
    const call = seen.find(({ body }) => body.id === 'a')!.headers
    assert.equal(call.authorization, 'Bearer wc_test_x')
    assert.deepEqual(
      [call['mcp-protocol-version'], call['mcp-method'], call['mcp-name']],
      ['2026-07-28', 'tools/call', 'crm_get_contact'],
    )
    assert.equal(
      seen.find(({ body }) => body.id === 'b')!.headers['mcp-name'],
      `=?base64?${Buffer.from('wcrm://ünicode').toString('base64')}?=`,
    )
    assert.deepEqual(out.map(({ id }) => id).sort(), ['a', 'b'])
  })

  it('2025 revisions: notifications get no response, and streams are read to their end', async () => {
    const { out } = await runBridge(
      [
        { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } },
        { jsonrpc: '2.0', method: 'notifications/initialized' },
      ],
      (one, response) => {
        if (one.body.id === undefined) return void response.writeHead(202).end()
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(': keep-alive\n\nevent: message\nda')
        response.end(`ta: ${JSON.stringify(result(one, { protocolVersion: '2025-11-25' }))}\r\n\r\n`)
      },
    )
    assert.deepEqual(out, [{ jsonrpc: '2.0', id: 1, result: { protocolVersion: '2025-11-25' } }])
  })

  it('an unreachable server is an error response, reported on stderr once', async () => {
    const ask = (id: number) => ({ jsonrpc: '2.0', id, method: 'ping' })
    const { out, notes } = await runBridge([ask(1), ask(2)], () => {}, 'http://127.0.0.1:9/mcp')
    assert.equal(out.length, 2)
    assert.match(out[0].error.message, /Cannot reach the server at http:\/\/127\.0\.0\.1:9/)
    assert.equal(notes.match(/Cannot reach/g)!.length, 1)
  })

  it('a refused key is reported with the reason', async () => {
    const problem = {
      code: 'unauthenticated',
      detail: 'The API key is unknown, expired or revoked.',
      status: 401,
    }
    const { out, notes } = await runBridge([{ jsonrpc: '2.0', id: 1, method: 'ping' }], (_, response) =>
      json(response, problem, 401, 'application/problem+json'),
    )
    assert.match(out[0].error.message, /401 unauthenticated/)
    assert.equal(out[0].error.data.code, 'unauthenticated')
    assert.match(notes, /wcrm login/)
  })

  it('a JSON-RPC error of the server is forwarded', async () => {
    const error = { code: -32022, message: 'Unsupported protocol version' }
    const { out, notes } = await runBridge(
      [{ jsonrpc: '2.0', id: 7, method: 'tools/list' }],
      (one, response) => json(response, { jsonrpc: '2.0', id: one.body.id, error }, 400),
    )
    assert.deepEqual(out, [{ jsonrpc: '2.0', id: 7, error }])
    assert.equal(notes, '')
  })

  it('an invalid line and an interrupted stream get an error response', async () => {
    const { out } = await runBridge(
      ['{nonsense', { jsonrpc: '2.0', id: 3, method: 'tools/list' }],
      (_, response) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n'),
    )
    assert.equal(out.find(({ id }) => id === null).error.code, -32700)
    assert.match(out.find(({ id }) => id === 3).error.message, /before the response/)
  })

  it('a call whose answer is lost is sent again under its key, as late as the server says', async () => {
    const call = (id: number, input: object) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: 'crm_create_group', arguments: input, _meta: meta },
    })
    let requests = 0
    const { seen, out } = await runBridge([call(1, { name: 'A' })], (one, response) => {
      requests += 1
      if (requests === 1) return void response.destroy()
      if (requests === 2) return void response.writeHead(503, { 'Retry-After': '0' }).end('<html>')
      json(response, result(one, { ok: true }))
    })
    const keys = seen.map(({ headers }) => headers['idempotency-key'])
    assert.deepEqual([out[0].result, keys.length, new Set(keys).size], [{ ok: true }, 3, 1])
    assert.match(String(keys[0]), /^[\da-f-]{36}$/)
  })

  it('a call has a key of the bridge unless it names one itself, where the server reads it', async () => {
    const call = (name: string, input: object) => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name, arguments: input, _meta: meta },
    })
    const own = { name: 'A', idempotency_key: 'mine-0001' }
    const nested = { url: 'https://example.com', custom_headers: { idempotency_key: 'x' } }
    const run = (input: unknown) =>
      call('run_write_operation', { operation: 'webhooks_create_endpoint', input })
    const calls: [object, boolean][] = [
      [call('crm_create_group', own), false],
      [call('webhooks_create_endpoint', nested), true],
      [run(own), false],
      [run(JSON.stringify(own)), false],
      [run(nested), true],
      [run(JSON.stringify(nested)), true],
      [run('{nonsense'), true],
    ]
    for (const [message, hasKey] of calls) {
      const { seen } = await runBridge([message], (one, response) => json(response, result(one, {})))
      assert.equal(seen[0]!.headers['idempotency-key'] !== undefined, hasKey, JSON.stringify(message))
    }
  })

  it('an error about a message that the server could not read has the id of its request', async () => {
    const error = { code: -32700, message: 'Parse error' }
    const { out } = await runBridge([{ jsonrpc: '2.0', id: 2, method: 'ping' }], (_, response) =>
      json(response, { jsonrpc: '2.0', id: null, error }, 400),
    )
    assert.deepEqual(out, [{ jsonrpc: '2.0', id: 2, error }])
  })

  it('a cancelled request gets no response, and a subscription ends with the input', async () => {
    const { out } = await runBridge(
      [
        { jsonrpc: '2.0', id: 4, method: 'tools/call', params: { name: 'x', _meta: meta } },
        { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 4 } },
        { jsonrpc: '2.0', id: 5, method: 'subscriptions/listen', params: { _meta: meta } },
      ],
      () => {},
    )
    assert.deepEqual(out, [])
  })
})

describe('stdio bridge: event stream', () => {
  for (const [form, chunksOf] of Object.entries(eventStreams))
    it(`${form}: the message is relayed`, async () => {
      const message = { jsonrpc: '2.0', id: 1, result: { text: 'Größe 漢字 😀' } }
      const fetched = mock.method(globalThis, 'fetch', async () =>
        eventStreamResponse(chunksOf(JSON.stringify(message))),
      )
      try {
        const { out } = await runBridge([{ jsonrpc: '2.0', id: 1, method: 'tools/list' }], () => {})
        assert.deepEqual(out, [message])
      } finally {
        fetched.mock.restore()
      }
    })
})

describe('Settings of the stdio bridge', () => {
  it('WCRM_READONLY fails closed: reads only at any value but false', () => {
    for (const value of ['1', 'true', '0', 'no', 'off', 'yes', 'x'])
      assert.equal(readBridgeSettings({ WCRM_READONLY: value }).readonly, true, value)
    for (const value of ['false', ' FALSE ', '', '${user_config.readonly}', undefined])
      assert.equal(readBridgeSettings({ WCRM_READONLY: value }).readonly, false, String(value))
  })

  it('become the address of the endpoint', () => {
    assert.equal(toBridgePath(readBridgeSettings({})), '/mcp')
    const all = { WCRM_READONLY: '1', WCRM_TOOLSETS: 'crm,inbox', WCRM_COMPACT: 'yes' }
    assert.equal(
      toBridgePath(readBridgeSettings(all)),
      '/mcp?toolsets=crm%2Cinbox&readonly=true&mode=compact',
    )
  })
})

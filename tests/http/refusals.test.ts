import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Writable } from 'node:stream'
import { createLogger } from '../../server/logger.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { createRawClient, post } from './raw-request.ts'
import { exchange, parseResponses } from './raw-socket.ts'

const lines: Record<string, unknown>[] = []
const log = createLogger('info', {
  destination: new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      for (const line of chunk.toString().trim().split('\n')) lines.push(JSON.parse(line))
      done()
    },
  }),
})

/** Returns the lines that tell of a request. */
const linesOf = (id: string | undefined) => {
  assert.match(id ?? '', /^req_/)
  return lines.filter(({ request_id: own }) => own === id)
}

everyDatabase(
  'HTTP: the log of what is refused',
  (server) => {
    it('has a line with the Request-Id of every refusal', async () => {
      const { key } = (await makeWorkspace(server())).owner
      const { raw } = createRawClient(server().url, key)
      const text = { headers: { 'Content-Type': 'text/plain' } }
      const tool = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
      const cases: [status: number, path: string, request?: Parameters<typeof raw>[1]][] = [
        [405, '/v1/me', { method: 'DELETE' }],
        [405, '/docs', { method: 'TRACE' }],
        [413, '/v1/groups', { method: 'POST', headers: { 'Content-Length': '99999999' } }],
        [415, '/v1/groups', post('{}', text)],
        [415, '/v1/ops/crm_list_tags', post('{}', text)],
        [415, '/v1/groups', post('{}', { headers: { 'Content-Encoding': 'br' } })],
        [400, '/v1/groups', post('{')],
        [400, '/v1/me', { headers: { Expect: 'wonders' } }],
        [401, '/v1/me', { headers: { Authorization: '' } }],
        [401, '/mcp', post(JSON.stringify(tool), { headers: { Authorization: '' } })],
        [404, '/nothing'],
        [404, '/v1/nowhere'],
        [404, '/exports/x'],
        [404, '/media/x'],
        [404, '/qr/x'],
        [404, '/message/x'],
        [404, '/v1/contacts/999999'],
      ]
      for (const [status, path, request] of cases) {
        const reply = await raw(path, request)
        const shown = `${request?.method ?? 'GET'} ${path} ${reply.text}`
        assert.equal(reply.status, status, shown)
        const found = linesOf(reply.headers['request-id'])
        assert.deepEqual([found.length, found[0]?.['status']], [1, status], shown)
        if (reply.body) assert.equal(reply.body.request_id, reply.headers['request-id'], shown)
      }
    })

    it('has one for what is no request', async () => {
      for (const [status, bytes] of [
        [400, 'nonsense\r\n\r\n'],
        [400, 'GET / HTTP/1.1\r\n\r\n'],
        [400, 'GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n'],
        [405, 'CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
        [431, `GET / HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(20_000)}\r\n\r\n`],
      ] as const) {
        const { text } = await exchange(server().url, bytes, { enough: /\}$/ })
        const [response] = parseResponses(text)
        assert.equal(response!.status, status)
        const id = JSON.parse(response!.body).request_id
        assert.deepEqual(
          linesOf(id).map((line) => [line['status'], line['msg']]),
          [[status, 'refused']],
          bytes.slice(0, 40),
        )
      }
    })

    it('names the call of a stream that is one too many', async () => {
      const { key } = (await makeWorkspace(server())).owner
      const headers = { Authorization: `Bearer ${key}`, Accept: 'text/event-stream' }
      const opened: Response[] = []
      try {
        while (opened.at(-1)?.status !== 429) {
          assert.ok(opened.length < 50)
          opened.push(await fetch(`${server().url}/v1/events?after=now`, { headers }))
        }
        const refused = opened.pop()!
        const { request_id: id } = (await refused.json()) as { request_id: string }
        assert.equal(refused.headers.get('request-id'), id)
        assert.deepEqual(
          linesOf(id).map((line) => [line['msg'], line['operation'], line['status']]),
          [
            ['call', 'events_list', 200],
            ['refused', undefined, 429],
          ],
        )
      } finally {
        for (const { body } of opened) await body?.cancel()
      }
    })
  },
  { log },
)

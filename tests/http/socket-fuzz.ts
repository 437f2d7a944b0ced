import assert from 'node:assert/strict'
import { catalog, listRoutes, type Operation } from '../../catalog/index.ts'
import { createRandom, deriveSeed, pick, type Random, randomInt } from '../../server/demo/random.ts'
import { SANDBOX_PATH, WEBHOOK_PATH } from '../../server/provider/settings.ts'
import { exchange, parseResponses } from './raw-socket.ts'

/** A request before it becomes bytes. */
type Draft = { method: string; path: string; headers: [name: string, value: string][]; body: Buffer }

const JSON_TYPE: [string, string] = ['Content-Type', 'application/json']
const mcpMessage = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })

const toDraft = (method: string, path: string, body?: string): Draft => ({
  method,
  path,
  headers: body === undefined ? [] : [JSON_TYPE],
  body: Buffer.from(body ?? ''),
})

const fillPath = (op: Operation, path: string): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String((op.examples[0]?.input as Record<string, unknown>)?.[name] ?? '7')),
  )

/** A plain request for every route of the server. */
const drafts: readonly Draft[] = [
  ...catalog.flatMap((op) => {
    const body = JSON.stringify(op.examples[0]?.input ?? {})
    return [
      ...listRoutes(op).map(({ method, path }) =>
        toDraft(method, fillPath(op, path), method === 'GET' ? undefined : body),
      ),
      toDraft('POST', `/v1/ops/${op.name}`, body),
    ]
  }),
  toDraft('POST', '/mcp', mcpMessage),
  toDraft('POST', '/mcp?toolsets=all', mcpMessage),
  toDraft('POST', WEBHOOK_PATH, '{"object":"provider","entry":[]}'),
  toDraft('GET', `${WEBHOOK_PATH}?hub.mode=subscribe&hub.verify_token=x&hub.challenge=1`),
  toDraft('POST', '/sandbox/say', '{"from":"+15550100042","text":"Hello"}'),
  toDraft('GET', '/sandbox/messages'),
  toDraft('POST', `${SANDBOX_PATH}/v23.0/1/messages`, '{}'),
  toDraft('GET', `${SANDBOX_PATH}/control/numbers`),
  ...[
    '/',
    '/docs',
    '/docs/assets/init.js',
    '/errors',
    '/errors/not_found',
    '/openapi.json',
    '/openapi-ops.json',
  ].map((path) => toDraft('GET', path)),
  ...['/healthz', '/readyz', '/metrics', '/media/x', '/qr/x.png', '/message/x', '/v1', '/nothing'].map(
    (path) => toDraft('GET', path),
  ),
]

type Mutation = (draft: Draft, random: Random) => Draft

const randomBytes = (random: Random, length: number): Buffer =>
  Buffer.from(Array.from({ length }, () => randomInt(random, 256)))

const withHeader = (draft: Draft, ...header: [string, string]): Draft => ({
  ...draft,
  headers: [...draft.headers, header],
})

const oddHeaders: readonly [string, string][] = [
  ['Content-Length', '-1'],
  ['Content-Length', '99999999999999999999'],
  ['Content-Length', '30000000'],
  ['Content-Length', '1e3'],
  ['Content-Length', '0x10'],
  ['Transfer-Encoding', 'chunked'],
  ['Transfer-Encoding', 'gzip, chunked'],
  ['Transfer-Encoding', 'identity'],
  ['Transfer-Encoding', 'chunked, chunked'],
  ['Content-Encoding', 'gzip'],
  ['Content-Encoding', 'identity'],
  ['Content-Type', 'text/plain'],
  ['Content-Type', 'application/json; charset=utf-7'],
  ['Content-Type', '\x00'],
  ['Expect', '100-continue'],
  ['Expect', 'the-impossible'],
  ['Connection', 'Upgrade'],
  ['Upgrade', 'websocket'],
  ['Upgrade', 'h2c'],
  ['HTTP2-Settings', 'AAMAAABkAARAAAAAAAIAAAAA'],
  ['Connection', 'close'],
  ['Connection', 'keep-alive, close'],
  ['Host', 'other'],
  ['Host', '[::1'],
  ['Host', 'a b'],
  ['X Bad Name', '1'],
  ['', 'no name'],
  ['X-Folded', 'one\r\n two'],
  ['X-Nul', 'a\x00b'],
  ['X-Large', 'x'.repeat(20_000)],
  ['Idempotency-Key', '"'],
  ['Idempotency-Key', '\xff\xfe'],
  ['Api-Version', '\xe9'],
  ['Api-Confirm', 'delete'],
  ['Authorization', 'Bearer'],
  ['Authorization', 'Basic Og=='],
  ['Authorization', `Bearer wc_live_${'0'.repeat(40)}`],
  ['Accept', 'text/event-stream;q=x'],
  ['Accept-Encoding', 'gzip;q=,*;;=,'],
  ['Last-Event-ID', '\x7f'],
  ['X-Forwarded-For', 'nobody, 999.1.1.1'],
  ['MCP-Protocol-Version', '1999-01-01'],
  ['Mcp-Method', 'nothing'],
  ['Range', 'bytes=-1'],
  ['If-None-Match', '*'],
]

const oddPaths: readonly string[] = [
  '*',
  '//',
  '/../../etc/passwd',
  '/%',
  '/%00',
  '/v1/contacts/%zz',
  'http://[',
  'http://elsewhere/v1/me',
  'ftp://x/',
  '/\xff',
  '/v1/contacts?limit=%ff&&&=&dry_run',
  '/?'.repeat(300),
  `/${'a'.repeat(9000)}`,
  '/v1/ops/__proto__',
  '/v1/ops/constructor?dry_run=1&dry_run=2',
  '/mcp?toolsets=&readonly=maybe',
  '/docs/assets/..%2f..%2fpackage.json',
]

const deep = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)

const mutations: readonly Mutation[] = [
  (draft, random) => ({
    ...draft,
    method: pick(random, [
      'PUT',
      'HEAD',
      'OPTIONS',
      'TRACE',
      'CONNECT',
      'get',
      'BREW',
      'PRI',
      '',
      'PROPFIND',
    ]),
  }),
  (draft, random) => ({ ...draft, path: pick(random, oddPaths) }),
  (draft, random) => {
    const at = randomInt(random, draft.path.length + 1)
    const odd = pick(random, ['%', '?', '#', '//', '\x01', ' ', '%2e%2e%2f', '\xc3', '?dry_run=perhaps'])
    return { ...draft, path: draft.path.slice(0, at) + odd + draft.path.slice(at) }
  },
  (draft, random) => withHeader(draft, ...pick(random, oddHeaders)),
  (draft, random) => withHeader(withHeader(draft, ...pick(random, oddHeaders)), ...pick(random, oddHeaders)),
  (draft, random) => ({ ...draft, body: randomBytes(random, randomInt(random, 3000)) }),
  (draft, random) => ({ ...draft, body: draft.body.subarray(0, randomInt(random, draft.body.length + 1)) }),
  (draft, random) => {
    const body = Buffer.from(draft.body)
    if (body.length > 0) body[randomInt(random, body.length)] = randomInt(random, 256)
    return { ...draft, body }
  },
  (draft, random) => ({
    ...draft,
    headers: [JSON_TYPE, ...draft.headers],
    body: Buffer.from(
      pick(random, ['null', '[]', '7', '"text"', '{"__proto__":1}', deep(2000), '{"a":1e999}', '[{}]', '{}']),
    ),
  }),
  (draft) => ({ ...draft, headers: draft.headers.filter(([name]) => name !== 'Content-Type') }),
  (draft) => draft,
]

const toChunks = (body: Buffer, random: Random): string => {
  const size = body.length.toString(16)
  const text = body.toString('latin1')
  return pick(random, [
    `${size}\r\n${text}\r\n0\r\n\r\n`,
    `${size};x=${'y'.repeat(randomInt(random, 300))}\r\n${text}\r\n0\r\n\r\n`,
    `${size}\r\n${text}\r\n0\r\nTrailer: yes\r\n\r\n`,
    `zz\r\n${text}\r\n0\r\n\r\n`,
    `-1\r\n${text}`,
    `FFFFFFFFFFFFFFFFF\r\n${text}`,
    `${size}\r\n${text}x\r\n0\r\n\r\n`,
    `${size}\n${text}\n0\n\n`,
    `${size}\r\n${text.slice(1)}`,
    '0\r\n\r\n',
  ])
}

/** A draft as bytes: with a length that fits or does not, or in chunks that are well formed or are not. */
const serialize = ({ method, path, headers, body }: Draft, random: Random, key: string): string => {
  const hasLength = headers.some(([name]) => name === 'Content-Length')
  const way =
    body.length === 0 ? 'none' : pick(random, ['length', 'length', 'length', 'chunked', 'wrong', 'none'])
  const version =
    randomInt(random, 5) > 0 ? 'HTTP/1.1' : pick(random, ['HTTP/1.0', 'HTTP/9.9', 'HTP/1.1', ''])
  const lines = [
    `${method} ${path} ${version}`,
    ...(randomInt(random, 20) === 0 ? [] : ['Host: localhost']),
    ...(randomInt(random, 5) === 0 ? [] : [`Authorization: Bearer ${key}`]),
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(way === 'length' && !hasLength ? [`Content-Length: ${body.length}`] : []),
    ...(way === 'wrong' ? [`Content-Length: ${body.length + randomInt(random, 9) - 4}`] : []),
    ...(way === 'chunked' ? ['Transfer-Encoding: chunked'] : []),
  ]
  const end = randomInt(random, 30) === 0 ? '\n' : '\r\n'
  return lines.join(end) + end + end + (way === 'chunked' ? toChunks(body, random) : body.toString('latin1'))
}

const createRequest = (random: Random, key: string): string => {
  let draft = pick(random, drafts)
  for (let n = 1 + randomInt(random, 2); n > 0; n--) draft = pick(random, mutations)(draft, random)
  return serialize(draft, random, key)
}

/** Returns the bytes of one connection, mostly one request, sometimes several at once. */
const createBytes = (random: Random, key: string): string =>
  Array.from({ length: randomInt(random, 8) === 0 ? 2 + randomInt(random, 4) : 1 }, () =>
    createRequest(random, key),
  ).join('')

/** How the server may answer what is broken. */
const checkAnswers = (bytes: string, text: string): void => {
  const shown = (): string =>
    `${JSON.stringify(bytes.slice(0, 1500))}\n→ ${JSON.stringify(text.slice(0, 1500))}`
  let responses
  try {
    responses = parseResponses(text)
  } catch (error) {
    throw new Error(`${(error as Error).message}: ${shown()}`)
  }
  for (const { status, headers, body } of responses) {
    assert.ok(status < 500, `a server error: ${shown()}`)
    assert.equal(headers.get('x-content-type-options'), 'nosniff', shown())
    assert.ok(headers.has('cache-control'), shown())
    if (status < 400 || body === '' || !/json/.test(headers.get('content-type') ?? '')) continue
    assert.match(body, /^{.*"(?:detail|message)":".+"/s, shown())
  }
}

const CONCURRENCY = 16

/**
 * Sends `count` connections full of broken requests, of every route and in every way, and checks the answers.
 * `isAlive` tells whether the server is still there; it is asked now and then.
 */
export const fuzzSockets = async (
  url: string,
  key: string,
  { count, seed, isAlive }: { count: number; seed: number; isAlive: () => Promise<boolean> },
): Promise<void> => {
  let next = 0
  const worker = async (): Promise<void> => {
    for (let n = next++; n < count; n = next++) {
      const random = createRandom(deriveSeed(seed, n))
      const bytes = createBytes(random, key)
      const way = randomInt(random, 6)
      const { text } = await exchange(url, bytes, {
        abortAfter: way === 0 ? randomInt(random, bytes.length + 1) : undefined,
        halfClose: way === 1,
        quietMs: 150,
      })
      checkAnswers(bytes, way === 0 ? '' : text)
      if (n % 100 === 0) assert.ok(await isAlive(), `the server is gone after request ${n} of seed ${seed}`)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  assert.ok(await isAlive(), `the server is gone; seed ${seed}`)
}

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { brotliCompressSync, createGzip, deflateSync, gzipSync } from 'node:zlib'
import { sendRequest } from '../../cli/transport.ts'
import { listen, useFakeServer } from './fake-server.ts'

const fake = useFakeServer()
const answer = JSON.stringify({ data: [{ id: '1', name: 'Größe 漢字 😀' }], next_cursor: null })

describe('CLI: transport', { concurrency: true }, () => {
  const servers: Server[] = []
  const serve = async (listener: RequestListener): Promise<string> => {
    const server = createServer(listener)
    servers.push(server)
    await listen(server)
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  after(() => {
    for (const server of servers) {
      server.closeAllConnections()
      server.close()
    }
  })
  const list = async (listener: RequestListener) =>
    await fake.wcrm(['groups', 'list', '--json', '--url', await serve(listener)])

  for (const [coding, encode] of [
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['gzip, br', (text: string) => brotliCompressSync(gzipSync(text))],
  ] as const)
    it(`an answer in ${coding}`, async () => {
      const { exit, stdout } = await list((_request, response) =>
        response.setHeader('Content-Encoding', coding).end(encode(answer)),
      )
      assert.deepEqual([exit, stdout], [0, `${answer}\n`])
    })

  it('a compressed stream is read as it comes', async () => {
    let end = (): unknown => undefined
    const url = await serve((_request, response) => {
      const gzip = createGzip()
      gzip.pipe(response.setHeader('Content-Encoding', 'gzip'))
      gzip.write('first')
      gzip.flush()
      end = () => gzip.end('second')
    })
    const { body } = await sendRequest({}, url, { redirect: 'error' })
    const chunks: string[] = []
    for await (const chunk of body!) {
      chunks.push(Buffer.from(chunk).toString())
      if (chunks.length === 1) end()
    }
    assert.deepEqual(chunks, ['first', 'second'])
  })

  it('a redirection is not followed: the key is for this server', async () => {
    const { exit, stderr } = await list((_request, response) =>
      response.writeHead(302, { Location: fake.url }).end(),
    )
    assert.equal(exit, 8)
    assert.match(stderr, /unexpected redirect/)
    assert.equal(fake.requests.length, 0)
  })

  it('wcrm api: a redirection of a proxy to another address is named, and not followed', async () => {
    const url = await serve((request, response) =>
      response.writeHead(308, { Location: `${fake.url}${request.url}` }).end(),
    )
    const { exit, stderr } = await fake.wcrm(['api', 'GET', '/v1/me', '--url', url])
    assert.equal(exit, 2)
    assert.ok(stderr.includes(fake.url), stderr)
    assert.equal(fake.requests.length, 0)
  })

  it('an answer that is cut is no answer', async () => {
    const { exit, stdout, stderr } = await list((_request, response) => {
      response.writeHead(200, { 'Content-Length': 1000 }).write('{"data":[')
      setImmediate(() => response.destroy())
    })
    assert.deepEqual([exit, stdout], [8, ''])
    assert.match(stderr, /ECONNRESET/)
  })

  it('a signal ends the wait for an answer, and the answer', async () => {
    const wait = await serve(() => {})
    const part = await serve((_request, response) => response.write('part'))
    const reason = new Error('enough')
    await assert.rejects(sendRequest({}, wait, { redirect: 'error', signal: AbortSignal.timeout(200) }), {
      name: 'TimeoutError',
    })
    const controller = new AbortController()
    const response = await sendRequest({}, part, { redirect: 'error', signal: controller.signal })
    controller.abort(reason)
    await assert.rejects(response.text(), reason)
    await assert.rejects(
      sendRequest({}, part, { redirect: 'error', signal: AbortSignal.abort(reason) }),
      reason,
    )
  })

  const listGroups = (env: Record<string, string>, ...flags: string[]) =>
    promisify(execFile)(process.execPath, ['bin/wcrm.js', 'groups', 'list', ...flags], {
      env: {
        PATH: process.env['PATH'],
        HOME: '/nonexistent',
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
        WCRM_URL: 'http://wcrm.invalid',
        WCRM_API_KEY: 'wc_test_key',
        ...env,
      },
    })

  it('a proxy of the environment is used where Node is told to', async () => {
    const seen: string[] = []
    const proxy = await serve((request, response) => {
      seen.push(request.url!)
      response.end(answer)
    })
    const { stdout } = await listGroups({ NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxy }, '--json')
    assert.deepEqual([stdout, seen], [`${answer}\n`, ['http://wcrm.invalid/v1/ops/crm_list_groups']])
  })

  it('where a server cannot be reached, the proxy is named, or that it is not used', async () => {
    const HTTP_PROXY = 'http://ada:secret@127.0.0.1:1'
    const failWith = async (env: Record<string, string>): Promise<string> =>
      await listGroups(env).then(
        () => assert.fail('it was reached'),
        ({ stderr }: { stderr: string }) => stderr,
      )
    for (const [env, hint] of [
      [{ HTTP_PROXY, NODE_USE_ENV_PROXY: '1' }, 'Requests go through the proxy of HTTP_PROXY (127.0.0.1:1)'],
      [{ HTTP_PROXY }, 'HTTP_PROXY is set, but used only with NODE_USE_ENV_PROXY=1.'],
      [{ HTTP_PROXY, NODE_USE_ENV_PROXY: '1', NO_PROXY: '.invalid' }, '--url or WCRM_URL.'],
    ] as const) {
      const stderr = await failWith(env)
      assert.ok(stderr.includes(hint), stderr)
      assert.doesNotMatch(stderr, /secret/)
    }
  })
})

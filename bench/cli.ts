import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { median } from './statistics.ts'

/**
 * How long client commands take, as multiples of `node -e 0` of the same Node: interleaved runs, by processor time
 * (median) and by elapsed time (least). Measures an installed client:
 * `npm run bench:cli -- --launcher PREFIX/node_modules/wcrm/bin/wcrm.js --node PATH --runs 60`.
 */
const { values } = parseArgs({
  options: {
    node: { type: 'string', default: process.execPath },
    launcher: { type: 'string', default: fileURLToPath(new URL('../bin/wcrm.js', import.meta.url)) },
    runs: { type: 'string', default: '40' },
  },
})

const home = mkdtempSync(join(tmpdir(), 'wcrm-bench-cli-'))

/** Answers every call with one group, in a thread of its own: the runs below block this one. */
const startServer = async (): Promise<{ server: Worker; port: number }> => {
  const server = new Worker(
    `const { createServer } = require('node:http')
    const body = JSON.stringify({ data: [{ id: 1, name: 'VIP', members: 2 }], next_cursor: null })
    createServer((_, response) => response.setHeader('content-type', 'application/json').end(body))
      .listen(0, '127.0.0.1', function () {
        require('node:worker_threads').parentPort.postMessage(this.address().port)
      })`,
    { eval: true },
  )
  const port = await new Promise<number>((resolve) => {
    server.once('message', resolve)
  })
  return { server, port }
}

/** Times in milliseconds. */
type Sample = { readonly cpu: number; readonly wall: number }

const measure = (port: number, words: readonly string[]): Sample => {
  const { status, stderr } = spawnSync(
    'bash',
    ['-c', `TIMEFORMAT='%3U %3S %3R'; time "$@" > /dev/null`, 'bash', values.node, ...words],
    {
      encoding: 'utf8',
      env: {
        PATH: process.env['PATH'],
        HOME: home,
        NODE_COMPILE_CACHE: join(home, 'cache'),
        WCRM_URL: `http://127.0.0.1:${port}`,
        WCRM_API_KEY: `wc_test_${'a'.repeat(40)}`,
      },
    },
  )
  if (status !== 0) throw new Error(`${words.join(' ')} exited with ${status}: ${stderr}`)
  const [user = 0, system = 0, wall = 0] = stderr.trim().split('\n').at(-1)!.split(' ').map(Number)
  return { cpu: (user + system) * 1000, wall: wall * 1000 }
}

const { server, port } = await startServer()
const commands = new Map([
  ['node -e 0', ['-e', '0']],
  ['--help', [values.launcher, '--help']],
  ['groups list', [values.launcher, 'groups', 'list']],
])
const samples = new Map([...commands.keys()].map((name) => [name, [] as Sample[]]))
// The first runs fill the compile cache.
for (const words of [...commands.values(), ...commands.values()]) measure(port, words)
for (let i = 0; i < Number(values.runs); i += 1)
  for (const [name, words] of commands) samples.get(name)!.push(measure(port, words))
await server.terminate()
rmSync(home, { recursive: true })

const summary = (name: string): Sample => ({
  cpu: median(samples.get(name)!.map(({ cpu }) => cpu)),
  wall: Math.min(...samples.get(name)!.map(({ wall }) => wall)),
})
const base = summary('node -e 0')
const targets: Readonly<Record<string, number>> = { '--help': 2, 'groups list': 3 }
for (const name of commands.keys()) {
  const { cpu, wall } = summary(name)
  console.log(
    `${name.padEnd(12)} processor ${cpu.toFixed(1)} ms (${(cpu / base.cpu).toFixed(2)}x), ` +
      `elapsed ${wall.toFixed(1)} ms (${(wall / base.wall).toFixed(2)}x)` +
      (targets[name] ? `; at most ${targets[name]}x` : ''),
  )
}

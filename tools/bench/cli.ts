import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { buildPackage } from './launchers.ts'
import { median } from './statistics.ts'

/**
 * How long client commands take, as multiples of `node -e 0` of the same Node: interleaved runs, by processor time
 * (median) and by elapsed time (least). Measures the package that it builds, or an installed one:
 * `npx node tools/bench/cli.ts --launcher PREFIX/node_modules/wcrm/bin/wcrm.js --node PATH --runs 60`. `--gate` fails
 * when the processor time of a command is above its limit in each of three rounds.
 */
const { values } = parseArgs({
  options: {
    node: { type: 'string', default: process.execPath },
    launcher: { type: 'string' },
    runs: { type: 'string', default: '40' },
    gate: { type: 'boolean', default: false },
  },
})

const ROUNDS = 3

const folder = mkdtempSync(join(tmpdir(), 'wcrm-bench-cli-'))
const launcher = values.launcher ?? buildPackage(folder)

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
        HOME: folder,
        WCRM_URL: `http://127.0.0.1:${port}`,
        WCRM_API_KEY: `wc_test_${'a'.repeat(40)}`,
      },
    },
  )
  if (status !== 0) throw new Error(`${words.join(' ')} exited with ${status}: ${stderr}`)
  const [user = 0, system = 0, wall = 0] = stderr.trim().split('\n').at(-1)!.split(' ').map(Number)
  return { cpu: (user + system) * 1000, wall: wall * 1000 }
}

const BASE = ['-e', '0']

/** `target`: at most so many times the processor time of an empty program; `limit`: what the gate takes. */
const commands = [
  { name: '--help', words: [launcher, '--help'], target: 2, limit: 2 },
  { name: 'groups list', words: [launcher, 'groups', 'list'], target: 3, limit: 2.7 },
]

type Command = (typeof commands)[number]

const summarize = (samples: readonly Sample[]): Sample => ({
  cpu: median(samples.map(({ cpu }) => cpu)),
  wall: Math.min(...samples.map(({ wall }) => wall)),
})

/** Measures one round. Returns the commands that took more than their limit. */
const runRound = (port: number, measured: readonly Command[]): Command[] => {
  const all = [BASE, ...measured.map(({ words }) => words)]
  const samples = all.map((): Sample[] => [])
  for (let i = 0; i < Number(values.runs); i += 1)
    for (const [at, words] of all.entries()) samples[at]!.push(measure(port, words))
  const [base, ...results] = samples.map(summarize)
  console.log(`node -e 0    processor ${base!.cpu.toFixed(1)} ms, elapsed ${base!.wall.toFixed(1)} ms`)
  for (const [at, { cpu, wall }] of results.entries()) {
    const { name, target } = measured[at]!
    console.log(
      `${name.padEnd(12)} processor ${cpu.toFixed(1)} ms (${(cpu / base!.cpu).toFixed(2)}x), ` +
        `elapsed ${wall.toFixed(1)} ms (${(wall / base!.wall).toFixed(2)}x); at most ${target}x`,
    )
  }
  return measured.filter(({ limit }, at) => results[at]!.cpu > limit * base!.cpu)
}

const { server, port } = await startServer()
// The first runs fill the compile cache.
for (const { words } of [...commands, ...commands]) measure(port, words)
let slow: Command[] = commands
for (let round = 0; round < (values.gate ? ROUNDS : 1) && slow.length > 0; round += 1)
  slow = runRound(port, slow)
await server.terminate()
rmSync(folder, { recursive: true })
if (values.gate && slow.length > 0) {
  for (const { name, limit } of slow) console.log(`too slow: ${name}, above ${limit}x in each round`)
  process.exitCode = 1
}

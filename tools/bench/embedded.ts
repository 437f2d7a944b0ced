import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import { readResidentMemoryMb, type RunningServer, startEmbedded } from './processes.ts'
import { median } from './statistics.ts'
import { requireWrk, runWrkRound, writeRequests } from './wrk.ts'

/**
 * Measures the service on its embedded database as `npm start` runs it: the first and the second start, the
 * memory, and searches by name among contacts of the demo. Needs Linux and wrk.
 */
const { values: flags } = parseArgs({
  options: {
    contacts: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
  },
})
const CONNECTIONS = 16
const NAMES = ['ada', 'smith', 'maria', 'lee', 'anna', 'garcia', 'paul', 'kim', 'wang', 'noah', 'lena', 'max']

const launcher = fileURLToPath(new URL('../../bin/wcrm.js', import.meta.url))

const print = (name: string, value: string, target = ''): void => {
  process.stdout.write(`${name.padEnd(36)} ${value.padStart(24)}  ${target}\n`)
}

/** Processor time of a process so far, in milliseconds. */
const readProcessorMs = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

const measureFolderMb = (folder: string): number =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => statSync(join(folder, name)))
    .reduce((bytes, stats) => bytes + (stats.isFile() ? stats.blocks * 512 : 0), 0) / 1e6

/** Starts the server, and waits until it is ready; prints how long that took. */
const startMeasured = async (name: string, dataDir: string, target: string): Promise<RunningServer> => {
  const startedAt = performance.now()
  const server = await startEmbedded(dataDir, launcher)
  const { status } = await fetch(`${server.url}/readyz`)
  if (status !== 200) throw new Error(`not ready: ${status}`)
  const seconds = (performance.now() - startedAt) / 1000
  print(name, `${seconds.toFixed(2)} s (${(readProcessorMs(server.pid) / 1000).toFixed(2)} s of CPU)`, target)
  return server
}

const SETTLE_MS = 120_000

/** Waits until the jobs after a start are done, such as the index of the demo's messages; prints how long that took. */
const settle = async ({ pid }: RunningServer): Promise<void> => {
  const startedAt = performance.now()
  for (let ms = Infinity; ms > 100 && performance.now() - startedAt < SETTLE_MS;) {
    const before = readProcessorMs(pid)
    await pause(2000)
    ms = readProcessorMs(pid) - before
  }
  print('messages indexed after', `${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
}

const measureSearches = async (server: RunningServer, folder: string, key: string): Promise<void> => {
  const requests = NAMES.map((name) => ({
    path: `/v1/contacts?query=${name}`,
    headers: { Authorization: `Bearer ${key}` },
  }))
  const file = writeRequests(folder, 'search', requests)
  const round = { seconds: Number(flags.seconds), connections: CONNECTIONS, base: 0 }
  await runWrkRound(server.url, file, round)
  const rates: number[] = []
  const cpuMs: number[] = []
  const memory: number[] = []
  for (let n = 0; n < Number(flags.rounds); n++) {
    const before = readProcessorMs(server.pid)
    const sample = await runWrkRound(server.url, file, round)
    rates.push(sample.rate)
    cpuMs.push((readProcessorMs(server.pid) - before) / sample.requests)
    memory.push(readResidentMemoryMb(server.pid)!)
  }
  print(
    'search by name',
    `${median(rates).toFixed(0)}/s (best ${Math.max(...rates).toFixed(0)}/s)`,
    'at least 600/s',
  )
  print('processor time of a search', `${median(cpuMs).toFixed(2)} ms`)
  print('resident under this load', `${Math.max(...memory).toFixed(0)} MB`, 'below 280 MB')
}

const main = async (folder: string): Promise<void> => {
  const dataDir = join(folder, 'data')
  const first = await startMeasured('first start, with the demo', dataDir, 'at most 4 s')
  const key = first.api_key!
  await first.stop()
  const demoAt = performance.now()
  const args = ['admin', 'demo', '--data', dataDir, '--contacts', flags.contacts]
  await promisify(execFile)(process.execPath, [launcher, ...args])
  print(`admin demo, ${flags.contacts} contacts`, `${((performance.now() - demoAt) / 1000).toFixed(1)} s`)
  print('on disk', `${measureFolderMb(dataDir).toFixed(0)} MB`)
  const server = await startMeasured('second start', dataDir, 'at most 2 s')
  try {
    await settle(server)
    await measureSearches(server, folder, key)
  } finally {
    await server.stop()
  }
}

requireWrk()
const folder = mkdtempSync(join(tmpdir(), 'wcrm-bench-'))
try {
  await main(folder)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

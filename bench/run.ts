import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { postgresBinaries, startCluster } from '../scripts/cluster.ts'
import { type BenchCase, createCases } from './cases.ts'
import { type Dataset, dropDatabase, fillDatabase } from './data.ts'
import { readResidentMemoryMb, type RunningServer, startBareServer, startProduct } from './processes.ts'
import { type WrkRequest, requireWrk, runWrkRound, type WrkSample, writeRequests } from './wrk.ts'

/**
 * The product side by side with a bare server on the same database, in alternating short rounds. Prints
 * medians and ratios.
 */
const { values: flags } = parseArgs({
  options: {
    contacts: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    connections: { type: 'string', default: '16' },
    only: { type: 'string' },
    'database-url': { type: 'string' },
    profile: { type: 'string' },
    source: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const rounds = Number(flags.rounds)
const seconds = Number(flags.seconds)
const connections = Number(flags.connections)
const root = fileURLToPath(new URL('..', import.meta.url))
const say = (text: string): void => void process.stderr.write(`${text}\n`)

const median = (numbers: number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]!

/** The package as it is published: `bin/` beside `dist/`, without sources. */
const builtLauncher = (folder: string): string => {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
  mkdirSync(join(folder, 'package'))
  cpSync(join(root, 'bin'), join(folder, 'package', 'bin'), { recursive: true })
  cpSync(join(root, 'package.json'), join(folder, 'package', 'package.json'))
  symlinkSync(join(root, 'dist'), join(folder, 'package', 'dist'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'package', 'node_modules'))
  return join(folder, 'package', 'bin', 'wcrm.js')
}

type Line = {
  contacts: number
  name: string
  against: string
  product: WrkSample
  other: WrkSample
  ratio: number
  target: number | undefined
}

/** Numbers from here are phones of a good length, and none that the filled database has (countries.ts). */
let fresh = 33_700_000_000

const measure = async (
  folder: string,
  { name, product, against, target }: BenchCase,
  servers: { bare: RunningServer; product: RunningServer },
  contacts: number,
): Promise<Line[]> => {
  const sides = [{ who: 'product' as const, name: 'product', requests: product }, ...against].map((side) => ({
    ...side,
    url: servers[side.who].url,
    file: writeRequests(folder, `${name} ${side.name}`, side.requests),
    samples: [] as WrkSample[],
  }))
  const once = async (side: (typeof sides)[number], long: number) =>
    await runWrkRound(side.url, side.file, { seconds: long, connections, base: (fresh += 1_000_000) })
  for (const side of sides) {
    await requireSuccess(side.url, side.requests[0]!)
    await once(side, 2)
  }
  for (let i = 0; i < rounds; i++) for (const side of sides) side.samples.push(await once(side, seconds))
  const medians = sides.map(({ samples }): WrkSample => ({
    rate: median(samples.map((s) => s.rate)),
    p50: median(samples.map((s) => s.p50)),
    p99: median(samples.map((s) => s.p99)),
  }))
  return against.map((side, i) => ({
    contacts,
    name,
    against: side.name,
    product: medians[0]!,
    other: medians[i + 1]!,
    ratio: medians[0]!.rate / medians[i + 1]!.rate,
    target: side.judged ? target : undefined,
  }))
}

const requireSuccess = async (
  url: string,
  { method = 'GET', path, headers = {}, body }: WrkRequest,
): Promise<void> => {
  const answer = await fetch(url + path, {
    method,
    headers,
    ...(body ? { body: body.replace('{n}', String(fresh++)) } : {}),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`)
  if (flags.profile) say(`${method} ${path.slice(0, 60)}  ${text.length} bytes`)
}

const line = ({ contacts, name, against, product, other, ratio, target }: Line): string => {
  const show = (s: WrkSample) =>
    `${Math.round(s.rate).toString().padStart(6)} ${s.p50.toFixed(2).padStart(7)} ${s.p99.toFixed(2).padStart(7)}`
  const verdict = target === undefined ? '' : ratio >= target ? `≥ ${target}` : `MISSES ${target}`
  return `${contacts.toString().padStart(8)}  ${name.padEnd(14)} ${show(product)}   ${against.padEnd(16)} ${show(other)}   ${ratio.toFixed(2)}  ${verdict}`
}

const head = `contacts  what          product/s     p50     p99   against             req/s     p50     p99   ratio  target`

const coldStart = (launcher: string): { wcrm: number; node: number; ratio: number } => {
  const time = (args: string[]): number => {
    const begun = performance.now()
    execFileSync(process.execPath, args, { stdio: 'ignore' })
    return performance.now() - begun
  }
  const pairs = Array.from(
    { length: 15 },
    () => [time([launcher, '--help']), time(['-e', '0'])] as const,
  ).slice(2)
  const wcrm = median(pairs.map(([a]) => a))
  const node = median(pairs.map(([, b]) => b))
  return { wcrm, node, ratio: wcrm / node }
}

const benchmark = async (
  dataset: Dataset,
  launcher: string,
  folder: string,
): Promise<{ lines: Line[]; memory: number | undefined }> => {
  const bare = await startBareServer(dataset.databaseUrl, dataset.workspaceId)
  const product = await startProduct(dataset.databaseUrl, launcher, flags.profile)
  let memory: number | undefined
  const watch = setInterval(() => {
    memory = Math.max(memory ?? 0, readResidentMemoryMb(product.pid) ?? 0) || undefined
  }, 250)
  const lines: Line[] = []
  try {
    for (const one of createCases(dataset).filter(
      (c) => !flags.only || flags.only.split(',').includes(c.name),
    )) {
      for (const measured of await measure(folder, one, { bare, product }, dataset.contacts)) {
        lines.push(measured)
        say(line(measured))
      }
    }
  } finally {
    clearInterval(watch)
    await product.stop()
    await bare.stop()
  }
  return { lines, memory }
}

const main = async (): Promise<void> => {
  requireWrk()
  const binaries = postgresBinaries()
  if (!flags['database-url'] && !binaries)
    throw new Error(
      'no PostgreSQL of version 15 or newer is installed here; install one, or pass --database-url',
    )
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-bench-'))
  const cluster = flags['database-url']
    ? undefined
    : await startCluster(binaries!, {
        shared_buffers: '512MB',
        max_wal_size: '8GB',
        checkpoint_timeout: '30min',
      })
  const adminUrl = flags['database-url'] ?? cluster!.url
  try {
    const launcher = flags.source ? join(root, 'bin', 'wcrm.js') : builtLauncher(folder)
    const cold = flags.only ? undefined : coldStart(launcher)
    if (cold)
      say(
        `wcrm --help ${cold.wcrm.toFixed(0)} ms, node -e 0 ${cold.node.toFixed(0)} ms: ${cold.ratio.toFixed(2)} (at most 2.5)`,
      )
    const all: Line[] = []
    for (const contacts of flags.contacts.split(',').map(Number)) {
      say(`filling a database with ${contacts} contacts`)
      const dataset = await fillDatabase(adminUrl, contacts)
      try {
        say(head)
        const { lines, memory } = await benchmark(dataset, launcher, folder)
        all.push(...lines)
        if (memory) say(`memory of the product under load, at most: ${memory.toFixed(0)} MB (below 200)`)
      } finally {
        await dropDatabase(adminUrl, dataset)
      }
    }
    if (flags.json) process.stdout.write(`${JSON.stringify({ cold, lines: all })}\n`)
    else process.stdout.write(`\n${head}\n${all.map(line).join('\n')}\n`)
  } finally {
    cluster?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

await main()

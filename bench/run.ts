import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type BenchCase, createCases } from './cases.ts'
import { type Dataset, fillDatabase } from './data.ts'
import { dropBenchDatabase, withPostgres } from './databases.ts'
import { readResidentMemoryMb, type RunningServer, startBareServer, startProduct } from './processes.ts'
import { median } from './statistics.ts'
import { type WrkRequest, requireWrk, runWrkRound, type WrkSample, writeRequests } from './wrk.ts'

/**
 * Measures the product and a bare server on the same database, in alternating short rounds. Prints medians
 * and ratios.
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
const print = (text: string): void => void process.stderr.write(`${text}\n`)

/** Builds the package as it is published: `bin/` beside `dist/`, without sources. Returns its launcher. */
const buildPackage = (folder: string): string => {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
  mkdirSync(join(folder, 'package'))
  cpSync(join(root, 'bin'), join(folder, 'package', 'bin'), { recursive: true })
  cpSync(join(root, 'package.json'), join(folder, 'package', 'package.json'))
  symlinkSync(join(root, 'dist'), join(folder, 'package', 'dist'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'package', 'node_modules'))
  return join(folder, 'package', 'bin', 'wcrm.js')
}

type ComparisonLine = {
  contacts: number
  name: string
  against: string
  product: WrkSample
  other: WrkSample
  ratio: number
  target: number | undefined
}

/** Numbers from here on are valid phones that the filled database does not have (countries.ts). */
let nextPhone = 33_700_000_000

const measure = async (
  folder: string,
  { name, product, against, target }: BenchCase,
  servers: { bare: RunningServer; product: RunningServer },
  contacts: number,
): Promise<ComparisonLine[]> => {
  const sides = [{ server: 'product' as const, name: 'product', requests: product }, ...against].map(
    (side) => ({
      ...side,
      url: servers[side.server].url,
      file: writeRequests(folder, `${name} ${side.name}`, side.requests),
      samples: [] as WrkSample[],
    }),
  )
  const runRound = async (side: (typeof sides)[number], roundSeconds: number) =>
    await runWrkRound(side.url, side.file, {
      seconds: roundSeconds,
      connections,
      base: (nextPhone += 1_000_000),
    })
  for (const side of sides) {
    await requireSuccess(side.url, side.requests[0]!)
    await runRound(side, 2)
  }
  for (let i = 0; i < rounds; i++) for (const side of sides) side.samples.push(await runRound(side, seconds))
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
    target: side.hasTarget ? target : undefined,
  }))
}

const requireSuccess = async (
  url: string,
  { method = 'GET', path, headers = {}, body }: WrkRequest,
): Promise<void> => {
  const response = await fetch(url + path, {
    method,
    headers,
    ...(body ? { body: body.replace('{n}', String(nextPhone++)) } : {}),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 500)}`)
  if (flags.profile) print(`${method} ${path.slice(0, 60)}  ${text.length} bytes`)
}

const formatLine = ({ contacts, name, against, product, other, ratio, target }: ComparisonLine): string => {
  const formatSample = ({ rate, p50, p99 }: WrkSample) =>
    `${Math.round(rate).toString().padStart(6)} ${p50.toFixed(2).padStart(7)} ${p99.toFixed(2).padStart(7)}`
  const verdict = target === undefined ? '' : ratio >= target ? `≥ ${target}` : `MISSES ${target}`
  return (
    `${contacts.toString().padStart(8)}  ${name.padEnd(14)} ${formatSample(product)}   ` +
    `${against.padEnd(16)} ${formatSample(other)}   ${ratio.toFixed(2)}  ${verdict}`
  )
}

const HEAD =
  'contacts  what          product/s     p50     p99   ' +
  'against             req/s     p50     p99   ratio  target'

const measureColdStart = (launcher: string): { wcrm: number; node: number; ratio: number } => {
  const measureMs = (args: string[]): number => {
    const startedAt = performance.now()
    execFileSync(process.execPath, args, { stdio: 'ignore' })
    return performance.now() - startedAt
  }
  const pairs = Array.from(
    { length: 15 },
    () => [measureMs([launcher, '--help']), measureMs(['-e', '0'])] as const,
  ).slice(2)
  const wcrm = median(pairs.map(([a]) => a))
  const node = median(pairs.map(([, b]) => b))
  return { wcrm, node, ratio: wcrm / node }
}

const benchmark = async (
  dataset: Dataset,
  launcher: string,
  folder: string,
): Promise<{ lines: ComparisonLine[]; memoryMb: number | undefined }> => {
  const bare = await startBareServer(dataset.databaseUrl, dataset.workspaceId)
  const product = await startProduct(dataset.databaseUrl, launcher, flags.profile)
  let memoryMb: number | undefined
  const interval = setInterval(() => {
    memoryMb = Math.max(memoryMb ?? 0, readResidentMemoryMb(product.pid) ?? 0) || undefined
  }, 250)
  const lines: ComparisonLine[] = []
  try {
    const cases = createCases(dataset).filter(
      ({ name }) => !flags.only || flags.only.split(',').includes(name),
    )
    for (const benchCase of cases) {
      for (const measured of await measure(folder, benchCase, { bare, product }, dataset.contacts)) {
        lines.push(measured)
        print(formatLine(measured))
      }
    }
  } finally {
    clearInterval(interval)
    await product.stop()
    await bare.stop()
  }
  return { lines, memoryMb }
}

const main = async (adminUrl: string, folder: string): Promise<void> => {
  const launcher = flags.source ? join(root, 'bin', 'wcrm.js') : buildPackage(folder)
  const cold = flags.only ? undefined : measureColdStart(launcher)
  if (cold)
    print(
      `wcrm --help ${cold.wcrm.toFixed(0)} ms, node -e 0 ${cold.node.toFixed(0)} ms: ` +
        `${cold.ratio.toFixed(2)} (at most 2.5)`,
    )
  const all: ComparisonLine[] = []
  for (const contacts of flags.contacts.split(',').map(Number)) {
    print(`filling a database with ${contacts} contacts`)
    const dataset = await fillDatabase(adminUrl, contacts)
    try {
      print(HEAD)
      const { lines, memoryMb } = await benchmark(dataset, launcher, folder)
      all.push(...lines)
      if (memoryMb) print(`memory of the product under load, at most: ${memoryMb.toFixed(0)} MB (below 200)`)
    } finally {
      await dropBenchDatabase(adminUrl, dataset)
    }
  }
  if (flags.json) process.stdout.write(`${JSON.stringify({ cold, lines: all })}\n`)
  else process.stdout.write(`\n${HEAD}\n${all.map(formatLine).join('\n')}\n`)
}

requireWrk()
const folder = mkdtempSync(join(tmpdir(), 'wcrm-bench-'))
try {
  await withPostgres(flags['database-url'], '512MB', (adminUrl) => main(adminUrl, folder))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

import { parseArgs } from 'node:util'
import { type BurstRound, openBursts } from './bursts.ts'
import { type BenchCase, createCases } from './cases.ts'
import type { Servers } from './comparison.ts'
import { type Dataset, fillDatabase, prepareForCases } from './data.ts'
import { withPostgres } from './databases.ts'
import { sourceLauncher } from './launchers.ts'
import { startBareServer, startProduct } from './processes.ts'
import { openProcessorReader, type ProcessorReader } from './processor.ts'
import { readRatios, recordRatio, type RecordedRatios, writeRatios } from './recorded-ratios.ts'
import { requireSameAnswers } from './same-answers.ts'

/**
 * Fails when the product became slower against the bare server than `recorded-ratios.json` says
 * (docs/decisions/0026-a-gate-for-speed.md). A ratio is the processor time per request of the bare server
 * divided by that of the product, each with its PostgreSQL processes. A case fails when its ratio is below
 * 0.85 of the recorded one, or below the limit of the case, in each of three rounds. A case that is too slow is judged
 * once more after all others, with servers that were started anew, and fails there. `--record` raises the ratios that
 * were beaten, in the slowest of five rounds; `--record=all` replaces all of them.
 */
const { values: flags } = parseArgs({
  // An option of parseArgs has a value or has none.
  args: process.argv.slice(2).map((arg) => (arg === '--record' ? '--record=beaten' : arg)),
  options: {
    record: { type: 'string' },
    only: { type: 'string' },
    contacts: { type: 'string', default: '5000' },
    'database-url': { type: 'string' },
  },
})
const LEAST_SHARE = 0.85
/** Pairs of bursts in each round: the first one passes most cases, the others look more closely. */
const ROUNDS = [20, 30, 30]
const RECORDED_ROUNDS = [20, 20, 20, 20, 20]
const startedAt = performance.now()
const print = (text: string): void => void process.stdout.write(`${text}\n`)

const describeRounds = (rounds: readonly BurstRound[]): string => {
  const { product, other, throughput } = rounds.at(-1)!
  return (
    `${rounds.map(({ processor }) => processor.toFixed(2)).join(' ')} ` +
    `(${Math.round(product)} and ${Math.round(other)} µs; throughput ${throughput.toFixed(2)})`
  )
}

type RunRound = (bursts: number) => Promise<BurstRound>

/** Runs rounds until one is fast enough, or all of them were too slow. */
const isFastEnough = async (
  { name, least: limit = 0 }: BenchCase,
  runRound: RunRound,
  recorded: number,
): Promise<boolean> => {
  const least = Math.max(recorded * LEAST_SHARE, limit)
  const rounds: BurstRound[] = []
  for (const bursts of ROUNDS) {
    rounds.push(await runRound(bursts))
    if (rounds.at(-1)!.processor >= least) break
  }
  const isFast = rounds.at(-1)!.processor >= least
  print(
    `${isFast ? 'ok  ' : 'FAIL'}  ${name.padEnd(17)} ` +
      `recorded ${recorded.toFixed(2)}, at least ${least.toFixed(2)}, measured ${describeRounds(rounds)}`,
  )
  return isFast
}

const record = async (name: string, runRound: RunRound, recorded: RecordedRatios): Promise<void> => {
  const rounds: BurstRound[] = []
  for (const bursts of RECORDED_ROUNDS) rounds.push(await runRound(bursts))
  const ratio = Math.min(...rounds.map(({ processor }) => processor))
  const outcome = recordRatio(recorded, name, ratio, flags.record === 'all')
  print(`${outcome}  ${name.padEnd(17)} ${ratio.toFixed(2)}: ${describeRounds(rounds)}`)
}

/** Returns the cases that were too slow. */
const runCases = async (
  cases: readonly BenchCase[],
  dataset: Dataset,
  servers: Servers,
  reader: ProcessorReader,
): Promise<BenchCase[]> => {
  const recorded = readRatios()
  const tooSlow: BenchCase[] = []
  for (const benchCase of cases) {
    const { name } = benchCase
    await requireSameAnswers(benchCase, servers, dataset)
    const { warmUp, runRound, close } = await openBursts(benchCase, servers, reader)
    await warmUp()
    const ratio = recorded[name]?.ratio
    if (flags.record) await record(name, runRound, recorded)
    else if (ratio === undefined) throw new Error(`${name} has no recorded ratio: run with --record`)
    else if (!(await isFastEnough(benchCase, runRound, ratio))) tooSlow.push(benchCase)
    close()
  }
  if (flags.record) writeRatios(recorded)
  return tooSlow
}

const main = async (adminUrl: string): Promise<void> => {
  const dataset = await fillDatabase(adminUrl, Number(flags.contacts))
  await prepareForCases(dataset.databaseUrl, dataset.workspaceId)
  const reader = await openProcessorReader(dataset.databaseUrl)
  if (!reader) throw new Error('The gate needs Linux, and PostgreSQL on this machine.')
  const withServers = async (cases: readonly BenchCase[]): Promise<BenchCase[]> => {
    const bare = await startBareServer(dataset.databaseUrl, dataset.workspaceId)
    const product = await startProduct(dataset.databaseUrl, sourceLauncher)
    print(`the product from source, ready after ${seconds()} s`)
    try {
      return await runCases(cases, dataset, { bare, product }, reader)
    } finally {
      await product.stop()
      await bare.stop()
    }
  }
  try {
    const only = flags.only?.split(',')
    const cases = createCases(dataset).filter(({ name }) =>
      only ? only.includes(name) : name !== 'no query',
    )
    const tooSlow = await withServers(cases)
    const failed = tooSlow.length > 0 ? await withServers(tooSlow) : []
    const names = failed.map(({ name }) => name).join(', ')
    print(`${failed.length === 0 ? 'passed' : `too slow: ${names}`}, ${seconds()} s`)
    if (failed.length > 0) process.exitCode = 1
  } finally {
    await reader.close()
  }
}

const seconds = (): string => ((performance.now() - startedAt) / 1000).toFixed(0)

// A vacuum that runs in some of the rounds would make them slower.
await withPostgres(flags['database-url'], '512MB', main, { autovacuum: 'off' })

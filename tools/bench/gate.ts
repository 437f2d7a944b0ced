import { parseArgs } from 'node:util'
import { type BurstRound, openBursts } from './bursts.ts'
import { isQuiet, measureCacheNoise } from './cache-noise.ts'
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
 * 0.85 of the recorded one, or below the limit of the case, in each of three rounds. A slow round does not count while
 * other virtual machines used the caches: a case without three other rounds is reported as not judged. A case that
 * is too slow is judged once more after all others, with servers that were started anew, and fails there. `--record`
 * raises the ratios that were beaten, in the slowest of five rounds; `--record=all` replaces all of them.
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
/** Maximum rounds of a case, including those that do not count. */
const MAX_ROUNDS = 6
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

/** On a quiet machine the yardstick of a case takes the bare server six times as long as the request of the case. */
const STRAINED_FACTOR = 8
const STRAIN_PAIRS = 4

/**
 * Measures how many times as long the yardstick of a case takes the bare server as the request of the case, which is
 * the only one of both that fits into the first levels of the caches. It also detects use of what `measureCacheNoise`
 * does not measure, such as the instruction cache.
 */
const createStrainMeter = async (
  { other, yardstick }: BenchCase,
  servers: Servers,
  reader: ProcessorReader,
): Promise<{ isStrained: () => Promise<boolean>; close: () => void }> => {
  if (!yardstick) return { isStrained: async () => false, close: () => {} }
  const sides = { product: other, other: { ...other, requests: yardstick } }
  const { warmUp, runRound, close } = await openBursts(sides, servers, reader)
  await warmUp()
  return { isStrained: async () => (await runRound(STRAIN_PAIRS)).processor > STRAINED_FACTOR, close }
}

type Verdict = 'ok' | 'too slow' | 'not judged'

/** Runs rounds until one is fast enough, or enough of those that count were too slow. */
const judge = async (
  { name, least: limit = 0 }: BenchCase,
  { runRound, isStrained }: { runRound: RunRound; isStrained: () => Promise<boolean> },
  recorded: number,
): Promise<Verdict> => {
  const least = Math.max(recorded * LEAST_SHARE, limit)
  const rounds: BurstRound[] = []
  const noises = [measureCacheNoise()]
  let slow = 0
  let verdict: Verdict | undefined
  while (!verdict) {
    rounds.push(await runRound(ROUNDS[slow]!))
    noises.push(measureCacheNoise())
    const isSlow = rounds.at(-1)!.processor < least
    if (isSlow && noises.slice(-2).every(isQuiet) && !(await isStrained())) slow++
    if (!isSlow) verdict = 'ok'
    else if (slow === ROUNDS.length) verdict = 'too slow'
    else if (rounds.length === MAX_ROUNDS) verdict = 'not judged'
  }
  print(
    `${{ ok: 'ok  ', 'too slow': 'FAIL', 'not judged': '?   ' }[verdict]}  ${name.padEnd(17)} ` +
      `recorded ${recorded.toFixed(2)}, at least ${least.toFixed(2)}, measured ${describeRounds(rounds)}` +
      (verdict === 'not judged' ? `; delays of the cache ${noises.map((n) => n.toFixed(0)).join(' ')}` : ''),
  )
  return verdict
}

const record = async (name: string, runRound: RunRound, recorded: RecordedRatios): Promise<void> => {
  const rounds: BurstRound[] = []
  for (const bursts of RECORDED_ROUNDS) rounds.push(await runRound(bursts))
  const ratio = Math.min(...rounds.map(({ processor }) => processor))
  const outcome = recordRatio(recorded, name, ratio, flags.record === 'all')
  print(`${outcome}  ${name.padEnd(17)} ${ratio.toFixed(2)}: ${describeRounds(rounds)}`)
}

/** Cases that are too slow, and those that could not be judged. */
type Doubts = Record<Exclude<Verdict, 'ok'>, BenchCase[]>

const runCases = async (
  cases: readonly BenchCase[],
  dataset: Dataset,
  servers: Servers,
  reader: ProcessorReader,
): Promise<Doubts> => {
  const recorded = readRatios()
  const found: Doubts = { 'too slow': [], 'not judged': [] }
  for (const benchCase of cases) {
    const { name } = benchCase
    await requireSameAnswers(benchCase, servers, dataset)
    const other = { ...benchCase.other, requests: benchCase.yardstick ?? benchCase.other.requests }
    const { warmUp, runRound, close } = await openBursts({ ...benchCase, other }, servers, reader)
    await warmUp()
    const ratio = recorded[name]?.ratio
    if (flags.record) await record(name, runRound, recorded)
    else if (ratio === undefined) throw new Error(`${name} has no recorded ratio: run with --record`)
    else {
      const meter = await createStrainMeter(benchCase, servers, reader)
      const verdict = await judge(benchCase, { runRound, isStrained: meter.isStrained }, ratio)
      meter.close()
      if (verdict !== 'ok') found[verdict].push(benchCase)
    }
    close()
  }
  if (flags.record) writeRatios(recorded)
  return found
}

const main = async (adminUrl: string): Promise<void> => {
  const dataset = await fillDatabase(adminUrl, Number(flags.contacts))
  await prepareForCases(dataset.databaseUrl, dataset.workspaceId)
  const reader = await openProcessorReader(dataset.databaseUrl)
  if (!reader) throw new Error('The gate needs Linux, and PostgreSQL on this machine.')
  const withServers = async (cases: readonly BenchCase[]): Promise<Doubts> => {
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
    const found = await withServers(createCases(dataset).filter(({ name }) => !only || only.includes(name)))
    const again = found['too slow']
    const { 'too slow': failed, 'not judged': unsure } =
      again.length > 0 ? await withServers(again) : { 'too slow': [], 'not judged': [] }
    unsure.push(...found['not judged'])
    if (unsure.length > 0)
      print(`others use the caches of this machine; run the gate again for: ${listNames(unsure)}`)
    print(`${failed.length === 0 ? 'passed' : `too slow: ${listNames(failed)}`}, ${seconds()} s`)
    if (failed.length > 0) process.exitCode = 1
  } finally {
    await reader.close()
  }
}

const listNames = (cases: readonly BenchCase[]): string => cases.map(({ name }) => name).join(', ')

const seconds = (): string => ((performance.now() - startedAt) / 1000).toFixed(0)

// A vacuum that runs in some of the rounds would make them slower.
await withPostgres(flags['database-url'], '512MB', main, { autovacuum: 'off' })

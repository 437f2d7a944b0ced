import { setTimeout as pause } from 'node:timers/promises'
import type { RunningServer } from './processes.ts'
import type { BenchCase, CaseSide } from './cases.ts'
import { BARE_APPLICATION } from './bare/database.ts'
import type { ProcessorReader, ProcessorTime } from './processor.ts'
import { median } from './statistics.ts'
import { runWrkRound, type WrkSample, writeRequests } from './wrk.ts'

/**
 * Requests per second, latencies in milliseconds, and processor time per request in microseconds, which is
 * undefined where the system does not tell it.
 */
export type Sample = Omit<WrkSample, 'requests'> & { processor?: ProcessorTime }
/** `throughput` and `processor`: the product's share; 1 is as fast as the other side. */
export type Ratios = { throughput: number; processor?: number }
export type Round = { product: Sample; other: Sample; ratios: Ratios }

export type Servers = Partial<Record<CaseSide['server'], RunningServer>>
export type Load = { seconds: number; connections: number }

/** The application names of the servers' connections to the database. */
export const applications: Record<CaseSide['server'], string> = {
  product: 'wcrm',
  bare: BARE_APPLICATION,
  postgraphile: 'postgraphile',
}

export const total = ({ server, database }: ProcessorTime): number => server + database

const toRatios = (product: Sample, other: Sample): Ratios => ({
  throughput: product.rate / other.rate,
  ...(product.processor && other.processor
    ? { processor: total(other.processor) / total(product.processor) }
    : {}),
})

const SETTLE_MS = 300

/** Prepares the rounds of a case; each one loads both sides, one after the other, in turns. */
export const createRounds = (
  folder: string,
  { name, product, other, writes }: BenchCase,
  servers: Servers,
  reader: ProcessorReader | undefined,
) => {
  const files = {
    product: writeRequests(folder, `${name} product`, product.requests),
    other: writeRequests(folder, `${name} other`, other.requests),
  }
  let { base } = writes ?? { base: 0 }
  const loadSide = async (side: 'product' | 'other', load: Load): Promise<Sample> => {
    const { server } = side === 'product' ? product : other
    const { url, pid } = servers[server]!
    // The server is still processing the last requests of the previous round.
    await pause(SETTLE_MS)
    const stop = await reader?.start(pid, applications[server])
    const { requests, ...sample } = await runWrkRound(url, files[side], {
      ...load,
      base,
      ...(writes?.rows ? { rows: writes.rows } : {}),
    })
    const time = await stop?.()
    // Numbers that were sent but not answered are not sent again.
    base += requests + 2 * load.connections
    if (!time) return sample
    return {
      ...sample,
      processor: { server: time.server / requests, database: time.database / requests },
    }
  }
  let count = 0
  return async (load: Load): Promise<Round> => {
    const isSwapped = count++ % 2 === 1
    const first = await loadSide(isSwapped ? 'other' : 'product', load)
    const second = await loadSide(isSwapped ? 'product' : 'other', load)
    const [ours, theirs] = isSwapped ? [second, first] : [first, second]
    return { product: ours, other: theirs, ratios: toRatios(ours, theirs) }
  }
}

const medianSample = (samples: readonly Sample[]): Sample => {
  const of = (get: (sample: Sample) => number) => median(samples.map(get))
  return {
    rate: of((s) => s.rate),
    p50: of((s) => s.p50),
    p99: of((s) => s.p99),
    ...(samples.every((s) => s.processor)
      ? { processor: { server: of((s) => s.processor!.server), database: of((s) => s.processor!.database) } }
      : {}),
  }
}

/** The medians of rounds. The ratios are medians of the rounds' ratios, each of two loads side by side. */
export const summarize = (rounds: readonly Round[]): Round => {
  const processor = rounds.flatMap(({ ratios }) => ratios.processor ?? [])
  return {
    product: medianSample(rounds.map((round) => round.product)),
    other: medianSample(rounds.map((round) => round.other)),
    ratios: {
      throughput: median(rounds.map(({ ratios }) => ratios.throughput)),
      ...(processor.length > 0 ? { processor: median(processor) } : {}),
    },
  }
}

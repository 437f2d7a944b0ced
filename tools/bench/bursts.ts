import { percentile } from './statistics.ts'
import { type BenchCase, type CaseSide, fillRequest } from './cases.ts'
import { openLoadClient } from './client.ts'
import { applications, type Servers, total } from './comparison.ts'
import type { ProcessorReader, ProcessorTime } from './processor.ts'

/** `processor` and `throughput`: the product's share, as in `comparison.ts`; times in microseconds. */
export type BurstRound = { processor: number; throughput: number; product: number; other: number }

const CONNECTIONS = 16
/** Processor time of the product in one burst. */
const BURST_US = 30_000
/**
 * The first quartile of the bursts of a side counts: on a busy machine it was interrupted least, and half as many
 * rounds are needed as with the median.
 */
const QUIET_SHARE = 0.25
/** The warm-up ends when the code is compiled, or after this time. */
const WARM_UP_REQUESTS = 10_000
const WARM_UP_MS = 2000

type Burst = { requests: number; milliseconds: number; processor: ProcessorTime }

/**
 * Opens connections to both sides of a case. A round loads them in turns with bursts of a few dozen requests,
 * so that other load on the machine affects both.
 */
export const openBursts = async (
  { product, other, writes }: Pick<BenchCase, 'product' | 'writes'> & { other: CaseSide },
  servers: Servers,
  reader: ProcessorReader,
) => {
  let { base: number } = writes ?? { base: 0 }
  const open = async ({ server, requests }: CaseSide) => {
    let at = 0
    const { url, pid } = servers[server]!
    const client = await openLoadClient(url, {
      connections: CONNECTIONS,
      next: () => {
        const request = requests[at++ % requests.length]!
        return writes ? fillRequest(request, number++, writes.rows) : request
      },
    })
    const run = async (limit: { requests?: number; milliseconds?: number }): Promise<Burst> => {
      const stop = await reader.start(pid, applications[server])
      const startedAt = performance.now()
      const count = await client.run(limit)
      const milliseconds = performance.now() - startedAt
      const time = await stop()
      return { requests: count, milliseconds, processor: time }
    }
    return { run, close: client.close }
  }
  const sides = { product: await open(product), other: await open(other) }
  let size = 2 * CONNECTIONS
  return {
    warmUp: async (): Promise<void> => {
      for (const { run } of [sides.other, sides.product])
        await run({ requests: WARM_UP_REQUESTS, milliseconds: WARM_UP_MS })
      size = Math.max(size, Math.round(BURST_US / timeOf(await sides.product.run({ requests: 200 }))))
    },
    runRound: async (pairs: number): Promise<BurstRound> => {
      const all = { product: [] as Burst[], other: [] as Burst[] }
      for (let i = 0; i < pairs; i++) {
        all.product.push(await sides.product.run({ requests: size }))
        all.other.push(await sides.other.run({ requests: size }))
      }
      return summarize(all)
    },
    close: () => {
      sides.product.close()
      sides.other.close()
    },
  }
}

const timeOf = ({ processor, requests }: Burst): number => total(processor) / requests

const summarize = ({ product, other }: { product: Burst[]; other: Burst[] }): BurstRound => {
  const [ours, theirs] = [product, other].map((bursts) => ({
    time: percentile(bursts.map(timeOf), QUIET_SHARE),
    wait: percentile(
      bursts.map((burst) => burst.milliseconds / burst.requests),
      0.5,
    ),
  })) as [{ time: number; wait: number }, { time: number; wait: number }]
  return {
    processor: theirs.time / ours.time,
    throughput: theirs.wait / ours.wait,
    product: ours.time,
    other: theirs.time,
  }
}

import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { createAppState } from '../../server/core/app-state.ts'
import type { App } from '../../server/core/app.ts'
import type { Actor } from '../../server/core/context.ts'
import { runInHeavyTurn } from '../../server/core/steps/heavy-reads.ts'
import { runs } from '../level.ts'

const HEAVY_READS = 4
/** Workspaces of two keys each. */
const keys = ['a1', 'a2', 'b1', 'b2', 'c1', 'c2']
const workspaceOf = (key: string): string => key[0]!

/** A read arrives with the key at an index, or that of the running reads at an index ends. */
const step = fc.record({ arrives: fc.boolean(), index: fc.nat(keys.length - 1) })

type Read = { key: string; end: () => void; done: Promise<void> }

const createQueue = () => {
  const { heavyReadQueue } = createAppState()
  const app = { heavyReads: HEAVY_READS, heavyReadQueue } as App
  const running: Read[] = []
  const started: string[] = []
  const arrive = (key: string): void => {
    const ended = Promise.withResolvers<void>()
    const actor = { key: { id: key }, workspace: { id: workspaceOf(key) } } as Actor
    const done = runInHeavyTurn(app, actor, true, () => {
      started.push(key)
      running.push({ key, end: ended.resolve, done })
      return ended.promise
    })
  }
  const finish = async (index: number): Promise<string | undefined> => {
    const [read] = running.length > 0 ? running.splice(index % running.length, 1) : []
    read?.end()
    await read?.done
    return read?.key
  }
  /** Reads of this key were slow of late, as they may be on a busy machine. */
  const isSlow = (key: string): boolean => (heavyReadQueue.meanMs.get(`key:${key}`) ?? 0) > 50
  return { started, running, arrive, finish, isSlow }
}

/** Whose turns come next, by definition. */
const createModel = (isSlow: (key: string) => boolean) => {
  let waiting: string[] = []
  const running: string[] = []
  const last = new Map<string, number>()
  const started: string[] = []
  const isOf = (key: string) => (other: string) => workspaceOf(other) === workspaceOf(key)
  const order = (key: string): number[] => [
    running.filter(isOf(key)).length,
    running.filter((other) => other === key).length,
    last.get(workspaceOf(key)) ?? 0,
    last.get(key) ?? 0,
  ]
  const compare = (a: string, b: string): number => {
    const [ofA, ofB] = [order(a), order(b)]
    return ofA.map((n, i) => n - ofB[i]!).find((n) => n !== 0) ?? 0
  }
  const startWaiting = (): void => {
    for (;;) {
      // One turn is left to other workspaces, if there are any, and to other keys.
      const isAlone = (key: string): boolean => [...waiting, ...started].every(isOf(key))
      const mayStart = (key: string) =>
        running.length < HEAVY_READS &&
        (running.filter(isOf(key)).length < HEAVY_READS - 1 || (isAlone(key) && !isSlow(key))) &&
        running.filter((other) => other === key).length < (isSlow(key) ? 1 : HEAVY_READS - 1)
      const [next] = waiting.filter(mayStart).toSorted(compare)
      if (next === undefined) return
      waiting = waiting.toSpliced(waiting.indexOf(next), 1)
      running.push(next)
      started.push(next)
      last.set(next, started.length).set(workspaceOf(next), started.length)
    }
  }
  return {
    started,
    arrive: (key: string): void => {
      waiting.push(key)
      startWaiting()
    },
    finish: (key: string): void => {
      running.splice(running.indexOf(key), 1)
      startWaiting()
    },
  }
}

it('expensive reads take turns: fewest first, of a workspace, then of a key, then whose last is oldest', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const queue = createQueue()
      const model = createModel(queue.isSlow)
      for (const { arrives, index } of steps) {
        if (arrives) {
          queue.arrive(keys[index]!)
          model.arrive(keys[index]!)
        } else {
          const key = await queue.finish(index)
          if (key !== undefined) model.finish(key)
        }
        await new Promise((resolve) => setImmediate(resolve))
        assert.deepEqual(queue.started, model.started)
      }
      while (queue.running.length > 0) {
        await queue.finish(0)
        await new Promise((resolve) => setImmediate(resolve))
      }
    }),
    { numRuns: runs(200, 2000) },
  )
})

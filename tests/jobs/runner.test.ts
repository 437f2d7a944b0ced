import assert from 'node:assert/strict'
import { it } from 'node:test'
import { pino } from 'pino'
import { createJob, type JobDefinition } from '../../server/work/runner.ts'

const log = pino({ level: 'silent' })

const createTestJob = (definition: Partial<JobDefinition>) =>
  createJob({ name: 'staff-reports', intervalMs: 60_000, run: async () => ({}), ...definition }, log)

it('a job never runs concurrently, and a wake-up during a run causes one more run', async () => {
  let runs = 0
  let running = 0
  const release: (() => void)[] = []
  const job = createTestJob({
    run: async () => {
      assert.equal(++running, 1)
      runs++
      await new Promise<void>((resolve) => release.push(resolve))
      running--
      return { processed: runs }
    },
  })
  const first = job.runOnce()
  const second = job.runOnce()
  while (release.length < 1) await new Promise((resolve) => setImmediate(resolve))
  job.wake()
  job.wake()
  release[0]!()
  assert.equal(await first, 1)
  while (release.length < 2) await new Promise((resolve) => setImmediate(resolve))
  release[1]!()
  assert.equal(await second, 2)
  await job.stop()
  assert.equal(runs, 2)
})

it('a job that was not started runs only when it is woken, whatever its run returns', async (test) => {
  const results: (() => Promise<{ nextInMs: number }>)[] = [
    async () => ({ nextInMs: 0 }),
    async () => {
      throw new Error('once')
    },
  ]
  test.mock.timers.enable({ apis: ['setTimeout'] })
  for (const result of results) {
    let runs = 0
    const job = createTestJob({ run: async () => (runs++, await result()) })
    job.wake()
    for (const _ of [1, 2]) {
      test.mock.timers.tick(120_000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.equal(runs, 1)
    await job.stop()
  }
})

it('a started job polls, and is retried after a failure', async () => {
  let runs = 0
  const done = Promise.withResolvers<void>()
  const job = createTestJob({
    intervalMs: 1,
    run: async () => {
      if (++runs === 1) throw new Error('once')
      if (runs === 3) done.resolve()
      return {}
    },
  })
  job.start()
  // Timers of jobs keep no process alive.
  const keepAlive = setTimeout(() => done.reject(new Error('no third run')), 60_000)
  await done.promise
  clearTimeout(keepAlive)
  await job.stop()
})

it('a stopped job finishes its run, drains, and does not run again', async () => {
  const order: string[] = []
  const release = Promise.withResolvers<void>()
  const job = createTestJob({
    subscribe: () => () => order.push('unsubscribed'),
    run: async (signal) => {
      await release.promise
      order.push(signal.aborted ? 'run ended after abort' : 'run ended')
      return { processed: 1 }
    },
    drain: async () => void order.push('drained'),
  })
  job.start()
  const run = job.runOnce()
  await new Promise((resolve) => setImmediate(resolve))
  const stopped = job.stop()
  release.resolve()
  await Promise.all([run, stopped, job.stop()])
  assert.deepEqual(order, ['unsubscribed', 'run ended after abort', 'drained'])
  assert.equal(await job.runOnce(), 0)
  job.wake()
})

it('runOnce rejects with the error of the run', async () => {
  const job = createTestJob({
    run: async () => {
      throw new Error('broken')
    },
  })
  await assert.rejects(job.runOnce(), /broken/)
  await job.stop()
})

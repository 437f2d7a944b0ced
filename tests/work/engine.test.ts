import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { KyselyPlugin } from 'kysely'
import { sql } from 'kysely'
import type { App } from '../../server/app.ts'
import { withTransaction } from '../../server/kernel/write-call.ts'
import { commitStep, createRunJob, type RunKind } from '../../server/work/engine.ts'
import { advanceRun, finishRun, insertRun, type NewRun } from '../../storage/work/runs.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

const KIND = 'toy'
const STEPS = 3

/** What a step passes: a worker may die, or wait, at each. */
type Place = 'claimed' | 'begun' | 'written' | 'kept' | 'committed'
type AtPlace = (place: Place, subject: string) => Promise<void>

/** Writes a row for each step: one that was done twice is there twice. */
const createToy = (app: App, at: AtPlace = async () => {}, more: Partial<RunKind> = {}) =>
  createRunJob(app, {
    kind: KIND,
    job: 'exports',
    step: async (run) => {
      await at('claimed', run.subject)
      const isOurs = await withTransaction(app, async (tx) => {
        await at('begun', run.subject)
        const { rows } = await sql<{ step: number }>`
          select step from runs where workspace_id = ${run.workspace_id} and kind = ${KIND}
            and subject = ${run.subject}`.execute(tx)
        const step = rows[0]?.step ?? STEPS
        await sql`
          insert into toy_effects (workspace_id, subject, step)
          values (${run.workspace_id}, ${run.subject}, ${step})`.execute(tx)
        await at('written', run.subject)
        const keep =
          step + 1 < STEPS ? advanceRun(tx, run, { step: step + 1, position: [step] }) : finishRun(tx, run)
        const kept = await keep
        await at('kept', run.subject)
        return (await commitStep(tx, Promise.resolve(kept))) && step + 1 < STEPS
      })
      await at('committed', run.subject)
      return isOurs ? 'on' : 'over'
    },
    ...more,
  })

/** The server as a process that dies after so many statements, and places of its steps. */
const createMortal = (app: App, life: number): { app: App; pass: () => void; hasDied: () => boolean } => {
  let count = 0
  const pass = (): void => {
    if (++count > life) throw new Error('died')
  }
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => (pass(), node),
    transformResult: async ({ result }) => result,
  }
  return { app: { ...app, db: app.db.withPlugin(plugin) }, pass, hasDied: () => count > life }
}

everyDatabase(
  'The engine of runs',
  (server, database) => {
    const open = async () => {
      const { db, app } = server()
      await sql`
        create table if not exists toy_effects (
          n bigint generated always as identity, workspace_id bigint, subject text, step int)`.execute(db)
      await sql`delete from toy_effects`.execute(db)
      await sql`delete from runs where kind = ${KIND}`.execute(db)
      const { id } = await makeWorkspace(server())
      const add = (subject: string, more: Partial<NewRun> = {}) =>
        insertRun(db, { workspace_id: id, kind: KIND, subject, ...more })
      const work = (job = createToy(app)) => job.run(new AbortController().signal)
      const readEffects = async () =>
        (
          await sql<{
            subject: string
            step: number
          }>`select subject, step from toy_effects order by n`.execute(db)
        ).rows.map(({ subject, step }) => `${subject}${step}`)
      /** Lets the leases of dead workers, and of living ones, run out. */
      const endLeases = () =>
        sql`update runs set run_after = clock_timestamp() where kind = ${KIND}`.execute(db)
      /** Seconds until the runs that somebody has are another's. */
      const readLeases = async () =>
        (
          await sql<{ seconds: number }>`
            select extract(epoch from run_after - clock_timestamp())::float8 as seconds from runs
            where kind = ${KIND} and lease is not null`.execute(db)
        ).rows.map(({ seconds }) => seconds)
      const countLeft = async () => (await sql`select from runs where kind = ${KIND}`.execute(db)).rows.length
      return { db, app, id, add, work, readEffects, readLeases, endLeases, countLeft }
    }
    const wholeOf = (...subjects: string[]) =>
      subjects.flatMap((subject) => Array.from({ length: STEPS }, (_, step) => `${subject}${step}`))

    it('does each step once, in order, wherever a worker dies', async () => {
      const { app, add, work, readEffects, endLeases, countLeft, db } = await open()
      let life = 0
      for (let isMortal = true; isMortal; life++) {
        await sql`delete from toy_effects`.execute(db)
        for (const subject of ['a', 'b']) await add(subject, { order_key: 'one' })
        await add('c')
        const mortal = createMortal(app, life)
        const dying = work(createToy(mortal.app, async () => mortal.pass()))
        // Every other time somebody works beside it.
        await Promise.allSettled([dying, ...(life % 2 === 0 ? [] : [work()])])
        isMortal = mortal.hasDied()
        await endLeases()
        await work()
        const effects = await readEffects()
        assert.deepEqual(effects.toSorted(), wholeOf('a', 'b', 'c'), `after ${life}`)
        const ordered = effects.filter((effect) => !effect.startsWith('c'))
        assert.deepEqual(ordered, wholeOf('a', 'b'), `after ${life}`)
        assert.equal(await countLeft(), 0)
        isMortal ||= life % 2 === 1
      }
      assert.ok(life > 50, `died ${life} times`)
    })

    it('does each step once where a worker that is not dead loses its run, wherever it is', async () => {
      const { app, add, work, readEffects, readLeases, endLeases, countLeft, db } = await open()
      // In a transaction the embedded database has its one session: nobody else goes on.
      const places: Place[] =
        database === 'embedded' ? ['claimed', 'committed'] : ['claimed', 'begun', 'written', 'committed']
      for (const place of places)
        for (let step = 0; step < STEPS; step++)
          // The other worker does the rest, or a step of it.
          for (const most of [STEPS, 1]) {
            const about = `${place} ${step} ${most}`
            await sql`delete from toy_effects`.execute(db)
            await add('a')
            const reached = Promise.withResolvers<void>()
            const released = Promise.withResolvers<void>()
            let passed = 0
            const slow = createToy(app, async (at) => {
              if (at !== place || passed++ !== step) return
              reached.resolve()
              await released.promise
            })
            const working = work(slow)
            await Promise.race([reached.promise, working])
            assert.ok((await readLeases()).every((seconds) => seconds > 10 && seconds <= 20))
            await endLeases()
            const stop = new AbortController()
            let done = 0
            const other = createToy(app, async (at) => {
              if (at === 'committed' && ++done === most) stop.abort()
            })
            await other.run(stop.signal)
            released.resolve()
            await working
            await endLeases()
            await work()
            assert.deepEqual(await readEffects(), wholeOf('a'), about)
            assert.equal(await countLeft(), 0, about)
          }
    })

    it('tries again what failed, later each time, and lets those behind it wait', async () => {
      const { app, add, work, readEffects, endLeases, db } = await open()
      await add('a', { order_key: 'one' })
      await add('b', { order_key: 'one' })
      let failures = 0
      const job = createToy(app, async () => {
        if (failures < 3) throw new Error(`failure ${++failures}`)
      })
      const waits: number[] = []
      while (failures < 3) {
        await work(job)
        const { rows } = await sql<{ seconds: number; attempts: number }>`
          select round(extract(epoch from run_after - clock_timestamp()))::int as seconds, attempts from runs
          where kind = ${KIND} order by id`.execute(db)
        assert.equal(rows[0]!.attempts, failures)
        assert.equal(rows[1]!.seconds, rows[0]!.seconds)
        waits.push(rows[0]!.seconds)
        await endLeases()
      }
      assert.deepEqual(waits, [1, 2, 4])
      await work(job)
      assert.deepEqual(await readEffects(), wholeOf('a', 'b'))
    })

    it('leaves to a later version what that one began, unless it is abandoned', async () => {
      const { app, add, work, readEffects, db } = await open()
      await add('a', { needs_version: '2' })
      await add('b', { needs_version: '1' })
      const of = (...knows: string[]) => createToy(app, undefined, { knows, abandonedAfterSeconds: 3600 })
      await work(of('1'))
      assert.deepEqual(await readEffects(), wholeOf('b'))
      await add('c', { needs_version: '3' })
      await work(of('1', '2'))
      assert.deepEqual(await readEffects(), wholeOf('b', 'a'))
      await sql`update runs set run_after = clock_timestamp() - interval '61 minutes'`.execute(db)
      await work(of('1', '2'))
      assert.deepEqual(await readEffects(), wholeOf('b', 'a', 'c'))
    })

    it('gives workspaces, and their queues, turns', async () => {
      const { app, add, work, readEffects } = await open()
      const other = (await makeWorkspace(server())).id
      for (let n = 0; n < 20; n++) await add(`a${n}.`)
      await add('q', { queue: 'other' })
      await add('b', { workspace_id: other })
      await work(createToy(app, undefined, { turnMs: 0 }))
      const effects = await readEffects()
      assert.equal(effects.length, 22 * STEPS)
      for (const subject of ['q', 'b']) assert.ok(effects.indexOf(`${subject}2`) < 9, effects.join(' '))
    })

    it('has no more of a queue in work than it may', async () => {
      const { app, add, work } = await open()
      for (let n = 0; n < 6; n++) await add(`a${n}`)
      await add('b', { queue: 'other' })
      let most = 0
      const inWork = new Set<string>()
      const isOther = Promise.withResolvers<void>()
      const job = createToy(
        app,
        async (place, subject) => {
          if (place !== 'claimed') return void inWork.delete(subject)
          inWork.add(subject)
          if (subject === 'b') isOther.resolve()
          // The other queue is not held up by those that wait here.
          await isOther.promise
          most = Math.max(most, [...inWork].filter((one) => one !== 'b').length)
        },
        { turns: 4, perQueue: 2 },
      )
      await work(job)
      assert.equal(most, 2)
    })

    it('ends for a worker when the run is cancelled or begins again', async () => {
      const { app, add, work, readEffects, db } = await open()
      await add('a')
      let isFirst = true
      const job = createToy(app, async (place) => {
        if (place !== 'claimed' || !isFirst) return
        isFirst = false
        await add('a')
      })
      await work(job)
      assert.deepEqual(await readEffects(), wholeOf('a'))
      await add('a')
      await work(
        createToy(app, async (place) => {
          if (place === 'claimed') await sql`delete from runs where kind = ${KIND}`.execute(db)
        }),
      )
      assert.deepEqual(await readEffects(), wholeOf('a'))
    })
  },
  { dedicated: true },
)

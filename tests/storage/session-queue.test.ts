import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createSessionQueue } from '../../storage/embedded/session-queue.ts'

/** A session on a clock of its own: takes turns, each of some milliseconds, and lists who had them. */
const createScene = () => {
  const clock = { ms: 0 }
  const turns: string[] = []
  const take = createSessionQueue(() => clock.ms)
  const use = async (name: string, isHeavy: boolean, ms: number): Promise<void> => {
    const giveBack = await take(isHeavy)
    turns.push(name)
    clock.ms += ms
    giveBack()
  }
  return { turns, use }
}

it('clients have the session in turn, one at a time', async () => {
  const { turns, use } = createScene()
  await Promise.all(['a', 'b', 'c'].map((name) => use(name, false, 1)))
  assert.deepEqual(turns, ['a', 'b', 'c'])
})

it('others have twice the time of an expensive statement before the next', async () => {
  const { turns, use } = createScene()
  await Promise.all([
    ...['H1', 'H2', 'H3'].map((name) => use(name, true, 6)),
    ...Array.from({ length: 9 }, (_, n) => use(`l${n}`, false, 4)),
  ])
  assert.equal(turns.join(' '), 'H1 l0 l1 l2 H2 l3 l4 l5 H3 l6 l7 l8')
})

it('a long expensive statement leaves the others more, a second at most', async () => {
  const { turns, use } = createScene()
  await Promise.all([
    use('H1', true, 500),
    use('H2', true, 1),
    ...Array.from({ length: 12 }, (_, n) => use(`l${n}`, false, 100)),
  ])
  assert.equal(turns.indexOf('H2'), 11, turns.join(' '))
})

it('an expensive statement starts at once while nobody else uses the session', async () => {
  const { turns, use } = createScene()
  await use('H1', true, 50)
  await use('H2', true, 50)
  assert.deepEqual(turns, ['H1', 'H2'])
})

it('an expensive statement waits no longer than the others are quiet', async () => {
  const take = createSessionQueue()
  ;(await take(true))()
  ;(await take(false))()
  const startedAt = performance.now()
  ;(await take(true))()
  assert.ok(performance.now() - startedAt < 10_000)
})

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createSandboxRequest } from '../messaging/fixtures.ts'
import type { ServerProcess } from '../process.ts'
import { CONVERSATIONS, startInboxScene } from './inbox-scene.ts'
import { openTerminal, type Terminal } from '../terminal.ts'

/** What a key may take until it is drawn: of processor time, which other processes do not lengthen. */
const MAX_MS = 50
const MAX_MEMORY_MB = 150
/** The last that is written of a drawing. */
const DRAWN = '\u001b[?2026l'
/** Customers write meanwhile, one each this often. */
const INBOUND_EVERY_MS = 300

type Taken = { key: string; processor: number; wall: number }

/** Presses keys one by one, and measures each until something is drawn. */
const createTypist = (terminal: Terminal) => {
  const taken: Taken[] = []
  const press = async (name: string, key: string): Promise<void> => {
    const isDrawn = terminal.waitFor(DRAWN, 20_000)
    const [before, start] = [terminal.processorTime(), performance.now()]
    terminal.type(key)
    assert.ok(await isDrawn, `${name}: nothing was drawn`)
    taken.push({ key: name, processor: terminal.processorTime() - before, wall: performance.now() - start })
    await pause(25)
  }
  const repeat = async (name: string, key: string, times: number): Promise<void> => {
    for (let i = 0; i < times; i++) await press(name, key)
  }
  return { taken, press, repeat }
}

const quantile = (values: readonly number[], q: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))]!

const summarize = (taken: readonly Taken[]): object =>
  Object.fromEntries(
    (['processor', 'wall'] as const).map((kind) => {
      const values = taken.map((one) => one[kind])
      return [kind, [0.5, 0.99, 1].map((q) => Math.round(quantile(values, q) * 10) / 10)]
    }),
  )

/** A working day in a minute: through the list, the views, a search, and a long conversation that is answered. */
const useEveryKey = async (terminal: Terminal): Promise<readonly Taken[]> => {
  const { taken, press, repeat } = createTypist(terminal)
  await repeat('j', 'j', 40)
  await repeat('k', 'k', 20)
  for (let i = 0; i < 10; i++) {
    await press('^D', '\u0004')
    await pause(100)
  }
  await repeat('^U', '\u0015', 4)
  for (let i = 0; i < 5; i++) {
    await press('G', 'G')
    await pause(200)
    await press('k', 'k')
  }
  await press('g', 'g')
  for (const view of '23561'.repeat(2)) {
    await press('view', view)
    await pause(150)
  }
  for (const text of ['ada', 'linden']) {
    for (const key of `/${text}\r`) await press('search', key)
    await pause(300)
    await press('search', '\u001b')
    await pause(300)
  }
  await press('open', 'n')
  await pause(1000)
  await repeat('scroll', 'k', 10)
  await repeat('scroll', '\u0015', 5)
  await repeat('scroll', 'j', 10)
  await press('compose', '\r')
  for (const character of 'Your parcel is on its way, and comes tomorrow. ') await press('type', character)
  const paste = `\u001b[200~${'質問 👨‍👩‍👧‍👦 สวัสดี '.repeat(150)}\u001b[201~`
  await press('paste', paste)
  await repeat('type', 'x', 30)
  return taken
}

it(`a key is drawn within ${MAX_MS} ms with ${CONVERSATIONS} conversations`, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-keys-'))
  let server: ServerProcess | undefined
  let terminal: Terminal | undefined
  let isOver = false
  try {
    const { start, keys, url } = await startInboxScene(folder, { isFull: true })
    server = await start()
    const sandbox = createSandboxRequest({ url }, { owner: { key: keys[0], staffId: '' } } as never)
    const env = { WCRM_URL: url, WCRM_API_KEY: keys[0], WCRM_KEYCHAIN: 'off', XDG_CONFIG_HOME: folder }
    terminal = openTerminal(['inbox'], env, [200, 50])
    assert.ok(await terminal.waitFor('22 h left', 20_000), terminal.printed())
    await pause(1000)
    const inbound = (async () => {
      for (let said = 0; !isOver; said++) {
        await sandbox('POST', 'say', {
          from: `+1555700${1000 + (said % 40)}`,
          name: 'Customer',
          text: '質問',
        })
        await pause(INBOUND_EVERY_MS)
      }
    })()
    const taken = await useEveryKey(terminal).finally(() => (isOver = true))
    await inbound
    const names = [...new Set(taken.map(({ key }) => key))]
    for (const name of names)
      t.diagnostic(`${name}: ${JSON.stringify(summarize(taken.filter(({ key }) => key === name)))}`)
    t.diagnostic(`all ${taken.length}, p50 p99 max: ${JSON.stringify(summarize(taken))}`)
    t.diagnostic(`${Math.round(terminal.peakMemory())} MB`)
    const processor = taken.map(({ processor }) => processor)
    assert.ok(quantile(processor, 0.99) < MAX_MS, JSON.stringify(summarize(taken)))
    assert.ok(terminal.peakMemory() < MAX_MEMORY_MB, `${terminal.peakMemory()} MB`)
    terminal.type('\u0003')
    assert.equal(await terminal.ended, 130)
  } finally {
    isOver = true
    await terminal?.close()
    await server?.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
})

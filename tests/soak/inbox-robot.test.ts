import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createSandboxRequest } from '../messaging/fixtures.ts'
import type { ServerProcess } from '../process.ts'
import { openTerminal, type Terminal } from '../terminal.ts'
import { startInboxScene } from './inbox-scene.ts'

// Two people at one queue, each in a terminal, while the server is killed and the terminals are resized and closed.
// WCRM_ROBOT_SECONDS: how long; 3600 for the whole hour.

const SECONDS = Number(process.env['WCRM_ROBOT_SECONDS'] ?? 25)
const INBOUND = 500
const KILLS = Math.min(20, Math.ceil(SECONDS / 15))
const RESIZES = 200
const MAX_MEMORY_MB = 150

/** A repeatable series of random numbers below 1. */
const createRandom = (seed: number) => (): number => {
  seed = (seed * 1103515245 + 12345) % 2 ** 31
  return seed / 2 ** 31
}

type Agent = { marks: string[]; opened: number; peak: number; codes: Map<number, number> }

/** Answers that each person begins, as long as that takes no longer than the grace after the end. */
const MIN_TYPED = 3
const GRACE_MS = 90_000

/** One person: claims, answers, moves about, resizes, and leaves in every state, until the end. */
const work = async (
  name: string,
  open: () => Terminal,
  isOver: (typed: number) => boolean,
  resizes: number,
): Promise<Agent> => {
  const random = createRandom(name.charCodeAt(0))
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!
  const agent: Agent = { marks: [], opened: 1, peak: 0, codes: new Map() }
  let terminal = open()
  const press = async (...keys: string[]): Promise<void> => {
    for (const key of keys) {
      terminal.type(key)
      await pause(40 + random() * 120)
    }
  }
  /** Presses a key, and waits for what it draws. */
  const pressFor = async (key: string, drawn: string): Promise<boolean> => {
    const isDrawn = terminal.waitFor(drawn)
    terminal.type(key)
    return await isDrawn
  }
  /** Answers the first of a view. A mark that may have been sent is never typed again. */
  const answer = async (): Promise<void> => {
    terminal.resize(100 + Math.floor(random() * 80), 20 + Math.floor(random() * 20))
    await press('\u001b', '\u001b', '\u001b')
    if (!(await pressFor(pick(['1', '2', '3']), '▌'))) return
    await press('g', ...(random() < 0.7 ? ['c'] : []))
    if (!(await pressFor('\r', 'Enter write')) || !(await pressFor('\r', '^S send'))) return
    const mark = `robot-${name}-${agent.marks.length}-`
    if (!(await pressFor(`\u0015${mark}答え👨‍👩‍👧‍👦`, mark))) return
    agent.marks.push(mark)
    if (await pressFor('\u0013', 'Send this to')) await press('\u0013')
    await pause(300)
    await press('\u001b', 'R')
    await pause(200)
    await press('\u001b')
  }
  const wander = [
    () => press('j', 'j', 'G', 'g', '\u0004', '\u0015'),
    () => press('\r', 'k', 'k', 'y', '\u001b'),
    () => press('/', 'a', '\r', '\u001b'),
    () => press('?', 'x'),
    () => press(':', 'staff list', '\r', '\u001b'),
    () => press('\r', '\u0014', '\u001b', '\u001b'),
    () => press(' ', 'm'),
    () => press('r', '\r'),
    () => press('4', 'j', '5'),
  ]
  /** Keys that lead to each state; Control-C must leave from there. */
  const states = [
    '',
    '\r',
    '\r\r',
    '/',
    'a',
    'x',
    't',
    'r',
    ':',
    ':staff list\r',
    '?',
    '4',
    '\r\u0014',
    'jjj',
  ]
  let [left, resized] = [0, 0]
  while (!isOver(agent.marks.length)) {
    agent.peak = Math.max(agent.peak, terminal.peakMemory())
    const choice = random()
    if (choice < 0.6) await answer()
    else if (choice < 0.85) await pick(wander)()
    else {
      await press('\u001b', '\u001b', ...states[left++ % states.length]!)
      await pause(200)
      if (random() < 0.2) terminal.signal('SIGTERM')
      else terminal.type('\u0003')
      const code = await Promise.race([terminal.ended, pause(20_000, undefined, { ref: false })])
      if (code === undefined) throw new Error(`did not end: ${JSON.stringify(terminal.printed())}`)
      agent.codes.set(code, (agent.codes.get(code) ?? 0) + 1)
      terminal = open()
      agent.opened++
      await pause(1500)
    }
    for (; resized < resizes && random() < 0.8; resized++)
      terminal.resize(40 + Math.floor(random() * 180), 10 + Math.floor(random() * 50))
  }
  terminal.resize(120, 32)
  // What is on its way is waited for, and shown with its outcome.
  await pause(2000)
  terminal.type('\u0003')
  await terminal.ended
  return agent
}

it('two people at one queue: no double claim, each reply once, the terminal restored', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-robot-'))
  let running: ServerProcess | undefined
  const opened: Terminal[] = []
  try {
    const { start, keys, url } = await startInboxScene(folder, { isFull: false })
    let server = (running = await start())
    const sandbox = createSandboxRequest({ url }, { owner: { key: keys[0]!, staffId: '' } } as never)
    const end = Date.now() + SECONDS * 1000
    let hasFailed = false
    // On a busy machine both people take longer until they have written something.
    const isOver = (typed = Number.POSITIVE_INFINITY): boolean =>
      hasFailed || Date.now() > (typed < MIN_TYPED ? end + GRACE_MS : end)
    const agents = keys.map((key, i) => {
      const env = {
        WCRM_URL: url,
        WCRM_API_KEY: key,
        WCRM_KEYCHAIN: 'off',
        XDG_CONFIG_HOME: join(folder, `agent-${i}`),
      }
      const open = (): Terminal => {
        const terminal = openTerminal(['inbox'], env)
        opened.push(terminal)
        return terminal
      }
      return work('AB'[i]!, open, isOver, RESIZES / 2)
    })
    const inbound = (async () => {
      let said = 0
      for (; said < INBOUND && !isOver(); said++) {
        await pause((SECONDS * 1000 * 0.9) / INBOUND)
        const from = `+15557${String(said % 200).padStart(6, '0')}`
        await sandbox('POST', 'say', {
          from,
          name: `Customer ${said % 200}`,
          text: `سؤال 質問 ${said}`,
        }).catch(() => said--)
      }
      return said
    })()
    let kills = 0
    const killing = (async () => {
      for (; kills < KILLS && !isOver(); kills++) {
        await pause((SECONDS * 1000 * 0.9) / KILLS)
        await server.kill('SIGKILL')
        server = running = await start()
      }
    })()
    const parts = [inbound, killing, ...agents] as const
    for (const part of parts) part.catch(() => (hasFailed = true))
    await Promise.allSettled(parts)
    const [said, worked] = await Promise.all([inbound, Promise.all(agents), killing])
    t.diagnostic(
      JSON.stringify({ seconds: SECONDS, said, kills, resizes: RESIZES, agents: worked.map(summarize) }),
    )
    await checkOutcome(url, keys[0]!, sandbox, worked)
  } finally {
    await Promise.all(opened.map(({ close }) => close()))
    await running?.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
})

const summarize = ({ marks, opened, peak, codes }: Agent) => ({
  typed: marks.length,
  opened,
  peakMB: Math.round(peak),
  exits: Object.fromEntries(codes),
})

type Page = { data: { data: Record<string, unknown> }[]; next_cursor: string | null }

const checkOutcome = async (
  url: string,
  key: string,
  sandbox: ReturnType<typeof createSandboxRequest>,
  agents: readonly Agent[],
): Promise<void> => {
  const { data: sent } = await sandbox<{ data: { text?: { body: string } }[] }>('GET', 'messages')
  const texts = sent.map(({ text }) => text?.body ?? '')
  for (const mark of agents.flatMap(({ marks }) => marks))
    assert.ok(texts.filter((text) => text.includes(mark)).length <= 1, `sent twice: ${mark}`)
  const countSent = (name: string): number => texts.filter((text) => text.includes(`robot-${name}-`)).length
  const answered = { A: countSent('A'), B: countSent('B') }
  assert.ok(answered.A > 0 && answered.B > 0, JSON.stringify({ answered, typed: agents.map(summarize) }))
  // Nobody unassigns, so that a conversation that was claimed twice was claimed by both.
  const claims = new Map<string, number>()
  let after: string | null = null
  do {
    const query = `types=conversation.assigned/1&limit=100${after === null ? '' : `&after=${after}`}`
    const response = await fetch(`${url}/v1/events?${query}`, { headers: { Authorization: `Bearer ${key}` } })
    assert.ok(response.ok, await response.clone().text())
    const page = (await response.json()) as Page
    for (const { data } of page.data) {
      const { id } = data['conversation'] as { id: string }
      claims.set(id, (claims.get(id) ?? 0) + 1)
    }
    after = page.data.length > 0 ? page.next_cursor : null
  } while (after !== null)
  assert.ok(claims.size > 0, 'nothing was claimed')
  assert.deepEqual(
    [...claims].filter(([, count]) => count > 1),
    [],
  )
  for (const { peak } of agents) assert.ok(peak < MAX_MEMORY_MB, `${peak} MB`)
}

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Location } from '../../storage/open.ts'
import { readRepeat } from '../cli/read-repeat.ts'
import { freePort } from '../../scripts/free-port.ts'
import { createDatabase, databases, withStorage } from '../databases.ts'
import { runCli } from '../doors.ts'
import { type ServerProcess, startProcess } from '../process.ts'
import {
  type Call,
  createCaller,
  createSends,
  listProviderMessages,
  markOf,
  openConversations,
  prepareWorkspace,
  type ProviderMessage,
  type Reply,
  type SandboxProcess,
  type Send,
  startSandbox,
} from './sends-scene.ts'
import { type Fate, type SlowProvider, startSlowProvider } from './slow-provider.ts'

const SEND_COUNTS: Readonly<Record<string, number>> = { postgresql: 1000, embedded: 400 }
const CONCURRENCY = 160
const KILL_COUNT = 3
const KILL_EVERY_MS = 18_000
/** A send that answers so often that its outcome is unknown is left alone until the end. */
const MAX_UNKNOWN = 2

const IN_TIME: Fate = { arrivesAfter: 0, answersAfter: 0 }
/** One in twenty each; the others are answered in time. The slowest are sent first. */
const FATES: readonly Fate[] = [
  { arrivesAfter: 90_000, answersAfter: 0 },
  { arrivesAfter: 0, answersAfter: 90_000 },
  { arrivesAfter: 40_000, answersAfter: 0 },
  { arrivesAfter: 0, answersAfter: 40_000 },
  { arrivesAfter: 25_000, answersAfter: 0 },
  { arrivesAfter: 0, answersAfter: 5000 },
  // The answer is lost; the request is lost; the provider fails before and after it has accepted the message.
  { arrivesAfter: 0, answersAfter: null },
  { arrivesAfter: null, answersAfter: null },
  { arrivesAfter: null, answersAfter: 0, status: 500 },
  { arrivesAfter: 0, answersAfter: 0, status: 503 },
]
const keyOf = ({ mark }: { mark: string }) => ({ 'Idempotency-Key': `key-of-${mark}` })
const fateIndex = (mark: string): number => Number(mark.slice('mark-'.length)) % 20
const fateOf = (mark: string): Fate => FATES[fateIndex(mark)] ?? IN_TIME

/** Servers and a sandbox behind a slow provider, all of which can be killed and started again. */
type Scene = {
  provider: SlowProvider
  sandbox: () => SandboxProcess
  call: Call
  /** Of one of the servers. */
  url: () => string
  killServer: () => Promise<void>
  killSandbox: () => Promise<void>
  close: () => Promise<void>
}

const startScene = async (flags: readonly string[], key: string, serverCount: number): Promise<Scene> => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-unknown-'))
  const sandboxPort = await freePort()
  const provider = await startSlowProvider(
    `http://127.0.0.1:${sandboxPort}`,
    () => sandbox.said.app_secret,
    fateOf,
  )
  let sandbox: SandboxProcess = await startSandbox(folder, sandboxPort, `${provider.url}/webhook`)
  const { token, app_secret: appSecret, verify_token: verifyToken } = sandbox.said
  const env = {
    WCRM_PROVIDER: 'sandbox',
    WCRM_PROVIDER_URL: provider.url,
    WCRM_PROVIDER_TOKEN: token,
    WCRM_PROVIDER_APP_SECRET: appSecret,
    WCRM_PROVIDER_VERIFY_TOKEN: verifyToken,
  }
  const servers: ServerProcess[] = []
  const start = async (): Promise<void> => {
    const server = await startProcess(flags, env)
    provider.webhooks.add(`${server.url}/provider/webhook`)
    servers.push(server)
  }
  for (let n = 0; n < serverCount; n++) await start()
  return {
    provider,
    sandbox: () => sandbox,
    call: createCaller(
      () => servers[randomInt(0, Math.max(1, servers.length))]?.url ?? 'http://127.0.0.1:1',
      key,
    ),
    url: () => servers[0]!.url,
    killServer: async () => {
      const server = servers.shift()!
      provider.webhooks.delete(`${server.url}/provider/webhook`)
      await server.kill('SIGKILL')
      await start()
    },
    killSandbox: async () => {
      await sandbox.kill('SIGKILL')
      sandbox = await startSandbox(folder, sandboxPort, `${provider.url}/webhook`)
    },
    close: async () => {
      for (const server of servers) await server.kill('SIGTERM')
      await sandbox.kill('SIGTERM')
      await provider.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const isUnknown = ({ status, body, replayed }: Reply, send: Send): boolean => {
  if (status < 503 || body.reason !== 'outcome_unknown') return false
  assert.deepEqual([body.idempotency_key, replayed], [`key-of-${send.mark}`, false])
  return true
}

/**
 * Sends everything, each until it is accepted, or its outcome has been unknown a few times. Returns what was
 * answered last.
 */
const sendAll = async (call: Call, sends: readonly Send[]): Promise<Map<string, Reply>> => {
  const answers = new Map<string, Reply>()
  const queue = sends.toSorted((a, b) => fateIndex(a.mark) - fateIndex(b.mark))
  const worker = async (): Promise<void> => {
    for (let send = queue.shift(); send; send = queue.shift()) {
      for (let unknown = 0; unknown < MAX_UNKNOWN;) {
        const reply = await call('POST', send.path, send.body, keyOf(send)).catch(() => undefined)
        if (reply) answers.set(send.mark, reply)
        if (reply?.status === 201) break
        if (reply && isUnknown(reply, send)) unknown++
        // Also 409 while a killed server's lease lasts, and no answer at all.
        await pause(500)
      }
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  return answers
}

/** Repeats everything until its answer is final: accepted, or not confirmed in a day. */
const learnOutcomes = async (call: Call, sends: readonly Send[]): Promise<Map<string, Reply>> => {
  const answers = new Map<string, Reply>()
  const queue = [...sends]
  const worker = async (): Promise<void> => {
    for (let send = queue.shift(); send; send = queue.shift()) {
      for (;;) {
        const reply = await call('POST', send.path, send.body, keyOf(send))
        answers.set(send.mark, reply)
        if (reply.status === 201 || reply.body.reason === 'not_confirmed') break
        // The other server has not heard yet that it is a day later.
        if (!isUnknown(reply, send)) assert.equal(reply.body.reason, 'still_running', JSON.stringify(reply))
        await pause(300)
      }
    }
  }
  await Promise.all(Array.from({ length: 40 }, worker))
  return answers
}

const idOf = ({ message, message_id: id }: Reply['body']): string => message?.id ?? id!

/** Asserts that every message is stored once, with the state that the provider holds, and one event. */
const assertStored = (
  location: Location,
  workspaceId: string,
  held: readonly ProviderMessage[],
  answers: ReadonlyMap<string, Reply>,
): Promise<void> =>
  withStorage(location, async ({ db }) => {
    const rows = await db
      .selectFrom('messages')
      .select(['id', 'provider_id', 'status'])
      .where('workspace_id', '=', workspaceId)
      .where('direction', '=', 'outbound')
      .execute()
    const ids = [...answers.values()].map(({ body }) => idOf(body))
    assert.deepEqual(rows.map(({ id }) => id).toSorted(), ids.toSorted())
    const confirmed = rows.filter(({ provider_id: id }) => id !== null)
    assert.deepEqual(confirmed.map((m) => m.provider_id).toSorted(), held.map((m) => m.id).toSorted())
    const unconfirmed = rows.filter(({ provider_id: id }) => id === null)
    for (const { id, status } of confirmed) assert.match(status, /^(?:sent|delivered)$/, id)
    for (const { id, status } of unconfirmed) assert.equal(status, 'failed', id)
    for (const [type, messages] of [
      ['message.sent/1', confirmed],
      ['message.failed/1', unconfirmed],
    ] as const) {
      const events = await db
        .selectFrom('events')
        .select('data')
        .where('workspace_id', '=', workspaceId)
        .where('type', '=', type)
        .execute()
      const told = events.map(({ data }) => (data as { message: { id: string } }).message.id)
      assert.deepEqual(told.toSorted(), messages.map(({ id }) => id).toSorted(), type)
    }
  })

const run = async (database: string, count: number): Promise<void> => {
  const place = await createDatabase(database)
  let scene: Scene | undefined
  try {
    const { key, workspaceId } = await prepareWorkspace(place.location)
    scene = await startScene(place.flags, key, database === 'embedded' ? 1 : 2)
    const { provider, sandbox, call, killServer, killSandbox } = scene
    const sends = createSends(count, await openConversations(sandbox(), call))
    const kills = (async () => {
      for (let n = 0; n < KILL_COUNT; n++) {
        await pause(KILL_EVERY_MS)
        await killServer()
        if (n === 1) await killSandbox()
      }
    })()
    const first = await sendAll(call, sends)
    await kills
    await provider.settled()
    const tally = Object.entries(Object.groupBy(first.values(), ({ status }) => status))
    const summary = tally.map(([status, replies]) => `${status}: ${replies!.length}`).join(', ')
    assert.ok(
      tally.some(([status]) => status === '504'),
      summary,
    )

    // A day later nothing is open any more.
    assert.equal((await call('POST', '/sandbox/clock', { advance: '25h' })).status, 200)
    const answers = await learnOutcomes(call, sends)
    const held = await listProviderMessages(sandbox())
    const marks = held.map(markOf)
    assert.equal(new Set(marks).size, marks.length, `a customer has a message twice; ${summary}`)
    assert.deepEqual(
      [...provider.requests].filter(([, n]) => n > 1),
      [],
      'a message was sent again',
    )
    const accepted = [...answers].filter(([, { status }]) => status === 201).map(([mark]) => mark)
    assert.deepEqual(accepted.toSorted(), marks.toSorted(), summary)
    for (const [mark, { replayed, status, body }] of await learnOutcomes(call, sends)) {
      const { status: expected, body: known } = answers.get(mark)!
      assert.deepEqual([replayed, status, idOf(body)], [true, expected, idOf(known)], mark)
    }
    await scene.close()
    scene = undefined
    await assertStored(place.location, workspaceId, held, answers)
  } finally {
    await scene?.close()
    await place.remove()
  }
}

/** Marks whose requests or answers take 40 s. */
const SLOW_MARKS = ['mark-0002', 'mark-0003']

/** Answers customers from the command line, and repeats each command as it says. */
const runCommands = async (): Promise<void> => {
  const place = await createDatabase('embedded')
  let scene: Scene | undefined
  try {
    const { key } = await prepareWorkspace(place.location)
    scene = await startScene(place.flags, key, 1)
    const { provider, sandbox, call, url } = scene
    const conversations = await openConversations(sandbox(), call)
    const env = { WCRM_URL: url(), WCRM_API_KEY: key, XDG_CONFIG_HOME: '/nonexistent' }
    const repeats = await Promise.all(
      SLOW_MARKS.map(async (mark, i) => {
        const words = ['conversations', 'reply', conversations[i]!, '--text', mark, '--confirm', 'send']
        const { exit, stderr } = await runCli(words, env)
        // A status may tell that it was sent, before the answer does.
        if (exit === 0) return words
        assert.equal(exit, 8, stderr)
        return readRepeat(stderr)
      }),
    )
    await provider.settled()
    const open = repeats.filter((words) => words.includes('--idempotency-key'))
    assert.ok(open.length > 0)
    for (const words of open) {
      const { exit, stderr } = await runCli(words, env)
      assert.ok(exit === 0 || exit === 8, stderr)
    }
    // A day later nothing is open any more.
    assert.equal((await call('POST', '/sandbox/clock', { advance: '25h' })).status, 200)
    for (const words of open) {
      const { exit, stderr } = await runCli([...words, '--retry=60'], env)
      assert.ok(exit === 0 || /not confirmed/i.test(stderr), stderr)
    }
    const marks = (await listProviderMessages(sandbox())).map(markOf)
    assert.deepEqual(marks.toSorted(), SLOW_MARKS)
    assert.deepEqual(
      SLOW_MARKS.map((mark) => provider.requests.get(mark)),
      [1, 1],
    )
  } finally {
    await scene?.close()
    await place.remove()
  }
}

// Both databases at a time: most of the time is waiting for a slow provider.
describe('A slow provider', { concurrency: true }, () => {
  for (const database of databases) {
    const count = SEND_COUNTS[database]!
    it(
      `no customer gets one of ${count} messages twice, and each has the state that the provider holds ` +
        `(${database})`,
      { timeout: 420_000 },
      () => run(database, count),
    )
  }
  it('commands that a provider of 40 s leaves open are repeated as they say, and sent once', runCommands)
})

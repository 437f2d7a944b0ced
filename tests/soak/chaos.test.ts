import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { currentVersion, scopes } from '../../catalog/index.ts'
import { hashApiKey, createApiKey } from '../../server/api-keys.ts'
import { createKey } from '../../storage/admin-keys.ts'
import { createChannel, createStaff, createWorkspace } from '../../storage/admin.ts'
import type { Db } from '../../storage/database.ts'
import { type Location, migrate } from '../../storage/open.ts'
import { insertTemplate } from '../../storage/templates.ts'
import { type ServerProcess, startCommand, startProcess } from '../process.ts'
import { createEmptyDatabase, databases, withStorage } from '../databases.ts'

const CONCURRENT_SENDS = 24
const KILL_COUNT = 4
const CUSTOMER_COUNT = 40
const PROVIDER_NUMBER_ID = '100200777'

type SandboxAnnouncement = { token: string; app_secret: string; verify_token: string }
type SandboxProcess = ServerProcess & {
  request: <T>(method: string, path: string, body?: unknown) => Promise<T>
}

/** Returns a free port: the sandbox needs the server's URL before it runs, and it stays after a restart. */
const freePort = async (): Promise<number> => {
  const server = createServer()
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  await new Promise((closed) => server.close(closed))
  return port
}

const startSandbox = async (
  folder: string,
  port: number,
): Promise<{ sandbox: SandboxProcess; env: Record<string, string> }> => {
  const child = await startCommand<SandboxAnnouncement>([
    'sandbox',
    'serve',
    '--port',
    '0',
    '--data',
    folder,
    '--webhook-url',
    `http://127.0.0.1:${port}/provider/webhook`,
    '--json',
  ])
  const { token, app_secret: appSecret, verify_token: verifyToken } = child.said
  return {
    sandbox: {
      ...child,
      request: async (method, path, body) => {
        const response = await fetch(`${child.url}/control/${path}`, {
          method,
          headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        })
        const text = await response.text()
        assert.ok(response.ok, `${method} ${path}: ${text}`)
        return JSON.parse(text)
      },
    },
    env: {
      WCRM_PROVIDER_URL: child.url,
      WCRM_PROVIDER_TOKEN: token,
      WCRM_PROVIDER_APP_SECRET: appSecret,
      WCRM_PROVIDER_VERIFY_TOKEN: verifyToken,
    },
  }
}

const prepare = (location: Location) =>
  withStorage(location, async ({ db }) => {
    await migrate(db)
    const now = new Date().toISOString()
    const { id: workspaceId } = await createWorkspace(db, { name: 'Chaos' }, now)
    const staff = await createStaff(db, workspaceId, { name: 'Owner', role: 'owner' }, [], now)
    await createChannel(
      db,
      workspaceId,
      {
        type: 'chatapp',
        name: 'Line',
        identifier: '15550100001',
        status: 'connected',
        is_default: true,
        account_id: '77',
        provider_phone_number_id: PROVIDER_NUMBER_ID,
      },
      now,
    )
    await insertTemplate(
      db,
      workspaceId,
      {
        account_id: '77',
        name: 'order_update',
        language: 'en_US',
        category: 'UTILITY',
        status: 'APPROVED',
        components: [
          { type: 'BODY', text: 'Hello {{1}}, your order is on its way.', example: { body_text: [['Ada']] } },
        ],
      },
      now,
    )
    const key = createApiKey(false)
    await createKey(
      db,
      workspaceId,
      hashApiKey(key),
      { staff_id: staff.id, scopes: [...scopes], api_version: currentVersion },
      now,
    )
    return { key, workspaceId }
  })

/** One send, with a mark that is part of what the provider receives. */
type Send = { mark: string; path: string; body: unknown }
type Reply = {
  status: number
  body: {
    message?: { id: string }
    data?: { id: string; contact: { phone: string } }[]
    next_cursor?: string | null
  }
  replayed: boolean
}

const callWith =
  (url: string, key: string) =>
  async (method: string, path: string, body?: unknown, idempotencyKey?: string): Promise<Reply> => {
    const response = await fetch(url + path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers: {
        Authorization: `Bearer ${key}`,
        'Content-Type': 'application/json',
        'Api-Confirm': 'send',
        ...(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
      },
    })
    return {
      status: response.status,
      body: (await response.json()) as Reply['body'],
      replayed: response.headers.get('idempotent-replayed') === 'true',
    }
  }
type Call = ReturnType<typeof callWith>
type StartedServer = { server: ServerProcess; call: Call }

/** Has customers write, and returns the ids of their conversations. */
const openConversations = async (sandbox: SandboxProcess, call: Call): Promise<string[]> => {
  // This call makes the server register its number and template with the sandbox.
  assert.equal((await call('GET', '/sandbox/templates')).status, 200)
  for (let n = 0; n < CUSTOMER_COUNT; n++)
    await sandbox.request('POST', 'say', {
      number_id: PROVIDER_NUMBER_ID,
      from: `1555011${1000 + n}`,
      text: 'Hello?',
    })
  for (;;) {
    const { body } = await call('GET', '/v1/conversations?limit=100')
    if (body.data?.length === CUSTOMER_COUNT) return body.data.map(({ id }) => id)
    await pause(200)
  }
}

const createSends = (count: number, conversations: readonly string[]): Send[] =>
  Array.from({ length: count }, (_, n): Send => {
    const mark = `chaos-${String(n).padStart(4, '0')}`
    return n % 2 === 0
      ? {
          mark,
          path: `/v1/conversations/${conversations[n % conversations.length]}/messages`,
          body: { text: mark },
        }
      : {
          mark,
          path: '/v1/messages/template',
          body: {
            phone: `+1555012${1000 + n}`,
            template: { name: 'order_update', language: 'en_US', body: [mark] },
          },
        }
  })

/** Sends all that is pending, concurrently, each until it is accepted or the server is killed. */
const sendAll = async (
  call: Call,
  pending: Map<string, Send>,
  onAccepted: (send: Send, reply: Reply) => void,
  onRetry: (status: number) => void,
): Promise<void> => {
  const queue = [...pending.values()]
  const worker = async (): Promise<void> => {
    for (let send = queue.shift(); send; send = queue.shift()) {
      for (;;) {
        let reply: Reply
        try {
          reply = await call('POST', send.path, send.body, `key-of-${send.mark}`)
        } catch {
          return
        }
        if (reply.status === 201) {
          pending.delete(send.mark)
          onAccepted(send, reply)
          break
        }
        // In progress or without an outcome: the client retries with the same key.
        assert.ok([409, 502, 503, 504].includes(reply.status), JSON.stringify(reply.body))
        onRetry(reply.status)
        await pause(300)
      }
    }
  }
  await Promise.all(Array.from({ length: CONCURRENT_SENDS }, worker))
}

type ProviderMessage = {
  id: string
  biz_opaque_callback_data: string
  text?: { body: string }
  template?: { components: { parameters: { text: string }[] }[] }
}
const markOf = (held: ProviderMessage): string =>
  held.text?.body ?? held.template!.components[0]!.parameters[0]!.text

type ChaosRun = {
  sends: readonly Send[]
  /** Message ids by mark, as the first accepted answers returned them. */
  ids: ReadonlyMap<string, string>
  /** How far the run came, for messages of assertions. */
  summary: string
}

/** Sends everything in rounds, in all but the last of which the server is killed. Returns the last server. */
const sendWithKills = async (
  sends: readonly Send[],
  sandbox: SandboxProcess,
  first: StartedServer,
  restart: () => Promise<StartedServer>,
): Promise<StartedServer & ChaosRun> => {
  let { server, call } = first
  const pending = new Map(sends.map((send) => [send.mark, send]))
  const ids = new Map<string, string>()
  const retries = new Map<number, number>()
  const killedAt: number[] = []
  for (let round = 0; round <= KILL_COUNT; round++) {
    if (round > 0) ({ server, call } = await restart())
    await sandbox.request('POST', 'faults', { on: 'messages', drop_answer: true, times: 10 })
    let untilKill = round < KILL_COUNT ? randomInt(5, Math.floor(sends.length / 8)) : Infinity
    let killed: Promise<void> | undefined
    const kill = () => {
      killed ??= server.kill('SIGKILL')
    }
    await sendAll(
      call,
      pending,
      ({ mark }, { body }) => {
        ids.set(mark, body.message!.id)
        if (--untilKill === 0) setTimeout(kill, randomInt(0, 30))
      },
      (status) => retries.set(status, (retries.get(status) ?? 0) + 1),
    )
    if (killed) {
      await killed
      killedAt.push(ids.size)
    }
  }
  const summary = `killed after ${killedAt.join(', ')} answers; ${JSON.stringify([...retries])}`
  assert.equal(killedAt.length, KILL_COUNT, summary)
  assert.equal(pending.size, 0, summary)
  assert.ok((retries.get(504) ?? 0) + (retries.get(503) ?? 0) > 0, `no answer was lost: ${summary}`)
  return { server, call, sends, ids, summary }
}

const listProviderMessages = async (sandbox: SandboxProcess): Promise<ProviderMessage[]> =>
  (await sandbox.request<{ data: ProviderMessage[] }>('GET', `messages?number_id=${PROVIDER_NUMBER_ID}`)).data

/** Asserts that the provider has each message once, and that repeated calls return the first answer. */
const assertSentOnce = async (
  sandbox: SandboxProcess,
  call: Call,
  { sends, ids, summary }: ChaosRun,
): Promise<ProviderMessage[]> => {
  const stored = await listProviderMessages(sandbox)
  assert.deepEqual(
    stored.map(markOf).toSorted(),
    sends.map((send) => send.mark),
    summary,
  )
  const references = new Set(stored.map((message) => message.biz_opaque_callback_data))
  assert.equal(references.size, sends.length, summary)
  await sendAll(
    call,
    new Map(sends.map((send) => [send.mark, send])),
    ({ mark }, { body, replayed }) =>
      assert.deepEqual([body.message!.id, replayed], [ids.get(mark), true], summary),
    () => assert.fail('a repeated call was not answered at once'),
  )
  assert.equal((await listProviderMessages(sandbox)).length, sends.length, summary)
  return stored
}

/** Asserts that the database has each message once, sent, and one event for each. */
const assertStoredOnce = async (
  db: Db,
  workspaceId: string,
  atProvider: readonly ProviderMessage[],
  { ids, summary }: ChaosRun,
): Promise<void> => {
  const expectedIds = [...ids.values()].toSorted()
  const messages = await db
    .selectFrom('messages')
    .select(['id', 'provider_id', 'status'])
    .where('workspace_id', '=', workspaceId)
    .where('direction', '=', 'outbound')
    .execute()
  assert.deepEqual(messages.map((m) => m.id).toSorted(), expectedIds, summary)
  assert.deepEqual(
    messages.map((m) => m.provider_id).toSorted(),
    atProvider.map((m) => m.id).toSorted(),
    summary,
  )
  assert.deepEqual(
    messages.filter((m) => !['sent', 'delivered'].includes(m.status)),
    [],
    summary,
  )
  const events = await db
    .selectFrom('events')
    .select('data')
    .where('workspace_id', '=', workspaceId)
    .where('type', '=', 'message.sent/1')
    .execute()
  assert.deepEqual(
    events.map((e) => (e.data as { message: { id: string } }).message.id).toSorted(),
    expectedIds,
    summary,
  )
}

// Both databases at a time: most of the time is waiting for the leases of a killed server.
describe('Chaos', { concurrency: true }, () => {
  for (const [database, sendCount] of databases.map((d) => [d, d === 'embedded' ? 200 : 500] as const))
    it(
      `${sendCount} messages are sent once each despite lost answers and killed servers (${database})`,
      { timeout: 280_000 },
      async () => {
        const place = await createEmptyDatabase(database)
        const sandboxFolder = mkdtempSync(join(tmpdir(), 'wcrm-chaos-'))
        const running: ServerProcess[] = []
        try {
          const { key, workspaceId } = await prepare(place.location)
          const port = await freePort()
          const { sandbox, env } = await startSandbox(sandboxFolder, port)
          running.push(sandbox)
          const start = async (): Promise<StartedServer> => {
            const server = await startProcess([...place.flags, '--port', String(port)], env)
            running.push(server)
            return { server, call: callWith(server.url, key) }
          }
          const first = await start()
          const sends = createSends(sendCount, await openConversations(sandbox, first.call))
          const { server, call, ...run } = await sendWithKills(sends, sandbox, first, start)
          const atProvider = await assertSentOnce(sandbox, call, run)
          await server.kill('SIGTERM')
          await withStorage(place.location, ({ db }) => assertStoredOnce(db, workspaceId, atProvider, run))
        } finally {
          for (const child of running) await child.kill('SIGKILL')
          await place.remove()
          rmSync(sandboxFolder, { recursive: true, force: true })
        }
      },
    )
})

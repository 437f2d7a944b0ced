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
import { createChannel, createKey, createStaff, createWorkspace } from '../../storage/admin.ts'
import { type Location, migrate } from '../../storage/open.ts'
import { insertTemplate } from '../../storage/templates.ts'
import { type ServerProcess, startCommand, startProcess } from '../process.ts'
import { createEmptyDatabase, databases, withStorage } from '../databases.ts'

const AT_ONCE = 24
const KILLS = 4
const CUSTOMERS = 40
const NUMBER = '100200777'

type Said = { token: string; app_secret: string; verify_token: string }
type SandboxProcess = ServerProcess & { ask: <T>(method: string, path: string, body?: unknown) => Promise<T> }

/** The server is told of to the sandbox before it runs, and keeps its address when it comes back. */
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
  const child = await startCommand<Said>([
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
      ask: async (method, path, body) => {
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
        provider_phone_number_id: NUMBER,
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

/** One send: each has a mark that stands in what the provider is given, and a key of its own. */
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

/** Customers write, so that there are conversations to reply in; answers their ids. */
const openConversations = async (sandbox: SandboxProcess, call: Call): Promise<string[]> => {
  // This has the server tell the sandbox its number and template.
  assert.equal((await call('GET', '/sandbox/templates')).status, 200)
  for (let n = 0; n < CUSTOMERS; n++)
    await sandbox.ask('POST', 'say', { number_id: NUMBER, from: `1555011${1000 + n}`, text: 'Hello?' })
  for (;;) {
    const { body } = await call('GET', '/v1/conversations?limit=100')
    if (body.data?.length === CUSTOMERS) return body.data.map(({ id }) => id)
    await pause(200)
  }
}

const sendsOf = (count: number, conversations: readonly string[]): Send[] =>
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

/** Sends what is owed, some at once and each until it is answered for good, or until the server is gone. */
const sendAll = async (
  call: Call,
  owed: Map<string, Send>,
  answered: (send: Send, reply: Reply) => void,
  troubled: (status: number) => void,
): Promise<void> => {
  const queue = [...owed.values()]
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
          owed.delete(send.mark)
          answered(send, reply)
          break
        }
        // Under way, or without an outcome: what a client does about both is to ask again, with the same key.
        assert.ok([409, 502, 503, 504].includes(reply.status), JSON.stringify(reply.body))
        troubled(reply.status)
        await pause(300)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

type Held = {
  id: string
  biz_opaque_callback_data: string
  text?: { body: string }
  template?: { components: { parameters: { text: string }[] }[] }
}
const markOf = (held: Held): string => held.text?.body ?? held.template!.components[0]!.parameters[0]!.text

// Both databases at a time: most of it is waiting for the leases of a dead server.
describe('Chaos', { concurrency: true }, () => {
  for (const [database, SENDS] of databases.map((d) => [d, d === 'embedded' ? 200 : 500] as const))
    it(
      `${SENDS} sends reach the provider once each, although answers are lost and the server is killed (${database})`,
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
          const start = async (): Promise<{ server: ServerProcess; call: Call }> => {
            const server = await startProcess([...place.flags, '--port', String(port)], env)
            running.push(server)
            return { server, call: callWith(server.url, key) }
          }
          let { server, call } = await start()
          const sends = sendsOf(SENDS, await openConversations(sandbox, call))
          const owed = new Map(sends.map((send) => [send.mark, send]))
          const ids = new Map<string, string>()
          const troubles = new Map<number, number>()
          const killedAt: number[] = []
          for (let round = 0; round <= KILLS; round++) {
            if (round > 0) ({ server, call } = await start())
            await sandbox.ask('POST', 'faults', { on: 'messages', drop_answer: true, times: 10 })
            let left = round < KILLS ? randomInt(5, Math.floor(SENDS / 8)) : Infinity
            let killed: Promise<void> | undefined
            const kill = () => {
              killed ??= server.kill('SIGKILL')
            }
            await sendAll(
              call,
              owed,
              ({ mark }, { body }) => {
                ids.set(mark, body.message!.id)
                if (--left === 0) setTimeout(kill, randomInt(0, 30))
              },
              (status) => troubles.set(status, (troubles.get(status) ?? 0) + 1),
            )
            if (killed) {
              await killed
              killedAt.push(ids.size)
            }
          }
          const told = `killed after ${killedAt.join(', ')} answers; ${JSON.stringify([...troubles])}`
          assert.equal(killedAt.length, KILLS, told)
          assert.equal(owed.size, 0, told)
          assert.ok((troubles.get(504) ?? 0) + (troubles.get(503) ?? 0) > 0, `no answer was lost: ${told}`)

          // The provider holds each once, under a mark of ours that is never repeated.
          const { data: held } = await sandbox.ask<{ data: Held[] }>('GET', `messages?number_id=${NUMBER}`)
          assert.deepEqual(
            held.map(markOf).toSorted(),
            sends.map((send) => send.mark),
            told,
          )
          assert.equal(new Set(held.map((message) => message.biz_opaque_callback_data)).size, SENDS, told)

          // A repeat of any of them answers what it answered first.
          const again = new Map(owed.size === 0 ? sends.map((send) => [send.mark, send]) : [])
          await sendAll(
            call,
            again,
            ({ mark }, { body, replayed }) =>
              assert.deepEqual([body.message!.id, replayed], [ids.get(mark), true], told),
            () => assert.fail('a repeat was troubled'),
          )
          assert.equal(
            (await sandbox.ask<{ data: Held[] }>('GET', `messages?number_id=${NUMBER}`)).data.length,
            SENDS,
            told,
          )

          await server.kill('SIGTERM')
          await withStorage(place.location, async ({ db }) => {
            const messages = await db
              .selectFrom('messages')
              .select(['id', 'provider_id', 'status'])
              .where('workspace_id', '=', workspaceId)
              .where('direction', '=', 'outbound')
              .execute()
            assert.deepEqual(messages.map((m) => m.id).toSorted(), [...ids.values()].toSorted(), told)
            assert.deepEqual(
              messages.map((m) => m.provider_id).toSorted(),
              held.map((m) => m.id).toSorted(),
              told,
            )
            assert.deepEqual(
              messages.filter((m) => !['sent', 'delivered'].includes(m.status)),
              [],
              told,
            )
            const events = await db
              .selectFrom('events')
              .select('data')
              .where('workspace_id', '=', workspaceId)
              .where('type', '=', 'message.sent/1')
              .execute()
            assert.deepEqual(
              events.map((e) => (e.data as { message: { id: string } }).message.id).toSorted(),
              [...ids.values()].toSorted(),
              told,
            )
          })
        } finally {
          for (const child of running) await child.kill('SIGKILL')
          await place.remove()
          rmSync(sandboxFolder, { recursive: true, force: true })
        }
      },
    )
})

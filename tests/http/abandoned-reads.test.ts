import type { Context } from '../../server/handler.ts'
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { type ControlledTransaction, sql } from 'kysely'
import { z } from 'zod'
import { defineOperation, type Operation } from '../../catalog/index.ts'
import type { Database } from '../../storage/database.ts'
import { openStorage, type Storage } from '../../storage/open.ts'
import { doAs } from '../calls.ts'
import { createDatabase, databases } from '../databases.ts'
import { createToolRequest } from '../mcp-request.ts'
import { makeWorkspace, serveStorage, type TestServer, type TestWorkspace } from '../servers.ts'
import { waitUntil } from '../wait-until.ts'

const read = {
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Count itself',
  words: 'test',
  errors: [],
  examples: [],
  scope: 'mcp:read',
  output: z.object({}),
} as const
const lightRead: Operation = defineOperation({
  ...read,
  name: 'test_light_read',
  cli: 'test light',
  routes: ['GET /v1/test/light'],
  input: z.object({}),
})
const heavyRead: Operation = defineOperation({
  ...read,
  name: 'test_heavy_read',
  cli: 'test heavy',
  routes: ['GET /v1/test/heavy'],
  input: z.object({}),
  heavy: true,
})

/** The server's side of the requests that arrive. */
const watchRequests = () => {
  const requests: IncomingMessage[] = []
  const listener = (message: unknown): void => {
    requests.push((message as { request: IncomingMessage }).request)
  }
  subscribe('http.server.request.start', listener)
  return {
    areGone: (by?: string) =>
      requests.every(({ method, socket }) => socket.destroyed || (by !== undefined && method !== by)),
    stop: () => unsubscribe('http.server.request.start', listener),
  }
}

for (const database of databases) {
  describe(`A client that is gone (${database})`, () => {
    let storage: Storage
    let server: TestServer
    let workspace: TestWorkspace
    let remove: () => Promise<void>
    /** Reads wait in front of it. */
    let gate = Promise.withResolvers<void>()
    let requests: ReturnType<typeof watchRequests>
    let held: ControlledTransaction<Database> | undefined
    const begun = { light: 0, heavy: 0 }

    before(async () => {
      const created = await createDatabase(database)
      remove = created.remove
      // One connection, which a transaction can keep from everybody.
      storage = await openStorage(created.location, { connections: 1 })
      await sql`create sequence test_reads minvalue 0`.execute(storage.db)
      const handlers = {
        light: async ({ tx }: Context) => {
          begun.light++
          await gate.promise
          await sql`select nextval('test_reads')`.execute(tx)
          return {}
        },
        heavy: async () => (begun.heavy++, await gate.promise, {}),
      }
      server = await serveStorage(storage, database, {
        extra: [
          { operation: lightRead, handler: handlers.light },
          { operation: heavyRead, handler: handlers.heavy },
        ] as never,
      })
      workspace = await makeWorkspace(server)
    })
    after(async () => {
      await server.close()
      await storage.close()
      await remove()
    })
    beforeEach(() => closeGate())
    afterEach(async () => {
      requests.stop()
      await held?.rollback().execute()
      held = undefined
    })

    const countReads = async (): Promise<number> => {
      const { rows } = await sql<{ n: string }>`
        select case when is_called then last_value + 1 else 0 end as n from test_reads`.execute(storage.db)
      return Number(rows[0]!.n)
    }
    const countAbandoned = async (): Promise<number> => {
      const { values } = await server.app.metrics.calls.get()
      return values.filter(({ labels }) => labels.code === 'client_gone').reduce((n, one) => n + one.value, 0)
    }
    const headers = () => ({
      Authorization: `Bearer ${workspace.owner.key}`,
      'Content-Type': 'application/json',
    })
    const doors = (name: string): [path: string, init: RequestInit][] => [
      [`/v1/test/${name}`, { headers: headers() }],
      [`/v1/ops/test_${name}_read`, { method: 'POST', headers: headers(), body: '{}' }],
      ['/mcp', createToolRequest(`test_${name}_read`, {}, { key: workspace.owner.key })],
    ]
    /** Sends requests whose answers are not waited for. Returns what closes their connections. */
    const send = (calls: readonly [path: string, init: RequestInit][]): (() => void) => {
      const abort = new AbortController()
      for (const [path, init] of calls)
        fetch(`${server.url}${path}`, { ...init, signal: abort.signal }).catch(() => {})
      return () => abort.abort()
    }
    const openGate = (): void => gate.resolve()
    const closeGate = (): void => {
      gate = Promise.withResolvers()
    }
    /** Has everybody else wait for the database. */
    const holdDatabase = async (): Promise<void> => {
      held = await storage.db.startTransaction().execute()
      await sql`select 1`.execute(held)
    }
    const letGo = async (): Promise<void> => {
      await held!.rollback().execute()
      held = undefined
    }
    const countWaiting = (): number => storage.poolStats()['general']!.waiting

    it('has no statement sent for a read that waits for the database', async () => {
      const [reads, abandoned] = [await countReads(), await countAbandoned()]
      requests = watchRequests()
      const before = begun.light
      const leave = send([...doors('light'), ...doors('light')])
      await waitUntil('all have begun', () => begun.light === before + 6)
      await holdDatabase()
      const waiting = countWaiting()
      openGate()
      await waitUntil('all wait', () => countWaiting() >= waiting + 6)
      leave()
      await waitUntil('the server knows', requests.areGone)
      await letGo()
      await waitUntil('the reads are dropped', async () => (await countAbandoned()) === abandoned + 6)
      assert.equal(await countReads(), reads)
    })

    it('has no further statement sent for a read that it left', async () => {
      const [reads, abandoned] = [await countReads(), await countAbandoned()]
      requests = watchRequests()
      const before = begun.light
      const leave = send(doors('light'))
      await waitUntil('all have begun', () => begun.light === before + 3)
      leave()
      await waitUntil('the server knows', requests.areGone)
      openGate()
      await waitUntil('the reads are dropped', async () => (await countAbandoned()) === abandoned + 3)
      assert.equal(await countReads(), reads)
    })

    it('has its change carried out, however far that was', async () => {
      requests = watchRequests()
      const fresh = await workspace.key(workspace.owner.staffId)
      const toGroup = (name: string, key: string): [path: string, init: RequestInit] => [
        '/v1/groups',
        {
          method: 'POST',
          headers: {
            ...headers(),
            Authorization: `Bearer ${key}`,
            'Idempotency-Key': `left-${key.slice(-20)}`,
          },
          body: JSON.stringify({ name }),
        },
      ]
      const changes = [toGroup('Known', workspace.owner.key), toGroup('Unknown', fresh.key)]
      const before = begun.light
      const leaveRead = send([doors('light')[0]!])
      await waitUntil('the read has begun', () => begun.light === before + 1)
      await holdDatabase()
      const waiting = countWaiting()
      const leave = send(changes)
      await waitUntil('both wait, one of them to be authenticated', () => countWaiting() >= waiting + 2)
      leave()
      leaveRead()
      await waitUntil('the server looked who is there', () => requests.areGone('GET'))
      await letGo()
      openGate()
      for (const [path, init] of changes) {
        let repeated = await fetch(`${server.url}${path}`, init)
        await waitUntil('the change is made', async () => {
          if (repeated.status === 409) repeated = await fetch(`${server.url}${path}`, init)
          return repeated.status !== 409
        })
        assert.deepEqual([repeated.status, repeated.headers.get('idempotent-replayed')], [200, 'true'])
      }
    })

    it('gives up its turn of an expensive read, so that others are not refused', async () => {
      requests = watchRequests()
      const { running, waiting } = server.app.heavyReadQueue
      const leave = send(Array.from({ length: 12 }, () => doors('heavy')).flat())
      await waitUntil('they wait', () => waiting.size === 32)
      const [left, abandoned] = [running.size + waiting.size, await countAbandoned()]
      leave()
      await waitUntil('the server knows', requests.areGone)
      const before = begun.heavy
      const others = doors('heavy').map(async ([path, init]) => await fetch(`${server.url}${path}`, init))
      await waitUntil('the others wait in place of them', () => waiting.size === 3)
      openGate()
      for (const other of await Promise.all(others)) assert.equal(other.status, 200)
      assert.equal(begun.heavy, before + 3)
      await waitUntil('they are dropped', async () => (await countAbandoned()) === abandoned + left)
    })

    it('is told from one that closed its side alone, which is answered', async () => {
      requests = watchRequests()
      for (const version of ['1.1', '1.0']) {
        const { hostname, port } = new URL(server.url)
        const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
        let text = ''
        socket.on('data', (data: Buffer) => (text += data.toString()))
        const before = begun.heavy
        socket.end(
          `GET /v1/test/heavy HTTP/${version}\r\nHost: x\r\nAuthorization: Bearer ${workspace.owner.key}\r\n\r\n`,
        )
        await waitUntil('it is read', () => begun.heavy > before)
        if (version === '1.1')
          await waitUntil('it is asked', () => text.split('HTTP/1.1 100 Continue\r\n\r\n').length > 3)
        openGate()
        await waitUntil('it is answered', () => text.includes('200 OK'))
        assert.equal(text.includes('100 Continue'), version === '1.1')
        socket.destroy()
        closeGate()
      }
    })

    /** Returns the path on which a client waits for the decision on a request for approval. */
    const askToDelete = async (name: string): Promise<string> => {
      const agent = await workspace.key(workspace.owner.staffId, { agent: true })
      const { group } = await doAs(server, workspace.owner.key)('crm_create_group', { name })
      const asked = await fetch(`${server.url}/v1/groups/${group.id}`, {
        method: 'DELETE',
        headers: { Authorization: `Bearer ${agent.key}` },
      })
      const { approval } = (await asked.json()) as { approval: { id: string } }
      return `/v1/approvals/${approval.id}?wait_seconds=30`
    }

    it('leaves no watch behind when it waits for an approval', async () => {
      const path = await askToDelete('To delete')
      const { open } = server.app.streams
      const before = open.size
      requests = watchRequests()
      const leave = send([[path, { headers: headers() }]])
      await waitUntil('it waits', () => open.size === before + 1)
      leave()
      await waitUntil('the watch has ended', () => open.size === before)
      assert.ok(requests.areGone())
    })

    it('waits with many requests on one connection, without a warning', async () => {
      const path = await askToDelete('To delete too')
      const { open } = server.app.streams
      const [before, count] = [open.size, 20]
      requests = watchRequests()
      const warnings: Error[] = []
      const onWarning = (warning: Error) => void warnings.push(warning)
      process.on('warning', onWarning)
      const { hostname, port } = new URL(server.url)
      const socket = connect({ host: hostname, port: Number(port) })
      const head = `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${workspace.owner.key}\r\n\r\n`
      socket.write(head.repeat(count))
      await waitUntil('all wait', () => open.size === before + count)
      socket.destroy()
      await waitUntil('the watches have ended', () => open.size === before)
      process.off('warning', onWarning)
      assert.deepEqual(warnings.map(String), [])
    })

    it('has no stream of events opened after it left', async () => {
      requests = watchRequests()
      await holdDatabase()
      const { countByKey } = server.app.streams
      const waiting = countWaiting()
      const leave = send([['/v1/events', { headers: { ...headers(), Accept: 'text/event-stream' } }]])
      await waitUntil('it waits', () => countWaiting() > waiting)
      leave()
      await waitUntil('the server knows', requests.areGone)
      await letGo()
      await waitUntil('there is no stream', () => countByKey.size === 0)
    })

    it('cancels a call over MCP by a notification of its session', async () => {
      const initialize = {
        protocolVersion: '2025-11-25',
        capabilities: { elicitation: {} },
        clientInfo: { name: 'tests', version: '1' },
      }
      let session: Record<string, string> = {}
      const post = (body: object): Promise<Response> =>
        fetch(`${server.url}/mcp`, {
          method: 'POST',
          headers: { ...headers(), Accept: 'application/json, text/event-stream', ...session },
          body: JSON.stringify({ jsonrpc: '2.0', ...body }),
        })
      const begin = await post({ id: 0, method: 'initialize', params: initialize })
      session = { 'Mcp-Session-Id': begin.headers.get('mcp-session-id')! }
      requests = watchRequests()
      const [reads, before] = [await countReads(), begun.light]
      const params = { name: 'test_light_read', arguments: {} }
      const called = post({ id: 7, method: 'tools/call', params })
      await waitUntil('it has begun', () => begun.light > before)
      const cancelled = await post({ method: 'notifications/cancelled', params: { requestId: 7 } })
      openGate()
      assert.deepEqual([cancelled.status, (await called).status], [202, 202])
      assert.equal(await (await called).text(), '')
      assert.equal(await countReads(), reads)
    })
  })
}

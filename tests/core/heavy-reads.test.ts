import type { Context } from '../../server/handler.ts'
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { z } from 'zod'
import fc from 'fast-check'
import { catalog, defineOperation, type Operation } from '../../catalog/index.ts'
import type { Actor } from '../../server/kernel/context.ts'
import { openStorage } from '../../storage/open.ts'
import { doAs } from '../calls.ts'
import { createDatabase, databases } from '../databases.ts'
import { doorsOf, type Reply } from '../doors.ts'
import { makeWorkspace, serveStorage, startServer, type TestKey, type TestServer } from '../servers.ts'
import { waitUntil } from '../wait-until.ts'
import { createAppState } from '../../server/app-state.ts'
import type { App } from '../../server/app.ts'
import { takeHeavyTurn } from '../../server/limits/heavy-reads.ts'
import { runs } from '../level.ts'

/** Expensive reads that run until they are let go, in the order in which they had their turns. */
const createHold = () => {
  const started: string[] = []
  const waiting: (() => void)[] = []
  let isOpen = false
  return {
    started,
    hold: (keyId: string) =>
      new Promise<void>((resolve) => {
        started.push(keyId)
        if (isOpen) resolve()
        else waiting.push(resolve)
      }),
    /** Ends the read that started first, or all that run. */
    endFirst: () => waiting.shift()?.(),
    endAll: (open: boolean) => {
      isOpen = open
      for (const end of waiting.splice(0)) end()
    },
  }
}

const common = {
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Read much',
  words: 'test',
  input: z.object({}),
  errors: [],
  examples: [],
  scope: 'mcp:read',
} as const
const heldRead: Operation = defineOperation({
  ...common,
  name: 'test_held_read',
  cli: 'test held',
  routes: ['GET /v1/test/held'],
  heavy: true,
  output: z.object({}),
})
const settingsRead = (name: string, heavy: boolean): Operation =>
  defineOperation({
    ...common,
    name,
    cli: 'test settings',
    routes: [`GET /v1/test/${name}`],
    ...(heavy ? { heavy: true } : {}),
    output: z.object({ timeout: z.string() }),
  })
const readSettings = async ({ tx }: Context) => {
  const { rows } = await sql<{ timeout: string }>`
    select current_setting('statement_timeout') as timeout`.execute(tx)
  return rows[0]
}

const ask = async ({ url }: TestServer, { key }: TestKey, op: string, input: object = {}) => {
  const { status, body, headers } = (await doorsOf(url, key)[1]!.call(op, { ...input })) as Reply
  return { status, body, retryAfter: headers['retry-after'] }
}

/** An expensive input of every expensive read. */
const createHeavyInputs = async (server: TestServer, owner: TestKey): Promise<Record<string, object>> => {
  const run = doAs(server, owner.key)
  const endpoint = await run('webhooks_create_endpoint', { url: 'https://hooks.example.com/' })
  const filter = { name: { regex: '^A' }, tags: { some: { name: { eq: 'VIP' } } } }
  const { saved_filter: saved } = await run('crm_create_saved_filter', { name: 'Saved', filter })
  await run('crm_track_saved_filter', { saved_filter_id: saved.id, tracked: true })
  await server.app.jobs.job('filter-membership').runOnce()
  return {
    crm_search_contacts: { query: 'an', filter },
    crm_count_contacts: { filter },
    crm_check_filter: { filter },
    inbox_search_conversations: { query: 'an' },
    inbox_search_messages: { query: 'an' },
    inbox_queue: { sla_status: 'breached' },
    messaging_list_broadcast_recipients: { broadcast_id: '1', message_status: 'read' },
    webhooks_list_deliveries: { endpoint_id: endpoint.endpoint?.id ?? endpoint.id, status: 'dead' },
    reports_workspace_summary: { preset: 'last_7_days' },
    reports_staff: { preset: 'last_7_days' },
    reports_filter_membership: { saved_filter_id: saved.id, since: '-1d' },
    audit_list: { outcome: 'refused', door: 'mcp' },
  }
}

for (const database of databases) {
  describe(`Expensive reads (${database})`, () => {
    let server: Awaited<ReturnType<typeof startServer>>
    let current = createHold()
    before(async () => {
      server = await startServer(database, {
        extra: [
          {
            operation: heldRead,
            handler: async ({ actor }: Context) => (await current.hold(actor.key.id), {}),
          },
          { operation: settingsRead('heavy_settings', true), handler: readSettings },
          { operation: settingsRead('light_settings', false), handler: readSettings },
        ] as never,
      })
    })
    after(async () => {
      await server.close()
    })

    it('leave every other call its connection, however many one key sends', async () => {
      current = createHold()
      const workspace = await makeWorkspace(server)
      const other = await workspace.key(workspace.owner.staffId)
      const hostile = Array.from({ length: 60 }, () => ask(server, workspace.owner, heldRead.name))
      await waitUntil('all wait', () => server.app.heavyReadQueue.waiting.size === 32)
      assert.ok(server.app.heavyReadQueue.running.size <= server.app.heavyReads)
      for (let n = 0; n < 30; n++) {
        assert.equal((await ask(server, other, 'crm_search_contacts')).status, 200)
        assert.equal(
          (await ask(server, other, 'crm_upsert_contact', { phone: `+1555010${1000 + n}` })).status,
          200,
        )
      }
      current.endAll(true)
      const replies = await Promise.all(hostile)
      const refused = replies.filter(({ status }) => status === 429)
      assert.deepEqual(
        [replies.filter(({ status }) => status === 200).length + refused.length, refused.length > 20],
        [60, true],
      )
      for (const { body, retryAfter } of refused) {
        assert.deepEqual([body.code, body.violated_policies], ['rate_limited', ['expensive-reads']])
        assert.ok(Number(retryAfter) >= 1)
      }
      assert.equal(server.app.heavyReadQueue.running.size, 0)
    })

    it('take turns: another workspace, then another key, come before more of the same key', async () => {
      current = createHold()
      const [workspace, elsewhere] = [await makeWorkspace(server), await makeWorkspace(server)]
      const colleague = await workspace.key(workspace.owner.staffId)
      const { running, waiting } = server.app.heavyReadQueue
      const calls = []
      for (const who of [workspace.owner, workspace.owner, workspace.owner, colleague, elsewhere.owner]) {
        const before = running.size + waiting.size
        calls.push(ask(server, who, heldRead.name))
        await waitUntil('it runs or waits', () => running.size + waiting.size > before)
      }
      for (let ended = 0; ended < calls.length; ended++) {
        await waitUntil('the next one begins', () => current.started.length > ended)
        current.endFirst()
      }
      const order = current.started
      await Promise.all(calls)
      assert.equal(order[0], workspace.owner.keyId)
      // The last of the turns is left to other workspaces.
      assert.equal(order[server.app.heavyReads - 1], elsewhere.owner.keyId)
      assert.ok(order.indexOf(colleague.keyId) < order.lastIndexOf(workspace.owner.keyId), String(order))
    })

    it('end with their caller: what was waiting is let in, and nothing stays behind', async () => {
      current = createHold()
      const workspace = await makeWorkspace(server)
      const calls = Array.from({ length: 5 }, () => ask(server, workspace.owner, heldRead.name))
      await waitUntil('one begins', () => current.started.length > 0)
      current.endAll(true)
      assert.deepEqual([...new Set((await Promise.all(calls)).map(({ status }) => status))], [200])
      const { running, waiting } = server.app.heavyReadQueue
      assert.deepEqual([running.size, waiting.size], [0, 0])
    })

    it(
      'have a shorter timeout',
      { skip: database !== 'postgresql' && 'the embedded one is not a setting of the session' },
      async () => {
        const { owner } = await makeWorkspace(server)
        const timeouts = []
        for (const op of ['heavy_settings', 'light_settings'])
          timeouts.push((await ask(server, owner, op)).body.timeout)
        assert.deepEqual(timeouts, ['5s', '15s'])
      },
    )

    it('use none of the connections of others, in any operation', async () => {
      const { location, remove } = await createDatabase(database)
      const storage = await openStorage(location)
      const statements = { db: [] as string[], heavy: [] as string[] }
      const recorded = (name: 'db' | 'heavy') =>
        storage[name].withPlugin({
          transformQuery: ({ node }) => {
            statements[name].push(JSON.stringify(node))
            return node
          },
          transformResult: async ({ result }) => result,
        })
      const own = await serveStorage({ ...storage, db: recorded('db'), heavy: recorded('heavy') }, database)
      try {
        const { owner } = await makeWorkspace(own)
        const inputs = await createHeavyInputs(own, owner)
        for (const op of catalog.filter(({ heavy }) => heavy)) {
          if (op.scope !== 'mcp:read') continue
          statements.db.length = 0
          statements.heavy.length = 0
          const { status, body } = await ask(own, owner, op.name, inputs[op.name])
          // Without a broadcast there are no recipients to list.
          assert.ok([200, 404].includes(status), `${op.name}: ${JSON.stringify(body)}`)
          assert.ok(statements.heavy.length > 0 || op.name === 'crm_check_filter', op.name)
          for (const text of statements.db)
            assert.match(text, /api_keys|rate_buckets/, `${op.name} on the others' connections: ${text}`)
        }
      } finally {
        await own.close()
        await storage.close()
        await remove()
      }
    })
  })
}

it('every operation whose input searches or filters much declares itself expensive', () => {
  // Lists of what staff make by hand are short, and the event log searches a bounded part of it at a time.
  const SHORT_LISTS = new RegExp(
    '^(crm_list_|workspace_|messaging_list_(templates|short_links|quick_messages|broadcasts)$' +
      '|webhooks_list_(endpoints|event_types)$)',
  )
  for (const op of catalog) {
    const fields = Object.keys(op.input.shape)
    if (SHORT_LISTS.test(op.name)) continue
    for (const field of fields.filter((name) => /^(query|search|filter|saved_filter_id)$/.test(name))) {
      if (op.name.endsWith('_saved_filter') && field !== 'filter') continue
      assert.ok(op.heavy === true || op.heavy?.includes(field as never), `${op.name} ${field}`)
    }
    if (op.name.startsWith('reports_')) assert.equal(op.heavy, true, op.name)
    if (op.heavy) assert.match(op.description ?? '', /expensive read/, op.name)
  }
})

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
    const done = takeHeavyTurn(app, actor).then((endTurn) => {
      started.push(key)
      running.push({ key, end: ended.resolve, done })
      return ended.promise.finally(endTurn)
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

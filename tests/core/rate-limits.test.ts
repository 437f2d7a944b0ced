import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { doorsOf, everyDatabase, type Reply } from '../doors.ts'
import { assertProblem } from '../problems.ts'
import { makeWorkspace, startSharedServers, type TestServer } from '../servers.ts'
import { databases } from '../databases.ts'

type Limit = { kind: string; remaining: number; reset: number }

const parseLimit = (reply: Reply): Limit => {
  const [, kind, remaining, reset] =
    /^"(\w+)";r=(\d+);t=(\d+)$/.exec(reply.headers['ratelimit'] ?? '') ?? assert.fail(reply.text)
  return { kind: kind!, remaining: Number(remaining), reset: Number(reset) }
}

const sendWrite = (server: TestServer, key: string, dryRun = true): Promise<Reply> =>
  doorsOf(server.url, key)[0]!.call('crm_create_group', { name: 'One', ...(dryRun ? { dry_run: true } : {}) })
const sendRead = (server: TestServer, key: string): Promise<Reply> =>
  doorsOf(server.url, key)[0]!.call('crm_list_tags')

const countAdmitted = (replies: readonly Reply[]): number => replies.filter((r) => r.status === 200).length

/** Returns how many calls a bucket that was full `sinceMs` ago may have admitted, with its refill. */
const maxAdmitted = (limit: number, sinceMs: number): number =>
  limit + Math.ceil(((sinceMs / 1000) * limit) / 60)

everyDatabase(
  'Rate limits: per key',
  (server) => {
    it('the limit is exact and the headers count down', async () => {
      const { owner } = await makeWorkspace(server())
      for (const remaining of [4, 3, 2, 1, 0]) {
        const reply = await sendWrite(server(), owner.key, remaining % 2 === 0)
        assert.equal(reply.status, 200)
        assert.equal(reply.headers['ratelimit-policy'], '"write";q=5;w=60')
        // One token is refilled every 12 seconds.
        const limit = parseLimit(reply)
        assert.deepEqual([limit.kind, limit.remaining], ['write', remaining])
        assert.ok(
          limit.reset <= (5 - remaining) * 12 && limit.reset > (4 - remaining) * 12,
          String(reply.headers['ratelimit']),
        )
      }
      const refused = await sendWrite(server(), owner.key)
      assert.deepEqual(
        [refused.status, refused.body.violated_policies, parseLimit(refused).remaining],
        [429, ['write'], 0],
      )
      assertProblem(refused, server().url)
      const wait = Number(refused.headers['retry-after'])
      assert.ok(wait <= 12 && wait > 9, `Retry-After: ${wait}`)
      assert.ok(parseLimit(refused).reset <= 60 && parseLimit(refused).reset >= wait)
    })

    it('a clock of the database that is set back takes no tokens away', async () => {
      const { owner } = await makeWorkspace(server())
      assert.equal(parseLimit(await sendWrite(server(), owner.key)).remaining, 4)
      await sql`update rate_buckets set at = at + interval '2 hours'`.execute(server().db)
      assert.deepEqual(
        [await sendWrite(server(), owner.key), await sendWrite(server(), owner.key)].map(
          ({ status }) => status,
        ),
        [200, 200],
      )
    })

    it('the limit is exact for concurrent calls over all doors', async () => {
      const { owner } = await makeWorkspace(server())
      const [rest, ops] = doorsOf(server().url, owner.key)
      const replies = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          [rest, ops][n % 2]!.call('crm_create_group', { name: `Group ${n}` }),
        ),
      )
      assert.equal(countAdmitted(replies), 5)
      assert.equal(replies.filter((r) => r.status === 429).length, 15)
      assert.equal((await rest!.call('crm_list_groups')).body.total, 5, 'rejected calls changed nothing')
    })

    it('reads and writes have separate limits, by scope and not by method', async () => {
      const { owner } = await makeWorkspace(server())
      const [rest, ops] = doorsOf(server().url, owner.key)
      await Promise.all(Array.from({ length: 6 }, () => sendWrite(server(), owner.key)))
      assert.equal((await sendWrite(server(), owner.key)).status, 429)
      const reads = [
        await rest!.call('crm_search_contacts', { sort: { field: 'name' } }),
        await ops!.call('crm_list_tags'),
        await rest!.call('crm_list_tags'),
      ]
      assert.deepEqual(
        reads.map((r) => [r.status, parseLimit(r).kind, parseLimit(r).remaining]),
        [
          [200, 'read', 11],
          [200, 'read', 10],
          [200, 'read', 9],
        ],
      )
      const me = (await rest!.call('workspace_whoami')).body.limits
      assert.deepEqual(
        [me.read, me.write],
        [
          { limit: 12, remaining: 8, window_seconds: 60 },
          { limit: 5, remaining: 0, window_seconds: 60 },
        ],
      )
      const more = await Promise.all(Array.from({ length: 12 }, () => sendRead(server(), owner.key)))
      assert.equal(countAdmitted(more), 8)
      assert.deepEqual(more.find((r) => r.status === 429)!.body.violated_policies, ['read'])
    })

    it('a call rejected before the rate limit step takes no token, one rejected after it does', async () => {
      const workspace = await makeWorkspace(server())
      const { key } = workspace.owner
      const [rest] = doorsOf(server().url, key)
      const unscoped = (await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })).key
      assert.equal(parseLimit(await sendWrite(server(), unscoped)).remaining, 5)
      assert.equal(
        parseLimit(await rest!.call('crm_create_group', { name: 'One' }, { version: '1999-01-01' }))
          .remaining,
        5,
      )
      assert.equal(parseLimit(await rest!.call('crm_create_group', { name: 7 })).remaining, 4)
      assert.equal(parseLimit(await rest!.call('crm_delete_group', { group_id: '7' })).remaining, 3)
      assert.equal(
        parseLimit(await rest!.call('crm_delete_group', { group_id: '999999' }, { confirm: 'delete' }))
          .remaining,
        2,
      )
    })

    it('each key has its own limit', async () => {
      const workspace = await makeWorkspace(server())
      const second = await workspace.key(workspace.owner.staffId)
      await Promise.all(Array.from({ length: 6 }, () => sendWrite(server(), workspace.owner.key)))
      assert.equal((await sendWrite(server(), workspace.owner.key)).status, 429)
      assert.equal(parseLimit(await sendWrite(server(), second.key)).remaining, 4)
    })
  },
  { limitWrite: 5, limitRead: 12 },
)

everyDatabase(
  'Rate limits: per workspace',
  (server) => {
    it('all keys of a workspace share its limit', async () => {
      const workspace = await makeWorkspace(server())
      const keys = [
        workspace.owner.key,
        (await workspace.key(workspace.owner.staffId)).key,
        (await workspace.staff({ role: 'admin' })).key,
      ]
      const first = await Promise.all(Array.from({ length: 12 }, () => sendWrite(server(), keys[0]!)))
      assert.equal(countAdmitted(first), 10)
      assert.deepEqual(first.find((r) => r.status === 429)!.body.violated_policies, ['write'])
      const rest = await Promise.all(
        Array.from({ length: 16 }, (_, n) => sendWrite(server(), keys[1 + (n % 2)]!)),
      )
      assert.equal(countAdmitted(rest), 5)
      const refused = rest.filter((r) => r.status === 429)
      for (const reply of refused) assert.deepEqual(reply.body.violated_policies, ['workspace-write'])
      assertProblem(refused[0]!, server().url)
      const other = await makeWorkspace(server())
      assert.equal(
        (await sendWrite(server(), other.owner.key)).status,
        200,
        'another workspace is not limited',
      )
    })
  },
  { limitWrite: 10, limitWorkspaceWrite: 15 },
)

everyDatabase(
  'Rate limits: refill',
  (server) => {
    it('tokens refill continuously, and a call after Retry-After passes', async () => {
      const { owner } = await makeWorkspace(server())
      const startedAt = performance.now()
      let count = countAdmitted(
        await Promise.all(Array.from({ length: 240 }, () => sendWrite(server(), owner.key))),
      )
      assert.equal(count, 240)
      let refusals = 0
      while (performance.now() - startedAt < 3000 || refusals === 0) {
        const reply = await sendWrite(server(), owner.key)
        if (reply.status === 200) count++
        else {
          refusals++
          assert.equal(reply.headers['retry-after'], '1', 'four tokens per second')
          await new Promise((resolve) => setTimeout(resolve, 100))
        }
      }
      const elapsedMs = performance.now() - startedAt
      assert.ok(count <= maxAdmitted(240, elapsedMs), `${count} in ${elapsedMs} ms`)
      assert.ok(count >= 240 + Math.floor(((elapsedMs - 1500) / 1000) * 4) - 1, `${count} in ${elapsedMs} ms`)
    })
  },
  { limitWrite: 240 },
)

describe('Rate limits: several servers', { skip: !databases.includes('postgresql') }, () => {
  for (const { kind, limit, call } of [
    { kind: 'write', limit: 60, call: sendWrite },
    { kind: 'read', limit: 300, call: sendRead },
  ]) {
    it(`together they admit at most the limit, and at least 90 % of it [${kind}]`, async () => {
      const { servers, close } = await startSharedServers(3, { limitWrite: 60, limitRead: 300 })
      try {
        const { owner } = await makeWorkspace(servers[0]!)
        const startedAt = performance.now()
        const batches = await Promise.all(
          servers.map((server) => Promise.all(Array.from({ length: limit }, () => call(server, owner.key)))),
        )
        const count = countAdmitted(batches.flat())
        const elapsedMs = performance.now() - startedAt
        assert.ok(count <= maxAdmitted(limit, elapsedMs), `${count} of ${limit} in ${elapsedMs} ms`)
        assert.ok(count >= limit * 0.9, `${count} of ${limit} in ${elapsedMs} ms`)
        for (const reply of batches.flat())
          assert.ok(reply.status === 200 || reply.status === 429, reply.text)
        // The bucket is now empty on every server.
        assert.ok(
          countAdmitted(await Promise.all(servers.map((server) => call(server, owner.key)))) <=
            maxAdmitted(limit, performance.now() - startedAt) - count,
        )
      } finally {
        await close()
      }
    })
  }

  it('sequential calls to alternating servers reach the limit', async () => {
    const { servers, close } = await startSharedServers(2, { limitWrite: 20 })
    try {
      const { owner } = await makeWorkspace(servers[0]!)
      const startedAt = performance.now()
      const replies: Reply[] = []
      for (let n = 0; n < 40; n++) replies.push(await sendWrite(servers[n % 2]!, owner.key))
      const count = countAdmitted(replies)
      assert.ok(count <= maxAdmitted(20, performance.now() - startedAt) && count >= 18, `${count} of 20`)
    } finally {
      await close()
    }
  })
})

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { doorsOf, type Reply } from '../doors.ts'
import { assertProblem } from '../problems.ts'
import {
  makeWorkspace,
  type ServerOptions,
  startServer,
  startSharedServers,
  type TestServer,
} from '../servers.ts'
import { databases } from '../databases.ts'

type Limit = { kind: string; left: number; reset: number }

const limitOf = (reply: Reply): Limit => {
  const [, kind, left, reset] =
    /^"(\w+)";r=(\d+);t=(\d+)$/.exec(reply.headers['ratelimit'] ?? '') ?? assert.fail(reply.text)
  return { kind: kind!, left: Number(left), reset: Number(reset) }
}

const write = (server: TestServer, key: string, dryRun = true): Promise<Reply> =>
  doorsOf(server.url, key)[0]!.call('crm_create_group', { name: 'One', ...(dryRun ? { dry_run: true } : {}) })
const read = (server: TestServer, key: string): Promise<Reply> =>
  doorsOf(server.url, key)[0]!.call('crm_list_tags')

const admitted = (replies: readonly Reply[]): number => replies.filter((r) => r.status === 200).length

/** Bucket and refill: what may at most, and must at least, have been let in since it was full. */
const most = (limit: number, sinceMs: number): number => limit + Math.ceil(((sinceMs / 1000) * limit) / 60)

const each = (title: string, options: ServerOptions, define: (server: () => TestServer) => void): void => {
  for (const database of databases) {
    describe(`${title} (${database})`, () => {
      let server: TestServer
      before(async () => {
        server = await startServer(database, options)
      })
      after(async () => {
        await server.close()
      })
      define(() => server)
    })
  }
}

each('Limits of a key', { limitWrite: 5, limitRead: 12 }, (server) => {
  it('are exact, and counted down in the headers', async () => {
    const { owner } = await makeWorkspace(server())
    for (const left of [4, 3, 2, 1, 0]) {
      const reply = await write(server(), owner.key, left % 2 === 0)
      assert.equal(reply.status, 200)
      assert.equal(reply.headers['ratelimit-policy'], '"write";q=5;w=60')
      // A token comes back every 12 seconds.
      const limit = limitOf(reply)
      assert.deepEqual([limit.kind, limit.left], ['write', left])
      assert.ok(
        limit.reset <= (5 - left) * 12 && limit.reset > (4 - left) * 12,
        String(reply.headers['ratelimit']),
      )
    }
    const refused = await write(server(), owner.key)
    assert.deepEqual(
      [refused.status, refused.body['violated-policies'], limitOf(refused).left],
      [429, ['write'], 0],
    )
    assertProblem(refused, server().url)
    const wait = Number(refused.headers['retry-after'])
    assert.ok(wait <= 12 && wait > 9, `Retry-After: ${wait}`)
    assert.ok(limitOf(refused).reset <= 60 && limitOf(refused).reset >= wait)
  })

  it('are exact for calls at once, over all doors', async () => {
    const { owner } = await makeWorkspace(server())
    const [rest, ops] = doorsOf(server().url, owner.key)
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        [rest, ops][n % 2]!.call('crm_create_group', { name: `Group ${n}` }),
      ),
    )
    assert.equal(admitted(replies), 5)
    assert.equal(replies.filter((r) => r.status === 429).length, 15)
    assert.equal((await rest!.call('crm_list_groups')).body.total, 5, 'what was refused did not happen')
  })

  it('of reads and of changes are apart, by scope and not by method', async () => {
    const { owner } = await makeWorkspace(server())
    const [rest, ops] = doorsOf(server().url, owner.key)
    await Promise.all(Array.from({ length: 6 }, () => write(server(), owner.key)))
    assert.equal((await write(server(), owner.key)).status, 429)
    const reads = [
      await rest!.call('crm_search_contacts', { sort: { field: 'name' } }),
      await ops!.call('crm_list_tags'),
      await rest!.call('crm_list_tags'),
    ]
    assert.deepEqual(
      reads.map((r) => [r.status, limitOf(r).kind, limitOf(r).left]),
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
    const more = await Promise.all(Array.from({ length: 12 }, () => read(server(), owner.key)))
    assert.equal(admitted(more), 8)
    assert.deepEqual(more.find((r) => r.status === 429)!.body['violated-policies'], ['read'])
  })

  it('take nothing for calls that are refused before them, and do for what is refused after', async () => {
    const workspace = await makeWorkspace(server())
    const { key } = workspace.owner
    const [rest] = doorsOf(server().url, key)
    const unscoped = (await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })).key
    assert.equal(limitOf(await write(server(), unscoped)).left, 5)
    assert.equal(
      limitOf(await rest!.call('crm_create_group', { name: 'One' }, { version: '1999-01-01' })).left,
      5,
    )
    assert.equal(limitOf(await rest!.call('crm_create_group', { name: 7 })).left, 4)
    assert.equal(limitOf(await rest!.call('crm_delete_group', { group_id: '7' })).left, 3)
    assert.equal(
      limitOf(await rest!.call('crm_delete_group', { group_id: '999999' }, { confirm: 'delete' })).left,
      2,
    )
  })

  it("are each key's own", async () => {
    const workspace = await makeWorkspace(server())
    const second = await workspace.key(workspace.owner.staffId)
    await Promise.all(Array.from({ length: 6 }, () => write(server(), workspace.owner.key)))
    assert.equal((await write(server(), workspace.owner.key)).status, 429)
    assert.equal(limitOf(await write(server(), second.key)).left, 4)
  })
})

each('Limits of a workspace', { limitWrite: 10, limitWorkspaceWrite: 15 }, (server) => {
  it('hold for all its keys together', async () => {
    const workspace = await makeWorkspace(server())
    const keys = [
      workspace.owner.key,
      (await workspace.key(workspace.owner.staffId)).key,
      (await workspace.staff({ role: 'admin' })).key,
    ]
    const first = await Promise.all(Array.from({ length: 12 }, () => write(server(), keys[0]!)))
    assert.equal(admitted(first), 10)
    assert.deepEqual(first.find((r) => r.status === 429)!.body['violated-policies'], ['write'])
    const rest = await Promise.all(Array.from({ length: 16 }, (_, n) => write(server(), keys[1 + (n % 2)]!)))
    assert.equal(admitted(rest), 5)
    const refused = rest.filter((r) => r.status === 429)
    for (const reply of refused) assert.deepEqual(reply.body['violated-policies'], ['workspace-write'])
    assertProblem(refused[0]!, server().url)
    const other = await makeWorkspace(server())
    assert.equal((await write(server(), other.owner.key)).status, 200, 'another workspace goes on')
  })
})

each('A bucket', { limitWrite: 240 }, (server) => {
  it('fills again by the second, and Retry-After is long enough', async () => {
    const { owner } = await makeWorkspace(server())
    const began = performance.now()
    let count = admitted(await Promise.all(Array.from({ length: 240 }, () => write(server(), owner.key))))
    assert.equal(count, 240)
    let refusals = 0
    while (performance.now() - began < 3000 || refusals === 0) {
      const reply = await write(server(), owner.key)
      if (reply.status === 200) count++
      else {
        refusals++
        assert.equal(reply.headers['retry-after'], '1', 'four come back each second')
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
    const took = performance.now() - began
    assert.ok(count <= most(240, took), `${count} in ${took} ms`)
    assert.ok(count >= 240 + Math.floor(((took - 1500) / 1000) * 4) - 1, `${count} in ${took} ms`)
  })
})

describe('Limits on several servers', { skip: !databases.includes('postgresql') }, () => {
  for (const { kind, limit, call } of [
    { kind: 'write', limit: 60, call: write },
    { kind: 'read', limit: 300, call: read },
  ]) {
    it(`let in no more than one would, and at most a tenth less [${kind}]`, async () => {
      const { servers, close } = await startSharedServers(3, { limitWrite: 60, limitRead: 300 })
      try {
        const { owner } = await makeWorkspace(servers[0]!)
        const began = performance.now()
        const batches = await Promise.all(
          servers.map((server) => Promise.all(Array.from({ length: limit }, () => call(server, owner.key)))),
        )
        const count = admitted(batches.flat())
        const took = performance.now() - began
        assert.ok(count <= most(limit, took), `${count} of ${limit} in ${took} ms`)
        assert.ok(count >= limit * 0.9, `${count} of ${limit} in ${took} ms`)
        for (const reply of batches.flat())
          assert.ok(reply.status === 200 || reply.status === 429, reply.text)
        // The bucket is empty everywhere now, not on each server for itself.
        assert.ok(
          admitted(await Promise.all(servers.map((server) => call(server, owner.key)))) <=
            most(limit, performance.now() - began) - count,
        )
      } finally {
        await close()
      }
    })
  }

  it('let in as many one after another, each call on the next server', async () => {
    const { servers, close } = await startSharedServers(2, { limitWrite: 20 })
    try {
      const { owner } = await makeWorkspace(servers[0]!)
      const began = performance.now()
      const replies: Reply[] = []
      for (let n = 0; n < 40; n++) replies.push(await write(servers[n % 2]!, owner.key))
      const count = admitted(replies)
      assert.ok(count <= most(20, performance.now() - began) && count >= 18, `${count} of 20`)
    } finally {
      await close()
    }
  })
})

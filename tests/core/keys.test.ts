import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { revokeKey } from '../../storage/access/admin-keys.ts'
import { updateStaff } from '../../storage/workspace/admin.ts'
import { doorsOf, everyDatabase, everyDoor } from '../doors.ts'
import { assertProblem } from '../problems.ts'
import { makeWorkspace, startServer, startSharedServers, type TestServer } from '../servers.ts'
import { createDatabase, databases, withStorage } from '../databases.ts'
import { createOwnerKey } from '../http/owner-key.ts'
import { startProcess } from '../process.ts'
import { createClockVariables, setClockAhead, slowClockDown } from '../slow-clock.ts'
import { measureStaleness } from '../staleness.ts'

const whoami = async (server: Pick<TestServer, 'url'>, key: string | undefined) =>
  await doorsOf(server.url, key)[0]!.call('workspace_whoami')

const replaceCharacter = (key: string, at: number): string =>
  key.slice(0, at) + (key.at(at) === 'x' ? 'y' : 'x') + key.slice(at + 1)

let noon = Date.parse('2026-10-05T12:00:00.000Z')
const now = () => new Date(noon).toISOString()

everyDoor(
  'API keys',
  (test) => {
    test('a key acts as its owner', async ({ workspace, as }) => {
      const { key, staffId } = await workspace.staff(
        { name: 'Grace', role: 'manager' },
        { scopes: ['mcp:read'] },
      )
      const me = await as(key)('workspace_whoami')
      assert.equal(me.status, 200, me.text)
      assert.deepEqual(
        [me.body.staff.id, me.body.staff.name, me.body.staff.role, me.body.key.scopes],
        [staffId, 'Grace', 'manager', ['mcp:read']],
      )
    })

    test('unknown, mistyped, expired keys and keys of disabled staff get the same 401', async ({
      workspace,
      as,
    }) => {
      const { staffId, key } = workspace.owner
      const expired = (await workspace.key(staffId, { expires_at: '2026-01-01T00:00:00.000Z' })).key
      const disabled = (await workspace.staff({ enabled: false })).key
      const refused = [
        replaceCharacter(key, 20),
        replaceCharacter(key, key.length - 1),
        `${key}0`,
        key.slice(0, -1),
        key.replace('live', 'test'),
        'wc_live_',
        'nonsense',
        expired,
        disabled,
      ]
      const details = new Set<string>()
      for (const bad of refused) {
        const reply = await as(bad)('workspace_whoami')
        assert.deepEqual([reply.status, reply.body.code], [401, 'unauthenticated'], bad)
        details.add(reply.body.detail)
      }
      assert.equal(details.size, 1, 'the response does not reveal the reason')
      assert.equal((await as(key)('workspace_whoami')).status, 200)
    })
  },
  { now },
)

everyDatabase(
  'API keys: the Authorization header',
  (server) => {
    it('only `Bearer <key>` is accepted', async () => {
      const workspace = await makeWorkspace(server())
      const { key } = workspace.owner
      const status = async (authorization: string | undefined) => {
        const headers = new Headers(authorization === undefined ? {} : { Authorization: authorization })
        const response = await fetch(`${server().url}/v1/me`, { headers })
        const text = await response.text()
        const reply = {
          status: response.status,
          text,
          body: JSON.parse(text),
          headers: Object.fromEntries(response.headers),
        }
        if (reply.status !== 200) assertProblem(reply, server().url)
        return reply.status
      }
      for (const good of [`Bearer ${key}`, `bearer ${key}`, `Bearer   ${key}`])
        assert.equal(await status(good), 200, good)
      const bads: (string | undefined)[] = [
        undefined,
        '',
        key,
        `Basic ${key}`,
        'Bearer',
        `Bearer ${key} ${key}`,
        `Bearer ${key},${key}`,
        `Bearer "${key}"`,
      ]
      for (const bad of bads) assert.equal(await status(bad), 401, String(bad))
      const inQuery = await fetch(`${server().url}/v1/me?authorization=${key}`)
      assert.equal(inQuery.status, 401)
    })

    it('a key is refused from the moment it expires', async () => {
      const workspace = await makeWorkspace(server())
      const end = noon + 3600_000
      const options = { expires_at: new Date(end).toISOString() }
      const { key } = await workspace.key(workspace.owner.staffId, options)
      assert.equal((await whoami(server(), key)).status, 200)
      noon = end
      assert.equal((await whoami(server(), key)).status, 401)
      assert.equal(
        (await whoami(server(), (await workspace.key(workspace.owner.staffId, options)).key)).status,
        401,
      )
    })
  },
  { now },
)

/** Calls until the key is refused. No call that started a second after the change may be accepted. */
const waitUntilRefused = async (servers: readonly TestServer[], key: string): Promise<void> => {
  const isRefused = async (server: TestServer): Promise<boolean> => {
    const { status } = await whoami(server, key)
    assert.ok(status === 200 || status === 401, String(status))
    return status === 401
  }
  const times = await Promise.all(servers.map((server) => measureStaleness(() => isRefused(server))))
  assert.ok(Math.max(...times) < 1000, `still accepted after ${times.join(' and ')} ms`)
}

for (const database of databases) {
  describe(`API keys: revocation (${database})`, () => {
    let servers: TestServer[]
    let close: () => Promise<void>
    before(async () => {
      if (database === 'postgresql') ({ servers, close } = await startSharedServers(2))
      else {
        const server = await startServer(database)
        servers = [server]
        close = server.close
      }
    })
    after(async () => {
      await close()
    })

    it('a revoked key is refused within a second on every server', async () => {
      const workspace = await makeWorkspace(servers[0]!)
      const { key, keyId } = await workspace.key(workspace.owner.staffId)
      for (const server of servers) assert.equal((await whoami(server, key)).status, 200)
      await revokeKey(servers[0]!.db, workspace.id, keyId, servers[0]!.app.now())
      await waitUntilRefused(servers, key)
      assert.equal((await whoami(servers[0]!, workspace.owner.key)).status, 200, 'other keys still work')
    })

    it('a key is refused within a second after its owner is disabled', async () => {
      const workspace = await makeWorkspace(servers[0]!)
      const { key, staffId } = await workspace.staff({ role: 'agent' })
      for (const server of servers) assert.equal((await whoami(server, key)).status, 200)
      await updateStaff(servers[0]!.db, workspace.id, staffId, { enabled: false }, undefined)
      await waitUntilRefused(servers, key)
    })
  })
}

everyDatabase(
  'API keys: a server whose clock is wrong',
  (server) => {
    it('takes no key that expired by the clock of the database, from its cache neither', async (test) => {
      const { owner, key: addKey } = await makeWorkspace(server())
      const endingIn = async (ms: number) => {
        const expires_at = new Date(Date.now() + ms).toISOString()
        return (await addKey(owner.staffId, { expires_at })).key
      }
      const [ended, lasting] = [await endingIn(-1000), await endingIn(60_000)]
      slowClockDown(test)
      assert.equal((await whoami(server(), ended)).status, 200, 'the clock is slow')
      await server().app.jobs.job('server-clock').runOnce()
      assert.equal((await whoami(server(), ended)).status, 401)
      assert.equal((await whoami(server(), lasting)).status, 200)
      // The clock is set back once more: what was noticed holds.
      test.mock.timers.setTime(Date.now() - 60 * 60_000)
      assert.equal((await whoami(server(), ended)).status, 401)
      assert.equal((await whoami(server(), lasting)).status, 200)
    })

    it('takes a key that has not expired by the clock of the database when its own is fast', async (test) => {
      const { owner, key: addKey } = await makeWorkspace(server())
      const expires_at = new Date(Date.now() + 60_000).toISOString()
      const { key: early } = await addKey(owner.staffId, { expires_at })
      const { key } = await addKey(owner.staffId, { expires_at })
      setClockAhead(test, 120)
      assert.equal((await whoami(server(), early)).status, 401, 'the clock is fast')
      await server().app.jobs.job('server-clock').runOnce()
      assert.equal((await whoami(server(), key)).status, 200)
      // The clock is set right.
      test.mock.timers.reset()
      assert.equal((await whoami(server(), key)).status, 200)
    })
  },
  { dedicated: true },
)

describe('API keys: a server whose clock is wrong from its start', { skip: databases.length === 1 }, () => {
  for (const hours of [-2, 2])
    it(`takes the keys that others take (${hours} hours ahead)`, async () => {
      const { location, flags, remove } = await createDatabase('postgresql')
      const createKeyEndingIn = async (ms: number): Promise<string> => {
        const key = await createOwnerKey(location)
        const expires_at = new Date(Date.now() + ms).toISOString()
        await withStorage(location, async ({ db }) => {
          await db.updateTable('api_keys').set({ expires_at }).where('expires_at', 'is', null).execute()
        })
        return key
      }
      const [ended, lasting] = [await createKeyEndingIn(-1000), await createKeyEndingIn(3_600_000)]
      const server = await startProcess(flags, createClockVariables(hours))
      try {
        assert.equal((await whoami(server, ended)).status, 401)
        assert.equal((await whoami(server, lasting)).status, 200)
      } finally {
        await server.stop()
        await remove()
      }
    })
})

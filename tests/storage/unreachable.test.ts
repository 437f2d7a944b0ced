import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { QUICK } from '../../storage/client/driver.ts'
import { openStorage, type Storage } from '../../storage/open.ts'
import { waitAtMost } from '../../storage/client/wait-at-most.ts'
import { createDatabase, databases } from '../databases.ts'
import { doorsOf } from '../doors.ts'
import { makeWorkspace, serveStorage, type TestServer, type TestWorkspace } from '../servers.ts'
import { startTcpProxy, type TcpProxy } from '../tcp-proxy.ts'

const RESPONSE_TIMEOUT_MS = 1000
/** How much longer a busy machine may take. */
const BUSY_MS = 10_000
const skip = !databases.includes('postgresql')

/** A server whose connections to PostgreSQL lead through a proxy, and a direct look at its database. */
const startBehindProxy = async (prepare: 'auto' | 'off' = 'auto') => {
  const { direct, remove } = await createDatabase('postgresql')
  const { databaseUrl } = direct as { databaseUrl: string }
  const proxy = await startTcpProxy(databaseUrl)
  const storage = await openStorage(
    { databaseUrl: proxy.route(databaseUrl) },
    {
      responseTimeout: RESPONSE_TIMEOUT_MS,
      acquireTimeout: 2 * RESPONSE_TIMEOUT_MS,
      prepare,
      connections: 8,
    },
  )
  const server = await serveStorage(storage, 'postgresql')
  const close = async () => {
    await server.close()
    await storage.close()
    await proxy.close()
    await remove()
  }
  return { server, storage, proxy, close }
}

describe('A database that does not respond', { skip }, () => {
  let server: TestServer
  let storage: Storage
  let proxy: TcpProxy
  let workspace: TestWorkspace
  let close: () => Promise<void>
  before(async () => {
    ;({ server, storage, proxy, close } = await startBehindProxy())
    workspace = await makeWorkspace(server)
  })
  after(() => close())

  /** Runs `work` while nothing gets through to the database. */
  const whileSilent = async <T>(work: () => Promise<T>): Promise<T> => {
    proxy.silence()
    try {
      return await work()
    } finally {
      proxy.resume()
    }
  }

  const doors = () => doorsOf(server.url, workspace.owner.key)

  it('makes reads and changes answer 503 through every door, and later ones work', async () => {
    for (const { call } of doors()) assert.equal((await call('crm_list_groups')).body.data.length, 0)
    const replies = await whileSilent(() =>
      Promise.all(
        doors().map(async ({ name, call }) => {
          const read = call('crm_list_groups')
          return { name, change: await call('crm_create_group', { name }), read: await read }
        }),
      ),
    )
    for (const { name, read, change } of replies) {
      for (const reply of [read, change]) {
        assert.equal(reply.body.code, 'upstream_unavailable', `${name}: ${reply.text}`)
        if (name === 'rest') assert.equal(reply.headers['retry-after'], '2')
      }
      assert.doesNotMatch(read.body.detail, /change/)
    }
    for (const { name, call } of doors()) {
      const again = await call('crm_create_group', { name: `${name} again` })
      assert.equal(again.body.group?.name ?? again.body.name, `${name} again`, again.text)
    }
  })

  it('makes keys that were never used answer 503, not 401, through every door', async () => {
    const unused = await Promise.all(
      doors().map(async ({ name }, i) => {
        const { key } = await workspace.staff({ name: `New, ${name}` })
        return doorsOf(server.url, key)[i]!
      }),
    )
    const replies = await whileSilent(() => Promise.all(unused.map(({ call }) => call('crm_list_groups'))))
    for (const { body, text } of replies) assert.equal(body.code, 'upstream_unavailable', text)
    for (const { call } of unused) assert.ok((await call('crm_list_groups')).body.data)
  })

  it('makes the server unready within two seconds, and ready again', async () => {
    const startedAt = performance.now()
    const { status } = await whileSilent(() => fetch(`${server.url}/readyz`))
    assert.equal(status, 503)
    assert.ok(performance.now() - startedAt < 2000 + BUSY_MS)
    assert.equal((await fetch(`${server.url}/readyz`)).status, 200)
  })

  it('makes the page of a short link and the sandbox controls answer 503', async () => {
    const { key } = await workspace.staff({ name: 'Page', role: 'owner' })
    const headers = { Authorization: `Bearer ${key}` }
    const [page, control] = await whileSilent(() =>
      Promise.all([fetch(`${server.url}/message/abcdef`), fetch(`${server.url}/sandbox/clock`, { headers })]),
    )
    assert.deepEqual([page!.status, control!.status], [503, 503])
    assert.equal((await fetch(`${server.url}/message/abcdef`)).status, 404)
  })

  it('fails a background job, whose next run succeeds', async () => {
    const job = server.app.jobs.job('provider-updates')
    await assert.rejects(whileSilent(() => job.runOnce()))
    assert.equal(await job.runOnce(), 0)
  })

  it('closes the connections of its statements and transactions, with one cancelled at the server', async () => {
    const pid = async () =>
      (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(storage.db)).rows[0]!.pid
    const before = await pid()
    const tx = await storage.db.startTransaction().execute()
    await sql`select 1`.execute(tx)
    await whileSilent(async () => {
      await assert.rejects(sql`select 2`.execute(tx), { code: 'RESPONSE_TIMEOUT' })
      await assert.rejects(tx.commit().execute(), { code: 'RESPONSE_TIMEOUT' })
      await tx.rollback().execute()
      await assert.rejects(pid(), { code: 'RESPONSE_TIMEOUT' })
    })
    assert.notEqual(await pid(), before)
  })

  it('gives up the wait for a connection', async () => {
    const held = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const tx = await storage.db
          .startTransaction()
          .execute()
          .catch((error: unknown) => error as Error)
        return tx
      }),
    )
    const refused = held.filter((tx) => tx instanceof Error)
    assert.ok(refused.length > 0)
    for (const error of refused) assert.equal((error as Error & { code: string }).code, 'ACQUIRE_TIMEOUT')
    for (const tx of held) if (!(tx instanceof Error)) await tx.rollback().execute()
    assert.equal((await doors()[0]!.call('crm_list_groups')).status, 200)
  })

  it('ends every statement that queues behind one that cannot connect', async () => {
    const { storage: other, proxy: between, close: closeOther } = await startBehindProxy()
    await between.close()
    // More than there are connections for them.
    const statements = Array.from({ length: 40 }, (_, n) =>
      sql`${sql.raw(QUICK)} select ${n}::integer`.execute(other.db),
    )
    const outcomes = Promise.allSettled(statements)
    assert.ok(await waitAtMost(3000 + BUSY_MS, outcomes), 'a statement never ends')
    assert.deepEqual(new Set((await outcomes).map(({ status }) => status)), new Set(['rejected']))
    await closeOther()
  })

  it('lets the storage close within seconds', async () => {
    const { storage: other, proxy: between, close: closeOther } = await startBehindProxy()
    between.silence()
    const running = assert.rejects(sql`select 1`.execute(other.db))
    const startedAt = performance.now()
    await other.close()
    assert.ok(performance.now() - startedAt < 3000 + BUSY_MS)
    await running
    between.resume()
    await closeOther()
  })
})

describe('A connection that is lost at the commit', { skip }, () => {
  let server: TestServer
  let proxy: TcpProxy
  let workspace: TestWorkspace
  let close: () => Promise<void>
  before(async () => {
    // A statement that is not prepared is sent with its text, by which the proxy knows the commit.
    ;({ server, proxy, close } = await startBehindProxy('off'))
    workspace = await makeWorkspace(server)
  })
  after(() => close())

  const run = (name: string, key: string) => {
    const { call } = doorsOf(server.url, workspace.owner.key)[0]!
    return call('crm_create_group', { name }, { idempotencyKey: key })
  }
  const countGroups = async (name: string) =>
    (await sql`select from groups where workspace_id = ${workspace.id} and name = ${name}`.execute(server.db))
      .rows.length

  it('after it: the stored response is found and sent', async () => {
    proxy.cutOnce('\0commit\0', 'after')
    const first = await run('Committed', 'lost-afterwards')
    assert.equal(first.status, 200, first.text)
    assert.equal(first.headers['idempotent-replayed'], undefined)
    const again = await run('Committed', 'lost-afterwards')
    assert.deepEqual([again.text, again.headers['idempotent-replayed']], [first.text, 'true'])
    assert.equal(await countGroups('Committed'), 1)
  })

  it('before it: the caller is told that the outcome is not known, and a retry makes the change', async () => {
    proxy.cutOnce('\0commit\0', 'before')
    const first = await run('Lost', 'lost-beforehand')
    assert.equal(first.status, 503, first.text)
    assert.match(first.body.detail, /Whether the change was made is not known.*Idempotency-Key/)
    assert.equal(first.headers['idempotency-key'], 'lost-beforehand')
    assert.equal(first.body.idempotency_key, 'lost-beforehand')
    assert.equal(await countGroups('Lost'), 0)
    let again = await run('Lost', 'lost-beforehand')
    // PostgreSQL has not noticed the loss yet.
    while (again.body.reason === 'still_running') again = await run('Lost', 'lost-beforehand')
    assert.equal(again.status, 200, again.text)
    assert.equal(again.headers['idempotent-replayed'], undefined)
    assert.equal(await countGroups('Lost'), 1)
  })
})

describe('A database that an administrator closes to connections', { skip }, () => {
  let server: TestServer
  let workspace: TestWorkspace
  let name: string
  let admin: Storage
  let close: () => Promise<void>
  before(async () => {
    ;({ server, close } = await startBehindProxy())
    workspace = await makeWorkspace(server)
    name = (await sql<{ name: string }>`select current_database() as name`.execute(server.db)).rows[0]!.name
    admin = await openStorage({ databaseUrl: process.env.WCRM_TEST_POSTGRES_URL! }, { noTimeout: true })
  })
  after(async () => {
    await close()
    await admin.close()
  })

  const doors = () => doorsOf(server.url, workspace.owner.key)

  it('makes calls answer 503 through every door, until it is open again', async () => {
    const allow = (allowed: boolean) =>
      sql`alter database ${sql.id(name)} allow_connections ${sql.raw(String(allowed))}`.execute(admin.db)
    for (const { call } of doors()) assert.equal((await call('crm_list_groups')).status, 200)
    await allow(false)
    try {
      await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`.execute(
        admin.db,
      )
      for (const { name: door, call } of doors())
        for (const operation of ['crm_list_groups', 'crm_create_group']) {
          const { body, text } = await call(operation, operation === 'crm_create_group' ? { name: door } : {})
          assert.equal(body.code, 'upstream_unavailable', `${door}: ${text}`)
        }
    } finally {
      await allow(true)
    }
    for (const { call } of doors()) assert.ok((await call('crm_list_groups')).body.data)
  })
})

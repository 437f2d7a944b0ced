import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { type Cluster, postgresBinaries, startCluster } from '../../scripts/cluster.ts'
import type { Db } from '../../storage/database.ts'
import { migrate } from '../../storage/migrations/migrate.ts'
import { openStorage, type OpenOptions, type Storage } from '../../storage/open.ts'
import { databases } from '../databases.ts'
import { doorsOf } from '../doors.ts'
import { makeWorkspace, serveStorage, type TestServer, type TestWorkspace } from '../servers.ts'
import { startTcpProxy, type TcpProxy } from '../tcp-proxy.ts'

const RESPONSE_TIMEOUT_MS = 3_000
const skip = !databases.includes('postgresql')

const hostOf = (url: string): string => new URL(url).host

/** The URL of the cluster that these two are. */
const joinUrls = (first: string, second: string, role = 'read-write'): string =>
  first.replace(hostOf(first), `${hostOf(first)},${hostOf(second)}`) + `?target_session_attrs=${role}`

const readPort = async (db: Db): Promise<string> =>
  (await sql<{ port: string }>`select current_setting('port') as port`.execute(db)).rows[0]!.port

const portOf = (url: string): string => new URL(url).port

/** Sets a parameter of the whole server, and returns when new statements see it. */
const setParameter = async (db: Db, name: string, value: string): Promise<void> => {
  await sql`alter system set ${sql.raw(name)} = ${sql.lit(value)}`.execute(db)
  await sql`select pg_reload_conf()`.execute(db)
  const isSet = sql<{ value: string }>`select current_setting(${name}) as value`
  while ((await isSet.execute(db)).rows[0]!.value !== value);
}

/**
 * Has the server give up every wait for a standby, as for an administrator who cancels what takes long: it then
 * reports the commit as done.
 */
const whileWaitsAreCanceled = async <T>(db: Db, work: () => Promise<T>): Promise<T> => {
  let isOver = false
  const working = work().finally(() => {
    isOver = true
  })
  while (!isOver) await cancelWaits(db)
  return await working
}

/** Returns how many commits waited for a standby, which do so no longer. */
const cancelWaits = async (db: Db): Promise<number> =>
  (await sql`select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`.execute(db))
    .rows.length

/** Returns when commits wait for a standby: a process of the server tells all others that they have to. */
const waitForWaits = async (db: Db): Promise<void> => {
  for (let canceled = 0; canceled === 0;) {
    let isOver = false
    const change = sql`update workspaces set name = name`.execute(db).finally(() => {
      isOver = true
    })
    while (!isOver) canceled += await cancelWaits(db)
    await change
  }
}

/** Returns when the standby has what the primary server has. */
const waitForStandby = async (db: Db): Promise<void> => {
  const isBehind = sql`select from pg_stat_replication where replay_lsn is distinct from pg_current_wal_lsn()`
  while ((await isBehind.execute(db)).rows.length > 0);
}

describe('A cluster of a primary server and a standby', { skip }, () => {
  let primary: Cluster
  let standby: Cluster
  let proxy: TcpProxy
  let storage: Storage
  let admin: Storage
  let server: TestServer
  let workspace: TestWorkspace
  const opened: Storage[] = []
  const open = async (databaseUrl: string, options: OpenOptions = {}): Promise<Storage> => {
    const one = await openStorage({ databaseUrl }, options)
    opened.push(one)
    return one
  }
  before(async () => {
    const binaries = postgresBinaries()!
    primary = await startCluster(binaries)
    admin = await open(primary.url, { noTimeout: true })
    await migrate(admin.db)
    standby = await startCluster(binaries, {}, { primary: primary.url })
    proxy = await startTcpProxy(primary.url)
    storage = await open(joinUrls(standby.url, proxy.route(primary.url)), {
      responseTimeout: RESPONSE_TIMEOUT_MS,
      connections: 8,
    })
    server = await serveStorage(storage, 'postgresql')
    workspace = await makeWorkspace(server)
  })
  after(async () => {
    await server.close()
    await Promise.all(opened.map((one) => one.close()))
    await proxy.close()
    standby.stop()
    primary.stop()
  })
  const doors = () => doorsOf(server.url, workspace.owner.key)
  const createGroup = (name: string, idempotencyKey: string) =>
    doors()[0]!.call('crm_create_group', { name }, { idempotencyKey })

  it('is reached at the server that the URL asks for, whatever the order of the addresses', async () => {
    for (const options of [{}, { noTimeout: true }]) {
      for (const [role, port] of [
        ['read-write', portOf(primary.url)],
        ['primary', portOf(primary.url)],
        ['standby', portOf(standby.url)],
      ] as const)
        for (const url of [
          joinUrls(standby.url, primary.url, role),
          joinUrls(primary.url, standby.url, role),
        ]) {
          assert.equal(await readPort((await open(url, options)).db), port, url)
        }
    }
    const alone = open(`${standby.url}?target_session_attrs=read-write`)
    await assert.rejects(alone, { code: /CONNECTION_(CLOSED|DESTROYED)/ })
  })

  it('answers 503 through every door while the server takes no changes, and leaves that server', async () => {
    const pid = async () =>
      (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(storage.db)).rows[0]!.pid
    const earlier = await pid()
    await setParameter(admin.db, 'default_transaction_read_only', 'on')
    try {
      for (const { name, call } of doors()) {
        const reply = await call('crm_create_group', { name })
        assert.equal(reply.body.code, 'upstream_unavailable', reply.text)
        if (name === 'rest') assert.equal(reply.headers['retry-after'], '2')
      }
    } finally {
      await setParameter(admin.db, 'default_transaction_read_only', 'off')
    }
    assert.notEqual(await pid(), earlier)
    assert.equal((await createGroup('After read-only', 'after-read-only')).status, 200)
  })

  it('acknowledges no change that a lost standby has not, and no repeat of one', async () => {
    await setParameter(admin.db, 'synchronous_standby_names', 'lost')
    try {
      await waitForWaits(admin.db)
      for (const attempt of ['first', 'repeat']) {
        const reply = await whileWaitsAreCanceled(admin.db, () =>
          createGroup('Not replicated', 'not-replicated'),
        )
        assert.equal(reply.status, 503, `${attempt}: ${reply.text}`)
        assert.match(reply.body.detail, /Whether the change was made is not known.*Idempotency-Key/)
      }
    } finally {
      await setParameter(admin.db, 'synchronous_standby_names', '')
    }
    const again = await createGroup('Not replicated', 'not-replicated')
    assert.deepEqual([again.status, again.headers['idempotent-replayed']], [200, 'true'], again.text)
  })

  it('goes on at the standby when the primary server has not responded in time', async () => {
    // So that every connection was in use, and none is opened for what comes next.
    await Promise.all(Array.from({ length: 20 }, (_, n) => createGroup(`Before ${n}`, `before-silence-${n}`)))
    await waitForStandby(admin.db)
    proxy.silence()
    const silent = doors().map(({ name, call }) => call('crm_create_group', { name: `${name} silent` }))
    standby.promote()
    const startedAt = performance.now()
    for (const { body, text } of await Promise.all(silent))
      assert.ok(body.group || body.name || body.code === 'upstream_unavailable', text)
    const after = await createGroup('At the standby', 'at-the-standby')
    assert.equal(after.status, 200, after.text)
    assert.ok(performance.now() - startedAt < RESPONSE_TIMEOUT_MS + 8_000)
    assert.equal(await readPort(storage.db), portOf(standby.url))
    // What failed is repeated at the server that took over, and what did not is there.
    for (const { name, call } of doors()) {
      const again = await call('crm_create_group', { name: `${name} silent` })
      assert.ok(again.status === 200 || again.body.code === 'conflict' || again.body.group, again.text)
    }
    proxy.resume()
  })
})

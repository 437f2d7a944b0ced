import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { type Cluster, postgresBinaries, startCluster } from '../../scripts/cluster.ts'
import { migrate } from '../../storage/migrations/migrate.ts'
import { runAdminWith } from '../admin/admin-commands.ts'
import { certificate, localCertificate } from '../certificate.ts'
import { createDatabase, databases, withStorage } from '../databases.ts'
import { startProcess } from '../process.ts'
import { makeWorkspace, serveStorage } from '../servers.ts'
import { doorsOf } from '../doors.ts'
import { startTcpProxy } from '../tcp-proxy.ts'

/** A parameter of the message with which a connection begins. */
const STARTUP = 'application_name'

describe('A connection that is lost while it opens', { skip: !databases.includes('postgresql') }, () => {
  it('ends no process: the next call opens another', async () => {
    const database = await createDatabase('postgresql')
    const { databaseUrl } = database.direct as { databaseUrl: string }
    const proxy = await startTcpProxy(databaseUrl)
    const server = await startProcess([...database.flags, '--database-url', proxy.route(databaseUrl)])
    try {
      const ready = async () => (await fetch(`${server.url}/readyz`)).status
      assert.equal(await ready(), 200)
      for (const when of ['before', 'after'] as const) {
        proxy.cutOnce(STARTUP, when)
        await withStorage(database.direct, async ({ db }) => {
          await sql`
            select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()`.execute(db)
        })
        let status = 503
        for (let attempt = 0; attempt < 50 && status === 503; attempt++) status = await ready()
        assert.equal(status, 200, 'ready again')
      }
      assert.equal(await server.stop(), 0)
    } finally {
      await server.kill('SIGKILL')
      await proxy.close()
      await database.remove()
    }
  })
})

describe('A connection to PostgreSQL', { skip: !databases.includes('postgresql') }, () => {
  it('begins with the statement after which its session keeps the memory of statements', async () => {
    const database = await createDatabase('postgresql')
    const { databaseUrl } = database.direct as { databaseUrl: string }
    const proxy = await startTcpProxy(databaseUrl)
    try {
      const location = { databaseUrl: proxy.route(databaseUrl) }
      await withStorage(location, async ({ db }) => {
        const wait = () => sql`select pg_sleep(0.01) /* of this test */`.execute(db)
        await Promise.all([wait(), wait(), wait()])
      })
      const used = proxy.beginnings().filter((text) => text.includes('of this test'))
      assert.ok(used.length > 0)
      for (const text of used) {
        const [before] = text.split('of this test')
        assert.match(before!, /select octet_length\(repeat\(repeat\(' ', 4000\), 1000\)\)/)
      }
    } finally {
      await proxy.close()
      await database.remove()
    }
  })
})

const hasIpv6 = Object.values(networkInterfaces()).some((some) => some?.some((at) => at.address === '::1'))

describe('The URL of a PostgreSQL', { skip: !databases.includes('postgresql') }, () => {
  it('changes nothing of what the service sets, such as the name by which a restore finds sessions', async () => {
    const database = await createDatabase('postgresql')
    const { databaseUrl } = database.direct as { databaseUrl: string }
    const folder = mkdtempSync(join(tmpdir(), 'wcrm-url-'))
    const file = join(folder, 'backup.gz')
    const wanted = `${databaseUrl}?application_name=crm&DATESTYLE=German&statement_timeout=70&TimeZone=Asia/Tokyo`
    try {
      await withStorage({ databaseUrl: wanted }, async (storage) => {
        assert.deepEqual(storage.access, { pooled: false, prepare: true })
        const server = await serveStorage(storage, 'postgresql')
        const { owner } = await makeWorkspace(server)
        for (const { call } of doorsOf(server.url, owner.key))
          assert.equal((await call('crm_list_groups')).status, 200)
        const flags = [file, '--database-url', wanted]
        const backup = await runAdminWith({ WCRM_DATA: folder }, 'backup', ...flags)
        assert.equal(backup.exit, 0, backup.err)
        const restore = await runAdminWith({ WCRM_DATA: folder }, 'restore', ...flags)
        assert.equal(restore.exit, 5)
        assert.match(restore.err, /A server is using this PostgreSQL database/)
        await server.close()
      })
    } finally {
      rmSync(folder, { recursive: true })
      await database.remove()
    }
  })
})

describe('A PostgreSQL with TLS', { skip: !databases.includes('postgresql') }, () => {
  let cluster: Cluster
  before(async () => {
    const listen_addresses = hasIpv6 ? '127.0.0.1,::1' : '127.0.0.1'
    // It trusts its own certificate as that of a client, too.
    const settings = { listen_addresses, ssl_ca_file: 'server.crt' }
    cluster = await startCluster(postgresBinaries()!, settings, { tls: localCertificate })
    await withStorage({ databaseUrl: cluster.url }, ({ db }) => migrate(db), { noTimeout: true })
  })
  after(() => cluster.stop())

  /** Requires that calls work, and that each connection to this URL is encrypted, or that none is. */
  const requireCalls = async (databaseUrl: string, encrypted: boolean): Promise<void> => {
    for (const noTimeout of [false, true])
      await withStorage(
        { databaseUrl },
        async (storage) => {
          const server = await serveStorage(storage, 'postgresql')
          const { owner } = await makeWorkspace(server)
          for (const { call } of doorsOf(server.url, owner.key))
            assert.equal((await call('crm_list_groups')).status, 200)
          const { rows } = await sql<{ ssl: boolean }>`
            select distinct ssl from pg_stat_ssl natural join pg_stat_activity
            where application_name = 'wcrm'`.execute(storage.db)
          assert.deepEqual(rows, [{ ssl: encrypted }])
          await server.close()
        },
        { noTimeout },
      )
  }
  const withPort = (hosts: string): string =>
    cluster.url.replace(/127.0.0.1:\d+/, hosts.replaceAll('PORT', new URL(cluster.url).port))

  it('encrypts connections, and closes them in order', async () => {
    await requireCalls(`${cluster.url}?sslmode=require`, true)
    await requireCalls(`${cluster.url}?sslmode=prefer`, true)
    await requireCalls(`${withPort('127.0.0.1:1,127.0.0.1:PORT')}?sslmode=require`, true)
    await requireCalls(
      `${withPort('127.0.0.1:1,127.0.0.1:PORT')}?sslmode=require&target_session_attrs=primary`,
      true,
    )
    await requireCalls(`${cluster.url}?sslmode=disable`, false)
  })

  it('refuses a certificate that it does not know, where it has to check', async () => {
    for (const noTimeout of [false, true])
      await assert.rejects(
        requireRefused(`${cluster.url}?sslmode=verify-full`, noTimeout),
        (error: NodeJS.ErrnoException) => error.code === 'DEPTH_ZERO_SELF_SIGNED_CERT',
      )
  })
  const requireRefused = (databaseUrl: string, noTimeout: boolean): Promise<unknown> =>
    withStorage({ databaseUrl }, ({ db }) => sql`select 1`.execute(db), { noTimeout })

  it('is trusted by the certificates of sslrootcert, at the host that these are of', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wcrm-certificates-'))
    const [own, other] = [join(folder, 'own certificate'), join(folder, 'other')]
    writeFileSync(own, localCertificate.cert)
    writeFileSync(other, certificate.cert)
    const [byIp, byName] = [withPort('127.0.0.1:PORT'), withPort('localhost:PORT')]
    const by = (file: string) => `sslrootcert=${encodeURIComponent(file)}`
    try {
      for (const mode of ['verify-full', 'verify-ca', 'require'])
        await requireCalls(`${byIp}?sslmode=${mode}&${by(own)}`, true)
      await requireCalls(`${byIp}?${by(own)}`, true)
      await requireCalls(`${byName}?sslmode=verify-ca&${by(own)}`, true)
      const several = withPort('127.0.0.1:1,127.0.0.1:PORT')
      await requireCalls(`${several}?sslmode=verify-full&target_session_attrs=primary&${by(own)}`, true)
      const refused: Record<string, string> = {
        [`${byName}?sslmode=verify-full&${by(own)}`]: 'ERR_TLS_CERT_ALTNAME_INVALID',
        [`${byIp}?sslmode=require&${by(other)}`]: 'DEPTH_ZERO_SELF_SIGNED_CERT',
        [`${byIp}?sslmode=require&sslrootcert=system`]: 'DEPTH_ZERO_SELF_SIGNED_CERT',
        [`${byIp}?sslmode=verify-ca&${by(join(folder, 'none'))}`]: 'UNUSABLE_TLS_FILE',
      }
      for (const [url, code] of Object.entries(refused))
        for (const noTimeout of [false, true]) await assert.rejects(requireRefused(url, noTimeout), { code })
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('is shown the certificate of sslcert, of each connection', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wcrm-certificates-'))
    const write = (name: string, text: string | Buffer): string => {
      writeFileSync(join(folder, name), text)
      return encodeURIComponent(join(folder, name))
    }
    const sealed = createPrivateKey(localCertificate.key).export({
      type: 'pkcs8',
      format: 'pem',
      cipher: 'aes-256-cbc',
      passphrase: 'open it',
    })
    const [own, key] = [write('own', localCertificate.cert), write('own key', localCertificate.key)]
    const sealedKey = write('sealed key', sealed)
    const [other, otherKey] = [write('other', certificate.cert), write('other key', certificate.key)]
    const known = `sslcert=${own}&sslkey=${key}`
    try {
      for (const parameters of [
        known,
        `sslmode=prefer&${known}`,
        `sslmode=verify-full&sslrootcert=${own}&${known}`,
        `sslmode=require&sslcert=${own}&sslkey=${sealedKey}&sslpassword=open+it`,
      ]) {
        await requireCalls(`${cluster.url}?${parameters}`, true)
        for (const noTimeout of [false, true])
          await withStorage(
            { databaseUrl: `${cluster.url}?${parameters}` },
            async ({ db }) => {
              const { rows } = await sql<{ of: string }>`
                select distinct client_dn as of from pg_stat_ssl natural join pg_stat_activity
                where application_name = 'wcrm'`.execute(db)
              assert.deepEqual(rows, [{ of: '/CN=Local' }])
            },
            { noTimeout },
          )
      }
      const refused: Record<string, { code: string | RegExp; message?: RegExp }> = {
        // In TLS 1.3 the refusal comes after the handshake: what the client sends meanwhile may reset the connection.
        [`sslcert=${other}&sslkey=${otherKey}`]: { code: /^(?:ERR_SSL_TLSV1_ALERT_UNKNOWN_CA|ECONNRESET)$/ },
        [`sslcert=${own}`]: { code: 'UNUSABLE_TLS_FILE', message: /given together/ },
        [`sslmode=require&sslkey=${key}`]: { code: 'UNUSABLE_TLS_FILE', message: /given together/ },
        [`sslcert=${own}&sslkey=${own}`]: { code: 'UNUSABLE_TLS_FILE', message: /^sslkey names / },
        [`sslcert=${key}&sslkey=${key}`]: { code: 'UNUSABLE_TLS_FILE', message: /^sslcert names / },
        [`sslcert=${own}&sslkey=${otherKey}`]: { code: 'UNUSABLE_TLS_FILE', message: /another key/ },
        [`sslcert=${own}&sslkey=${sealedKey}`]: { code: 'UNUSABLE_TLS_FILE', message: /not sealed by/ },
        [`sslcert=${own}x&sslkey=${key}`]: { code: 'UNUSABLE_TLS_FILE', message: /ENOENT/ },
      }
      for (const [parameters, error] of Object.entries(refused))
        for (const noTimeout of [false, true])
          await assert.rejects(requireRefused(`${cluster.url}?${parameters}`, noTimeout), error)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('is reached through the folder of its socket', async () => {
    let folder = ''
    await withStorage({ databaseUrl: cluster.url }, async ({ db }) => {
      const { rows } = await sql<{ folder: string }>`
        select current_setting('unix_socket_directories') as folder`.execute(db)
      folder = rows[0]!.folder
    })
    const { port } = new URL(cluster.url)
    const encoded = encodeURIComponent(folder)
    await requireCalls(`postgres://postgres@/postgres?host=${folder}&port=${port}`, false)
    await requireCalls(`postgres:///postgres?user=postgres&host=${encoded}&port=${port}`, false)
    await requireCalls(`postgres://postgres@${encoded}:${port}/postgres?sslmode=require`, false)
  })

  it('is reached at hosts and ports among the parameters of a URL', async () => {
    const { port } = new URL(cluster.url)
    await requireCalls(`postgres://postgres@/postgres?host=127.0.0.1,127.0.0.1&port=1,${port}`, false)
    await requireCalls(`postgres://postgres@127.0.0.1:1/postgres?port=${port}&sslmode=require`, true)
  })

  it('is reached at addresses of IPv6, which a URL has in brackets', { skip: !hasIpv6 }, async () => {
    await requireCalls(withPort('[::1]:PORT'), false)
    await requireCalls(`${withPort('[::1]:PORT')}?sslmode=require`, true)
    await requireCalls(`${withPort('[::1]:1,[::1]:PORT')}?target_session_attrs=primary`, false)
  })
})

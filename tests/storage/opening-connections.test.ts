import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { createDatabase, databases, withStorage } from '../databases.ts'
import { startProcess } from '../process.ts'
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

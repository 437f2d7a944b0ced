import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { createDatabase, databases, withStorage } from '../databases.ts'
import { doorsOf } from '../doors.ts'
import { startProcess } from '../process.ts'
import { makeWorkspace } from '../servers.ts'

const MAX_STOP_MS = 30_000

/** The ids of the processes that serve the sessions of a database. */
const listBackends = async (db: Parameters<Parameters<typeof withStorage>[1]>[0]['db']): Promise<number[]> =>
  (
    await sql<{ pid: number }>`
      select pid from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`.execute(db)
  ).rows.map(({ pid }) => pid)

/** Runs `work` while these processes are stopped. */
const whileStopped = async <T>(pids: readonly number[], work: () => Promise<T>): Promise<T> => {
  const signal = (name: string) => execFileSync('kill', [name, ...pids.map(String)])
  signal('-STOP')
  try {
    return await work()
  } finally {
    signal('-CONT')
  }
}

describe('A server whose database sessions are stopped', { skip: !databases.includes('postgresql') }, () => {
  it('answers within the deadlines, recovers, and ends within its grace', async () => {
    const database = await createDatabase('postgresql')
    try {
      await withStorage(database.direct, async ({ db }) => {
        const now = () => new Date().toISOString()
        const { owner } = await makeWorkspace({ db, app: { now } as never })
        const server = await startProcess(database.flags)
        const { call } = doorsOf(server.url, owner.key)[0]!
        const timed = async (work: () => Promise<{ status: number }>) => {
          const startedAt = performance.now()
          const { status } = await work()
          return { status, ms: performance.now() - startedAt }
        }
        const upsert = (n: number) => call('crm_upsert_contact', { phone: `+155501${10_000 + n}` })
        await Promise.all(Array.from({ length: 20 }, (_, n) => upsert(n)))
        // So that every connection is open: a new one would be served.
        await Promise.all(Array.from({ length: 20 }, () => call('crm_search_contacts')))

        const [ready, read, change] = await whileStopped(await listBackends(db), () =>
          Promise.all([
            timed(() => fetch(`${server.url}/readyz`)),
            timed(() => call('crm_search_contacts')),
            timed(() => upsert(50)),
          ]),
        )
        assert.ok(ready.status === 503 && ready.ms < 2_000, JSON.stringify(ready))
        assert.ok([503, 504].includes(read.status) && read.ms < 15_500, JSON.stringify(read))
        assert.ok([503, 504].includes(change.status) && change.ms < 30_000, JSON.stringify(change))
        await pause(500)
        assert.equal((await fetch(`${server.url}/readyz`)).status, 200)
        assert.ok((await upsert(50)).status < 300)

        const backends = await listBackends(db)
        const load = Promise.allSettled(Array.from({ length: 40 }, (_, n) => upsert(n)))
        const startedAt = performance.now()
        const code = await whileStopped(backends, () => server.stop())
        const ms = performance.now() - startedAt
        await load
        assert.equal(code, 0)
        assert.ok(ms < MAX_STOP_MS, `${ms} ms`)
      })
    } finally {
      await database.remove()
    }
  })
})

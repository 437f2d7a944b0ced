import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { createWorkspace } from '../../storage/workspace/admin.ts'
import type { Db } from '../../storage/database.ts'
import { type EventPosition, insertEvents, scanEvents } from '../../storage/events/events.ts'
import { doAs } from '../calls.ts'
import { databases, onEmptyDatabase, onMigratedDatabase } from '../databases.ts'
import { makeWorkspace, startSharedServers, type TestServer } from '../servers.ts'
import { groupEvent, type ShownEvent, openStream } from './event-fixture.ts'

const readClock = async (db: Db): Promise<string> =>
  (await sql<{ now: string }>`select clock_timestamp()::text as now`.execute(db)).rows[0]!.now

/** Whether autovacuum was at work since then: its analyses are transactions of this database too, for moments. */
const wasVacuuming = async (db: Db, since: string): Promise<boolean> => {
  const { rows } = await sql`
    select where exists (
      select from pg_stat_activity
      where datname = current_database() and backend_type = 'autovacuum worker'
    ) or exists (
      select from pg_stat_all_tables
      where greatest(last_autovacuum, last_autoanalyze) > ${since}::timestamptz - interval '1 second')`.execute(
    db,
  )
  return rows.length > 0
}

describe('Event log of several servers', { skip: databases.length === 1 }, () => {
  let shared: Awaited<ReturnType<typeof startSharedServers>>
  before(async () => {
    shared = await startSharedServers(2)
  })
  after(async () => {
    await shared.close()
  })

  it('a server streams and resumes events that another server wrote', async () => {
    const [one, two] = shared.servers as [TestServer, TestServer]
    const workspace = await makeWorkspace(one)
    const stream = await openStream(two, workspace.owner.key)
    await doAs(one, workspace.owner.key)('crm_create_group', { name: 'A' })
    const [a] = await stream.take(1)
    await stream.close()
    await doAs(two, workspace.owner.key)('crm_create_group', { name: 'B' })
    const resumed = await openStream(one, workspace.owner.key, { last: a!.id })
    assert.equal((await resumed.take(1))[0]!.data.data['group']!['name'], 'B')
    await resumed.close()
  })

  it('a transaction in another database of the cluster does not delay events', async () => {
    const [server] = shared.servers as [TestServer]
    const workspace = await makeWorkspace(server)
    const run = doAs(server, workspace.owner.key)
    const seen = async (): Promise<string[]> =>
      (await run('events_list')).data.map((e: ShownEvent) => e.data['group']!['name'])
    await onEmptyDatabase('postgresql', (db) =>
      db.transaction().execute(async (foreign) => {
        await sql`create table busy (n int)`.execute(foreign)
        await run('crm_create_group', { name: 'A' })
        assert.deepEqual(await seen(), ['A'])
        assert.equal(typeof (await run('events_list', { after: 'now' })).next_cursor, 'string')
        // An open transaction of this database may write an earlier event, so later ones wait for it.
        const opened = await server.db.transaction().execute(async (own) => {
          await insertEvents(own, workspace.id, [groupEvent('C', new Date().toISOString())])
          const since = new Date(Date.now() - 1).toISOString()
          await run('crm_create_group', { name: 'B' })
          assert.deepEqual(await seen(), ['A'])
          assert.deepEqual((await run('events_list', { from: since })).data, [])
          return await openStream(server, workspace.owner.key, { from: since })
        })
        // A stream that began with B, which was committed first, would miss C.
        const streamed = (await opened.take(2)).map(({ data }) => data.data['group']!['name'])
        assert.deepEqual(streamed, ['C', 'B'])
        await opened.close()
        assert.deepEqual(await seen(), ['A', 'C', 'B'])
      }),
    )
  })

  it('transactions that end in another database at any instant do not delay events', async () => {
    // A database without servers: what they write in the background would be transactions of this one.
    await onMigratedDatabase('postgresql', async (db) => {
      const { id: workspaceId } = await createWorkspace(db, { name: 'Shop' }, new Date().toISOString())
      await onEmptyDatabase('postgresql', async (other) => {
        await sql`create table busy (n int)`.execute(other)
        let done = false
        const write = async () => {
          while (!done) {
            await other.transaction().execute(async (foreign) => {
              await sql`insert into busy values (1)`.execute(foreign)
              await sql`select pg_sleep(0.001 * random())`.execute(foreign)
            })
          }
        }
        const writers = [write(), write(), write(), write()]
        try {
          let position: EventPosition | undefined
          for (let n = 0; n < 800; n++) {
            await insertEvents(db, workspaceId, [groupEvent('A')])
            const since = await readClock(db)
            const scan = () => scanEvents(db, workspaceId, position, {}, 2)
            let { events, last } = await scan()
            while (events.length === 0 && (await wasVacuuming(db, since))) ({ events, last } = await scan())
            assert.equal(events.length, 1)
            position = last
          }
        } finally {
          done = true
          await Promise.all(writers)
        }
      })
    })
  })

  it('every reader sees each event once and in the same order under concurrent transactions', async () => {
    const { servers } = shared
    const workspace = await makeWorkspace(servers[0]!)
    let seed = 7
    const random = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647
    const written: string[] = []
    const nextTick = () =>
      new Promise((resolve) => {
        setImmediate(resolve)
      })
    const write = async ({ db }: TestServer): Promise<void> => {
      for (let n = 0; n < 60; n++) {
        const events = Array.from({ length: 1 + Math.floor(random() * 3) }, () => groupEvent('x'))
        const [long, waits, fails] = [random() < 0.3, random() < 0.5, random() < 0.1]
        const tx = await db.startTransaction().execute()
        // A long transaction has its id, or its place in the order too, while others commit.
        // As whoever writes, it has locked a table before it has an id.
        if (waits) await sql`select pg_current_xact_id() from workspaces limit 1`.execute(tx)
        else await insertEvents(tx, workspace.id, events)
        for (let pause = long ? 40 : 0; pause > 0; pause--) await nextTick()
        if (long) await sql`select pg_sleep(${random() * 0.05})`.execute(tx)
        if (waits) await insertEvents(tx, workspace.id, events)
        await (fails ? tx.rollback() : tx.commit()).execute()
        if (!fails) written.push(...events.map(({ id }) => id))
      }
    }
    let done = false
    const read = async ({ db }: TestServer, limit: number): Promise<string[]> => {
      const seen: string[] = []
      let position
      for (let last = false; ;) {
        const scan = await scanEvents(db, workspace.id, position, {}, limit)
        position = scan.last ?? position
        seen.push(...scan.events.map(({ id }) => id))
        if (last && !scan.more) return seen
        last = done
      }
    }
    const readers = [read(servers[0]!, 1), read(servers[1]!, 7), read(servers[1]!, 500)]
    await Promise.all([...servers, ...servers, ...servers].map(write))
    done = true
    const seen = await Promise.all(readers)
    assert.equal(new Set(seen[0]).size, seen[0]!.length)
    assert.deepEqual(seen[0]!.toSorted(), written.toSorted())
    for (const other of seen.slice(1)) assert.deepEqual(other, seen[0])
    assert.notDeepEqual(
      seen[0],
      seen[0]!.toSorted(),
      'no transaction overtook another: the test proved nothing',
    )
  })
})

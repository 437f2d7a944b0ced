import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { openStorage, type Storage } from '../../storage/open.ts'
import { doAs } from '../calls.ts'
import { createDatabase, databases } from '../databases.ts'
import { makeWorkspace, serveStorage, type TestServer } from '../servers.ts'
import { createEndpoint } from '../webhooks/delivery-log-fixture.ts'

/** Signals that a server gets from now on; `next` resolves with those until one of these texts comes. */
const hear = ({ app }: TestServer) => {
  const heard: string[] = []
  let check = (): void => {}
  for (const topic of ['events', 'job', 'clocks'] as const)
    app.signals.on(topic, (about) => {
      // The sandbox of a server looks once for what it left undone.
      if (about === 'sandbox-updates') return
      heard.push(`${topic}:${about}`)
      check()
    })
  return (text: string): Promise<string[]> =>
    new Promise((resolve) => {
      check = () => {
        const index = heard.indexOf(text)
        if (index >= 0) resolve(heard.splice(0, index + 1))
      }
      check()
    })
}

describe('Signals between servers', { skip: databases.length === 1 }, () => {
  let storages: Storage[]
  let servers: TestServer[]
  let remove: () => Promise<void>
  /** Called whenever the second server begins to listen, and begins again. */
  let opened = Promise.withResolvers<void>()
  before(async () => {
    const database = await createDatabase('postgresql')
    remove = database.remove
    storages = await Promise.all([openStorage(database.direct), openStorage(database.direct)])
    servers = await Promise.all(storages.map((storage) => serveStorage(storage, 'postgresql')))
    servers[1]!.app.signals.start(() => opened.resolve())
    await opened.promise
  })
  after(async () => {
    for (const server of servers) await server.close()
    for (const storage of storages) await storage.close()
    await remove()
  })

  it('a change wakes streams of its workspace; deliveries only where an endpoint subscribes to it', async () => {
    const [one, two] = servers as [TestServer, TestServer]
    const workspace = await makeWorkspace(one)
    const at = { server: one, workspace }
    const createGroup = (name: string) => doAs(one, workspace.owner.key)('crm_create_group', { name })
    const [next, nextHere] = [hear(two), hear(one)]
    const events = `events:${workspace.id}`
    const job = 'job:webhook-deliveries'
    await createGroup('A')
    assert.deepEqual([await nextHere(events), await next(events)], [[events], [events]])
    await createEndpoint(at, 'group.deleted/1')
    await next(job)
    await createGroup('B')
    assert.deepEqual(await next(events), [events])
    await createEndpoint(at, 'group.created/1')
    await next(job)
    await createGroup('C')
    assert.deepEqual(await next(job), [events, job])
  })

  it('a lost connection is replaced, and what was missed is looked for', async () => {
    const [one, two] = servers as [TestServer, TestServer]
    const workspace = await makeWorkspace(one)
    assert.ok(two.app.signals.areHeard())
    assert.ok(!one.app.signals.areHeard())
    opened = Promise.withResolvers<void>()
    const next = hear(two)
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where query = 'listen wcrm'`.execute(
      one.db,
    )
    await Promise.all([opened.promise, next('events:*')])
    assert.ok(two.app.signals.areHeard())
    await doAs(one, workspace.owner.key)('crm_create_group', { name: 'A' })
    await next(`events:${workspace.id}`)
  })
})

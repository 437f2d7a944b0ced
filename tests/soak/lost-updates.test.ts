import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createClient, isWcrmError } from '../../client/index.ts'
import { databases } from '../databases.ts'
import { makeWorkspace, startServer, startSharedServers, type TestServer } from '../servers.ts'

const WRITERS = 2
const ROUNDS = 10_000

/** Starts what two writers call: a server of each on PostgreSQL; the embedded database has one. */
const start = async (database: string): Promise<{ servers: TestServer[]; close: () => Promise<void> }> => {
  if (database === 'postgresql') return await startSharedServers(WRITERS)
  const server = await startServer(database)
  return { servers: [server], close: () => server.close() }
}

for (const database of databases)
  describe(`Two writers that read, change and write with ifVersion (${database})`, () => {
    let running: Awaited<ReturnType<typeof start>>
    before(async () => {
      running = await start(database)
    })
    after(async () => {
      await running.close()
    })

    it(`lose no update in ${ROUNDS} rounds`, async (test) => {
      const { servers } = running
      const workspace = await makeWorkspace(servers[0]!)
      const clients = Array.from({ length: WRITERS }, (_, i) =>
        createClient({ url: servers[i % servers.length]!.url, apiKey: workspace.owner.key }),
      )
      const { id } = await clients[0]!.contacts.upsert({ phone: '+15550100178', name: 'Count 0' })
      const begunAt = performance.now()
      const refused = [0, 0]
      const write = async (writer: number): Promise<void> => {
        const { contacts } = clients[writer]!
        let read = await contacts.get({ contact_id: id! })
        for (let done = 0; done < ROUNDS / WRITERS;) {
          const count = Number(read.name!.slice('Count '.length))
          try {
            read = await contacts.update(
              { contact_id: id!, name: `Count ${count + 1}` },
              { ifVersion: read.version! },
            )
            done++
          } catch (error) {
            if (!isWcrmError(error, 'precondition_failed')) throw error
            refused[writer]!++
            read = await contacts.get({ contact_id: id! })
          }
        }
      }
      await Promise.all(clients.map((_, writer) => write(writer)))
      assert.equal((await clients[0]!.contacts.get({ contact_id: id! })).name, `Count ${ROUNDS}`)
      assert.ok(
        refused.some((count) => count > 0),
        'the writers never met',
      )
      const seconds = Math.round((performance.now() - begunAt) / 1000)
      test.diagnostic(`${ROUNDS} rounds in ${seconds} s, ${refused[0]} and ${refused[1]} refused`)
    })
  })

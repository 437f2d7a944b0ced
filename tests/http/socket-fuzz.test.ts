import { it } from 'node:test'
import { databases } from '../databases.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { makeWorkspace } from '../servers.ts'
import { fuzzSockets } from './socket-fuzz.ts'

everyDatabase('HTTP: broken requests', (server, database) => {
  it('are answered by 4xx, or not at all, on every route', async (t) => {
    if (database !== databases.at(-1)) return t.skip('the database does not matter')
    const { owner } = await makeWorkspace(server())
    const isAlive = async () => (await fetch(`${server().url}/healthz`)).status === 200
    await fuzzSockets(server().url, owner.key, { count: runs(300, 1000), seed: 20_261_122, isAlive })
  })
})

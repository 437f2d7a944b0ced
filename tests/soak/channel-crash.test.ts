import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { createSecretRing } from '../../server/secret.ts'
import { createSealer } from '../../server/sealer.ts'
import { doAs } from '../calls.ts'
import { createOwnChannel, post } from '../channels/bridge.ts'
import { createDatabase, databases, withStorage } from '../databases.ts'
import { startProcess } from '../process.ts'
import { makeWorkspace } from '../servers.ts'

for (const database of databases)
  describe(`Replies to a channel of one’s own, when the server is killed (${database})`, () => {
    it('are delivered after its restart where that was not recorded, with the same id', async () => {
      const { location, remove } = await createDatabase(database)
      const secret = 'a secret of at least sixteen'
      const flags =
        'databaseUrl' in location ? ['--database-url', location.databaseUrl] : ['--data', location.dataDir]
      const env = { WCRM_SECRET: secret, WCRM_WEBHOOK_ALLOW: '127.0.0.0/8' }
      // It takes the first request and never answers it.
      const requests: { id: string; body: string }[] = []
      const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
        requests.push({ id: String(request.headers['webhook-id']), body: await text(request) })
        bridge.emit('taken')
        if (requests.length > 1) response.writeHead(204).end()
      }
      const bridge = createServer((request, response) => {
        take(request, response).catch(() => response.destroy())
      })
      await new Promise<void>((listening) => bridge.listen(0, '127.0.0.1', listening))
      const url = `http://127.0.0.1:${(bridge.address() as AddressInfo).port}/`
      try {
        const { workspace, channel } = await withStorage(location, async ({ db }) => {
          const app = {
            now: () => new Date().toISOString(),
            webhookSealer: createSealer(createSecretRing([secret]), 'webhooks'),
          } as never
          const workspace = await makeWorkspace({ db, app })
          return { workspace, channel: await createOwnChannel({ db, app }, workspace.id, url) }
        })
        const taken = once(bridge, 'taken')
        const first = await startProcess(flags, env)
        const hello = { id: '1', from: { id: 'v' }, text: 'Hello' }
        const { conversation_id: id } = await post(first, channel, 'inbound', hello)
        const run = doAs(first, workspace.owner.key)
        const { message } = await run('messaging_send_reply', { conversation_id: id, text: 'Hi' })
        await taken
        await first.kill('SIGKILL')
        // Half a minute later its lease has expired.
        await withStorage(location, async ({ db }) => {
          await db
            .updateTable('runs')
            .set({ run_after: new Date(0).toISOString() })
            .execute()
        })
        const again = once(bridge, 'taken')
        const second = await startProcess(flags, env)
        await again
        const read = () =>
          doAs(second, workspace.owner.key)('messaging_get_message', { message_id: message.id })
        while ((await read()).status !== 'sent') await new Promise((resolve) => setImmediate(resolve))
        await second.stop()
        assert.equal(requests.length, 2)
        assert.deepEqual(requests[0], requests[1])
        assert.equal(requests[0]!.id, message.id)
      } finally {
        bridge.closeAllConnections()
        await new Promise((closed) => bridge.close(closed))
        await remove()
      }
    })
  })

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createSecretRing } from '../../server/secret.ts'
import { createSealer } from '../../server/sealer.ts'
import { doAs } from '../calls.ts'
import { createOwnChannel, post } from '../channels/bridge.ts'
import { createDatabase, databases, withStorage } from '../databases.ts'
import { readMemory } from '../http/owner-key.ts'
import { startS3 } from '../media/s3.ts'
import { startProcess } from '../process.ts'
import { makeWorkspace } from '../servers.ts'

const FILE_BYTES = 100 * 1024 * 1024 - 1
const FILES = 4
/** Buffers of eight streams, and what is not collected yet: far less than one file. */
const MAX_GROWTH_BYTES = 96 * 1024 * 1024

const CHUNK = Buffer.alloc(64 * 1024, 'x')

async function* content(bytes: number): AsyncGenerator<Buffer> {
  for (let left = bytes; left > 0; left -= CHUNK.length)
    yield left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK
}

/** Runs `work`, and returns the most memory that the process had meanwhile. */
const watchMemory = async (pid: number, work: () => Promise<void>): Promise<number> => {
  let most = 0
  let isDone = false
  const watching = (async () => {
    while (!isDone) {
      most = Math.max(most, readMemory(pid))
      await pause(20)
    }
  })()
  await work().finally(() => {
    isDone = true
  })
  await watching
  return most
}

for (const kind of ['folder', 's3'] as const)
  describe(`Memory while ${FILES} files of 100 MB are received and read (${kind})`, () => {
    it('is flat', async () => {
      const { location, flags, remove } = await createDatabase(databases.at(-1)!)
      const secret = 'a secret of at least sixteen'
      const folder = mkdtempSync(join(tmpdir(), 'wcrm-large-'))
      const s3 = await startS3()
      const source = createServer(({ url }, response) => {
        response.writeHead(200, { 'Content-Type': 'application/pdf' })
        pipeline(Readable.from(content(Number(url!.slice(1)))), response).catch(() => {})
      })
      await new Promise<void>((listening) => source.listen(0, '127.0.0.1', listening))
      const port = (source.address() as AddressInfo).port
      const { workspace, channel } = await withStorage(location, async ({ db }) => {
        const app = {
          now: () => new Date().toISOString(),
          webhookSealer: createSealer(createSecretRing([secret]), 'webhooks'),
        } as never
        const made = await makeWorkspace({ db, app })
        return { workspace: made, channel: await createOwnChannel({ db, app }, made.id, null) }
      })
      const server = await startProcess(flags, {
        WCRM_SECRET: secret,
        WCRM_WEBHOOK_ALLOW: '127.0.0.0/8',
        AWS_ACCESS_KEY_ID: 'S3RVER',
        AWS_SECRET_ACCESS_KEY: 'S3RVER',
        WCRM_MEDIA: kind === 's3' ? s3.location('large') : folder,
      })
      try {
        const run = doAs(server, workspace.owner.key)
        let sent = 0
        const receive = async (bytes: number): Promise<string> => {
          const media = { url: `http://127.0.0.1:${port}/${bytes}` }
          const message = { id: String(++sent), from: { id: 'v' }, type: 'DOCUMENT', media }
          const { message_id: id } = await post(server, channel, 'inbound', message)
          return id
        }
        const waitFor = async (id: string): Promise<string> => {
          for (;;) {
            const found = await run('messaging_get_media', { message_id: id }).catch(() => undefined)
            if (found) return found.url
            await pause(100)
          }
        }
        const read = async (id: string, bytes: number): Promise<void> => {
          let size = 0
          const response = await fetch(await waitFor(id))
          for await (const chunk of response.body!) size += chunk.byteLength
          assert.equal(size, bytes)
        }
        const receiveAndRead = async (bytes: number): Promise<void> => {
          const ids = await Promise.all(Array.from({ length: FILES }, () => receive(bytes)))
          await Promise.all(ids.map(waitFor))
          await Promise.all(ids.map((id) => read(id, bytes)))
        }
        // What the first files load.
        for (let round = 0; round < 5; round++) await receiveAndRead(1024 * 1024)
        const before = readMemory(server.pid)
        const growth = (await watchMemory(server.pid, () => receiveAndRead(FILE_BYTES))) - before
        assert.ok(growth < MAX_GROWTH_BYTES, `grew by ${Math.round(growth / 1024 / 1024)} MB`)
      } finally {
        await server.kill('SIGKILL')
        source.closeAllConnections()
        source.close()
        await s3.close()
        rmSync(folder, { recursive: true })
        await remove()
      }
    })
  })

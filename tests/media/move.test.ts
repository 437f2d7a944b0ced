import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { moveMedia } from '../../cli/admin/media.ts'
import { removeErasedFiles } from '../../server/domains/media/erase.ts'
import { parseMediaLocation } from '../../server/domains/media/location.ts'
import { openMediaStore } from '../../server/domains/media/open-store.ts'
import { digestFile, type MediaStore } from '../../server/media-store.ts'
import { createWorkspace } from '../../storage/workspace/admin.ts'
import { runAdminWith, useAdminDatabases } from '../admin/admin-commands.ts'
import { doAs } from '../calls.ts'
import { createOwnChannel, post } from '../channels/bridge.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace, startWithOptions, type TestServer } from '../servers.ts'
import { startS3, type TestS3 } from './s3.ts'

let s3: TestS3
let home: string
before(async () => {
  s3 = await startS3()
  home = mkdtempSync(join(tmpdir(), 'wcrm-move-'))
})
after(async () => {
  await s3.close()
  rmSync(home, { recursive: true })
})

const open = (location: string): Promise<MediaStore> => openMediaStore(parseMediaLocation(location))
const hash = async (content: Buffer): Promise<string> =>
  (await digestFile({ size: content.length, content: ReadableStream.from([content]) })).sha256.toString('hex')

everyDatabase('Moving files while a server runs', (server) => {
  /** A message with a file in this store. */
  const plant = async (running: TestServer, store: MediaStore, content: string) => {
    const workspace = await makeWorkspace(running)
    const channel = await createOwnChannel(running, workspace.id, null)
    await running.app.jobs.job('media-downloads').stop()
    const message = { id: '1', from: { id: 'v' }, type: 'IMAGE', media: { url: 'http://10.1.2.3/x' } }
    const { message_id: id } = await post(running, channel, 'inbound', message)
    const key = `${workspace.id}/${id}`
    const bytes = Buffer.from(content)
    await store.write(key, [bytes])
    await sql`update media set state = 'kept', key = ${key}, size = ${bytes.length}, sha256 = ${await hash(bytes)}
        where message_id = ${id}`.execute(running.db)
    const run = doAs(running, workspace.owner.key)
    const read = async () =>
      await (await fetch((await run('messaging_get_media', { message_id: id })).url)).text()
    return { id, key, read }
  }

  it('each is read all the time, and deleted in both stores', async () => {
    const folder = join(home, server().database)
    const location = s3.location(`moved-${server().database}`)
    const [from, to] = [await open(folder), await open(location)]
    const running = await startWithOptions(server().database, { media: location, mediaPrevious: folder })
    try {
      const kept = await plant(running, from, 'a picture')
      const deleted = await plant(running, from, 'of a message that is deleted meanwhile')
      assert.equal(await kept.read(), 'a picture')
      // Deleted after the move looked at its row, and before it wrote the file.
      const slow: MediaStore = {
        ...to,
        write: async (key, content) => {
          const whole = [await buffer(Readable.from(content))]
          if (key === deleted.key) {
            await sql`update media set state = 'lost' where message_id = ${deleted.id}`.execute(running.db)
            await removeErasedFiles(running.app, running.app.media!)
          }
          return await to.write(key, whole)
        },
      }
      let isMoving = true
      const reading = (async () => {
        while (isMoving) assert.equal(await kept.read(), 'a picture')
      })()
      const options = { db: running.db, from, keep: false, onFiles: () => {}, warn: () => {} }
      await moveMedia({ ...options, to: slow }, 500).finally(() => {
        isMoving = false
      })
      await reading
      assert.equal(await kept.read(), 'a picture')
      assert.deepEqual([await from.find(kept.key), await to.find(kept.key)], [undefined, { size: 9 }])
      assert.deepEqual([await from.find(deleted.key), await to.find(deleted.key)], [undefined, undefined])
      const again = await moveMedia({ ...options, to }, 0)
      assert.deepEqual([again.moved, again.already >= 1], [0, true])
    } finally {
      await running.close()
    }
  })
})

describe('wcrm admin media move', () => {
  const databases = useAdminDatabases()

  it('copies, verifies and continues; what is damaged or missing is named and stays', async () => {
    const data = databases.newFolder()
    const { db, close } = await databases.open(data)
    const { id } = await createWorkspace(db, { name: 'Files' }, '2026-11-01T10:00:00.000Z')
    const folder = join(home, 'source')
    const location = s3.location('target')
    const [from, to] = [await open(folder), await open(location)]
    const plant = async (n: number, content: Buffer, sha256: string | null): Promise<void> => {
      await sql`
        insert into media (workspace_id, message_id, state, key, size, sha256)
        values (${id}::bigint, ${n}, 'kept', ${`1/${n}`}, ${content.length}, ${sha256})`.execute(db)
    }
    const large = Buffer.alloc(300_000, 'x')
    await plant(1, large, await hash(large))
    await from.write('1/1', [large])
    await plant(2, Buffer.from('no sum'), null)
    await from.write('1/2', [Buffer.from('no sum')])
    await plant(3, Buffer.from('right'), await hash(Buffer.from('right')))
    await from.write('1/3', [Buffer.from('wrong')])
    await plant(4, Buffer.from('gone'), await hash(Buffer.from('gone')))
    // As of a run that was ended while it wrote: the wrong bytes are replaced.
    await to.write('1/1', [Buffer.from('half')])
    await close()
    const run = async (...argv: string[]) => {
      const { exit, out, err } = await runAdminWith({}, 'media', 'move', ...argv, '--data', data, '--json')
      return { exit, err, result: out === '' ? undefined : JSON.parse(out) }
    }
    const copied = await run('--from', folder, '--to', location, '--keep')
    assert.deepEqual(
      [copied.exit, copied.result],
      [
        1,
        {
          from: `the folder ${folder}`,
          to: `the bucket media (target) at ${s3.endpoint}`,
          moved: 2,
          bytes: 300_006,
          already: 0,
          missing: 1,
          damaged: 1,
          deleted: 0,
        },
      ],
    )
    assert.match(copied.err, /The file 1\/3 is damaged, and stays in the folder/)
    assert.match(copied.err, /The file 1\/4 is in neither store/)
    assert.deepEqual([await from.find('1/1'), await to.find('1/3')], [{ size: 300_000 }, undefined])
    const back = await run('--from', location, '--to', folder, '--keep')
    assert.deepEqual([back.result.already, back.result.moved], [3, 0])
    await from.remove('1/1')
    assert.equal((await run('--from', location, '--to', folder, '--keep')).result.moved, 1)
    assert.equal((await from.find('1/1'))?.size, 300_000)

    const same = await run('--from', folder, '--to', folder)
    assert.deepEqual([same.exit, /same store/.test(same.err)], [2, true])
    const misspelt = await run('--from', folder, '--to', location.replace('//media', '//medai'))
    assert.deepEqual([misspelt.exit, /--to: There is no bucket medai/.test(misspelt.err)], [2, true])
  })
})

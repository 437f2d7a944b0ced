import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { parseMediaLocation } from '../../server/domains/media/location.ts'
import { openMediaStore } from '../../server/domains/media/open-store.ts'
import { type MediaStore, type StoredFile } from '../../server/media-store.ts'
import { openMediaUrl } from '../../server/domains/media/urls.ts'
import { createSealer } from '../../server/sealer.ts'
import { createSecretRing } from '../../server/secret.ts'
import { startS3, type TestS3 } from './s3.ts'

const readText = async (file: StoredFile | undefined): Promise<string | undefined> =>
  file && (await new Response(file.content).text())

/** Content in chunks, of which the last may fail. */
async function* chunks(...given: (string | Error)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of given) {
    if (chunk instanceof Error) throw chunk
    yield Buffer.from(chunk)
  }
}

let folder: string
let s3: TestS3
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'wcrm-media-'))
  s3 = await startS3()
})
after(async () => {
  rmSync(folder, { recursive: true })
  await s3.close()
})

for (const kind of ['folder', 's3'] as const)
  describe(`Media store: ${kind}`, () => {
    const open = (name: string, maxBytes = 100): Promise<MediaStore> =>
      openMediaStore(parseMediaLocation(kind === 's3' ? s3.location(name) : join(folder, name)), { maxBytes })

    it('writes, replaces, reads and removes whole files', async () => {
      const store = await open('files')
      const digest = await store.write('7/42', chunks('fir', 'st'))
      assert.deepEqual(digest, { size: 5, sha256: createHash('sha256').update('first').digest() })
      await store.write('7/42', [Buffer.from('second')])
      assert.deepEqual([await store.find('7/42'), await store.find('7/43')], [{ size: 6 }, undefined])
      const file = await store.read('7/42')
      assert.deepEqual([file?.size, await readText(file)], [6, 'second'])
      await store.write('7/44', [])
      assert.equal(await readText(await store.read('7/44')), '')
      assert.equal(await store.read('7/43'), undefined)
      await store.remove('7/42')
      await store.remove('7/42')
      assert.equal(await store.read('7/42'), undefined)
    })

    it('reads ranges', async () => {
      const store = await open('ranges')
      await store.write('1/1', [Buffer.from('0123456789')])
      for (const [start, end, text] of [
        [0, 1, '01'],
        [3, 5, '345'],
        [9, 9, '9'],
      ] as const) {
        const file = await store.read('1/1', { start, end })
        assert.deepEqual([file?.size, await readText(file)], [text.length, text])
      }
    })

    it('keeps nothing of what is too large, broken off or not accepted', async () => {
      const store = await open('refused', 10)
      const refused: [RegExp, () => Promise<unknown>][] = [
        [/larger than 10 bytes/, () => store.write('1/1', chunks('12345678', '901'))],
        [/source broke/, () => store.write('1/1', chunks('1234', new Error('source broke')))],
        [
          /not this one/,
          () =>
            store.write('1/1', chunks('1234'), ({ size }) => {
              throw new Error(`not this one of ${size} bytes`)
            }),
        ],
      ]
      for (const [message, write] of refused) await assert.rejects(write(), message)
      assert.equal(await store.find('1/1'), undefined)
      await store.write('1/1', chunks('1234567890'))
      await assert.rejects(store.write('1/1', chunks('12345678901')))
      assert.equal(await readText(await store.read('1/1')), '1234567890')
    })

    if (kind === 'folder')
      it('removes what a crash left of files, once nobody can be writing it', async () => {
        const store = await open('crashed')
        assert.equal(await store.removeUnfinished(60_000), 0)
        await store.write('7/1', chunks('whole'))
        await store.write('exports/7/1', chunks('whole'))
        const leave = (name: string, minutesAgo: number): void => {
          const path = join(folder, 'crashed', name)
          const at = Date.now() / 1000 - minutesAgo * 60
          writeFileSync(path, 'piece')
          utimesSync(path, at, at)
        }
        leave(`7/2.${randomUUID()}.part`, 90)
        leave(`exports/7/2.${randomUUID()}.part`, 90)
        const written = `3.${randomUUID()}.part`
        leave(`7/${written}`, 30)
        assert.equal(await store.removeUnfinished(60 * 60_000), 2)
        assert.deepEqual(readdirSync(join(folder, 'crashed/7')).toSorted(), ['1', written])
        assert.deepEqual(readdirSync(join(folder, 'crashed/exports/7')), ['1'])
      })

    it('a key leads nowhere else', async () => {
      const store = await open('keys')
      for (const key of ['../7/42', '7/../8', '7/42/x', '7', '', '/7/42', '7/42.part', '7/42?x', '7%2F42']) {
        await assert.rejects(async () => await store.write(key, [Buffer.from('x')]), /invalid media key/)
        await assert.rejects(async () => await store.read(key), /invalid media key/)
      }
    })

    it('says that it works, and leaves nothing behind', async () => {
      const store = await open('checked')
      s3.requests.length = 0
      assert.deepEqual(await store.check(), { ok: true })
      if (kind === 's3')
        assert.deepEqual(
          s3.requests.map((request) => request.split(' ')[0]),
          ['PUT', 'GET', 'DELETE'],
        )
    })
  })

it('media store in a folder: only its owner may read it', async () => {
  const place = join(folder, 'private')
  const store = await openMediaStore(parseMediaLocation(place))
  await store.write('7/42', [Buffer.from('x')])
  await assert.rejects(store.write('7/43', chunks(new Error('broken'))))
  assert.deepEqual(readdirSync(join(place, '7')), ['42'])
  assert.deepEqual(
    [statSync(join(place, '7', '42')).mode & 0o777, statSync(join(place, '7')).mode & 0o777],
    [0o600, 0o700],
  )
})

it('media URL: expires, and opens only with the secret it was sealed with', () => {
  const seal = createSealer(createSecretRing(['a secret of at least sixteen']), 'media')
  const now = '2026-10-01T12:00:00.000Z'
  const open = (expires: number, sealer = seal, purpose = 'media') =>
    openMediaUrl(seal, sealer.seal(`1 2 ${expires}`, purpose), now)
  assert.deepEqual(open(Date.parse(now)), { workspaceId: '1', messageId: '2', hasExpired: false })
  assert.equal(open(Date.parse(now) - 1)?.hasExpired, true)
  assert.equal(open(Date.parse(now) + 1000, seal, 'cursor'), undefined)
  const other = createSealer(createSecretRing(['another secret of sixteen']), 'media')
  assert.equal(open(Date.parse(now) + 1000, other), undefined)
})

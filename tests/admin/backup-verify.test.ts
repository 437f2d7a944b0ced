import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { sql } from 'kysely'
import { readBackupFile } from '../../cli/admin/backup-file.ts'
import { parseMediaLocation } from '../../server/domains/media/location.ts'
import { openMediaStore } from '../../server/domains/media/open-store.ts'
import type { MediaStore } from '../../server/media-store.ts'
import { createWorkspace } from '../../storage/workspace/admin.ts'
import { inspectBackup } from '../../storage/backup/lines.ts'
import { runs } from '../level.ts'
import { startS3, type TestS3 } from '../media/s3.ts'
import { fail, runAdminWith, succeed, useAdminDatabases } from './admin-commands.ts'

const databases = useAdminDatabases()

/** Files of the workspace: one of several pieces, an empty one, and one that is gone from the store. */
const files: Readonly<Record<string, Buffer>> = {
  '1/1': Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * i) % 251)),
  '1/2': Buffer.alloc(0),
}
const MISSING = '1/3'

const plantFiles = async (folder: string): Promise<void> => {
  const { db, close } = await databases.open(folder)
  const { id } = await createWorkspace(db, { name: 'With files' }, '2026-11-01T10:00:00.000Z')
  for (const key of [...Object.keys(files), MISSING])
    await sql`
      insert into media (workspace_id, message_id, state, key)
      values (${id}::bigint, ${key.split('/')[1]}::bigint, 'kept', ${key})`.execute(db)
  await sql`
    insert into media (workspace_id, message_id, state, key)
    values (${id}::bigint, 9, 'lost', '1/9')`.execute(db)
  await close()
}

const runWith = async (media: string, ...argv: string[]) => {
  const { exit, out, err } = await runAdminWith({ WCRM_MEDIA: media }, ...argv, '--json')
  assert.equal(exit, 0, err)
  return { result: JSON.parse(out), err }
}

/** A database with those files. */
const folder = databases.newFolder()
before(() => plantFiles(folder))

describe('admin: backup verify', () => {
  const file = join(databases.home, 'small.gz')
  const copy = join(databases.home, 'copy.gz')
  const verify = async (bytes: Buffer): Promise<unknown> => {
    writeFileSync(copy, bytes)
    return await inspectBackup(readBackupFile(copy).lines)
  }
  const isFound = async (bytes: Buffer, what: string): Promise<void> =>
    await assert.rejects(verify(bytes), /truncated|damaged|not a backup/, what)

  before(async () => {
    await succeed('backup', file, '--data', folder)
  })

  it('people see what else to back up, not a line for each table; verify lists those with rows', async () => {
    const printed = async (...argv: string[]) => {
      const { exit, out, err } = await runAdminWith({}, ...argv)
      assert.equal(exit, 0, err)
      return { out, err }
    }
    const written = await printed('backup', copy, '--data', folder)
    assert.match(written.err, /does not contain the secret/)
    assert.match(written.out, /^rows: \d+$/m)
    const restored = await printed('restore', copy, '--data', databases.newFolder())
    for (const { out } of [written, restored]) assert.doesNotMatch(out, /tables/)
    const { out } = await printed('backup', 'verify', copy)
    assert.match(out, /^tables\.workspaces: 1$/m)
    assert.doesNotMatch(out, /^tables\.\w+: 0$/m)
  })

  it('says what a whole file has', async () => {
    const { bytes, sha256, format, schema, rows, tables, media, checksums } = await succeed(
      'backup',
      'verify',
      file,
    )
    const digest = createHash('sha256').update(readFileSync(file)).digest('hex')
    assert.deepEqual(
      [bytes, sha256, format, schema, tables.workspaces, tables.media, media],
      [statSync(file).size, digest, 2, 'same', 1, 4, null],
    )
    assert.equal(
      rows,
      Object.values(tables as Record<string, number>).reduce((sum, n) => sum + n),
    )
    assert.deepEqual(Object.keys(checksums), Object.keys(tables))
    assert.ok(Object.values(checksums).every((sum) => /^[0-9a-f]{64}$/.test(sum as string)))
  })

  it('finds every flipped bit', async () => {
    const whole = readFileSync(file)
    await verify(whole)
    const step = Math.ceil(whole.length / runs(150, whole.length))
    for (let at = 0; at < whole.length; at += step) {
      const flipped = Buffer.from(whole)
      flipped[at]! ^= 1 << (at % 8)
      await isFound(flipped, `byte ${at}`)
    }
    // The end is what tells that nothing is missing: each of its bits.
    for (let bit = 0; bit < 60 * 8; bit += 7) {
      const flipped = Buffer.from(whole)
      flipped[whole.length - 1 - Math.floor(bit / 8)]! ^= 1 << (bit % 8)
      await isFound(flipped, `bit ${bit} from the end`)
    }
  })

  it('finds what is cut off, left out, added or exchanged', async () => {
    const whole = readFileSync(file)
    for (let length = 0; length < whole.length; length += Math.ceil(whole.length / runs(50, 2_000)))
      await isFound(whole.subarray(0, length), `the first ${length} bytes`)
    await isFound(whole.subarray(0, -1), 'without the last byte')
    await isFound(Buffer.concat([whole, Buffer.from('x')]), 'a byte more')
    await isFound(Buffer.concat([whole, whole]), 'twice')
    await isFound(Buffer.concat([whole.subarray(0, 500), whole.subarray(501)]), 'a byte less')
    await isFound(gzipSync(gunzipSync(whole)), 'compressed anew')
  })

  it('says of another format what it is', async () => {
    for (const [content, detail] of [
      ['PGDMP\u0001\u000e', /not a backup.*pg_restore/],
      ['--\n-- PostgreSQL database dump\n--', /not a backup.*psql/],
      ['', /truncated|not a backup/],
    ] as const) {
      writeFileSync(copy, content)
      await fail(2, detail, 'backup', 'verify', copy)
    }
    writeFileSync(copy, gzipSync('hello\n'))
    await fail(2, /not a backup made by wcrm/, 'backup', 'verify', copy)
    const newer = gunzipSync(readFileSync(file)).toString().replace('"version":2', '"version":3')
    writeFileSync(copy, gzipSync(newer))
    await fail(2, /truncated|has the format 3/, 'backup', 'verify', copy)
    await fail(3, /does not exist/, 'backup', 'verify', join(databases.home, 'nothing.gz'))
  })

  it('reads files of version 1, which had one sum and no end of parts', async () => {
    const lines = gunzipSync(readFileSync(file)).toString().trimEnd().split('\n')
    const old = lines.filter((line) => !line.startsWith('{"end":'))
    old[0] = old[0]!.replace('"version":2', '"version":1')
    const sum = createHash('sha256').update(
      old
        .slice(0, -1)
        .map((line) => `${line}\n`)
        .join(''),
    )
    const { media: _, ...trailer } = JSON.parse(old.at(-1)!)
    old[old.length - 1] = JSON.stringify({ ...trailer, sha256: sum.digest('hex') })
    writeFileSync(copy, gzipSync(`${old.join('\n')}\n`))
    assert.equal((await succeed('backup', 'verify', copy)).format, 1)
  })
})

describe('admin: backup and restore of received files', () => {
  let s3: TestS3
  before(async () => {
    s3 = await startS3()
  })
  after(() => s3.close())

  const requireFiles = async (store: MediaStore): Promise<void> => {
    for (const [key, expected] of Object.entries(files)) {
      const found = await store.read(key)
      assert.ok(found, key)
      assert.deepEqual(Buffer.from(await new Response(found.content).arrayBuffer()), expected, key)
    }
    for (const key of [MISSING, '1/9']) assert.equal(await store.find(key), undefined, key)
  }

  it('go into the file, also when S3 breaks off, and back into a folder; a full database is left alone', async () => {
    const location = s3.location('backed-up')
    const store = await openMediaStore(parseMediaLocation(location))
    for (const [key, content] of Object.entries(files)) await store.write(key, [content])
    await store.write('1/9', [Buffer.from('of a deleted message')])
    await store.write('7/7', [Buffer.from('of another database')])
    const file = join(databases.home, 'files.gz')
    s3.fault = 'cut'
    const ended = runWith(location, 'backup', file, '--media', '--data', folder)
    while (!s3.requests.some((request) => request.startsWith('GET /media/backed-up/1/1')))
      await new Promise((resolve) => setImmediate(resolve))
    s3.fault = undefined
    const made = await ended
    const counts = { files: 2, bytes: 200_000, missing: 1 }
    assert.deepEqual(made.result.media, counts)
    assert.match(made.err, /1 received files that the database names were not in the store/)
    assert.deepEqual((await succeed('backup', 'verify', file)).media, counts)

    const without = await runWith(location, 'backup', join(databases.home, 'no.gz'), '--data', folder)
    assert.match(without.err, /does not contain received files: back up the bucket media \(backed-up\)/)

    const [target, media] = [databases.newFolder(), join(databases.home, 'restored')]
    const restored = await runWith(media, 'restore', file, '--media', '--data', target)
    assert.deepEqual(restored.result.media, { files: 2, bytes: 200_000 })
    await requireFiles(await openMediaStore(parseMediaLocation(media)))
    const other = join(databases.home, 'other')
    const refused = await runAdminWith({ WCRM_MEDIA: other }, 'restore', file, '--media', '--data', target)
    assert.deepEqual([refused.exit, /not empty/.test(refused.err), existsSync(other)], [2, true, false])
  })
})

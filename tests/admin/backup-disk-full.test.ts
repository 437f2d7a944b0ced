import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { sql } from 'kysely'
import { createWorkspace } from '../../storage/workspace/admin.ts'
import { createDatabase, createEmptyDatabase, databases, withStorage } from '../databases.ts'
import { processEnvironment, startProcess } from '../process.ts'

describe('A backup that finds no space', { skip: process.platform === 'win32' }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-full-'))
  const media = join(folder, 'media')
  after(() => rmSync(folder, { recursive: true }))

  /** Runs a command that may write so many blocks of 512 bytes to a file. */
  const runLimited = (blocks: number, ...words: string[]): Promise<{ code: unknown; stderr: string }> =>
    new Promise((resolve) => {
      const command = [process.execPath, 'bin/wcrm.js', 'admin', ...words]
      const env = { ...processEnvironment, TMPDIR: process.env.TMPDIR, HOME: folder, WCRM_MEDIA: media }
      const shell = ['-c', `ulimit -f ${blocks}; exec "$@"`, 'sh', ...command]
      execFile('sh', shell, { env }, (error, _stdout, stderr) =>
        resolve({ code: error ? error.code : 0, stderr }),
      )
    })

  for (const name of databases)
    it(`says which file that is, and leaves nothing of it: ${name}`, async () => {
      const database = await createDatabase(name)
      const server = await startProcess(database.flags)
      try {
        const where =
          'databaseUrl' in database.location
            ? ['--database-url', database.location.databaseUrl]
            : database.flags
        const target = join(folder, name)
        const { code, stderr } = await runLimited(2, 'backup', target, ...where)
        assert.equal(code, 1)
        assert.ok(
          stderr.includes(`Cannot write ${target}: it would be larger than a file may be there (EFBIG).`),
          stderr,
        )
        assert.deepEqual(
          readdirSync(folder).filter((one) => one.includes(name)),
          [],
        )
      } finally {
        await server.stop()
        await database.remove()
      }
    })

  it(
    'names the received file that a restore cannot write',
    { skip: !databases.includes('postgresql') },
    async () => {
      const [from, to] = [await createDatabase('postgresql'), await createEmptyDatabase('postgresql')]
      try {
        const urls = [from, to].map((one) => (one.direct as { databaseUrl: string }).databaseUrl)
        await withStorage(from.direct, async ({ db }) => {
          const { id } = await createWorkspace(db, { name: 'With files' }, '2026-11-01T10:00:00.000Z')
          await sql`
          insert into media (workspace_id, message_id, state, key) values (${id}::bigint, 1, 'kept', '1/1')`.execute(
            db,
          )
        })
        mkdirSync(join(media, '1'), { recursive: true })
        writeFileSync(join(media, '1', '1'), Buffer.alloc(2_000_000))
        const file = join(folder, 'whole')
        const made = await runLimited(100_000, 'backup', file, '--media', '--database-url', urls[0]!)
        assert.equal(made.code, 0, made.stderr)
        rmSync(media, { recursive: true })
        const { code, stderr } = await runLimited(
          2_000,
          'restore',
          file,
          '--media',
          '--database-url',
          urls[1]!,
        )
        assert.equal(code, 1)
        assert.match(stderr, /Cannot write the file 1\/1 to the folder .*media: .*\(EFBIG\)/)
      } finally {
        await from.remove()
        await to.remove()
      }
    },
  )
})

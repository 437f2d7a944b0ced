import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PGlite } from '@electric-sql/pglite'
import { packTemplate, readPgliteVersion, templateFile } from '../../storage/embedded/template.ts'

/**
 * Writes the data folder of an empty embedded database, as PGlite's initdb makes it, to
 * `storage/embedded/empty-database.zst`. Run it after an update of PGlite; nothing else changes it.
 */
const listFiles = (folder: string): string[] =>
  readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? [path, ...listFiles(path)] : [path]
  })

const folder = mkdtempSync(join(tmpdir(), 'wcrm-template-'))
try {
  const db = await PGlite.create({
    dataDir: folder,
    initDbStartParams: ['--wal-segsize=4'],
    startParams: [...PGlite.defaultStartParams, '-c', 'wal_recycle=off', '-c', 'min_wal_size=8MB'],
  })
  // The log of initdb's own work is as large as all the rest, and not needed after a checkpoint.
  for (let n = 0; n < 4; n++) {
    await db.exec('select pg_logical_emit_message(false, $$$$, $$$$)')
    await db.exec('select pg_switch_wal()')
    await db.exec('checkpoint')
  }
  await db.close()
  const entries = listFiles(folder)
    .map((path) => ({
      path: relative(folder, path),
      data: statSync(path).isDirectory() ? null : readFileSync(path),
    }))
    .filter(({ path }) => path !== 'postmaster.pid')
  const packed = packTemplate(readPgliteVersion(), entries)
  const target = fileURLToPath(templateFile)
  writeFileSync(target, packed)
  process.stdout.write(`${target}: ${packed.length} bytes\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from '../../server/config.ts'
import { computeSecretFingerprint, readSecrets } from '../../server/secret.ts'
import { toLocation } from '../../server/start.ts'
import { dumpDatabase } from '../../storage/backup/dump.ts'
import { isBackupLoadError, verifyBackup } from '../../storage/backup/lines.ts'
import { loadBackup } from '../../storage/backup/load.ts'
import { countOtherSessions } from '../../storage/backup/schema.ts'
import { attachEmbedded } from '../../storage/embedded/open.ts'
import { listMigrations, migrate, openStorage, type Storage } from '../../storage/open.ts'
import { cliError, usageError } from '../error.ts'
import { readManifest } from '../manifest.ts'
import { readBackupFile, writeBackupFile } from './backup-file.ts'
import { notFoundError, stringFlag } from './flags.ts'
import { requireDatabase } from './session.ts'
import { createProgressLine } from '../result.ts'
import type { AdminSession, AdminVerb } from './verb.ts'

const dumpInfo = (session: AdminSession) => ({ product: readManifest().version, now: session.now })

const serverRunningError = (detail: string) =>
  cliError(5, { type: 'about:blank', title: 'A server is running', status: 409, detail, code: 'conflict' })

/**
 * Opens the database exclusively and migrates it. Throws when a server uses it; `reason` says why that
 * matters.
 */
const openExclusively = async (config: Config, reason: string): Promise<Storage> => {
  if (!config.databaseUrl && (await attachEmbedded(config.dataDir)))
    throw serverRunningError(`A server is running on ${resolve(config.dataDir)}. Stop it first: ${reason}.`)
  const storage = await openStorage(toLocation(config), {
    noTimeout: true,
    connections: 1,
    prepare: config.databasePrepare,
  })
  try {
    if (!storage.embedded && (await countOtherSessions(storage.db)) > 0)
      throw serverRunningError(`A server is using this PostgreSQL database. Stop it first: ${reason}.`)
    await migrate(storage.db)
    return storage
  } catch (error) {
    await storage.close()
    throw error
  }
}

/** Describes where the secret of a configuration is stored, without revealing it. */
const describeSecretLocation = (config: Config): string => {
  if (config.secret) return 'the environment variable WCRM_SECRET'
  const file = resolve(config.dataDir, 'secret')
  return existsSync(file) || !config.databaseUrl
    ? `the file ${file}`
    : 'WCRM_SECRET of the server, or the file "secret" in its data folder'
}

/** Whether a server with this configuration has the secret with this fingerprint. */
const hasSecret = (config: Config, fingerprint: string): boolean =>
  readSecrets(config).some((secret) => computeSecretFingerprint(secret) === fingerprint)

/** Says of an invalid backup that it is one, as a usage error. */
const explainFault = (error: unknown): never => {
  throw isBackupLoadError(error) ? usageError(error.message) : error
}

const sumRows = (rows: Record<string, number>): number => Object.values(rows).reduce((sum, n) => sum + n, 0)

const backup: AdminVerb = {
  name: 'backup',
  access: 'read',
  argument: ['<file>', 'the file to write'],
  scoped: false,
  summary: 'Write the whole database to one file',
  about:
    'Writes a consistent snapshot as gzipped JSON lines, which PostgreSQL and the embedded database can ' +
    'restore. A server may be running. (The embedded database blocks other queries meanwhile.)\n' +
    'The file contains customer data and the hashes of API keys, but not the secret: back that up ' +
    'separately.',
  run: async (session, _flags, file) => {
    const db = await session.db()
    const line = createProgressLine(session.io, 'rows')
    let rows: Record<string, number> = {}
    const lines = async function* () {
      for await (const batch of dumpDatabase(db, dumpInfo(session), line.update)) {
        const last = batch.at(-1)!
        if (last.startsWith('{"rows"')) rows = (JSON.parse(last) as { rows: typeof rows }).rows
        yield batch
      }
    }
    const bytes = await writeBackupFile(file, lines()).finally(line.end)
    session.io.stderr.write(
      `The backup does not contain the secret: back up ${describeSecretLocation(session.config)} too. ` +
        'A server on the restored database needs the same secret.\n',
    )
    return { file: resolve(file), bytes, rows: sumRows(rows), tables: rows }
  },
}

const restore: AdminVerb = {
  name: 'restore',
  access: 'create',
  argument: ['<file>', 'a backup'],
  scoped: false,
  summary: 'Fill an empty database from a backup',
  about:
    'The database must have no workspace, no server may be running on it, and the backup must have the ' +
    'same ' +
    'schema version. A damaged or truncated file changes nothing.',
  run: async (session, _flags, file) => {
    if (!existsSync(file)) throw notFoundError(`The file ${resolve(file)} does not exist.`, '<file>')
    // First, so that a damaged file creates no database.
    await verifyBackup(readBackupFile(file), listMigrations()).catch(explainFault)
    const storage = await openExclusively(session.config, 'a restore needs exclusive access to the database')
    const line = createProgressLine(session.io, 'rows')
    try {
      const { header, rows } = await loadBackup(storage.db, readBackupFile(file), line.update).catch(
        explainFault,
      )
      line.end()
      const { secret_fingerprint: needed, made_at, product } = header
      if (needed !== null && !hasSecret(session.config, needed)) {
        session.io.stderr.write(
          `The server needs the secret of the backed-up server: store it in the file ` +
            `${resolve(session.config.dataDir, 'secret')}, or set WCRM_SECRET.\n`,
        )
      }
      return { file: resolve(file), made_at, product, rows: sumRows(rows), tables: rows }
    } finally {
      line.end()
      await storage.close()
    }
  },
}

const move: AdminVerb = {
  name: 'move',
  scoped: false,
  summary: 'Copy the whole database to an empty PostgreSQL database',
  required: [['--to <url>', 'PostgreSQL 15 or newer']],
  about: 'No server may be running. The source database is not changed.',
  run: async (session, flags) => {
    const to = stringFlag(flags, 'to')!
    if (!/^postgres(ql)?:\/\//.test(to))
      throw usageError(`--to must be a postgres:// URL, not "${to}".`, '--to')
    requireDatabase(session.config)
    const source = await openExclusively(session.config, 'its writes during the move would be lost')
    const line = createProgressLine(session.io, 'rows')
    try {
      const target = await openExclusively(
        { ...session.config, databaseUrl: to },
        'a move needs exclusive access to the target database',
      )
      try {
        const { rows } = await loadBackup(
          target.db,
          dumpDatabase(source.db, dumpInfo(session)),
          line.update,
        ).catch(explainFault)
        line.end()
        session.io.stderr.write(
          `Start the server with WCRM_DATABASE_URL and the same secret as before: ` +
            `${describeSecretLocation(session.config)}.\n`,
        )
        return { rows: sumRows(rows), tables: rows }
      } finally {
        await target.close()
      }
    } finally {
      line.end()
      await source.close()
    }
  },
}

export const backupVerbs: readonly AdminVerb[] = [backup, restore, move]

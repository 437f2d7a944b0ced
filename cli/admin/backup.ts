import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from '../../server/config.ts'
import { computeSecretFingerprint, readSecrets } from '../../server/secret.ts'
import { describeMediaLocation, mediaLocationsOf } from '../../server/domains/media/location.ts'
import { toLocation } from '../../server/start.ts'
import {
  type BackupFiles,
  type BackupHeader,
  type BackupLines,
  type BackupTrailer,
  dumpDatabase,
} from '../../storage/backup/dump.ts'
import { inspectBackup, isBackupLoadError, requireBackupSchema } from '../../storage/backup/lines.ts'
import { type LoadedBackup, loadBackup, requireEmptyDatabase } from '../../storage/backup/load.ts'
import { countOtherSessions, withoutWriters } from '../../storage/backup/schema.ts'
import { FOLDER_IN_USE } from '../../storage/embedded/folder.ts'
import { listMigrations, migrate } from '../../storage/migrations/migrate.ts'
import { openStorage, type Storage } from '../../storage/open.ts'
import { usageError } from '../error.ts'
import { readManifest } from '../manifest.ts'
import { readBackupFile, writeBackupFile } from './backup-file.ts'
import { createBackupMedia, restoreFiles } from './backup-media.ts'
import { conflictError, notFoundError, stringFlag } from './flags.ts'
import { openWorkingStore } from './working-store.ts'
import { requireDatabase } from './session.ts'
import { createProgressLine } from '../result.ts'
import type { AdminFlags, AdminSession, AdminVerb } from './verb.ts'

const dumpInfo = (session: AdminSession) => ({ product: readManifest().version, now: session.now })

const serverRunningError = (detail: string) => conflictError('A server is running', detail)

/** Throws when a server uses the database; `reason` says why that matters. */
const requireNoServer = async ({ db, embedded }: Storage, reason: string): Promise<void> => {
  if (!embedded && (await countOtherSessions(db)) > 0)
    throw serverRunningError(`A server is using this PostgreSQL database. Stop it first: ${reason}.`)
}

/** Opens the database exclusively and migrates it. Throws when a server uses it. */
const openExclusively = async (config: Config, reason: string): Promise<Storage> => {
  const storage = await openStorage(toLocation(config), {
    exclusive: true,
    noTimeout: true,
    connections: 2,
    prepare: config.databasePrepare,
  }).catch((error: Error & { code?: string }) => {
    if (error.code !== FOLDER_IN_USE) throw error
    throw serverRunningError(`A server is running on ${resolve(config.dataDir)}. Stop it first: ${reason}.`)
  })
  try {
    await requireNoServer(storage, reason)
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

const explainingFaults = (work: () => void): void => {
  try {
    work()
  } catch (error) {
    explainFault(error)
  }
}

const sumRows = (rows: Record<string, number>): number => Object.values(rows).reduce((sum, n) => sum + n, 0)

/** The rows of each table, for programs alone: people would not see what is printed before so many lines. */
const tablesFor = (flags: AdminFlags, rows: Record<string, number>) =>
  flags['json'] === true ? { tables: rows } : {}

/** Passes lines on, and keeps the last one, which has the counts. */
const keepTrailer = (lines: BackupLines) => {
  let trailer: BackupTrailer | undefined
  return {
    lines: (async function* () {
      for await (const batch of lines) {
        const last = batch.at(-1)!
        if (last.startsWith('{"rows"')) trailer = JSON.parse(last) as BackupTrailer
        yield batch
      }
    })(),
    trailer: () => trailer!,
  }
}

const describeMissing = ({ missing }: BackupFiles): string =>
  missing === 0
    ? ''
    : `${missing} received files that the database names were not in the store: they are not in the backup.\n`

const backup: AdminVerb = {
  name: 'backup',
  access: 'read',
  argument: ['<file>', 'the file to write'],
  scoped: false,
  summary: 'Write the whole database to one file',
  options: [['--media', 'also the received files, from WCRM_MEDIA']],
  about:
    'Writes a consistent snapshot as gzipped JSON lines, which PostgreSQL and the embedded database can ' +
    'restore. A server may be running. (The embedded database blocks other queries meanwhile.) Each table, each ' +
    'file and the whole have a SHA-256: check a backup with "wcrm admin backup verify".\n' +
    'It contains customer data and the hashes of API keys, but not the secret: back that up separately.',
  run: async (session, flags, file) => {
    const db = await session.db()
    const { location } = mediaLocationsOf(session.config)
    const line = createProgressLine(session.io, 'rows')
    const filesLine = createProgressLine(session.io, 'files')
    const media =
      flags['media'] === true
        ? await createBackupMedia(await openWorkingStore(location), filesLine.update)
        : undefined
    try {
      const options = { onRows: line.update, ...(media ? { files: media.source } : {}) }
      const dumped = dumpDatabase(db, dumpInfo(session), options)
      const { lines, trailer } = keepTrailer(media ? media.watch(dumped) : dumped)
      const { bytes, sha256 } = await writeBackupFile(file, lines).finally(line.end)
      const { rows, media: files } = trailer()
      session.io.stderr.write(
        `The backup does not contain the secret: back up ${describeSecretLocation(session.config)} too. ` +
          'A server on the restored database needs the same secret.\n' +
          (files
            ? describeMissing(files)
            : `It does not contain received files: back up ${describeMediaLocation(location)} too, or add --media.\n`),
      )
      return {
        file: resolve(file),
        bytes,
        sha256,
        media: files,
        rows: sumRows(rows),
        ...tablesFor(flags, rows),
      }
    } finally {
      await media?.close()
    }
  },
}

const verify: AdminVerb = {
  name: 'backup verify',
  access: 'none',
  argument: ['<file>', 'a backup'],
  scoped: false,
  summary: 'Check that a backup is whole, without a database',
  about:
    'Reads all of it and compares every checksum: of the file, of each table and of each received file. Exits with 2 ' +
    'when it is truncated or damaged, or is no backup; else prints what it has. "schema" is same when this version ' +
    'restores it.',
  run: async (_session, flags, file) => {
    if (!existsSync(file)) throw notFoundError(`The file ${resolve(file)} does not exist.`, '<file>')
    const reader = readBackupFile(file)
    const { header, parts, trailer } = await inspectBackup(reader.lines).catch(explainFault)
    const { version, product, made_at, migrations } = header
    return {
      file: resolve(file),
      ...reader.digest(),
      format: version,
      product,
      made_at,
      schema: compareMigrations(migrations),
      media: trailer.media ?? null,
      rows: sumRows(trailer.rows),
      ...(flags['json'] === true
        ? {
            tables: trailer.rows,
            checksums: Object.fromEntries(Object.entries(parts).map(([name, { sha256 }]) => [name, sha256])),
          }
        : { tables: Object.fromEntries(Object.entries(trailer.rows).filter(([, count]) => count > 0)) }),
    }
  },
}

/** Whether a backup with these migrations is of the schema of this version. */
const compareMigrations = (migrations: readonly string[]): 'same' | 'older' | 'newer' => {
  const ours = listMigrations()
  if (migrations.some((name) => !ours.includes(name))) return 'newer'
  return migrations.length === ours.length ? 'same' : 'older'
}

const restore: AdminVerb = {
  name: 'restore',
  access: 'create',
  argument: ['<file>', 'a backup'],
  scoped: false,
  summary: 'Fill an empty database from a backup',
  options: [['--media', 'also write the received files of the backup, into WCRM_MEDIA']],
  about:
    'The database must have no workspace, no server may be running on it, and the backup must have the same ' +
    'schema version. A damaged or truncated file changes nothing. Files are written first, so that a restore that ' +
    'cannot write them can be repeated. They replace those in the store: for a trial, set WCRM_MEDIA to a folder of ' +
    'its own.',
  run: async (session, flags, file) => {
    if (!existsSync(file)) throw notFoundError(`The file ${resolve(file)} does not exist.`, '<file>')
    // First, so that a damaged file creates no database.
    const { header, trailer } = await inspectBackup(readBackupFile(file).lines).catch(explainFault)
    explainingFaults(() => requireBackupSchema(header, listMigrations()))
    const { location } = mediaLocationsOf(session.config)
    if (flags['media'] === true && !trailer.media)
      throw usageError('The backup has no files: it was made without --media.', '--media')
    const storage = await openExclusively(session.config, 'a restore needs exclusive access to the database')
    const line = createProgressLine(session.io, 'rows')
    try {
      await requireEmptyDatabase(storage.db).catch(explainFault)
      const media =
        flags['media'] === true
          ? await restoreFiles(
              readBackupFile(file).lines,
              await openWorkingStore(location),
              createProgressLine(session.io, 'files').update,
            )
          : null
      const { rows } = await loadBackup(storage.db, readBackupFile(file).lines, line.update).catch(
        explainFault,
      )
      line.end()
      session.io.stderr.write(describeRestored(session.config, header, trailer, media !== null))
      const { made_at, product } = header
      return { file: resolve(file), made_at, product, media, rows: sumRows(rows), ...tablesFor(flags, rows) }
    } finally {
      line.end()
      await storage.close()
    }
  },
}

/** What is still to be done after a restore. */
const describeRestored = (
  config: Config,
  { secret_fingerprint: needed }: BackupHeader,
  { media }: BackupTrailer,
  hasFiles: boolean,
): string => {
  const secret =
    needed !== null && !hasSecret(config, needed)
      ? `The server needs the secret of the backed-up server: store it in the file ` +
        `${resolve(config.dataDir, 'secret')}, or set WCRM_SECRET.\n`
      : ''
  const files =
    media && !hasFiles
      ? `The ${media.files} received files of the backup were not restored: add --media to write them to ` +
        `${describeMediaLocation(mediaLocationsOf(config).location)}.\n`
      : ''
  return secret + files
}

const MOVE_REASON = 'its writes during the move would be lost'

/** Copies all rows to an empty database, while nobody can write to the source. */
const copyDatabase = (
  session: AdminSession,
  { source, target }: { source: Storage; target: Storage },
  onRows: (n: number) => void,
): Promise<LoadedBackup> => {
  const lines = async function* () {
    yield* dumpDatabase(source.db, dumpInfo(session))
    // One that ran before the writers were locked out: it goes on with the source afterwards.
    await requireNoServer(source, MOVE_REASON)
  }
  const copy = () => loadBackup(target.db, lines(), onRows).catch(explainFault)
  return source.embedded ? copy() : withoutWriters(source.db, copy)
}

const move: AdminVerb = {
  name: 'move',
  scoped: false,
  summary: 'Copy the whole database to an empty PostgreSQL database',
  required: [['--to <url>', 'PostgreSQL 15 or newer']],
  about: 'No server may be running, and none can start before the end. The source database is not changed.',
  run: async (session, flags) => {
    const to = stringFlag(flags, 'to')!
    if (!/^postgres(ql)?:\/\//.test(to))
      throw usageError(`--to must be a postgres:// URL, not "${to}".`, '--to')
    requireDatabase(session.config)
    const source = await openExclusively(session.config, MOVE_REASON)
    const line = createProgressLine(session.io, 'rows')
    try {
      const target = await openExclusively(
        { ...session.config, databaseUrl: to },
        'a move needs exclusive access to the target database',
      )
      try {
        const { rows } = await copyDatabase(session, { source, target }, line.update)
        line.end()
        session.io.stderr.write(
          `Start the server with WCRM_DATABASE_URL and the same secret as before: ` +
            `${describeSecretLocation(session.config)}.\n`,
        )
        return { rows: sumRows(rows), ...tablesFor(flags, rows) }
      } finally {
        await target.close()
      }
    } finally {
      line.end()
      await source.close()
    }
  },
}

export const backupVerbs: readonly AdminVerb[] = [backup, verify, restore, move]

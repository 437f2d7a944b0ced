import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from '../../server/config.ts'
import { fingerprintOf, locationOf } from '../../server/start.ts'
import { dump } from '../../storage/backup/dump.ts'
import { isLoadFault, load, type Loaded } from '../../storage/backup/load.ts'
import { otherSessions } from '../../storage/backup/schema.ts'
import { attachEmbedded } from '../../storage/embedded/open.ts'
import { migrate, openStorage, type Storage } from '../../storage/open.ts'
import { fault, usage } from '../fault.ts'
import { readManifest } from '../manifest.ts'
import { readLines, writeLines } from './file.ts'
import { missing, text } from './flags.ts'
import { isMade } from './session.ts'
import { progress } from './show.ts'
import type { Session, Verb } from './verb.ts'

const about = (session: Session) => ({ product: readManifest().version, now: session.now })

const requireMade = (config: Config): void => {
  if (!isMade(config))
    throw missing(
      `There is no database in the folder ${resolve(config.dataDir)}.`,
      '--data',
      'Name the folder that the server uses, or --database-url.',
    )
}

const busy = (detail: string) =>
  fault(5, { type: 'about:blank', title: 'A server is running', status: 409, detail, code: 'conflict' })

/** Opens the database for this process alone, with the schema brought up to date. */
const openAlone = async (config: Config, why: string): Promise<Storage> => {
  if (!config.databaseUrl && (await attachEmbedded(config.dataDir)))
    throw busy(`A server runs on ${resolve(config.dataDir)}. Stop it first: ${why}.`)
  const storage = await openStorage(locationOf(config), {
    unhurried: true,
    connections: 1,
    prepare: config.databasePrepare === 'on',
  })
  try {
    if (!storage.embedded && (await otherSessions(storage.db)) > 0)
      throw busy(`A server uses this PostgreSQL database. Stop it first: ${why}.`)
    await migrate(storage.db)
    return storage
  } catch (error) {
    await storage.close()
    throw error
  }
}

/** Where the secret of a configuration is; it is never shown. */
const secretPlace = (config: Config): string => {
  if (config.secret) return 'the variable WCRM_SECRET'
  const file = resolve(config.dataDir, 'secret')
  return existsSync(file) || !config.databaseUrl
    ? `the file ${file}`
    : 'WCRM_SECRET of the server, or the file "secret" in its data folder'
}

/**
 * The fingerprint of the secret that a server of this configuration would use; undefined: it would make a
 * new one.
 */
const fingerprintHere = (config: Config): string | undefined => {
  const file = join(config.dataDir, 'secret')
  const secret = config.secret ?? (existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined)
  return secret === undefined ? undefined : fingerprintOf(secret)
}

/** A file at fault is the caller's to mend. */
const loadInto = async (
  storage: Storage,
  lines: Parameters<typeof load>[1],
  onRows: (n: number) => void,
): Promise<Loaded> => {
  try {
    return await load(storage.db, lines, onRows)
  } catch (error) {
    throw isLoadFault(error) ? usage(error.message) : error
  }
}

const total = (rows: Record<string, number>): number => Object.values(rows).reduce((sum, n) => sum + n, 0)

const backup: Verb = {
  name: 'backup',
  argument: ['<file>', 'where to write it'],
  scoped: false,
  summary: 'Write the whole database to one file',
  about:
    'A gzip file of JSON lines that either database restores, of one moment, also while a server runs. (The embedded database answers nobody else meanwhile.)\n' +
    "It holds customers' data and the hashes of keys. It does not hold the secret: keep that apart.",
  run: async (session, _flags, file) => {
    requireMade(session.config)
    const db = await session.db()
    const line = progress(session.io, 'rows')
    let rows: Record<string, number> = {}
    const lines = async function* () {
      for await (const some of dump(db, about(session), line.tell)) {
        const last = some.at(-1)!
        if (last.startsWith('{"rows"')) rows = (JSON.parse(last) as { rows: typeof rows }).rows
        yield some
      }
    }
    const bytes = await writeLines(file, lines()).finally(line.end)
    session.io.stderr.write(
      `The secret is not in the backup: keep ${secretPlace(session.config)} too. A server on the restored database needs the same one.\n`,
    )
    return { file: resolve(file), bytes, rows: total(rows), tables: rows }
  },
}

const restore: Verb = {
  name: 'restore',
  argument: ['<file>', 'a backup'],
  scoped: false,
  summary: 'Fill an empty database from a backup',
  about:
    'Works for a database without a workspace, with no server running on it, and a backup of the same schema. A file that is damaged or cut short changes nothing.',
  run: async (session, _flags, file) => {
    if (!existsSync(file)) throw missing(`There is no file ${resolve(file)}.`, '<file>')
    const storage = await openAlone(session.config, 'a backup is restored into a database that nobody uses')
    const line = progress(session.io, 'rows')
    try {
      const { header, rows } = await loadInto(storage, readLines(file), line.tell)
      line.end()
      const { secret_fingerprint: needed, made_at, product } = header
      if (needed !== null && fingerprintHere(session.config) !== needed) {
        session.io.stderr.write(
          `The server needs the secret that the backup was made with: put it into the file ${resolve(session.config.dataDir, 'secret')}, or set WCRM_SECRET.\n`,
        )
      }
      return { file: resolve(file), made_at, product, rows: total(rows), tables: rows }
    } finally {
      line.end()
      await storage.close()
    }
  },
}

const move: Verb = {
  name: 'move',
  scoped: false,
  summary: 'Carry the whole database over to an empty PostgreSQL database',
  required: [['--to <url>', 'PostgreSQL 15 or newer']],
  about: 'With no server running. The database that it came from stays as it is.',
  run: async (session, flags) => {
    const to = text(flags, 'to')!
    if (!/^postgres(ql)?:\/\//.test(to)) throw usage(`--to takes a postgres:// URL, not "${to}".`, '--to')
    requireMade(session.config)
    const source = await openAlone(session.config, 'what it writes during a move would be lost')
    const line = progress(session.io, 'rows')
    try {
      const target = await openAlone(
        { ...session.config, databaseUrl: to },
        "the database that is moved to must be nobody's",
      )
      try {
        const { rows } = await loadInto(target, dump(source.db, about(session)), line.tell)
        line.end()
        session.io.stderr.write(
          `Start the server with WCRM_DATABASE_URL and with the same secret as before: ${secretPlace(session.config)}.\n`,
        )
        return { rows: total(rows), tables: rows }
      } finally {
        await target.close()
      }
    } finally {
      line.end()
      await source.close()
    }
  },
}

export const copies: readonly Verb[] = [backup, restore, move]

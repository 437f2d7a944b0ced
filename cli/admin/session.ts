import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Config, readConfig } from '../../server/config.ts'
import { toLocation } from '../../server/start.ts'
import { listWorkspaces, type WorkspaceRow } from '../../storage/workspace/admin.ts'
import type { Db } from '../../storage/database.ts'
import { compareSchema, migrate, refuseNewerSchema } from '../../storage/migrations/migrate.ts'
import { openStorage, type Storage } from '../../storage/open.ts'
import { usageError } from '../error.ts'
import type { Io } from '../io.ts'
import { parseId, notFoundError, stringFlag } from './flags.ts'
import type { AdminFlags, AdminSession, AdminVerb } from './verb.ts'

/** Reads the configuration from the flags and the environment. */
const readAdminConfig = (flags: AdminFlags, io: Io): Config => {
  if (stringFlag(flags, 'data') !== undefined && stringFlag(flags, 'databaseUrl') !== undefined)
    throw usageError('--data and --database-url are mutually exclusive.', '--data')
  try {
    return readConfig(
      { dataDir: stringFlag(flags, 'data'), databaseUrl: stringFlag(flags, 'databaseUrl') },
      io.env,
    )
  } catch (error) {
    throw usageError((error as Error).message)
  }
}

/** False when the embedded database was never created. Always true for PostgreSQL. */
const databaseExists = (config: Config): boolean =>
  config.databaseUrl !== undefined || existsSync(join(config.dataDir, 'pgdata', 'PG_VERSION'))

/** Throws when the embedded database was never created. */
export const requireDatabase = (config: Config): void => {
  if (!databaseExists(config))
    throw notFoundError(
      `There is no database in the folder ${resolve(config.dataDir)}.`,
      '--data',
      'Name the data folder of the server, or use --database-url.',
    )
}

/** Throws when a command that only reads would have to migrate the database first. */
const requireSchema = async (db: Db): Promise<void> => {
  const schema = await compareSchema(db)
  refuseNewerSchema(schema)
  if (schema.state === 'none')
    throw notFoundError(
      'The database is empty: it has no tables of wcrm.',
      '--database-url',
      'Name the database of the server; its first start creates the tables.',
    )
  if (schema.state === 'older')
    throw usageError(
      'The database has the schema of an older version, and this command only reads it.',
      '--database-url',
      'Migrate it first: run wcrm admin migrate or start a server; or use the matching version of wcrm.',
    )
}

/**
 * Opens the database, also next to a running server, without statement timeouts. Migrates it unless the
 * command only reads, and creates it only for those that may.
 */
const openForAdmin = async (config: Config, { access }: AdminVerb, io: Io): Promise<Storage> => {
  if (access !== 'create') requireDatabase(config)
  const storage = await openStorage(toLocation(config), {
    attach: true,
    warn: (message) => io.stderr.write(`Warning: ${message}.\n`),
    noTimeout: true,
    connections: 2,
    prepare: config.databasePrepare,
  })
  try {
    if (access === 'read') await requireSchema(storage.db)
    else if (access !== 'migrate')
      await migrate(storage.db, { say: (message) => io.stderr.write(`${message}\n`) })
    return storage
  } catch (error) {
    await storage.close()
    throw error
  }
}

const selectWorkspace = async (db: Db, flags: AdminFlags): Promise<WorkspaceRow> => {
  const all = await listWorkspaces(db)
  const requestedId = stringFlag(flags, 'workspace')
  if (requestedId !== undefined) {
    const id = parseId(requestedId, '--workspace')
    const found = all.find((workspace) => workspace.id === id)
    if (!found)
      throw notFoundError(
        `There is no workspace ${id}.`,
        '--workspace',
        'List them with: wcrm admin workspaces list',
      )
    return found
  }
  if (all.length === 1) return all[0]!
  if (all.length === 0)
    throw notFoundError(
      'There is no workspace yet.',
      '--workspace',
      'Create one: wcrm admin workspaces create --name NAME',
    )
  const listed = all
    .slice(0, 10)
    .map(({ id, name }) => `${id} (${name})`)
    .join(', ')
  throw usageError(
    `There are ${all.length} workspaces: choose one.`,
    '--workspace',
    `One of: ${listed}${all.length > 10 ? ', …' : ''}.`,
  )
}

/** Creates a session for these flags, and a function that closes it. */
export const openAdminSession = (
  io: Io,
  flags: AdminFlags,
  verb: AdminVerb,
): { session: AdminSession; close: () => Promise<void> } => {
  let opened: Promise<Storage> | undefined
  const config = readAdminConfig(flags, io)
  const db = async (): Promise<Db> => (await (opened ??= openForAdmin(config, verb, io))).db
  return {
    session: {
      io,
      config,
      now: new Date().toISOString(),
      db,
      workspace: async () => selectWorkspace(await db(), flags),
    },
    close: async () => {
      const storage = await opened?.catch(() => undefined)
      await storage?.close()
    },
  }
}

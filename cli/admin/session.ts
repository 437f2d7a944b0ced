import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, readConfig } from '../../server/config.ts'
import { toLocation } from '../../server/start.ts'
import { listWorkspaces, type WorkspaceRow } from '../../storage/admin.ts'
import type { Db } from '../../storage/database.ts'
import { migrate, openStorage, type Storage } from '../../storage/open.ts'
import { usageError } from '../error.ts'
import type { Io } from '../io.ts'
import { parseId, notFoundError, stringFlag } from './flags.ts'
import type { AdminFlags, AdminSession } from './verb.ts'

/** Reads the configuration from the flags and the environment. */
const readAdminConfig = (flags: AdminFlags, io: Io): Config => {
  // --data overrides WCRM_DATABASE_URL.
  const env = stringFlag(flags, 'data') === undefined ? io.env : { ...io.env, WCRM_DATABASE_URL: '' }
  if (stringFlag(flags, 'data') !== undefined && stringFlag(flags, 'databaseUrl') !== undefined)
    throw usageError('--data and --database-url are mutually exclusive.', '--data')
  try {
    return readConfig(
      { dataDir: stringFlag(flags, 'data'), databaseUrl: stringFlag(flags, 'databaseUrl') },
      env,
    )
  } catch (error) {
    throw usageError((error as Error).message)
  }
}

/** False when the embedded database was never created. Always true for PostgreSQL. */
export const databaseExists = (config: Config): boolean =>
  config.databaseUrl !== undefined || existsSync(join(config.dataDir, 'pgdata'))

/** Opens the database, also next to a running server, without statement timeouts, and migrates it. */
const openForAdmin = async (config: Config): Promise<Storage> => {
  const storage = await openStorage(toLocation(config), {
    attach: true,
    noTimeout: true,
    connections: 2,
    prepare: config.databasePrepare === 'on',
  })
  try {
    await migrate(storage.db)
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
): { session: AdminSession; close: () => Promise<void> } => {
  let opened: Promise<Storage> | undefined
  const config = readAdminConfig(flags, io)
  const db = async (): Promise<Db> => (await (opened ??= openForAdmin(config))).db
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

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, readConfig } from '../../server/config.ts'
import { locationOf } from '../../server/start.ts'
import { listWorkspaces, type WorkspaceRow } from '../../storage/admin.ts'
import type { Db } from '../../storage/database.ts'
import { migrate, openStorage, type Storage } from '../../storage/open.ts'
import { usage } from '../fault.ts'
import type { Io } from '../io.ts'
import { idOf, missing, text } from './flags.ts'
import type { Flags, Session } from './verb.ts'

/** Where the flags say that the data is. */
const configOf = (flags: Flags, io: Io): Config => {
  // A folder that was asked for wins over the variable of the other kind.
  const env = text(flags, 'data') === undefined ? io.env : { ...io.env, WCRM_DATABASE_URL: '' }
  if (text(flags, 'data') !== undefined && text(flags, 'databaseUrl') !== undefined)
    throw usage('--data and --database-url exclude each other.', '--data')
  try {
    return readConfig({ dataDir: text(flags, 'data'), databaseUrl: text(flags, 'databaseUrl') }, env)
  } catch (error) {
    throw usage((error as Error).message)
  }
}

/** True when the configured database was ever made; always for PostgreSQL, which is asked. */
export const isMade = (config: Config): boolean =>
  config.databaseUrl !== undefined || existsSync(join(config.dataDir, 'pgdata'))

/** Opens the database beside a running server, without deadlines, and brings its schema up to date. */
const openForAdmin = async (config: Config): Promise<Storage> => {
  const storage = await openStorage(locationOf(config), {
    attach: true,
    unhurried: true,
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

const chooseWorkspace = async (db: Db, flags: Flags): Promise<WorkspaceRow> => {
  const all = await listWorkspaces(db)
  const wanted = text(flags, 'workspace')
  if (wanted !== undefined) {
    const id = idOf(wanted, '--workspace')
    const found = all.find((workspace) => workspace.id === id)
    if (!found)
      throw missing(
        `There is no workspace ${id}.`,
        '--workspace',
        'wcrm admin workspaces list shows those there are.',
      )
    return found
  }
  if (all.length === 1) return all[0]!
  if (all.length === 0)
    throw missing(
      'There is no workspace yet.',
      '--workspace',
      'Make one: wcrm admin workspaces create --name NAME',
    )
  const some = all
    .slice(0, 10)
    .map(({ id, name }) => `${id} (${name})`)
    .join(', ')
  throw usage(
    `There are ${all.length} workspaces: say which.`,
    '--workspace',
    `One of: ${some}${all.length > 10 ? ', …' : ''}.`,
  )
}

/** A session over these flags, and the way to end it. */
export const openSession = (io: Io, flags: Flags): { session: Session; close: () => Promise<void> } => {
  let opened: Promise<Storage> | undefined
  const config = configOf(flags, io)
  const db = async (): Promise<Db> => (await (opened ??= openForAdmin(config))).db
  return {
    session: {
      io,
      config,
      now: new Date().toISOString(),
      db,
      workspace: async () => chooseWorkspace(await db(), flags),
    },
    close: async () => {
      const storage = await opened?.catch(() => undefined)
      await storage?.close()
    },
  }
}

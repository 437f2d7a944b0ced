import { Kysely } from 'kysely'
import { Migrator } from 'kysely/migration'
import postgres, { type Sql } from 'postgres'
import type { Database, Db } from './database.ts'
import { createPipelinedDialect, type ConnectionPools } from './driver.ts'
import { attachEmbedded, type EmbeddedDatabase, openEmbedded } from './embedded/open.ts'
import { toIsoTime } from './times.ts'
import * as spine from './migrations/0001-spine.ts'
import * as filters from './migrations/0002-filters.ts'
import * as messaging from './migrations/0003-messaging.ts'
import * as sandbox from './migrations/0004-sandbox.ts'
import * as templates from './migrations/0005-templates.ts'
import * as webhooks from './migrations/0006-webhooks.ts'
import * as audit from './migrations/0007-audit.ts'
import * as reports from './migrations/0008-reports.ts'

export type Location = { databaseUrl: string } | { dataDir: string }

export type Storage = {
  db: Db
  /** True for the embedded database, which has one session: transactions run one after another. */
  embedded: boolean
  close: () => Promise<void>
}

export type OpenOptions = {
  /** Connections to PostgreSQL; the embedded database has one. */
  connections?: number
  /** Reach the embedded database through the server that owns it, if one runs (administration). */
  attach?: boolean
  /** No timeouts: for migrations, backups and other long work. */
  noTimeout?: boolean
  /** How long a statement may take, in milliseconds; 15 seconds when absent. */
  statementTimeout?: number
  /** Off behind a PgBouncer without prepared statements. */
  prepare?: boolean
}

const timestamp = { to: 1184, from: [1114, 1184], serialize: (v: unknown) => v as string, parse: toIsoTime }
const json = {
  to: 3802,
  from: [114, 3802],
  serialize: (v: unknown) => (typeof v === 'string' ? v : JSON.stringify(v)),
  parse: (text: string) => JSON.parse(text) as unknown,
}

const connect = (
  target: string | EmbeddedDatabase,
  max: number,
  prepare: boolean,
  parameters: Record<string, string | number | boolean>,
): Sql => {
  const options = {
    max,
    prepare,
    onnotice: () => {},
    connection: { application_name: 'wcrm', TimeZone: 'UTC', ...parameters },
    types: { timestamp, json },
    connect_timeout: 10,
    idle_timeout: 0,
    max_lifetime: null,
    transform: { undefined: null },
  } as const
  return typeof target === 'string'
    ? postgres(target, options as never)
    : postgres({
        ...options,
        socket: target.connect,
        user: 'postgres',
        database: 'postgres',
        pass: '',
        ssl: false,
      } as never)
}

const createSinglePool = (main: Sql): ConnectionPools => ({ main, quick: main, custom: undefined })

/**
 * Divides the connections into pools by their use; fewer than six stay one pool. A connection is opened when
 * it is first needed.
 */
const createPools = (
  createPool: (max: number, settings?: Record<string, string>) => Sql,
  connections: number,
  prepare: boolean,
): ConnectionPools => {
  if (connections < 6) return createSinglePool(createPool(connections))
  const customPlans = prepare ? Math.floor(connections / 4) : 0
  const custom =
    customPlans > 0 ? createPool(customPlans, { plan_cache_mode: 'force_custom_plan' }) : undefined
  return { main: createPool(connections - 2 - customPlans), quick: createPool(2), custom }
}

/** Opens PostgreSQL by its URL, or the embedded database in a folder. */
export const openStorage = async (location: Location, options: OpenOptions = {}): Promise<Storage> => {
  const statementTimeout = options.noTimeout ? 0 : (options.statementTimeout ?? 15_000)
  if ('databaseUrl' in location) {
    const timeouts: Record<string, number> = options.noTimeout
      ? { statement_timeout: 0 }
      : {
          statement_timeout: statementTimeout,
          lock_timeout: 2_000,
          idle_in_transaction_session_timeout: 30_000,
        }
    const { connections = 10, prepare = true } = options
    const createPool = (max: number, settings = {}) =>
      connect(location.databaseUrl, max, prepare, { jit: 'off', ...timeouts, ...settings })
    const db = new Kysely<Database>({
      dialect: createPipelinedDialect(createPools(createPool, connections, prepare)),
    })
    return { db, embedded: false, close: () => db.destroy() }
  }
  const embedded: EmbeddedDatabase =
    (options.attach ? await attachEmbedded(location.dataDir) : undefined) ??
    (await openEmbedded(location.dataDir))
  const pools = createSinglePool(connect(embedded, 1, true, { statement_timeout: statementTimeout }))
  const db = new Kysely<Database>({ dialect: createPipelinedDialect(pools, embedded.isAborting) })
  return {
    db,
    embedded: true,
    close: async () => {
      await db.destroy()
      await embedded.close()
    },
  }
}

const migrations = {
  '0001-spine': spine,
  '0002-filters': filters,
  '0003-messaging': messaging,
  '0004-sandbox': sandbox,
  '0005-templates': templates,
  '0006-webhooks': webhooks,
  '0007-audit': audit,
  '0008-reports': reports,
}

/** Migrates the schema to the newest version, or to the given one. Several servers may start at once. */
export const migrate = async (db: Db, version?: keyof typeof migrations): Promise<void> => {
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => migrations },
    migrationTableName: 'migrations',
    migrationLockTableName: 'migrations_lock',
  })
  const { error } =
    version === undefined ? await migrator.migrateToLatest() : await migrator.migrateTo(version)
  if (error) throw error
}

import { randomUUID } from 'node:crypto'
import { Kysely } from 'kysely'
import { PostgresJSDialect } from 'kysely-postgres-js'
import postgres from 'postgres'
import { type ClientStats, type DatabaseClient, joinClients } from './client/client.ts'
import { parseServers } from './client/database-url.ts'
import type { Database, Db } from './database.ts'
import { detectAccess, type ServerAccess } from './client/detect-pooler.ts'
import { createDialect } from './client/driver.ts'
import { openEmbedded, type RestartReason } from './embedded/open.ts'
import { HEAVY_APPLICATION_NAME } from './embedded/session-queue.ts'
import { errorCode } from './client/error-codes.ts'
import { createReplica, type Replica } from './client/replicas.ts'
import { createPool, type PoolLimits } from './client/pool.ts'
import { createSessionOpener, toClientOptions, toServerOptions } from './client/session.ts'
import { createSocketOpener } from './client/sockets.ts'
import { SESSION_DEFAULTS, type SessionSettings } from './client/session-settings.ts'
import { createSignalChannel, type SignalChannel } from './client/signals.ts'
import { waitAtMost } from './client/wait-at-most.ts'

export type Location = { databaseUrl: string } | { dataDir: string }

export type Storage = {
  db: Db
  /** The same database over connections for expensive reads alone, so that those take none from `db`. */
  heavy: Db
  /** How many expensive reads may run at a time. */
  heavyReads: number
  /** True for the embedded database, which has one session: transactions run one after another. */
  embedded: boolean
  access: ServerAccess
  /** A standby for reads, where there is one. */
  replica?: Replica
  /** To the other processes that use the database; undefined where there are none, and behind a pooler. */
  signals?: SignalChannel
  /** The connections of this process by what they are for: `general`, `expensive` reads, and those of the replica. */
  poolStats: () => Readonly<Record<string, ClientStats>>
  /** True while the embedded database refuses changes for want of disk space. */
  isDiskFull: () => boolean
  /** Waits for what is in progress, for some seconds at most. */
  close: () => Promise<void>
}

export type OpenOptions = {
  /** Connections to PostgreSQL; the embedded database has one. */
  connections?: number
  /** Reach the embedded database through the server that owns it, if one runs (administration). */
  attach?: boolean
  /**
   * Other processes do not use the database meanwhile (administration): the embedded one cannot be reached through
   * this process, and on PostgreSQL the sessions of this process can be told from those of others.
   */
  exclusive?: boolean
  /** No timeouts: for migrations, backups and other long work. */
  noTimeout?: boolean
  /** How long a statement may take, in milliseconds; 15 seconds when absent. */
  statementTimeout?: number
  /** How long one waits for a connection, in milliseconds; 15 seconds when absent. */
  acquireTimeout?: number
  /**
   * After how much silence a connection on which a statement waits is closed, in milliseconds; 2 seconds more
   * than a statement may take when absent.
   */
  responseTimeout?: number
  /** Gets what the administrator of an embedded database should know, such as that its disk is full. */
  warn?: (message: string) => void
  /** The URL of a standby for reads; behind a pooler only if the database is. */
  readUrl?: string | undefined
  /** Prepared statements; `auto`, when absent, is off behind a pooler that does not know them. */
  prepare?: 'auto' | 'on' | 'off'
}

const DEFAULT_STATEMENT_TIMEOUT_MS = 15_000
/** The database reports a statement that timed out; if it is silent for so much longer, it is gone. */
const RESPONSE_MARGIN_MS = 2_000
const ACQUIRE_TIMEOUT_MS = 15_000
/** Longer than an embedded database takes to stop. */
const CLOSE_TIMEOUT_MS = 5_000

type Settings = SessionSettings & { statement_timeout: number }

/** The deadlines on this side, which hold when the database does not answer at all. */
const toLimits = (
  { acquireTimeout = ACQUIRE_TIMEOUT_MS, responseTimeout }: OpenOptions,
  { statement_timeout: timeout }: Settings,
): PoolLimits =>
  timeout === 0
    ? { responseMs: 0, acquireMs: 0 }
    : { responseMs: responseTimeout ?? timeout + RESPONSE_MARGIN_MS, acquireMs: acquireTimeout }

/** Sets the parameters of a session for one transaction. */
const toSetup = (settings: SessionSettings): string =>
  Object.entries({ TimeZone: 'UTC', ...settings })
    .map(([name, value]) => `set local ${name} = '${value}'`)
    .join('; ')

const MAX_HEAVY_CONNECTIONS = 8
/** How long one statement of an expensive read may take; the service answers 504 then. */
const HEAVY_STATEMENT_TIMEOUT_MS = 5_000
/** Shorter: while it runs, nobody else is served, and aborting it costs a restart of the database. */
const EMBEDDED_HEAVY_STATEMENT_TIMEOUT_MS = 3_000

/**
 * Has glibc keep the memory that a session of PostgreSQL frees: 8 MB of it, twice the size of a large block that was
 * freed once. By default it gives back more than 128 kB at the end of the heap, and many a statement then takes page
 * faults for the same memory as the one before (docs/decisions/0028). Few large copies fill the block: 4 million
 * single characters, counted, take 40 ms.
 */
const KEEP_MEMORY = "select octet_length(repeat(repeat(' ', 4000), 1000))"

/** The settings of `INDEXED_PLAN` statements. */
const INDEXED_PLANS: SessionSettings = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
}

/** Fewer connections are neither divided nor spared one that listens. */
const MIN_DIVIDED = 7
/**
 * Their statements take turns in the one session; but while the database works for one read, this thread may
 * work for another of the same key.
 */
const EMBEDDED_HEAVY_READS = 3

/** Enough to keep the one session busy; the others can still be dropped when their clients go. */
const EMBEDDED_MAX_PENDING = 4

/** Divides connections into pools by their use; few stay one pool. */
const openDivided = (
  openPool: (max: number, settings?: SessionSettings) => DatabaseClient,
  connections: number,
): DatabaseClient => {
  if (connections < MIN_DIVIDED) {
    const main = openPool(connections)
    return joinClients({ main, quick: main })
  }
  const custom = Math.floor(connections / 4)
  return joinClients({
    main: openPool(connections - 3 - custom),
    // Many short statements then share a packet and a wake-up: on two cores, 1.7 times as many a second as over 16.
    quick: openPool(2),
    custom: openPool(custom, { plan_cache_mode: 'force_custom_plan' }),
    indexed: openPool(1, INDEXED_PLANS),
  })
}

/**
 * Connections for expensive reads: a quarter of all, at least two of four or more. They are few so that most of
 * the database's processors are left to other work.
 */
const countHeavyConnections = (connections: number): number =>
  connections < 4 ? 1 : Math.min(MAX_HEAVY_CONNECTIONS, Math.max(2, Math.floor(connections / 4)))

/** 0 means no timeout. */
const limitTimeout = (timeout: number, limit: number): number =>
  timeout === 0 ? 0 : Math.min(timeout, limit)

/** `pool` plans every statement for its parameters. */
const joinHeavy = (pool: DatabaseClient): DatabaseClient =>
  joinClients({ main: pool, quick: pool, custom: pool })

type Sessions = Pick<Storage, 'db' | 'heavy' | 'poolStats' | 'close'>

/** `heavy`: the client of expensive reads, where they have one of their own. */
const toSessions = (general: DatabaseClient, heavy?: DatabaseClient): Sessions => {
  const createDb = (client: DatabaseClient): Db => new Kysely<Database>({ dialect: createDialect(client) })
  const db = createDb(general)
  return {
    db,
    heavy: heavy ? createDb(heavy) : db,
    poolStats: () => ({ general: general.stats(), ...(heavy ? { expensive: heavy.stats() } : {}) }),
    close: async () => {
      await Promise.all([general.close(), heavy?.close()])
    },
  }
}

/**
 * Connections for administration: one command after the other, and each may take as long as it needs. They
 * need none of the pools below. Behind a pooler those are used all the same, since they set up transactions.
 */
const openAdministration = (
  url: string,
  settings: Settings,
  { connections = 2 }: OpenOptions,
  prepare: boolean,
): Storage => {
  const servers = parseServers(url)
  const sql = postgres(servers.url, {
    ...toClientOptions(settings, prepare, servers.parameters),
    ...toServerOptions(servers),
    socket: createSocketOpener(servers),
    max: connections,
  } as never)
  const db = new Kysely<Database>({ dialect: new PostgresJSDialect({ postgres: sql }) })
  return {
    db,
    heavy: db,
    heavyReads: connections,
    embedded: false,
    poolStats: () => ({}),
    isDiskFull: () => false,
    access: { pooled: false, prepare },
    close: () => db.destroy(),
  }
}

const openPostgres = async (url: string, options: OpenOptions): Promise<Storage> => {
  const { connections = 10, prepare = 'auto' } = options
  const statementTimeout = options.noTimeout ? 0 : (options.statementTimeout ?? DEFAULT_STATEMENT_TIMEOUT_MS)
  const settings: Settings = {
    ...SESSION_DEFAULTS,
    jit: 'off',
    ...(options.exclusive ? { application_name: `wcrm ${randomUUID()}` } : {}),
    // A connection that the server closes as a statement is sent fails that statement.
    idle_session_timeout: 0,
    statement_timeout: statementTimeout,
    ...(options.noTimeout ? {} : { lock_timeout: 2_000, idle_in_transaction_session_timeout: 30_000 }),
  }
  const limits = toLimits(options, settings)
  const openProbe = createSessionOpener(url, true)
  const access = await detectAccess(
    (some) => createPool({ max: 1, limits, openSession: (onClose) => openProbe(some, onClose) }),
    settings,
  )
  const prepared = prepare === 'auto' ? access.prepare : prepare === 'on'
  if (options.noTimeout && !access.pooled) return openAdministration(url, settings, options, prepared)
  const heavyReads = countHeavyConnections(connections)
  const listens = !access.pooled && connections > MIN_DIVIDED
  const sessions = { ...options, settings, connections, heavyReads, listens, pooled: access.pooled, prepared }
  const primary = openSessions(url, sessions)
  const { db, heavy } = primary
  const standby =
    options.readUrl === undefined
      ? undefined
      : openSessions(options.readUrl, {
          ...sessions,
          listens: false,
          settings: { ...settings, default_transaction_read_only: 'on' },
        })
  const openSession = createSessionOpener(url, prepared)
  const signals = listens
    ? createSignalChannel(db, (onText, onClose) => openSession(settings, onClose, onText))
    : undefined
  return {
    db,
    heavy,
    heavyReads,
    embedded: false,
    poolStats: () => ({
      ...primary.poolStats(),
      ...(standby
        ? Object.fromEntries(
            Object.entries(standby.poolStats()).map(([name, stats]) => [`replica_${name}`, stats]),
          )
        : {}),
    }),
    isDiskFull: () => false,
    access: { ...access, prepare: prepared },
    ...(signals ? { signals } : {}),
    ...(standby ? { replica: createReplica(db, standby) } : {}),
    close: async () => {
      signals?.close()
      await Promise.all([primary.close(), standby?.close()])
    },
  }
}

type SessionOptions = OpenOptions & {
  settings: Settings
  connections: number
  /** How many of the connections are for expensive reads. */
  heavyReads: number
  /** Whether one more is to be spared for notifications. */
  listens: boolean
  pooled: boolean
  prepared: boolean
}

/** Opens the connections to one server, divided by their use. Each is opened when it is first needed. */
const openSessions = (url: string, options: SessionOptions): Sessions => {
  const { settings, connections, heavyReads, listens, pooled, prepared } = options
  const openSession = createSessionOpener(url, prepared)
  const openPool = (max: number, more: SessionSettings = {}): DatabaseClient => {
    const all = { ...settings, ...more }
    return createPool({
      max,
      limits: toLimits(options, all),
      openSession: (onClose) => openSession(pooled ? {} : all, onClose),
      setup: pooled ? toSetup(all) : undefined,
      opening: pooled ? undefined : KEEP_MEMORY,
    })
  }
  // One or two are for administration, which reads nothing beside its own work. A migration that builds an index
  // while others write needs a second one.
  if (connections <= 2) return toSessions(openDivided(openPool, connections))
  const heavy = openPool(heavyReads, {
    plan_cache_mode: 'force_custom_plan',
    // Several reads run at a time anyway, and starting workers takes milliseconds.
    max_parallel_workers_per_gather: 0,
    statement_timeout: limitTimeout(settings.statement_timeout, HEAVY_STATEMENT_TIMEOUT_MS),
  })
  return toSessions(openDivided(openPool, connections - heavyReads - (listens ? 1 : 0)), joinHeavy(heavy))
}

const openEmbeddedStorage = async (dataDir: string, options: OpenOptions): Promise<Storage> => {
  const statementTimeout = options.noTimeout ? 0 : (options.statementTimeout ?? DEFAULT_STATEMENT_TIMEOUT_MS)
  const { attach, exclusive, warn = () => {} } = options
  const embedded = await openEmbedded(dataDir, { attach, exclusive, warn })
  const openSession = createSessionOpener(embedded.connect, true)
  const openPool = (settings: Settings): DatabaseClient =>
    createPool({
      max: 1,
      maxPending: EMBEDDED_MAX_PENDING,
      limits: toLimits(options, settings),
      openSession: (onClose) => openSession(settings, onClose),
      explainError: explainReadOnly,
      explainLoss: () => explainRestart(embedded.restartReason()),
    })
  const main = openPool({ statement_timeout: statementTimeout })
  const expensive = openPool({
    plan_cache_mode: 'force_custom_plan',
    statement_timeout: limitTimeout(statementTimeout, EMBEDDED_HEAVY_STATEMENT_TIMEOUT_MS),
    application_name: HEAVY_APPLICATION_NAME,
  })
  const sessions = toSessions(joinClients({ main, quick: main }), joinHeavy(expensive))
  return {
    ...sessions,
    heavyReads: EMBEDDED_HEAVY_READS,
    embedded: true,
    isDiskFull: embedded.isDiskFull,
    access: { pooled: false, prepare: true },
    close: async () => {
      await sessions.close()
      await waitAtMost(CLOSE_TIMEOUT_MS, embedded.close())
    },
  }
}

/** PostgreSQL's own errors for what made the embedded database restart. */
const explainRestart = (reason: RestartReason | undefined): Error | undefined => {
  if (reason === 'timeout')
    return Object.assign(new Error('canceling statement due to statement timeout'), {
      code: errorCode.queryCanceled,
    })
  return reason === 'disk_full'
    ? Object.assign(new Error('the disk of the database is full'), { code: errorCode.diskFull })
    : undefined
}

/** The embedded database is read-only while its disk is full, and for no other reason. */
const explainReadOnly = (error: Error & { code?: string }): Error =>
  error.code === errorCode.readOnlyTransaction ? Object.assign(error, { code: errorCode.diskFull }) : error

/** Opens PostgreSQL by its URL, or the embedded database in a folder. */
export const openStorage = (location: Location, options: OpenOptions = {}): Promise<Storage> =>
  'databaseUrl' in location
    ? openPostgres(location.databaseUrl, options)
    : openEmbeddedStorage(location.dataDir, options)

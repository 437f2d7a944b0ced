import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { listAppliedMigrations } from '../backup/schema.ts'
import type { Db } from '../database.ts'
import { errorCode } from '../client/error-codes.ts'
import { hasTable } from './has-table.ts'
import { type MigrationList, migrations as ownMigrations } from './list.ts'
import { findSetting, upsertSetting } from '../workspace/settings.ts'

/** The setting with the newest migration that a server must know to run on the schema. */
const OLDEST_SETTING = 'schema_oldest'
const LOCK = '3853314791062309107'
/** Whoever writes to a table queues behind a migration that waits for it, so it gives up and tries again. */
const LOCK_TIMEOUT_MS = 2_000
/** How long a migration waits for another process, or for its tables; supervisors wait as long for a start. */
const WAIT_MS = 600_000
const RETRY_MS = { first: 500, last: 5_000 }

/** How the schema differs from that of this version. */
export type SchemaState = {
  /**
   * `newer`: it has migrations that this version does not know. `ahead`: the same, and they are declared to leave
   * servers of this version working.
   */
  state: 'none' | 'older' | 'same' | 'ahead' | 'newer'
  /** The newest migration that was applied. */
  newest: string | undefined
  /** Migrations that were not applied, oldest first. */
  pending: string[]
  /** Applied migrations that this version does not know. */
  unknown: string[]
}

/** A schema that this version cannot work with; `code` says why. */
type SchemaError = Error & { code: 'SCHEMA_NEWER' | 'SCHEMA_OLDER' | 'SCHEMA_BUSY' }

const schemaError = (code: SchemaError['code'], message: string): SchemaError =>
  Object.assign(new Error(message), { code })

export type MigrateOptions = {
  /** Gets what takes longer than expected, once for each reason. */
  say?: (message: string) => void
  /** How long it waits for another process and for locks, in milliseconds; ten minutes when absent. */
  waitMs?: number
  /** Other migrations than those of this version, for tests. */
  list?: MigrationList
}

/** The names of the migrations that make the schema of this version, oldest first. */
export const listMigrations = (list: MigrationList = ownMigrations): string[] => Object.keys(list).sort()

/** Asks for the table first: a statement that fails would end the transaction. */
const listApplied = async (db: Db): Promise<string[]> =>
  (await hasTable(db, 'migrations')) ? await listAppliedMigrations(db) : []

/** Compares the schema with that of this version. */
export const compareSchema = async (db: Db, list: MigrationList = ownMigrations): Promise<SchemaState> => {
  const applied = await listApplied(db)
  const known = listMigrations(list)
  const pending = known.filter((name) => !applied.includes(name))
  const unknown = applied.filter((name) => !known.includes(name))
  const describe = (state: SchemaState['state']): SchemaState => ({
    state,
    newest: applied.at(-1),
    pending,
    unknown,
  })
  if (applied.length === 0) return describe('none')
  if (unknown.length === 0) return describe(pending.length > 0 ? 'older' : 'same')
  const oldest = pending.length === 0 ? await findSetting(db, OLDEST_SETTING) : undefined
  return describe(oldest !== undefined && oldest <= known.at(-1)! ? 'ahead' : 'newer')
}

const listNames = (names: readonly string[]): string =>
  names.length === 1 ? names[0]! : `${names[0]} to ${names.at(-1)} (${names.length})`

/** Throws when servers of this version must not work on this schema. */
export const refuseNewerSchema = ({ state, unknown, pending }: SchemaState): void => {
  if (state !== 'newer') return
  const lacks = pending.length > 0 ? ` It lacks ${listNames(pending)}, which this version needs.` : ''
  throw schemaError(
    'SCHEMA_NEWER',
    `The database has migrations that this version does not know: ${listNames(unknown)}. A newer version migrated ` +
      `it, and this one cannot work with its schema.${lacks} Start the version that migrated it. To go back to ` +
      'this one, restore the backup that was made before the upgrade into an empty database.',
  )
}

/** Throws when the schema lacks migrations, for a process that must not apply them. */
export const requireMigrated = (schema: SchemaState): void => {
  refuseNewerSchema(schema)
  if (schema.pending.length === 0) return
  throw schemaError(
    'SCHEMA_OLDER',
    `The database lacks ${listNames(schema.pending)}, and this process does not migrate it (--no-migrate, ` +
      'WCRM_MIGRATE). Run this first: wcrm admin migrate',
  )
}

/** A migration that was not applied, and whether servers may run meanwhile, for whoever plans an upgrade. */
export type PendingMigration = { name: string; servers: string }

/** Describes the pending migrations. */
export const describePending = async (
  db: Db,
  list: MigrationList = ownMigrations,
): Promise<PendingMigration[]> => {
  const { pending, newest } = await compareSchema(db, list)
  return pending.map((name) => {
    const { oldest = name } = list[name]!
    const goesOn = newest !== undefined && newest >= oldest
    return {
      name,
      servers: newest === undefined ? 'none' : goesOn ? 'those that run go on' : 'stop those that run',
    }
  })
}

type Run = Required<Pick<MigrateOptions, 'list' | 'say'>> & { deadline: number }

/**
 * Migrates the schema to the newest version, and returns the names of the migrations that it applied. Several
 * processes may start at once: one applies a migration, the others wait. Nothing is done to a schema of a newer
 * version that lets this one work. Throws a `SchemaError` when it does not, or when the wait was too long.
 */
export const migrate = async (db: Db, options: MigrateOptions = {}): Promise<string[]> => {
  const { list = ownMigrations, say = () => {}, waitMs = WAIT_MS } = options
  const run: Run = { list, say: sayOnce(say), deadline: performance.now() + waitMs }
  const done: string[] = []
  let retryMs = RETRY_MS.first
  while ((await choose(db, run)).length > 0) {
    const result = await applyNext(db, run)
    if (Array.isArray(result)) {
      done.push(...result)
      retryMs = RETRY_MS.first
      continue
    }
    if (performance.now() + retryMs > run.deadline)
      throw schemaError(
        'SCHEMA_BUSY',
        `${WAITS[result]}, for ${Math.round(waitMs / 1000)} s. ${HINTS[result]}`,
      )
    run.say(`${WAITS[result]}; waiting for up to ${Math.round(waitMs / 1000)} s.`)
    await pause(retryMs)
    retryMs = Math.min(2 * retryMs, RETRY_MS.last)
  }
  return done
}

const WAITS = {
  locked: 'Another process migrates the database',
  blocked: 'A migration waits for a lock that other sessions hold',
} as const

const HINTS = {
  locked: 'Start this one again when that has ended; pg_stat_activity shows what it does.',
  blocked: 'Nothing of it was applied. End what holds the lock (a long transaction), then run it again.',
} as const

const sayOnce = (say: (message: string) => void): ((message: string) => void) => {
  const said = new Set<string>()
  return (message) => {
    if (said.has(message)) return
    said.add(message)
    say(message)
  }
}

/**
 * The migrations that one transaction applies next. An empty database gets all of them at once, so that a first
 * start that was cut off leaves nothing, those too that otherwise need no transaction: nobody else is there. Any other
 * gets one by one, so that locks are held as shortly as possible.
 */
const choose = async (db: Db, { list }: Run): Promise<string[]> => {
  const schema = await compareSchema(db, list)
  refuseNewerSchema(schema)
  return schema.state === 'none' ? schema.pending : schema.pending.slice(0, 1)
}

/** Whether what is applied next is one migration that no transaction may hold. */
const isOutside = (names: readonly string[], list: MigrationList): boolean =>
  names.length === 1 && list[names[0]!]!.transaction === 'none'

/** Applies the next migrations. Returns their names, or why it has to be tried again. */
const applyNext = async (db: Db, run: Run): Promise<string[] | keyof typeof WAITS> => {
  try {
    if (await isEmbedded(db)) return await applyEmbedded(db, run)
    return await db.transaction().execute(async (tx) => {
      if (!(await takeLock(tx))) return 'locked'
      const names = await choose(tx, run)
      // While this transaction holds the lock, another connection does what no transaction may. A concurrent build
      // waits for every snapshot, and a transaction keeps that of its last select until another statement.
      await sql.raw('set local idle_in_transaction_session_timeout = 0').execute(tx)
      return await applyAll(tx, db, names, run.list)
    })
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === errorCode.lockNotAvailable || code === errorCode.deadlockDetected) return 'blocked'
    throw error
  }
}

/** The embedded database has one session, which a transaction keeps from everybody else. */
const applyEmbedded = async (db: Db, run: Run): Promise<string[]> => {
  const names = await choose(db, run)
  if (isOutside(names, run.list)) return await applyAll(db, db, names, run.list)
  return await db.transaction().execute(async (tx) => applyAll(tx, tx, await choose(tx, run), run.list))
}

const applyAll = async (tx: Db, outside: Db, names: string[], list: MigrationList): Promise<string[]> => {
  const on = isOutside(names, list) ? outside : tx
  for (const name of names) {
    await list[name]!.up(on)
    await record(tx, name, list)
  }
  return names
}

const isEmbedded = async (db: Db): Promise<boolean> =>
  (await sql<{ embedded: boolean }>`select version() like '%(PGlite %' as embedded`.execute(db)).rows[0]!
    .embedded

/**
 * Takes the lock that excludes other processes until the end of the transaction, if it is free, and limits how
 * long the transaction waits for others.
 */
const takeLock = async (tx: Db): Promise<boolean> => {
  await sql`select set_config('lock_timeout', ${String(LOCK_TIMEOUT_MS)}::text, true)`.execute(tx)
  const { rows } = await sql<{ taken: boolean }>`
    select pg_try_advisory_xact_lock(${LOCK}::text::bigint) as taken`.execute(tx)
  return rows[0]!.taken
}

const CREATE_TABLE = `
  create table if not exists migrations (
    name varchar(255) not null primary key, timestamp varchar(255) not null)`

const record = async (db: Db, name: string, list: MigrationList): Promise<void> => {
  await sql.raw(CREATE_TABLE).execute(db)
  await sql`
    insert into migrations (name, timestamp) values (${name}, ${new Date().toISOString()})
    on conflict do nothing`.execute(db)
  const needed = list[name]!.oldest ?? name
  const stored = await findSetting(db, OLDEST_SETTING)
  if (stored === undefined || stored < needed) await upsertSetting(db, OLDEST_SETTING, needed)
}

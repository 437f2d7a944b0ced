import { randomUUID } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import type { Db } from '../storage/database.ts'
import { migrate } from '../storage/migrations/migrate.ts'
import { type Location, type OpenOptions, openStorage, type Storage } from '../storage/open.ts'

/**
 * `scripts/test.ts` prepares databases to copy, and names them in the environment; without them every
 * database is made from nothing, which takes seconds each.
 *
 * - `WCRM_TEST_POSTGRES_URL`: a superuser's URL of a PostgreSQL; absent, only the embedded one is tested.
 * - `WCRM_TEST_POOLER_URL`: the same PostgreSQL through a pooler. The product reaches it that way in files for which
 *   `WCRM_TEST_POOLED` is set (`scripts/test-worker.ts`).
 * - `WCRM_TEST_POSTGRES_TEMPLATE`: the name of a database there with the newest schema.
 * - `WCRM_TEST_TEMPLATE`, `WCRM_TEST_EMPTY_TEMPLATE`: folders of an embedded database with the newest schema
 *   and of one without any.
 */
const { env } = process

/** The databases that tests run on: `embedded`, and `postgresql` where there is one. */
export const databases: readonly string[] = [
  'embedded',
  ...(env.WCRM_TEST_POSTGRES_URL ? ['postgresql'] : []),
]

/**
 * For tests of what is the same on every database: PostgreSQL where there is one, since a server on it starts in half
 * the processor time.
 */
export const anyDatabase = databases.at(-1)!

/** Whether the file of tests that runs reaches PostgreSQL through a pooler. */
export const isPooled = (): boolean => env.WCRM_TEST_POOLED !== undefined

/** A database of a test's own. */
export type TestDatabase = {
  location: Location
  /** Its URL without the pooler, for tests that need a session. */
  direct: Location
  /** Its URL through the pooler, if there is one. */
  pooled?: Location
  /** The flags by which `wcrm serve` finds it, and a data folder. The first and its value are those of `wcrm admin`. */
  flags: string[]
  /** Deletes it and closes its connections. */
  remove: () => Promise<void>
}

const newFolder = (): string => mkdtempSync(join(tmpdir(), 'wcrm-test-'))

/**
 * Returns the path of a data folder, with a copy of the prepared database if there is one: a server starts on it in
 * half the processor time of a first start. Otherwise the server creates the database.
 */
export const prepareFolder = (dataDir: string): string => {
  if (env.WCRM_TEST_TEMPLATE) cpSync(env.WCRM_TEST_TEMPLATE, dataDir, { recursive: true })
  return dataDir
}

const createEmbedded = (template: string | undefined): TestDatabase => {
  const dataDir = newFolder()
  if (template) cpSync(template, dataDir, { recursive: true })
  return {
    location: { dataDir },
    direct: { dataDir },
    flags: ['--data', dataDir],
    // A worker that was just terminated may still be writing.
    remove: async () => rmSync(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }),
  }
}

/** Runs one statement on the server's own database. */
const administer = async (url: string, statement: string): Promise<void> => {
  const admin = postgres(url, { max: 1, onnotice: () => {} })
  try {
    await admin.unsafe(statement)
  } finally {
    await admin.end()
  }
}

const createPostgres = async (url: string, template: string | undefined): Promise<TestDatabase> => {
  const name = `wcrm_${randomUUID().replaceAll('-', '')}`
  await administer(url, `create database ${name}${template ? ` template ${template}` : ''}`)
  const dataDir = newFolder()
  const withName = (server: string) => Object.assign(new URL(server), { pathname: `/${name}` }).href
  const direct = { databaseUrl: withName(url) }
  const pooled = env.WCRM_TEST_POOLER_URL && { databaseUrl: withName(env.WCRM_TEST_POOLER_URL) }
  const location = isPooled() && pooled ? pooled : direct
  return {
    location,
    direct,
    ...(pooled ? { pooled } : {}),
    flags: ['--database-url', location.databaseUrl, '--data', dataDir],
    remove: async () => {
      await administer(url, `drop database ${name} with (force)`)
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Creates a database of this kind without a schema. */
export const createEmptyDatabase = async (database: string): Promise<TestDatabase> =>
  database === 'embedded'
    ? createEmbedded(env.WCRM_TEST_EMPTY_TEMPLATE)
    : await createPostgres(env.WCRM_TEST_POSTGRES_URL!, undefined)

/** Creates a database of this kind with the newest schema. */
export const createDatabase = async (database: string): Promise<TestDatabase> => {
  const template = database === 'embedded' ? env.WCRM_TEST_TEMPLATE : env.WCRM_TEST_POSTGRES_TEMPLATE
  const created =
    database === 'embedded'
      ? createEmbedded(template)
      : await createPostgres(env.WCRM_TEST_POSTGRES_URL!, template)
  if (!template) await withStorage(created.location, ({ db }) => migrate(db))
  return created
}

/** Opens a storage, runs `work` on it and closes it: an embedded database belongs to one process. */
export const withStorage = async <T>(
  location: Location,
  work: (storage: Storage) => Promise<T>,
  options?: OpenOptions,
): Promise<T> => {
  const storage = await openStorage(location, options)
  try {
    return await work(storage)
  } finally {
    await storage.close()
  }
}

const runOn = async (
  created: TestDatabase,
  work: (db: Db) => Promise<void>,
  options?: OpenOptions,
): Promise<void> => {
  try {
    await withStorage(created.location, ({ db }) => work(db), options)
  } finally {
    await created.remove()
  }
}

/** Runs `work` on a database of its own with the newest schema. */
export const onMigratedDatabase = async (
  database: string,
  work: (db: Db) => Promise<void>,
  options?: OpenOptions,
): Promise<void> => runOn(await createDatabase(database), work, options)

/** Runs `work` on a database of its own that has no schema yet. */
export const onEmptyDatabase = async (database: string, work: (db: Db) => Promise<void>): Promise<void> =>
  runOn(await createEmptyDatabase(database), work)

import { chmodSync, cpSync, existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { migrate } from '../storage/migrations/migrate.ts'
import { openStorage } from '../storage/open.ts'
import { postgresBinaries, startCluster } from './cluster.ts'
import { startPooler } from './pooler.ts'

/** What tests find in their environment (`tests/databases.ts`), and how it is taken away again. */
export type TestEnvironment = { env: Record<string, string>; remove: () => Promise<void> }

const MEMORY_FOLDER = '/dev/shm'
const MEMORY_NEEDED_BYTES = 3 * 1024 ** 3

/** Where databases are made: in memory where there is room, since they are many and none outlives the run. */
const temporaryFolder = (): string => {
  const stats = existsSync(MEMORY_FOLDER) ? statfsSync(MEMORY_FOLDER) : undefined
  const roomy = stats !== undefined && stats.bavail * stats.bsize >= MEMORY_NEEDED_BYTES
  return mkdtempSync(join(roomy ? MEMORY_FOLDER : tmpdir(), 'wcrm-tests-'))
}

/** An embedded database takes seconds to make; tests copy these two. */
const prepareEmbedded = async (empty: string, migrated: string): Promise<void> => {
  await (await openStorage({ dataDir: empty })).close()
  cpSync(empty, migrated, { recursive: true })
  const storage = await openStorage({ dataDir: migrated })
  await migrate(storage.db)
  await storage.close()
}

/** Makes a database with the newest schema, of which PostgreSQL makes copies by its name. */
const preparePostgres = async (url: string, name: string): Promise<void> => {
  const admin = postgres(url, { max: 1 })
  await admin.unsafe(`create database ${name}`)
  await admin.end()
  const databaseUrl = Object.assign(new URL(url), { pathname: `/${name}` }).href
  const storage = await openStorage({ databaseUrl })
  await migrate(storage.db)
  await storage.close()
}

const dropDatabase = async (url: string, name: string): Promise<void> => {
  const admin = postgres(url, { max: 1 })
  await admin.unsafe(`drop database ${name} with (force)`)
  await admin.end()
}

/**
 * A server as its owner may have set it up for other programs. Nothing that the service does may depend on these:
 * Turkish sorts and changes case otherwise than the service, and the formats are others than PostgreSQL's own.
 */
const ICU_LOCALE = 'tr-TR'
const UNUSUAL_SETTINGS = {
  timezone: 'Asia/Kolkata',
  datestyle: 'German,DMY',
  intervalstyle: 'iso_8601',
  bytea_output: 'escape',
  extra_float_digits: '-5',
  standard_conforming_strings: 'off',
  transform_null_equals: 'on',
  default_text_search_config: 'pg_catalog.german',
  default_transaction_isolation: 'serializable',
}
/** Of the processes, which no more may matter: 12:45 or 13:45 ahead of UTC. */
const TIME_ZONE = 'Pacific/Chatham'
/** Nothing in it outlives the run, so nothing is made to survive a power cut. */
const WITHOUT_DURABILITY = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }

/**
 * Makes the databases that tests copy. Brings up PostgreSQL in a cluster of its own, unless
 * `WCRM_TEST_POSTGRES_URL` names one that runs, or `embeddedOnly` is set, or none is installed. With
 * `pooler`, a PgBouncer in transaction mode is started beside it, through which some files reach it
 * (`pooled-files.ts`).
 */
export const createTestEnvironment = async ({
  embeddedOnly,
  pooler = false,
}: {
  embeddedOnly: boolean
  pooler?: boolean
}): Promise<TestEnvironment> => {
  const compileCache = join(tmpdir(), 'node-compile-cache')
  const folder = temporaryFolder()
  // The user `postgres` must reach its data in it.
  chmodSync(folder, 0o711)
  process.env.TMPDIR = folder
  const given = embeddedOnly ? undefined : process.env.WCRM_TEST_POSTGRES_URL
  const binaries = embeddedOnly || given ? undefined : postgresBinaries()
  const cluster = binaries
    ? await startCluster(binaries, { ...WITHOUT_DURABILITY, ...UNUSUAL_SETTINGS }, { icuLocale: ICU_LOCALE })
    : undefined
  const url = given ?? cluster?.url
  const behind = pooler && url ? await startPooler(url) : undefined
  let removed = false
  const removeFiles = (): void => {
    if (removed) return
    removed = true
    behind?.stop()
    cluster?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  // Also after an error or a signal.
  process.once('exit', removeFiles)
  const name = `wcrm_template_${process.pid}`
  const [empty, migrated] = [join(folder, 'empty'), join(folder, 'migrated')]
  await Promise.all([prepareEmbedded(empty, migrated), url ? preparePostgres(url, name) : undefined])
  return {
    env: {
      TMPDIR: folder,
      TZ: TIME_ZONE,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? compileCache,
      WCRM_TEST_TEMPLATE: migrated,
      WCRM_TEST_EMPTY_TEMPLATE: empty,
      ...(url ? { WCRM_TEST_POSTGRES_URL: url, WCRM_TEST_POSTGRES_TEMPLATE: name } : {}),
      ...(behind ? { WCRM_TEST_POOLER_URL: behind.url } : {}),
    },
    remove: async () => {
      if (given) await dropDatabase(given, name)
      removeFiles()
    },
  }
}

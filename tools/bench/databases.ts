import postgres from 'postgres'
import { currentVersion, scopes } from '../../catalog/index.ts'
import { postgresBinaries, startCluster } from '../../scripts/cluster.ts'
import { createApiKey, hashApiKey } from '../../server/api-keys.ts'
import { createKey } from '../../storage/access/admin-keys.ts'
import type { Db } from '../../storage/database.ts'

/**
 * Runs a benchmark on the PostgreSQL of this URL, or without one on a cluster of its own, which is deleted
 * afterwards. `sharedBuffers` and `settings`: of the own cluster.
 */
export const withPostgres = async (
  url: string | undefined,
  sharedBuffers: '512MB' | '2GB',
  work: (adminUrl: string) => Promise<void>,
  settings: Record<string, string> = {},
): Promise<void> => {
  if (url !== undefined) return await work(url)
  const binaries = postgresBinaries()
  if (!binaries)
    throw new Error('The benchmark needs PostgreSQL 15 or newer: install it, or pass --database-url.')
  const cluster = await startCluster(binaries, {
    shared_buffers: sharedBuffers,
    max_wal_size: '8GB',
    checkpoint_timeout: '30min',
    ...settings,
  })
  try {
    await work(cluster.url)
  } finally {
    cluster.stop()
  }
}

/** Runs statements over a connection of their own. */
export const runStatements = async (url: string, statements: readonly string[]): Promise<void> => {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    for (const statement of statements) await sql.unsafe(statement)
  } finally {
    await sql.end()
  }
}

/** Creates a database, and returns its URL. The process id is added to the name. */
export const createBenchDatabase = async (adminUrl: string, name: string): Promise<string> => {
  const database = `wcrm_bench_${name}_${process.pid}`
  await runStatements(adminUrl, [`create database ${database}`])
  return Object.assign(new URL(adminUrl), { pathname: `/${database}` }).href
}

export const dropBenchDatabase = (
  adminUrl: string,
  { databaseUrl }: { databaseUrl: string },
): Promise<void> =>
  runStatements(adminUrl, [`drop database ${new URL(databaseUrl).pathname.slice(1)} with (force)`])

/** Creates a key with every scope for a staff member, and returns it. */
export const createFullKey = async (
  db: Db,
  workspaceId: string,
  staffId: string,
  now: string,
): Promise<string> => {
  const key = createApiKey(false)
  await createKey(
    db,
    workspaceId,
    hashApiKey(key),
    { staff_id: staffId, scopes: [...scopes], api_version: currentVersion },
    now,
  )
  return key
}

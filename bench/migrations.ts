import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { postgresBinaries, startCluster } from '../scripts/cluster.ts'
import { compareSchema, migrate } from '../storage/migrate.ts'
import { openStorage } from '../storage/open.ts'

/**
 * What the migrations since an earlier version cost on a full database: how long each takes, and how long others wait
 * for a table meanwhile. That version fills the database by its own `bench/data.ts`. Needs the repository's history.
 */
const { values } = parseArgs({
  options: {
    contacts: { type: 'string', default: '1000000' },
    from: { type: 'string', default: 'fd781ce' },
  },
})

/** Tables that calls read and write all the time. */
const TABLES = ['contacts', 'conversations', 'messages', 'contact_tags', 'events', 'audit_log', 'idempotency']
const PROBE_MS = 5

/** Has the earlier version fill a database. Returns its URL. */
const fill = (adminUrl: string): string => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-migrations-'))
  const previous = join(folder, 'previous')
  execFileSync('git', ['worktree', 'add', '--quiet', '--detach', previous, values.from])
  try {
    symlinkSync(resolve('node_modules'), join(previous, 'node_modules'))
    const script =
      `import { fillDatabase } from './bench/data.ts'; ` +
      `console.log((await fillDatabase('${adminUrl}', ${values.contacts})).databaseUrl); process.exit(0)`
    const options = { cwd: previous, encoding: 'utf8' as const }
    return execFileSync(process.execPath, ['--input-type=module', '--eval', script], options).trim()
  } finally {
    execFileSync('git', ['worktree', 'remove', '--force', previous])
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Takes the lock of a reader and that of a writer again and again. `waits`: the longest, in milliseconds. */
const probe = async (
  url: string,
  table: string,
  mode: string,
  state: { isOver: boolean; waits: Map<string, number> },
) => {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  while (!state.isOver) {
    const startedAt = performance.now()
    await sql.begin((tx) => tx.unsafe(`lock table ${table} in ${mode} mode`)).catch(() => {})
    const ms = performance.now() - startedAt
    const name = `${mode === 'access share' ? 'reads' : 'writes'} of ${table}`
    state.waits.set(name, Math.max(state.waits.get(name) ?? 0, ms))
    await new Promise((done) => setTimeout(done, PROBE_MS))
  }
  await sql.end()
}

const cluster = await startCluster(postgresBinaries()!)
try {
  const url = fill(cluster.url)
  const { db, close } = await openStorage({ databaseUrl: url }, { noTimeout: true, connections: 3 })
  const { pending } = await compareSchema(db)
  for (const name of pending) {
    const state = { isOver: false, waits: new Map<string, number>() }
    const probes = TABLES.flatMap((table) =>
      ['access share', 'row exclusive'].map((mode) => probe(url, table, mode, state)),
    )
    await new Promise((done) => setTimeout(done, 500))
    const usual = Math.max(...state.waits.values())
    state.waits.clear()
    const startedAt = performance.now()
    await migrate(db, { to: name, waitMs: 600_000 })
    const seconds = (performance.now() - startedAt) / 1000
    state.isOver = true
    await Promise.all(probes)
    const [longest] = [...state.waits].toSorted(([, a], [, b]) => b - a)
    console.log(
      `${name}: ${seconds.toFixed(2)} s; the longest wait was ${longest![1].toFixed(0)} ms, for ${longest![0]} ` +
        `(${usual.toFixed(0)} ms before)`,
    )
  }
  await close()
} finally {
  cluster.stop()
}

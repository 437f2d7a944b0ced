import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openStorage } from '../storage/open.ts'
import { fillStorage } from './data.ts'
import { createBenchDatabase, dropBenchDatabase, runStatements, withPostgres } from './databases.ts'
import { type HostileCase, hostileCases } from './hostile-reads.ts'
import { startProduct } from './processes.ts'
import { requireWrk, runWrkRound, writeRequests, type WrkSample } from './wrk.ts'

/**
 * Measures what one key's most expensive reads do to another key's ordinary ones, on both databases: the
 * latency of gets and lists over 16 connections, idle and while the first key sends one kind of expensive
 * read over 32. Prints a line for each kind; exits with 1 when a p99 is over three times the idle one.
 */
const { values: flags } = parseArgs({
  options: {
    contacts: { type: 'string', default: '20000' },
    seconds: { type: 'string', default: '1' },
    only: { type: 'string' },
    databases: { type: 'string', default: 'postgresql,embedded' },
    'database-url': { type: 'string' },
  },
})
const contacts = Number(flags.contacts)
const seconds = Number(flags.seconds)
const root = fileURLToPath(new URL('..', import.meta.url))
const MAX_RATIO = 3
const LIGHT_CONNECTIONS = 16
const HOSTILE_CONNECTIONS = 32

type Target = { database: string | { dataDir: string }; key: string; otherKeys: readonly string[] }
/** How many of the expensive reads got each status. */
type Statuses = Map<number, number>

/** Sends expensive reads until it is stopped. A key that is over its bound comes back at once. */
const startHostile = (url: string, key: string, { requests }: HostileCase) => {
  const statuses: Statuses = new Map()
  const stop = new AbortController()
  const run = async (worker: number): Promise<void> => {
    for (let n = worker; !stop.signal.aborted; n += HOSTILE_CONNECTIONS) {
      const { method, path, body } = requests(n)
      try {
        const response = await fetch(url + path, {
          method,
          headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
          ...(body ? { body: JSON.stringify(body) } : {}),
          signal: stop.signal,
        })
        await response.arrayBuffer()
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
        // A refusal costs nothing; without a pause it would measure how fast refusals are.
        if (response.status === 429) await new Promise((resume) => setTimeout(resume, 100))
      } catch {
        // Aborted.
      }
    }
  }
  const workers = Promise.all(Array.from({ length: HOSTILE_CONNECTIONS }, (_, n) => run(n)))
  return {
    stop: async (): Promise<Statuses> => {
      stop.abort()
      await workers
      return statuses
    },
  }
}

/** Waits until the server has completed the remaining expensive reads. */
const settle = async (url: string, key: string): Promise<void> => {
  for (let attempt = 0; attempt < 100; attempt++) {
    const response = await fetch(`${url}/v1/contacts?query=zz&limit=1`, {
      headers: { Authorization: `Bearer ${key}` },
    })
    await response.arrayBuffer()
    if (response.ok) return
  }
}

const formatLine = (name: string, sample: WrkSample, quiet: WrkSample, statuses: Statuses): string => {
  const ratio = sample.p99 / quiet.p99
  const counts = [...statuses].toSorted(([a], [b]) => a - b).map(([status, n]) => `${n}×${status}`)
  return [
    name.padEnd(34),
    sample.rate.toFixed(0).padStart(7),
    sample.p50.toFixed(1).padStart(8),
    sample.p99.toFixed(1).padStart(8),
    ratio.toFixed(2).padStart(7),
    `  ${counts.join(' ')}${ratio > MAX_RATIO ? '  MISSES' : ''}`,
  ].join('')
}

/** Returns the worst ratio of a p99 to the idle one. */
const measure = async (name: string, target: Target): Promise<number> => {
  const product = await startProduct(target.database, `${root}bin/wcrm.js`)
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-fairness-'))
  try {
    const headers = { Authorization: `Bearer ${target.otherKeys[0]}` }
    const response = await fetch(`${product.url}/v1/contacts?limit=50`, { headers })
    const { data } = (await response.json()) as { data: { id: string }[] }
    const file = writeRequests(folder, 'light', [
      ...data.map(({ id }) => ({ path: `/v1/contacts/${id}`, headers })),
      ...Array.from({ length: 5 }, () => ({ path: '/v1/contacts?limit=25', headers })),
    ])
    const runRound = (time: number) =>
      runWrkRound(product.url, file, { seconds: time, connections: LIGHT_CONNECTIONS, base: 0 })
    await runRound(1)
    const quietRounds = [await runRound(2)]
    const rounds: { name: string; sample: WrkSample; statuses: Statuses }[] = []
    for (const one of hostileCases.filter((some) => !flags.only || some.name.includes(flags.only))) {
      const hostile = startHostile(product.url, target.key, one)
      const sample = await runRound(seconds)
      rounds.push({ name: one.name, sample, statuses: await hostile.stop() })
      await settle(product.url, target.key)
      // Between the others, so that both see the same machine.
      if (rounds.length % 4 === 0) quietRounds.push(await runRound(1))
    }
    const quiet = quietRounds.toSorted((a, b) => a.p99 - b.p99)[quietRounds.length >> 1]!
    const lines = [{ name: 'quiet', sample: quiet, statuses: new Map() }, ...rounds].map((round) =>
      formatLine(round.name, round.sample, quiet, round.statuses),
    )
    process.stdout.write(`\n${`${name}, ${contacts} contacts`.padEnd(34)}  req/s     p50     p99  ratio\n`)
    process.stdout.write(`${lines.join('\n')}\n`)
    return Math.max(...rounds.map(({ sample }) => sample.p99 / quiet.p99))
  } finally {
    await product.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const measurePostgres = (): Promise<number> =>
  new Promise((resolve, reject) => {
    withPostgres(flags['database-url'], '512MB', async (adminUrl) => {
      const databaseUrl = await createBenchDatabase(adminUrl, 'fairness')
      try {
        const storage = await openStorage({ databaseUrl }, { connections: 2, noTimeout: true })
        const keys = await fillStorage(storage, contacts)
        await storage.close()
        await runStatements(databaseUrl, ['vacuum (analyze)'])
        resolve(await measure('PostgreSQL', { database: databaseUrl, ...keys }))
      } finally {
        await dropBenchDatabase(adminUrl, { databaseUrl })
      }
    }).catch(reject)
  })

const measureEmbedded = async (): Promise<number> => {
  const dataDir = mkdtempSync(join(tmpdir(), 'wcrm-fairness-data-'))
  try {
    const storage = await openStorage({ dataDir }, { noTimeout: true })
    const keys = await fillStorage(storage, contacts)
    await storage.close()
    return await measure('Embedded', { database: { dataDir }, ...keys })
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

requireWrk()
const ratios: number[] = []
if (flags.databases.includes('postgresql')) ratios.push(await measurePostgres())
if (flags.databases.includes('embedded')) ratios.push(await measureEmbedded())
if (Math.max(...ratios) > MAX_RATIO) process.exitCode = 1

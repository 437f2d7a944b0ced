import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { createBenchDatabase, dropBenchDatabase, withPostgres } from './databases.ts'
import { type RunningServer, startProduct } from './processes.ts'

/** Measures the processor time of an idle server with its database, as a share of one core. Linux only. */
const TARGET_PERCENT = 0.5

const { values } = parseArgs({
  options: {
    'database-url': { type: 'string' },
    seconds: { type: 'string', default: '60' },
    settle: { type: 'string', default: '90' },
    launcher: { type: 'string', default: 'bin/wcrm.js' },
  },
})
const seconds = Number(values.seconds)

const listProcesses = (): string[] => readdirSync('/proc').filter((name) => /^\d+$/.test(name))

const readParent = (pid: string): string | undefined => {
  try {
    // The name of the program, in parentheses, may contain spaces.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[1]
  } catch {
    return undefined
  }
}

/** A process and all that descend from it. */
const listTree = (root: number): string[] => {
  const children = Map.groupBy(listProcesses(), (pid) => readParent(pid) ?? '')
  const found = [String(root)]
  for (const pid of found) found.push(...(children.get(pid) ?? []))
  return found
}

/** Nanoseconds on a processor, of all threads. `stat` counts ticks of 10 ms, which an idle process seldom fills. */
const readProcessorNs = (pid: string): number => {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]))
      .reduce((sum, ns) => sum + ns, 0)
  } catch {
    return 0
  }
}

/** Nanoseconds of processes that have ended, such as those of autovacuum. */
const readEndedNs = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
  return (Number(fields[13]) + Number(fields[14])) * 10_000_000
}

/** Milliseconds of processor time of a process and its descendants since `start`. */
const startClock = (root: number): (() => number) => {
  const read = (): Map<string, number> => new Map(listTree(root).map((pid) => [pid, readProcessorNs(pid)]))
  const [before, endedBefore] = [read(), readEndedNs(root)]
  return () => {
    let ns = readEndedNs(root) - endedBefore
    for (const [pid, total] of read()) ns += total - (before.get(pid) ?? 0)
    return ns / 1e6
  }
}

/** Returns the percentage of one core, of each process tree. */
const measure = async (roots: Record<string, number>): Promise<Record<string, number>> => {
  await pause(Number(values.settle) * 1000)
  const clocks = Object.entries(roots).map(([name, pid]) => [name, startClock(pid)] as const)
  await pause(seconds * 1000)
  return Object.fromEntries(clocks.map(([name, stop]) => [name, (stop() / (seconds * 1000)) * 100]))
}

const report = (name: string, shares: Record<string, number>): boolean => {
  const total = Object.values(shares).reduce((sum, share) => sum + share, 0)
  const parts = Object.entries(shares).map(([part, share]) => `${part} ${share.toFixed(2)} %`)
  const met = total < TARGET_PERCENT
  process.stdout.write(
    `${name}: ${total.toFixed(2)} % of a core (${parts.join(', ')}); ` +
      `target below ${TARGET_PERCENT} %: ${met ? 'met' : 'MISSED'}\n`,
  )
  return met
}

const withServer = async (
  database: string | { dataDir: string },
  work: (server: RunningServer) => Promise<boolean>,
): Promise<boolean> => {
  const server = await startProduct(database, values.launcher)
  try {
    return await work(server)
  } finally {
    await server.stop()
  }
}

const findPostmaster = async (url: string): Promise<number> => {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`
  const parent = Number(readParent(String(row!.pid)))
  await sql.end()
  return parent
}

let met = true
await withPostgres(values['database-url'], '512MB', async (adminUrl) => {
  const databaseUrl = await createBenchDatabase(adminUrl, 'idle')
  const postmaster = await findPostmaster(databaseUrl)
  met &&= await withServer(databaseUrl, async ({ pid }) =>
    report('PostgreSQL', await measure({ server: pid, database: postmaster })),
  )
  await dropBenchDatabase(adminUrl, { databaseUrl })
})
const dataDir = mkdtempSync(join(tmpdir(), 'wcrm-idle-'))
met =
  (await withServer({ dataDir }, async ({ pid }) => report('embedded', await measure({ server: pid })))) &&
  met
rmSync(dataDir, { recursive: true, force: true })
process.exitCode = met ? 0 : 1

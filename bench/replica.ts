import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { postgresBinaries, startCluster } from '../scripts/cluster.ts'
import { type Dataset, fillDatabase } from './data.ts'
import { startProduct } from './processes.ts'

/**
 * Measures what a replica saves its primary: searches and lists by 8 clients, while contacts are written, with and
 * without `WCRM_DATABASE_READ_URL`. Prints the processor time of both servers of the database for each read, and how
 * many of the reads the replica answered. Linux only.
 */
const { values } = parseArgs({
  options: {
    contacts: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '10' },
    writes: { type: 'string', default: '200' },
  },
})
const seconds = Number(values.seconds)

/** Milliseconds of processor time of the processes whose session is on a server with this port. */
const readCpuMs = (port: string): number => {
  let ticks = 0
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    try {
      const [parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ').slice(1, 2)
      const words = readFileSync(`/proc/${parent}/cmdline`, 'utf8').split('\0')
      if (!words.includes(port)) continue
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
      ticks += Number(fields[11]) + Number(fields[12])
    } catch {
      /* It has ended. */
    }
  return ticks * 10
}

const READERS = 8

type Round = { reads: number; primaryMs: number; replicaMs: number; outcomes: Record<string, number> }

const readOutcomes = async (url: string): Promise<Record<string, number>> => {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Object.fromEntries(
    [...text.matchAll(/^wcrm_replica_reads_total\{outcome="(\w+)"\} (\d+)/gm)].map(([, name, count]) => [
      name!,
      Number(count),
    ]),
  )
}

/** `replica`: the URL of the standby; undefined: the primary answers alone. */
const runRound = async (data: Dataset, replica: string | undefined): Promise<Round> => {
  if (replica === undefined) delete process.env['WCRM_DATABASE_READ_URL']
  else process.env['WCRM_DATABASE_READ_URL'] = replica
  const server = await startProduct(data.databaseUrl, 'bin/wcrm.js')
  const names = data.people.flatMap(({ name }) => name ?? [])
  const headers = { authorization: `Bearer ${data.key}`, 'content-type': 'application/json' }
  const read = (n: number) =>
    n % 2 === 0
      ? fetch(`${server.url}/v1/contacts?limit=25`, { headers })
      : fetch(`${server.url}/v1/contacts?query=${names[n % names.length]!.slice(0, 4)}&limit=25`, {
          headers,
        })
  const write = (n: number) =>
    fetch(`${server.url}/v1/ops/crm_upsert_contact`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ phone: data.people[n % data.people.length]!.phone, name: `Name ${n}` }),
    })
  const isOk = async (response: Promise<Response>): Promise<void> => {
    const { status } = await response
    await (await response).arrayBuffer()
    if (status !== 200) throw new Error(`status ${status}`)
  }
  for (let n = 0; n < 200; n++) await isOk(read(n))
  const before = [readCpuMs(portOf(data.databaseUrl)), replica === undefined ? 0 : readCpuMs(portOf(replica))]
  const end = performance.now() + seconds * 1000
  let reads = 0
  const writing = (async () => {
    for (let n = 0; performance.now() < end; n++) {
      const startedAt = performance.now()
      await isOk(write(n))
      await pause(Math.max(0, 1000 / Number(values.writes) - (performance.now() - startedAt)))
    }
  })()
  await Promise.all(
    Array.from({ length: READERS }, async () => {
      while (performance.now() < end) await isOk(read(reads++))
    }),
  )
  await writing
  const primaryMs = readCpuMs(portOf(data.databaseUrl)) - before[0]!
  const replicaMs = replica === undefined ? 0 : readCpuMs(portOf(replica)) - before[1]!
  const outcomes = await readOutcomes(server.url)
  await server.stop()
  return { reads, primaryMs, replicaMs, outcomes }
}

const portOf = (url: string): string => new URL(url).port

const binaries = postgresBinaries()
if (!binaries) throw new Error('PostgreSQL is not installed')
const primary = await startCluster(binaries)
try {
  const data = await fillDatabase(primary.url, Number(values.contacts))
  const standby = await startCluster(binaries, {}, { primary: primary.url })
  try {
    const replica = Object.assign(new URL(data.databaseUrl), { port: portOf(standby.url) }).href
    for (const url of [undefined, replica, undefined, replica]) {
      const { reads, primaryMs, replicaMs, outcomes } = await runRound(data, url)
      console.log(
        `${url === undefined ? 'without' : 'with   '} a replica: ${(reads / seconds).toFixed(0)} reads/s, ` +
          `primary ${(primaryMs / reads).toFixed(2)} ms, replica ${(replicaMs / reads).toFixed(2)} ms each`,
        url === undefined ? '' : JSON.stringify(outcomes),
      )
    }
  } finally {
    standby.stop()
  }
} finally {
  primary.stop()
}

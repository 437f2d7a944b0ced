import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** One of the three machines of the database; on one real machine, each has an address of its own. */
export type Machine = {
  number: number
  name: string
  address: string
  folder: string
  etcd?: ChildProcess
  patroni?: ChildProcess
}

export type ClusterOptions = {
  /** Data, configuration and logs; what is there already is started again. */
  folder: string
  /** Three addresses of this machine. */
  addresses: readonly string[]
  /** From where the database takes connections, as a CIDR. */
  network: string
  /** Of HAProxy, at 127.0.0.1: to the leader, and to the standbys. */
  writePort: number
  readPort: number
  /** Words before each command of a machine, such as those that enter its network. */
  enter?: (machine: Machine) => readonly string[]
}

export type Cluster = {
  machines: readonly Machine[]
  /** Through HAProxy to the leader, and to the standbys; `directUrl` names the three machines. */
  writeUrl: string
  readUrl: string
  directUrl: string
  startPatroni: (machine: Machine) => void
  /** Returns the machine that has the leader's lock and takes changes. */
  findLeader: (among?: readonly Machine[]) => Promise<Machine | undefined>
  /** Returns the standby for which commits wait. */
  findSynchronous: () => Promise<Machine | undefined>
  /** Waits until one machine leads, two follow, and one of them is synchronous. */
  waitUntilComplete: () => Promise<Machine>
  stop: () => Promise<void>
}

const here = fileURLToPath(new URL('.', import.meta.url))
const BINARIES = '/usr/lib/postgresql/15/bin'
const DATABASE_USER = 'postgres'
const ANSWER_MS = 1_000
const COMPLETE_WITHIN_MS = 120_000

/** PostgreSQL refuses to run as root. Every program becomes this process itself, so that signals reach it. */
const AS_DATABASE_USER = [
  'setpriv',
  `--reuid=${DATABASE_USER}`,
  `--regid=${DATABASE_USER}`,
  '--init-groups',
  '--',
]

const requirePrograms = (): void => {
  if (userInfo().uid !== 0) throw new Error('run it as root: its programs run as users of their own')
  const missing = [
    join(BINARIES, 'postgres'),
    '/usr/bin/patroni',
    '/usr/bin/etcd',
    '/usr/sbin/haproxy',
  ].filter((file) => !existsSync(file))
  if (missing.length > 0)
    throw new Error(
      `${missing.join(', ')}: not found. On Debian 12: apt-get install patroni etcd-server haproxy postgresql-15`,
    )
}

/** Writes `cluster.env` with passwords of its own, once, and returns the password of the product's role. */
const writeSettings = ({ folder, addresses, network, writePort, readPort }: ClusterOptions): string => {
  const file = join(folder, 'cluster.env')
  const passwords = ['SUPERUSER', 'REPLICATION', 'REST', 'WCRM'].map(
    (name) => `${name}_PASSWORD=${randomBytes(24).toString('hex')}`,
  )
  const kept = existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => /^\w+_PASSWORD=/.test(line))
    : passwords
  const settings = [
    ...kept,
    ...addresses.map((address, i) => `ADDRESS_${i + 1}=${address}`),
    `NETWORK=${network}`,
    'SHARED_BUFFERS=64MB',
    'MAX_WAL_SIZE=256MB',
    // Patroni would restart the whole machine.
    'WATCHDOG=off',
    `POSTGRES_BIN=${BINARIES}`,
    `POSTGRES_DATA=${folder}/$NODE/data/postgres`,
    `POSTGRES_SOCKETS=${folder}/$NODE`,
    `ETCD_DATA=${folder}/$NODE/etcd`,
    `PGPASS=${folder}/$NODE/pgpass`,
    'HAPROXY_ADDRESS=127.0.0.1',
    `WRITE_PORT=${writePort}`,
    `READ_PORT=${readPort}`,
  ]
  writeFileSync(file, `${settings.join('\n')}\n`, { mode: 0o600 })
  return /^WCRM_PASSWORD=(\w+)$/m.exec(kept.join('\n'))![1]!
}

/** Starts a program whose output goes to a file. */
const run = (words: readonly string[], log: string, env: NodeJS.ProcessEnv = {}): ChildProcess => {
  const output = openSync(log, 'a')
  const [program, ...args] = words
  return spawn(program!, args, {
    stdio: ['ignore', output, output],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8', ...env },
    cwd: '/',
  })
}

const readEnvironment = (file: string): NodeJS.ProcessEnv =>
  Object.fromEntries(
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line) => {
        const [, name, value] = /^(\w+)=(.*)$/.exec(line) ?? []
        return name ? [[name, value]] : []
      }),
  )

const end = async (child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> => {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

/** Asks Patroni of a machine whether it is in this role. */
const isIn = async (role: 'primary' | 'sync', { address }: Machine): Promise<boolean> => {
  try {
    const { status } = await fetch(`http://${address}:8008/${role}`, {
      signal: AbortSignal.timeout(ANSWER_MS),
    })
    return status === 200
  } catch {
    return false
  }
}

type Member = { role: string; state: string; lag?: number | string }

const listMembers = async ({ address }: Machine): Promise<Member[]> => {
  try {
    const answer = await fetch(`http://${address}:8008/cluster`, { signal: AbortSignal.timeout(ANSWER_MS) })
    return ((await answer.json()) as { members: Member[] }).members
  } catch {
    return []
  }
}

const findIn = async (role: 'primary' | 'sync', among: readonly Machine[]): Promise<Machine | undefined> => {
  const answers = await Promise.all(among.map((machine) => isIn(role, machine)))
  return among.find((_, i) => answers[i])
}

const waitUntilComplete = async (machines: readonly Machine[]): Promise<Machine> => {
  const deadline = performance.now() + COMPLETE_WITHIN_MS
  for (; performance.now() < deadline; await pause(250)) {
    const leader = await findIn('primary', machines)
    const members = leader ? await listMembers(leader) : []
    // Patroni 3.0 calls a standby that follows running, later ones streaming.
    const follow = members.filter(({ state, lag }) => /^(running|streaming)$/.test(state) && lag === 0)
    if (leader && follow.length === 2 && follow.some(({ role }) => role === 'sync_standby')) return leader
  }
  const states = await Promise.all(machines.map(listMembers))
  throw new Error(`the cluster is not complete: ${JSON.stringify(states)}`)
}

/** Creates the product's role and database, where they are not there yet. */
const createDatabase = (machine: Machine, password: string): void => {
  const [program, ...words] = [...AS_DATABASE_USER, join(BINARIES, 'psql')]
  const psql = (...args: string[]): string =>
    execFileSync(program!, [...words, '-h', machine.folder, '-U', 'postgres', '-XqAt', ...args], {
      encoding: 'utf8',
      cwd: '/',
    })
  if (
    psql(
      '-c',
      "select from pg_roles where rolname = 'wcrm'",
      '-c',
      "select 1 where exists (select from pg_database where datname = 'wcrm')",
    ).includes('1')
  )
    return
  psql('-c', `create role wcrm login password '${password}'`)
  psql('-c', 'create database wcrm owner wcrm')
}

/**
 * Starts three machines with etcd, Patroni and PostgreSQL, and HAProxy, from the templates of this folder. Throws
 * when a program is missing, or when no leader was elected in two minutes.
 */
export const startCluster = async (options: ClusterOptions): Promise<Cluster> => {
  requirePrograms()
  const { folder, addresses, writePort, readPort, enter = () => [] } = options
  mkdirSync(folder, { recursive: true })
  const password = writeSettings(options)
  const machines = addresses.map((address, i): Machine => ({
    number: i + 1,
    name: `wcrm-${i + 1}`,
    address,
    folder: join(folder, `wcrm-${i + 1}`),
  }))
  const startPatroni = (machine: Machine): void => {
    const words = [
      ...enter(machine),
      ...AS_DATABASE_USER,
      '/usr/bin/patroni',
      join(machine.folder, 'patroni.yml'),
    ]
    machine.patroni = run(words, join(machine.folder, 'patroni.log'))
  }
  for (const machine of machines) {
    execFileSync(join(here, 'render.sh'), [
      String(machine.number),
      machine.folder,
      join(folder, 'cluster.env'),
    ])
    mkdirSync(join(machine.folder, 'data'), { recursive: true })
    execFileSync('chown', ['-R', DATABASE_USER, machine.folder])
    const environment = readEnvironment(join(machine.folder, 'etcd.env'))
    const words = [...enter(machine), ...AS_DATABASE_USER, '/usr/bin/etcd', '--log-level', 'warn']
    machine.etcd = run(words, join(machine.folder, 'etcd.log'), environment)
  }
  for (const machine of machines) startPatroni(machine)
  const haproxyConfig = join(machines[0]!.folder, 'haproxy.cfg')
  const haproxy = run(['/usr/sbin/haproxy', '-db', '-f', haproxyConfig], join(folder, 'haproxy.log'))
  const stop = async (): Promise<void> => {
    await end(haproxy, 'SIGTERM')
    // The leader last, so that no other takes over.
    const leader = await findIn('primary', machines)
    const others = machines.filter((machine) => machine !== leader)
    await Promise.all(others.map(({ patroni }) => end(patroni, 'SIGTERM')))
    await end(leader?.patroni, 'SIGTERM')
    await Promise.all(machines.map(({ etcd }) => end(etcd, 'SIGTERM')))
  }
  const toUrl = (hosts: string): string => `postgres://wcrm:${password}@${hosts}/wcrm`
  try {
    createDatabase(await waitUntilComplete(machines), password)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    machines,
    writeUrl: toUrl(`127.0.0.1:${writePort}`),
    readUrl: toUrl(`127.0.0.1:${readPort}`),
    directUrl: `${toUrl(addresses.map((address) => `${address}:5432`).join(','))}?target_session_attrs=read-write`,
    startPatroni,
    findLeader: (among = machines) => findIn('primary', among),
    findSynchronous: () => findIn('sync', machines),
    waitUntilComplete: () => waitUntilComplete(machines),
    stop,
  }
}

/** The processes of PostgreSQL of a machine: the postmaster, and all that it started. */
export const listDatabaseProcesses = ({ folder }: Machine): number[] => {
  const file = join(folder, 'data', 'postgres', 'postmaster.pid')
  if (!existsSync(file)) return []
  const postmaster = Number(readFileSync(file, 'utf8').split('\n')[0])
  const children = readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false
    try {
      // "pid (name) state parent …"; a name may hold anything.
      const [, parent] = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
      return Number(parent) === postmaster
    } catch {
      return false
    }
  })
  return [postmaster, ...children.map(Number)]
}
